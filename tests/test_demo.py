"""The demo's page; the demo itself is run as a command in `tests/test_cli.py`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dffl import demo, synthetic
from dffl.federation import Federation

QUICK = {"rounds": 1, "local_epochs": 1, "progress": False}


def small(seed: int, split: str = "train", imbalanced: bool = True) -> Federation:
    return synthetic.knapsack(seed, split, clients=3, dim=8, features=3, samples=20)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_page_changes_no_number_of_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "synthetic", SimpleNamespace(knapsack=small))
    monkeypatch.setattr("sys.argv", ["dffl", "demo", "--seed", "7", "--report", "a page.html"])
    with_page, without = demo.run(7, report=tmp_path / "page.html", **QUICK), demo.run(7, **QUICK)
    assert with_page.table.equals(without.table)
    assert with_page.against_tuned.equals(without.against_tuned)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for words in (
        "nearest",
        "ridge",
        "budget for",
        "The advice in words",
        "How different the clients are",
        "How training went",
    ):
        assert words in page
    assert "dffl demo --seed 7 --report &#39;a page.html&#39;" in page

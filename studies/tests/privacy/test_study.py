"""The privacy study: every fit spends the epsilon that its row says, and tables, figure and command show what was found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dffl
from dffl.cli import app
from dffl_studies.leaderboard.federations import Divided
from dffl_studies.leaderboard.study import BLOCK_COLUMNS
from dffl_studies.privacy import study
from dffl_studies.privacy.federations import DEMO, FIXED, UNIT, divided
from dffl_studies.privacy.figure import draw
from dffl_studies.privacy.tables import all_tables

SMALL = {"clients": 5, "dim": 6, "samples": 14}
NOTHING = {"attack": "", "liars": 0, "aggregate": "mean", "start": 0, "search": False}


def small(data: str, search: bool, zones: str | None) -> Divided:
    made = [dffl.synthetic.knapsack(0, split, **SMALL) for split in ("train", "test")]  # type: ignore[arg-type]
    return Divided(*made, {"scale_features": False, "scale_costs": False} if data == FIXED else {})


@pytest.mark.parametrize(
    ("level", "method"), [(level, name) for level in study.LEVELS for name in study.methods_at(level, DEMO)]
)
def test_a_fit_spends_the_epsilon_of_its_row(level: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "divided", small)
    data = FIXED if level.startswith("sample") else DEMO
    given: dict[str, Any] = {**NOTHING, "level": level, "epsilon": 100.0, "clip": 0.3, "rounds": 2}
    found = study.judge_one(data=data, method=method, **given)  # it raises if the fit counts otherwise
    assert found["noise"].iloc[0] > 0
    assert np.isfinite(found["relative_regret"]).all()
    monkeypatch.setitem(study.TRAININGS, method, 3)
    monkeypatch.setitem(study.SAMPLE_TRAININGS, method, 3)
    with pytest.raises(ValueError, match=f"{method}: epsilon must be 100.0, found"):
        study.judge_one(data=data, method=method, **given)


def test_liars_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "divided", small)
    given = {"level": study.NOTHING, "epsilon": None, "clip": None, "rounds": 2, "start": 1, "search": False}
    found = study.judge_one(data=DEMO, method="fedavg", attack="same value", liars=2, aggregate="median", **given)
    assert found["lies"].sum() == 2


def test_fixed_units_change_no_decision() -> None:
    plain, fixed = divided(DEMO, True, None), divided(FIXED, True, None)
    np.testing.assert_allclose(plain.train[0].c, UNIT * fixed.train[0].c)
    assert fixed.settings == {"scale_features": False, "scale_costs": False}
    assert not np.array_equal(plain.train[0].x, divided(DEMO, False, None).train[0].x)  # the search has other clients


def test_the_search_takes_the_lowest_mean_of_each_epsilon_and_method() -> None:
    rows = [
        {
            "data": DEMO,
            "method": m,
            "level": "a",
            "epsilon": e,
            "clip": c,
            "rounds": r,
            "relative_regret": abs(c - e) + r / size,
        }
        for m, size in (("fedavg", 100), ("finetune", -100))
        for e in (0.1, 1.0)
        for c in (0.1, 1.0)
        for r in (5, 20)
    ]
    plain = {"data": DEMO, "method": "fedavg", "level": study.NOTHING, "epsilon": None, "clip": None}
    rows += [plain | {"rounds": r, "relative_regret": -r} for r in (5, 20)]
    assert study.choose(pd.DataFrame(rows)) == {
        (DEMO, "a", 0.1, "fedavg"): (0.1, 5),
        (DEMO, "a", 0.1, "finetune"): (0.1, 20),
        (DEMO, "a", 1.0, "fedavg"): (1.0, 5),
        (DEMO, "a", 1.0, "finetune"): (1.0, 20),
        (DEMO, study.NOTHING, None, "fedavg"): (None, 20),
    }


def test_what_is_judged_is_what_was_searched() -> None:
    searched = [job.parameters for job in study.search_study(None).jobs]
    rows = pd.DataFrame(searched).assign(relative_regret=lambda rows: -rows["rounds"])
    judged = pd.DataFrame([job.parameters for job in study.judging_study(study.choose(rows), None).jobs])
    trained = judged[~judged["method"].isin(study.NAIVE)]
    assert (trained["rounds"] == trained["level"].map(lambda level: 20 if level.startswith("sample") else 50)).all()
    assert set(trained["clip"].dropna()) <= set(study.CLIPS)


def canned(**job: Any) -> pd.DataFrame:
    """Rows whose regret says what they are: 10 % for naive ones, less without privacy and liars."""
    naive = job["method"] in study.NAIVE
    regret = 0.10 if naive else 0.02 + (job["epsilon"] is not None) * 0.5 + 0.03 * job["liars"]
    regret += 0.001 * job["start"]
    rows = [{"client": f"c{k}", "n": 5, "relative_regret": regret, "lies": k < job["liars"]} for k in range(8)]
    noise = None if job["epsilon"] is None else 2.0
    wobble = {name: regret + 1e-4 * place for place, name in enumerate(BLOCK_COLUMNS)}
    return pd.DataFrame(rows).assign(noise=noise, **wobble).astype({"noise": "float64"})


@pytest.mark.slow
def test_tables_and_figure_say_what_the_rows_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "judge_one", canned)
    out = tmp_path / "out"
    monkeypatch.delenv("DFFL_ENERGY_DATA", raising=False)
    answer = CliRunner().invoke(app, ["privacy-study", "--out", str(out), "--workers", "1", "--quiet"])
    assert answer.exit_code == 0, answer.output
    names = {"epsilon-demo", "epsilon-demo-in-fixed-units", "epsilon-demo-with-200-clients", "liars-demo"}
    table = (out / "tables" / "epsilon-demo.md").read_text()
    assert "| client, server's noise | crossfit | 1 | 52.10 | 52.10 | 8 | 5 | 2.00 | 0.03 |" in table
    assert "| nothing hidden | fedavg | - | 2.10 | 2.10 | 0 | 5 |  |  |" in table
    lied = (out / "tables" / "liars-demo.md").read_text()
    assert "| fedavg | mean | sign flip | 2.10 | 8.10 | 20.10 |" in lied
    shown = CliRunner().invoke(app, ["privacy-study", "--out", str(out), "--show", "--json"])
    assert set(json.loads(shown.stdout)["tables"]) == names
    assert (out / "figures" / "privacy.png").stat().st_size > 10_000
    # Half a study has tables and a figure, too.
    half = pd.read_parquet(out / "judged" / "rows.parquet").query("liars == 0 and (start == 0 or method == 'local-tuned')")
    assert [one.name for one in all_tables(half)] == sorted(names - {"liars-demo"})
    assert draw(half, tmp_path / "half")


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["privacy-study", "--out", str(tmp_path / "x"), "--zones", str(tmp_path / "nowhere")])
    assert refused.exit_code == 3
    assert "--zones: " in refused.output
    assert not (tmp_path / "x").exists()

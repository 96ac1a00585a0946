"""`dffl report` for a fleet: one page for all, one for each client, and a summary to be mailed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dffl.tables.pages import file_names
from tests.report.made import made_over_time
from tests.tables.test_commands import call

pytest.importorskip("plotly")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps(made_over_time(("Lisbon", "Quito/East")).as_json()))
    return folder


def test_one_page_for_all_and_one_for_each_client(kept: Path, tmp_path: Path) -> None:
    out, sites = tmp_path / "all.html", tmp_path / "new" / "sites"
    said = call("report", kept, "-o", out, "--each", sites)
    assert f"wrote {out}" in said
    assert "wrote 2 pages to" in said
    assert sorted(one.name for one in sites.iterdir()) == ["Lisbon.html", "Quito-East.html"]
    for name, other in (("Lisbon", "Quito"), ("Quito-East", "Lisbon")):
        assert other not in (sites / f"{name}.html").read_text()
        assert other in out.read_text()
    alone = tmp_path / "alone.html"
    call("report", kept, "--client", "Lisbon", "-o", alone)
    assert alone.read_text() == (sites / "Lisbon.html").read_text()
    told = json.loads(call("report", kept, "--each", sites, "--json"))
    each = {"Lisbon": str(sites / "Lisbon.html"), "Quito/East": str(sites / "Quito-East.html")}
    assert told == {"report": None, "each": each, "left_out": []}


def test_a_summary_has_five_lines_and_money_first(kept: Path) -> None:
    lines = call("report", kept, "--text").splitlines()
    assert len(lines) == 5
    assert lines[0] == "The chosen rule saves 730 EUR a year at 2 clients against your forecast"
    alone = call("report", kept, "--text", "--client", "Lisbon")
    assert alone.startswith("Lisbon: the chosen rule saves 730 EUR a year against your forecast\n")
    assert "Quito" not in alone
    assert json.loads(call("report", kept, "--text", "--json"))["text"] == lines


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "nothing to write: give --out PAGE.html, --each FOLDER or --text"),
        (["--each", "x", "--client", "Lisbon"], "--each cannot be combined with --client"),
        (["--client", "Oslo", "--text"], "no client 'Oslo' in this report (it has 'Lisbon', 'Quito/East')"),
        (["--each", "{kept}/report.json"], "report.json: is a file; choose an empty folder, or a new one"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line(words: list[str], line: str, kept: Path) -> None:
    assert line in call("report", kept, *(word.format(kept=kept) for word in words), code=3)
    assert [one.name for one in kept.iterdir()] == ["report.json"]


def test_files_are_named_after_clients_and_never_equal() -> None:
    names = ["a b", "a/b", "A B", "..", "", "x" * 200, "Zürich"]
    files = file_names(names)
    assert files["a b"] == "a-b.html"
    assert files["a/b"] == "a-b-2.html"
    assert files["A B"] == "A-B-3.html"
    assert files[".."] == "client.html"
    assert files["Zürich"] == "Zürich.html"
    assert len({file.casefold() for file in files.values()}) == len(names)
    assert all(len(file) <= 90 and "/" not in file for file in files.values())

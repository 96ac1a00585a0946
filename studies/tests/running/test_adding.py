"""A folder lasts: jobs, values and entries are added to it, by other versions too, and every row says which version made it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

import dffl
from dffl_studies.paper import study as paper
from dffl_studies.paper import variants
from dffl_studies.running import Store, Study, frames, grid, run, runner, sealed, store
from dffl_studies.running.job import Finished, run_job
from dffl_studies.running.render import write_tables
from dffl_studies.running.result import RunOptions, StudyResult, finished_rows
from dffl_studies.running.tables import Cell, Table, Value
from dffl_studies.running.versions import in_words

RESULTS = Path(__file__).parents[2] / "results"
CALLS: list[tuple[int, list[str]]] = []


def fit(*, methods: list[str], number: int, scale: float = 1.0) -> pd.DataFrame:
    """Two rows for each method."""
    CALLS.append((number, methods))
    lines = [(method, client, scale * number + len(method)) for method in methods for client in range(2)]
    return pd.DataFrame(lines, columns=["method", "client", "value"])


def study(*methods: str, count: int = 2, **more: Any) -> Study:
    protocol = {"methods": list(methods), "scale": 2.0, **more}
    return Study("grows", fit, grid(number=range(count)), protocol, inner_axis=("methods", "method"))


class Here:
    """Jobs in this process, one at a time: a second each, half of it computing."""

    def __init__(self, study: Study, count: int):
        self.study, self.slots, self.waiting = study, 1, []

    def submit(self, job):
        self.waiting.append(job)

    def finished(self, timeout):
        job = self.waiting.pop()
        done = run_job(self.study.task, self.study.arguments(job))
        return [(job, done._replace(seconds=1.0, cpu_seconds=0.5) if isinstance(done, Finished) else done)]

    def close(self):
        pass


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.setattr(runner, "LocalWorkers", Here)
    CALLS.clear()


def calls() -> list[tuple[int, list[str]]]:
    """What was computed since the last question."""
    made = CALLS.copy()
    CALLS.clear()
    return made


def refusal(call, *arguments, **options) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_only_what_is_missing_is_computed_and_the_rows_are_those_of_one_run(tmp_path):
    run(study("a", "bb"), tmp_path / "out", progress=False)
    assert calls() == [(0, ["a", "bb"]), (1, ["a", "bb"])]
    report = run(study("a", "bb", "ccc", count=3), tmp_path / "out", progress=False)
    assert calls() == [(0, ["ccc"]), (1, ["ccc"]), (2, ["a", "bb", "ccc"])]
    assert (report.jobs, report.resumed, report.failed) == (3, 0, [])
    whole = run(study("a", "bb", "ccc", count=3), tmp_path / "whole", progress=False).rows
    pd.testing.assert_frame_equal(report.rows, whole)
    assert report.rows["value"].tolist() == [1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 5, 5, 6, 6, 7, 7]
    assert Store(tmp_path / "out").jobs()[["seconds", "cpu_seconds"]].to_numpy().tolist() == [[2, 1], [2, 1], [1, 0.5]]
    calls()
    before = content(tmp_path / "out")
    assert run(study("bb", count=1), tmp_path / "out", progress=False).resumed == 1  # less than is there: nothing to do
    assert (calls(), content(tmp_path / "out")) == ([], before)
    described = Store(tmp_path / "out").describe()
    assert (described["format"], described["protocol"]["methods"]) == (3, ["a", "bb", "ccc"])


def test_the_list_is_not_compared_and_everything_else_is(tmp_path):
    run(study("a"), tmp_path, progress=False)
    for other, line in (
        (replace(study("bb"), name="other"), "study = 'grows' there and 'other' here"),
        (study("bb", scale=3.0), "scale = 2.0 there and 3.0 here"),
        (study("bb", extra=1), "extra = absent there and 1 here"),
    ):
        message = f"{tmp_path}: holds another run ({line}); choose another folder with --out"
        assert refusal(run, other, tmp_path, progress=False) == message
        assert refusal(Store(tmp_path).check, other) == message
    assert Store(tmp_path).describe()["protocol"] == {"methods": ["a"], "scale": 2.0}


def test_a_name_with_its_default_may_be_absent_on_either_side(tmp_path):
    run(study("a"), tmp_path, progress=False)
    newer = replace(study("a", rule="old", inside={"x": 1}), defaults={"rule": "old", "inside": {"x": 1, "y": None}})
    assert run(newer, tmp_path, progress=False).resumed == 2
    changed = replace(newer, protocol=newer.protocol | {"rule": "new"})
    assert "(rule = 'old' (by default) there and 'new' here)" in refusal(Store(tmp_path).check, changed)
    deep = replace(newer, protocol=newer.protocol | {"inside": {"x": 1, "y": 2}})
    assert "(y = None there and 2 here)" in refusal(Store(tmp_path).check, deep)
    run(replace(newer, jobs=grid(number=range(3)), task=lambda rule, inside, **given: fit(**given)), tmp_path, progress=False)
    assert Store(tmp_path).describe()["protocol"]["rule"] == "old"
    older = replace(study("a"), defaults={"rule": "old", "inside": {"x": 1}})
    assert run(older, tmp_path, progress=False).resumed == 2
    assert "(rule = 'old' there and absent here)" in refusal(Store(tmp_path).check, study("a"))


def test_another_version_adds_only_if_it_is_accepted(tmp_path, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setattr(dffl, "__version__", "0.9.0")
    run(study("a"), out, progress=False)
    monkeypatch.setattr(dffl, "__version__", "0.10.0")
    before = content(out)
    assert run(study("a"), out, progress=False).resumed == 2  # nothing to add
    wider = study("a", "bb", count=3)
    assert refusal(run, wider, out, progress=False) == (
        f"{out}: holds rows of dffl 0.9.0 (2 configurations), and this is 0.10.0, whose numbers may differ; "
        "add to them with --accept-versions (accept_versions=True), or choose another folder"
    )
    assert content(out) == before
    rows = run(wider, out, accept_versions=True, progress=False).rows
    made = rows.groupby(["number", "method"])["dffl"].unique().map(list).to_dict()
    assert made == {
        (0, "a"): ["0.9.0"], (0, "bb"): ["0.10.0"], (1, "a"): ["0.9.0"], (1, "bb"): ["0.10.0"], (2, "a"): ["0.10.0"],
        (2, "bb"): ["0.10.0"],
    }  # fmt: skip
    described = Store(out).describe()
    assert (described["dffl"], list(described["later_versions"])) == ("0.9.0", ["0.10.0"])
    assert "rows of dffl 0.9.0 (2 configurations) and 0.10.0 (3), and" in refusal(run, study("d"), out, progress=False)


def test_tables_say_of_which_versions_their_rows_are(tmp_path, monkeypatch):
    def shown(asked: Study) -> tuple[str, StudyResult]:
        found = finished_rows(asked, RunOptions(tmp_path, show=True))
        table = Table("means", "Means", ("method",), [Cell(("a",), "mean", Value(1.0))], "A note.")
        result, console = StudyResult(found, [table], ("means",)), Console(record=True, width=200)
        result.show(console)
        return console.export_text(), result

    monkeypatch.setattr(dffl, "__version__", "0.1.0")
    run(study("a"), tmp_path, progress=False)
    text, result = shown(study("a"))
    assert "Rows of dffl" not in text
    assert (result.as_json()["versions"], result.as_json()["remarks"]) == ({"0.1.0": 2}, [])
    monkeypatch.setattr(dffl, "__version__", "0.2.0")
    run(study("bb", count=1), tmp_path, accept_versions=True, progress=False)
    assert Store(tmp_path).describe()["protocol"]["methods"] == ["a", "bb"]
    text, result = shown(study("a", "bb", "ccc", count=4))
    versions = "Rows of dffl 0.1.0 (2 configurations) and 0.2.0 (1): see the column dffl of rows.parquet."
    means = "Means are over different configurations: of 2, bb has 1."
    assert f"{versions} {means}\n" in text
    assert "2 of 4 configurations, 0 failed; 0.0 core-minutes.\nNone has ccc.\nRun the same command again" in text
    assert result.as_json()["versions"] == {"0.1.0": 2, "0.2.0": 1}
    assert result.as_json()["values"] == {"a": 2, "bb": 1, "ccc": 0}
    assert result.as_json()["remarks"] == [f"{versions} {means}"]
    searched = replace(result, finished=replace(result.finished, rows=result.finished.rows.iloc[:2]), chosen_by=result.finished)
    assert searched.as_json()["remarks"] == [f"Search: {versions} {means}"]
    write_tables(result.tables, tmp_path / "tables", result.finished.remark)
    assert f"\nA note. {versions} {means}\n" in (tmp_path / "tables" / "means.md").read_text()
    assert f"A note. {versions} {means}" in (tmp_path / "tables" / "means.tex").read_text()
    assert (tmp_path / "tables" / "remark.md").read_text() == f"{versions} {means}\n"
    write_tables(result.tables, tmp_path / "tables", "")
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["means.csv", "means.md", "means.tex"]


def test_versions_in_words():
    assert in_words({"0.1.0": 1}) == "0.1.0 (1 configuration)"
    assert in_words({"0.1.0": 1440, "0.2.0": 1120, "1.0": 3}) == "0.1.0 (1,440 configurations), 0.2.0 (1,120) and 1.0 (3)"


def as_old(out: Path, number: int, version: str = "0.1.0") -> None:
    """Write a packed folder anew as older versions did."""
    rows, jobs, described = Store(out).rows(), Store(out).jobs(), Store(out).describe()
    described = {name: described[name] for name in ("study", "protocol", "machine")} | {"format": number, "dffl": version}
    rows = rows.drop(columns="dffl")
    for name, table in (("rows", rows), ("jobs", jobs)):
        path = out / f"{name}.parquet"
        table.to_parquet(path, index=False) if number == 1 else path.write_bytes(frames.compact(table))
    (out / "study.json").write_text(json.dumps(described if number == 1 else sealed.seal_json(described)))


@pytest.mark.parametrize("number", [1, 2])
def test_folders_of_older_formats_are_read_as_they_are_and_become_format_3_when_added_to(tmp_path, number):
    out = tmp_path / "out"
    run(study("a"), out, progress=False)
    as_old(out, number)
    before = content(out)
    assert set(Store(out).rows()["dffl"]) == {"0.1.0"}
    assert run(study("a"), out, progress=False).resumed == 2
    assert content(out) == before, "reading, and a run that has nothing to do, change nothing"
    calls()
    rows = run(study("a", "bb"), out, accept_versions=True, progress=False).rows
    assert calls() == [(0, ["bb"]), (1, ["bb"])]
    assert rows[["number", "method", "dffl"]].drop_duplicates().to_numpy().tolist() == [
        [0, "a", "0.1.0"], [0, "bb", dffl.__version__], [1, "a", "0.1.0"], [1, "bb", dffl.__version__],
    ]  # fmt: skip
    assert Store(out).jobs()["seconds"].tolist() == [2.0, 2.0]
    described = Store(out).describe()
    assert (described["format"], described["dffl"]) == (3, "0.1.0")
    for name in ("rows", "jobs"):
        sealed.check_table((out / f"{name}.parquet").read_bytes())


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_kill_at_any_moment_of_adding_loses_nothing(tmp_path, monkeypatch, number, after):
    """Killed before or after each file is moved into place: in the upgrade, while parts are written, and when all is packed."""
    write, template, wider = store.write_whole, tmp_path / "template", study("a", "bb", count=3)
    run(study("a", count=3), template, progress=False)
    as_old(template, number)
    old, expected = Store(template).rows(), ["study.json", "part", "part", "part", "jobs.parquet", "rows.parquet"]
    for kill in range(9):
        out, moved = tmp_path / str(kill), []
        shutil.copytree(template, out)

        def killed(path: Path, how: Any, kill=kill, moved=moved) -> None:
            moved.append("part" if path.parent.name == "parts" else path.name)
            if len(moved) > kill and not after:
                raise KeyboardInterrupt
            write(path, how)
            if len(moved) > kill:
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(store, "write_whole", killed)
            patched.setattr("dffl.files.write_whole", killed)
            try:
                run(wider, out, accept_versions=True, progress=False)
            except KeyboardInterrupt:
                assert len(moved) == kill + 1
            else:  # there is no further moment
                assert moved == (["jobs.parquet", "rows.parquet"] if number == 1 else []) + expected
                return
        there = Store(out).rows()
        pd.testing.assert_frame_equal(there[there["method"] == "a"].reset_index(drop=True), old)
        assert there["method"].tolist().count("bb") >= 2 * (moved[:-1].count("part")), "a finished row was lost"
        rows = run(wider, out, accept_versions=True, progress=False).rows
        assert rows["value"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
        assert Store(out).jobs()["seconds"].tolist() == [2.0, 2.0, 2.0]
        assert not (out / "parts").exists()
    raise AssertionError("the run never came to its end")


def test_values_of_one_job_that_are_not_packed_yet_are_kept_together(tmp_path):
    asked = study("a", "bb", count=1)
    keeper, key = Store(tmp_path), asked.jobs[0].key
    keeper.prepare(asked)
    for value in ("a", "bb"):
        job = replace(asked.jobs[0], values=(value,))
        keeper.write(job, Finished(fit(**asked.arguments(job)), 1.0, 0.5))
    assert [path.stem for path in (tmp_path / "parts").iterdir()] == [key]
    assert keeper.missing(asked) == []
    assert keeper.rows()["method"].tolist() == ["a", "a", "bb", "bb"]
    assert keeper.jobs()["seconds"].tolist() == [2.0]
    keeper.pack(list(asked.jobs))
    assert (len(keeper.rows()), keeper.jobs()["seconds"].tolist()) == (4, [2.0])


def test_a_damaged_part_costs_only_the_values_that_it_had(tmp_path):
    asked = study("a", "bb", "ccc", count=1)
    run(study("a", count=1), tmp_path, progress=False)
    keeper, part = Store(tmp_path), tmp_path / "parts" / f"{asked.jobs[0].key}.parquet"
    [job] = keeper.prepare(asked)
    assert job.values == ("bb", "ccc")
    keeper.write(job, Finished(fit(**asked.arguments(job)), 1.0, 0.5))
    assert keeper.missing(asked) == []
    part.write_bytes(part.read_bytes()[:-20])
    assert [one.values for one in Store(tmp_path).missing(asked)] == [("bb", "ccc")]
    calls()
    report = run(study("bb", count=1), tmp_path, progress=False)
    assert (calls(), report.damaged) == ([(0, ["bb"])], [part])
    report = run(asked, tmp_path, progress=False)
    assert (calls(), report.rows["method"].tolist()) == ([(0, ["ccc"])], ["a", "a", "bb", "bb", "ccc", "ccc"])
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 nonsense")
    assert refusal(run, study("d"), tmp_path, progress=False).startswith(f"{tmp_path / 'rows.parquet'}: is damaged (")


def test_a_damaged_part_stays_while_it_may_have_had_rows_that_the_folder_lacks(tmp_path):
    asked = study("a", "bb", count=2)
    run(study("a"), tmp_path, progress=False)
    keeper = Store(tmp_path)
    for job in keeper.prepare(asked):
        keeper.write(job, Finished(fit(**asked.arguments(job)), 1.0, 0.5))
    part = tmp_path / "parts" / f"{asked.jobs[1].key}.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    run(study("a", "bb", count=1), tmp_path, progress=False)  # has not its job
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [part.name]
    assert run(asked, tmp_path, progress=False).resumed == 1
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize(
    ("task", "line"),
    [
        (
            lambda methods, **given: fit(methods=["x"], **given),
            "ValueError: the task's rows lack method 'bb', which was asked for",
        ),
        (
            lambda methods, **given: fit(methods=["a", *methods], **given),
            "ValueError: the task's rows have method 'a', which was not asked for",
        ),
        (
            lambda methods, number, **given: pd.DataFrame({"value": [0.0]}),
            "ValueError: the task's rows have no column 'method', which the study's inner axis needs",
        ),
    ],
)  # fmt: skip
def test_rows_of_other_values_than_asked_for_are_the_failure_of_their_job(tmp_path, task, line):
    before = run(study("a", count=1), tmp_path, progress=False).rows
    report = run(replace(study("a", "bb", count=1), task=task), tmp_path, progress=False)
    assert [why for _, why in report.failed] == [line]
    pd.testing.assert_frame_equal(Store(tmp_path).rows(), before)


def test_studies_that_cannot_be_added_to_are_refused(tmp_path):
    for listed in ([], ["a", "a"], "a", [1], None):
        message = f"study 'grows': methods must be a list of different texts in the protocol, found {listed!r}"
        assert refusal(replace, study("a"), protocol={"methods": listed}) == message
    clash = replace(study("a"), task=lambda **given: fit(**given).assign(dffl="mine"))
    line = "the task's rows have a column 'dffl', which every study has; rename the column in the task"
    assert refusal(run, clash, tmp_path / "clash", progress=False) == line
    with pytest.raises(ValueError, match="study 'x': a parameter must not be called 'dffl', as the rows have such a column"):
        Study("x", fit, grid(dffl=[1]))
    with pytest.raises(ValueError, match="study 'x' has no inner axis, whose values could be chosen"):
        Study("x", fit, grid(number=[1])).asking(["a"])
    plain = Study("plain", lambda number: pd.DataFrame({"value": [number]}), grid(number=[0]))
    run(plain, tmp_path / "plain", progress=False)
    grown = replace(plain, protocol={"methods": ["a"]}, inner_axis=("methods", "method"))
    assert "its rows have no column 'method', by which the study adds to them" in refusal(
        run, grown, tmp_path / "plain", progress=False
    )


def test_another_run_in_the_folder_is_one_line(tmp_path):
    run(study("a"), tmp_path, progress=False)
    before = content(tmp_path)
    with Store(tmp_path).locked():
        message = f"{tmp_path}: another run is writing there; wait for it, or choose another folder"
        assert refusal(run, study("a", "bb"), tmp_path, progress=False) == message
        assert len(finished_rows(study("a", "bb"), RunOptions(tmp_path, show=True)).rows) == 4
    assert content(tmp_path) == before


@pytest.mark.skipif(not RESULTS.exists(), reason="needs the results of the repository")
def test_the_papers_results_are_those_of_the_study_and_can_be_added_to():
    keeper, whole = Store(RESULTS / "paper-authors"), paper.study(protocol=paper.AUTHORS)
    assert keeper.check(whole)["format"] == 1
    rows, missing = keeper.rows(), keeper.missing(whole)
    assert (len(rows), rows["job"].nunique(), set(rows["dffl"])) == (230_400, 1440, {"0.1.0"})
    begun = set(rows["job"])
    assert {job.values for job in missing if job.key in begun} == {
        tuple(m for m in paper.METHODS if m not in set(rows["method"]))
    }
    assert {job.values for job in missing if job.key not in begun} == {tuple(paper.METHODS)}
    assert len(missing) == len(whole.jobs)
    assert Store(RESULTS / "paper").check(paper.study())
    assert Store(RESULTS / "paper-variants").check(variants.study())

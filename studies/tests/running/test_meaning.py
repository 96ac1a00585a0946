"""Rows mean what their folder says: protocols are compared exactly, and no value is lost on the way to the disk."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dffl_studies.running import Job, Store, Study, grid
from dffl_studies.running.job import Finished
from studies.tests.running.tasks import healed


def kept(folder: Path, study: Study, frames: dict[int, pd.DataFrame]) -> Store:
    """A folder in which these jobs are done."""
    folder.mkdir(exist_ok=True)
    store = Store(folder)
    store.prepare(study)
    for job in study.jobs:
        if job.parameters["number"] in frames:
            store.write(job, Finished(frames[job.parameters["number"]], 0.0, 0.0))
    return store


@pytest.mark.parametrize(
    ("mine", "theirs", "line"),
    [
        ({}, {"x": None}, "x = absent there and None here"),
        ({"x": None}, {}, "x = None there and absent here"),
        ({"x": 1}, {"x": True}, "x = 1 there and True here"),
        ({"x": 1}, {"x": 1.0}, "x = 1 there and 1.0 here"),
        ({"x": {"y": 1}}, {"x": {"y": 2}}, "y = 1 there and 2 here"),
    ],
)
def test_protocols_that_differ_at_all_are_told_apart(tmp_path: Path, mine: dict, theirs: dict, line: str) -> None:
    jobs = grid(number=[0])
    kept(tmp_path, Study("s", healed, jobs, mine), {})
    with pytest.raises(ValueError, match=f"holds another run \\({line}\\)"):
        Store(tmp_path).check(Study("s", healed, jobs, theirs))
    assert Store(tmp_path).check(Study("s", healed, jobs, dict(mine)))


def test_a_protocol_that_names_the_study_does_not_hide_it(tmp_path: Path) -> None:
    jobs = grid(number=[0])
    kept(tmp_path, Study("a", healed, jobs, {"study": "s"}), {})
    with pytest.raises(ValueError, match="study = 'a' there and 'b' here"):
        Store(tmp_path).check(Study("b", healed, jobs, {"study": "s"}))


@pytest.mark.parametrize("value", [np.int64(3), float("nan"), {1, 2}, object()])
def test_what_json_does_not_have_is_no_protocol(value: Any) -> None:
    with pytest.raises(ValueError, match="study 's': protocol and jobs must be values that JSON has"):
        Study("s", healed, grid(number=[0]), {"x": value})


def test_the_order_of_columns_does_not_depend_on_which_job_was_done_first(tmp_path: Path) -> None:
    study = Study("s", healed, grid(number=range(8)))
    odd, even = pd.DataFrame({"p": [1.0], "q": [2.0]}), pd.DataFrame({"r": [3.0], "p": [4.0]})
    frames = {number: odd if number % 2 else even for number in range(8)}
    whole = kept(tmp_path / "whole", study, frames)
    whole.pack(list(study.jobs))
    assert list(whole.rows().columns) == ["job", "dffl", "number", "p", "q", "r"]
    for late in range(8):
        folder = tmp_path / str(late)
        store = kept(folder, study, {number: frame for number, frame in frames.items() if number != late})
        store.pack(list(study.jobs))
        store = kept(folder, study, {late: frames[late]})
        store.pack(list(study.jobs))
        pd.testing.assert_frame_equal(store.rows(), whole.rows())
    same = kept(tmp_path / "same", study, dict.fromkeys(range(8), even))
    assert list(same.rows().columns) == ["job", "dffl", "number", "r", "p"]  # where all agree, it is the task's own


@pytest.mark.parametrize("values", [["x"], [True], [pd.Timestamp("2020-01-01")]])
def test_a_column_of_another_kind_is_the_failure_of_its_job_alone(tmp_path: Path, values: list) -> None:
    study = Study("s", healed, grid(number=[0, 1, 2]))
    store = kept(tmp_path, study, {0: pd.DataFrame({"v": [1]}), 2: pd.DataFrame({"v": [2.5]})})
    for one in (store, Store(tmp_path)):  # also in a later run
        with pytest.raises(ValueError, match=r"the task's column 'v' holds .* here and numbers in other jobs"):
            one.write(study.jobs[1], Finished(pd.DataFrame({"v": values}), 0.0, 0.0))
    store.write(study.jobs[1], Finished(pd.DataFrame({"v": [None]}), 0.0, 0.0))  # nothing is of no kind
    store.pack(list(study.jobs))
    assert store.rows()["v"].tolist()[::2] == [1, 2.5]


def test_an_index_with_a_name_is_refused_because_it_would_be_lost(tmp_path: Path) -> None:
    rows = pd.DataFrame({"m": ["a", "a", "b"], "v": [1.0, 2.0, 3.0]}).groupby("m").mean()
    with pytest.raises(ValueError, match=r"have an index 'm', which would be lost; return rows.reset_index\(\)"):
        kept(tmp_path, Study("s", healed, grid(number=[0])), {0: rows})


def test_a_part_under_the_name_of_another_job_counts_as_damaged(tmp_path: Path) -> None:
    study = Study("s", healed, grid(number=[0, 1]))
    store = kept(tmp_path, study, {0: pd.DataFrame({"v": [1.0]})})
    parts = tmp_path / "parts"
    shutil.copy(parts / f"{study.jobs[0].key}.parquet", parts / f"{Job({'number': 1}).key}.parquet")
    assert [job.parameters["number"] for job in store.missing(study)] == [1]
    assert store.damaged == [parts / f"{study.jobs[1].key}.parquet"]

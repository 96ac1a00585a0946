"""The runner: the same rows however often it is stopped, and no finished row lost."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl_studies.running import Job, Store, Study, grid, run, runner, store
from dffl_studies.running.job import ONE_THREAD
from dffl_studies.running.workers import BLAS_THREADS
from studies.tests.running import tasks

ROOT = Path(__file__).parents[3]


def values(study: Study, folder: Path) -> pd.DataFrame:
    return run(study, folder, workers=2, progress=False).rows


def test_rows_carry_the_parameters_in_the_order_of_the_grid(tmp_path):
    study = tasks.slow_study(pause=0.0, count=3)
    rows = values(study, tmp_path / "out")
    assert list(rows.columns) == ["job", "dffl", "number", "letter", "line", "value"]
    assert rows["number"].tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert rows["letter"].tolist() == (["a"] * 3 + ["b"] * 3) * 3
    expected = tasks.noisy_rows(scale=2.0, number=1, letter="b")["value"]
    assert rows.query("number == 1 and letter == 'b'")["value"].tolist() == expected.tolist()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".lock", "jobs.parquet", "rows.parquet", "study.json"]
    jobs = Store(tmp_path / "out").jobs()
    assert jobs["job"].tolist() == [job.key for job in study.jobs]
    assert (jobs["seconds"] >= 0).all()


def start(folder: Path, pause: float) -> subprocess.Popen[bytes]:
    """A run in a process, and a process group, of its own."""
    command = [sys.executable, "-m", "studies.tests.running.tasks", str(folder), str(pause)]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE)


def finished(folder: Path) -> int:
    return len(list(folder.glob("parts/*.parquet")))


def processes_in(group: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for orphans in /proc")
def test_killed_at_random_moments_it_ends_with_the_same_rows(tmp_path):
    undisturbed = values(tasks.slow_study(0.1, count=30), tmp_path / "whole")
    folder, moments = tmp_path / "killed", random.Random(20261116)
    groups, counts = [], [0]
    for kill in range(5):
        with start(folder, pause=0.1) as process:
            # The first dies while it starts, the others some time after they have finished something.
            while kill and process.poll() is None and finished(folder) <= counts[-1]:
                time.sleep(0.02)
            time.sleep(0.5 * moments.random())
            process.send_signal(signal.SIGKILL)
        groups.append(process.pid)
        counts.append(finished(folder))
    assert counts == sorted(counts), "a finished row was lost"
    assert 0 < counts[-1] < 60, "the kills should have come in the middle"
    with start(folder, pause=0.1) as process:
        errors = process.stderr.read()
    assert process.returncode == 0, errors
    pd.testing.assert_frame_equal(Store(folder).rows(), undisturbed)
    assert not list(folder.rglob("*.tmp"))
    deadline = time.monotonic() + 10
    while (left := [pid for group in groups for pid in processes_in(group)]) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left, "workers outlived the run that was killed"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_stops_soon_and_keeps_what_is_finished(tmp_path, how):
    with start(tmp_path / "out", pause=1.0) as process:
        while not finished(tmp_path / "out") and process.poll() is None:
            time.sleep(0.05)
        asked = time.monotonic()
        os.killpg(process.pid, how)  # as a terminal does: to the workers too
        assert b"KeyboardInterrupt" in process.stderr.read()
    assert time.monotonic() - asked < 15
    assert 0 < finished(tmp_path / "out") < 60
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_a_failure_is_reported_and_does_not_stop_the_rest(tmp_path):
    study = Study("troubled", tasks.troubled, grid(number=range(9)))
    report = run(study, tmp_path / "out", workers=2, progress=False)
    assert sorted(report.rows["number"]) == [0, 7, 8]
    why = {job.parameters["number"]: line for job, line in report.failed}
    assert why == {
        1: "ValueError: number 1 is not to be had",
        2: "its worker died: out of memory, killed, or unable to import the task",
        3: "TypeError: a study's task must return a pandas.DataFrame, found dict",
        4: "SystemExit: 0",
        5: "ValueError: a study's task must return at least one row, found none",
        6: "ColumnClashError: the task's rows have a column 'number', which is also a parameter of the grid; "
        "rename the column in the task, or the parameter",
    }
    traces = [path.read_text() for path in (tmp_path / "out" / "failed").iterdir()]
    assert len(traces) == 6
    assert any("second line" in trace for trace in traces)
    again = run(Study("troubled", tasks.healed, study.jobs), tmp_path / "out", workers=1, progress=False)
    assert again.resumed == 3
    assert again.rows["value"].tolist() == [float(number) for number in range(9)]
    assert not (tmp_path / "out" / "failed").exists()


def test_a_grid_whose_parameter_is_a_column_of_the_rows_ends_with_the_first_job(tmp_path):
    """All jobs would train, and then fail."""
    study = Study("clash", tasks.clashing, grid(method=["local", "fedavg"], number=list(range(10))), {"folder": str(tmp_path)})
    with pytest.raises(ValueError, match=r"a column 'method', which is also a parameter of the grid; rename") as refused:
        run(study, tmp_path / "study", workers=1, progress=False)
    assert "\n" not in str(refused.value)
    assert len(list(tmp_path.glob("ran-*"))) <= 2, "the one that was finished, and the one that was under way"
    with pytest.raises(ValueError, match="study 'x': a parameter must not be called 'job'"):
        Study("x", tasks.clashing, grid(job=[1]))


def test_a_worker_has_one_core(tmp_path, monkeypatch):
    for name in BLAS_THREADS:
        monkeypatch.delenv(name, raising=False)
    rows = values(Study("where", tasks.where, grid(number=range(2))), tmp_path / "out")
    assert rows["cores"].tolist() == [1, 1]
    assert rows["flags"].tolist() == [ONE_THREAD] * 2
    assert all(rows[name].tolist() == ["1", "1"] for name in BLAS_THREADS)
    assert not any(name in os.environ for name in BLAS_THREADS)


def test_places_reach_the_task_and_are_not_compared(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text(name)
    first = Study("noted", tasks.noted, grid(number=range(2)), places={"folder": tmp_path / "one"})
    assert values(first, tmp_path / "out")["note"].tolist() == ["one"] * 2
    assert "one" not in json.dumps(Store(tmp_path / "out").describe()["protocol"])
    moved = Study("noted", tasks.noted, grid(number=range(3)), places={"folder": tmp_path / "other"})
    assert values(moved, tmp_path / "out")["note"].tolist() == ["one"] * 2 + ["other"]
    assert moved.only(["number=1"]).places == moved.places


@pytest.mark.slow
def test_a_wider_grid_goes_on_in_the_same_folder(tmp_path):
    narrow = tasks.slow_study(0.0, count=2)
    first = values(narrow, tmp_path / "out")
    report = run(tasks.slow_study(0.0, count=3), tmp_path / "out", workers=1, progress=False)
    assert (report.resumed, report.jobs) == (4, 6)
    pd.testing.assert_frame_equal(report.rows.head(len(first)), first)
    assert run(narrow, tmp_path / "out", progress=False).resumed == 4


def refused(study: Study, folder: Path) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        run(study, folder, workers=1, progress=False)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_another_protocol_study_or_version_is_refused(tmp_path, monkeypatch):
    study = tasks.slow_study(0.0, count=2)
    before = values(study, tmp_path / "out")
    other = Study("slow", tasks.noisy_rows, study.jobs, {"scale": 3.0, "pause": 0.0})
    assert "(scale = 2.0 there and 3.0 here)" in refused(other, tmp_path / "out")
    assert "study = 'slow' there and 'fast' here" in refused(Study("fast", *study_parts(study)), tmp_path / "out")
    monkeypatch.setattr(dffl, "__version__", "9.9")
    assert "holds rows of dffl 0" in refused(tasks.slow_study(0.0, count=3), tmp_path / "out")
    pd.testing.assert_frame_equal(run(study, tmp_path / "out", progress=False).rows, before)  # all there: nothing to mix


def study_parts(study: Study):
    return study.task, study.jobs, study.protocol


def test_folders_that_hold_something_else_are_refused(tmp_path):
    study = tasks.slow_study(0.0, count=1)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("mine")
    assert "is not empty and holds no study" in refused(study, tmp_path / "notes")
    assert (tmp_path / "notes" / "diary.txt").read_text() == "mine"
    (tmp_path / "file").write_text("")
    assert "must be a folder" in refused(study, tmp_path / "file")
    values(study, tmp_path / "out")
    (tmp_path / "out" / "study.json").write_text('{"format": 1, "stu')
    assert "study.json: cannot be read" in refused(study, tmp_path / "out")
    (tmp_path / "out" / "study.json").write_text(json.dumps({"format": 77}))
    assert "format must be 1 to 3, found 77" in refused(study, tmp_path / "out")


def test_half_written_parts_are_run_again_and_damaged_rows_are_named(tmp_path):
    study = tasks.slow_study(0.0, count=2)
    whole = values(study, tmp_path / "whole")
    out = tmp_path / "out"
    keeper = Store(out)
    out.mkdir()
    keeper.prepare(study)
    for job in study.jobs[:3]:
        keeper.write(job, store.Finished(tasks.noisy_rows(**study.protocol, **job.parameters), 1.0, 1.0))
    part = out / "parts" / f"{study.jobs[1].key}.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    report = run(study, out, workers=1, progress=False)
    assert report.resumed == 2
    assert report.damaged == [part]
    assert not (out / "parts").exists()
    pd.testing.assert_frame_equal(report.rows, whole)
    (out / "rows.parquet").write_bytes(b"PAR1 nonsense")
    assert "rows.parquet: is damaged" in refused(study, out)


def test_a_kill_while_packing_neither_loses_nor_doubles(tmp_path, monkeypatch):
    study, out = tasks.slow_study(0.0, count=2), tmp_path / "out"
    write = store.write_whole

    def killed(path, how):
        if path.name == "rows.parquet":
            raise KeyboardInterrupt
        write(path, how)

    monkeypatch.setattr(store, "write_whole", killed)
    with pytest.raises(KeyboardInterrupt):
        run(study, out, workers=1, progress=False)
    monkeypatch.undo()
    assert (out / "jobs.parquet").exists()
    assert len(Store(out).jobs()) == 4
    assert len(Store(out).rows()) == 12
    (out / "parts" / ".left.tmp").write_text("half")
    assert run(study, out, workers=1, progress=False).resumed == 4
    assert len(Store(out).jobs()) == 4
    assert not (out / "parts").exists()


def test_a_reader_sees_every_row_while_a_run_packs(tmp_path, monkeypatch):
    study, out = tasks.slow_study(0.0, count=2), tmp_path / "out"
    out.mkdir()
    writer, reader = Store(out), Store(out)
    writer.prepare(study)
    for job in study.jobs:
        writer.write(job, store.Finished(tasks.noisy_rows(**study.protocol, **job.parameters), 1.0, 1.0))
    read = reader._packed
    monkeypatch.setattr(reader, "_packed", lambda *a, **k: (writer.pack(list(study.jobs)), read(*a, **k))[1])
    assert len(reader.rows()) == 12
    assert reader.missing(study) == []
    assert len(reader.jobs()) == 4
    assert reader.damaged == []


@pytest.mark.slow
def test_pieces_of_a_grid_end_in_the_order_of_the_whole(tmp_path):
    study = tasks.slow_study(0.0, count=2)
    for letter in "ba":
        run(study.only([f"letter={letter}"]), tmp_path / "pieces", workers=1, progress=False)
    pieces = values(study, tmp_path / "pieces")
    assert pieces["job"].unique().tolist() == [job.key for job in study.jobs]
    pd.testing.assert_frame_equal(pieces, values(study, tmp_path / "whole"))


def test_a_full_disk_stops_the_run_and_loses_nothing(tmp_path, monkeypatch):
    study, room = tasks.slow_study(0.0, count=3), [2]
    write = Path.write_bytes

    def full(path, content):
        if room[0] == 0:
            write(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        room[0] -= 1
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="the disk is full; finished rows are safe"):
        run(study, tmp_path / "out", workers=1, progress=False)
    monkeypatch.undo()
    assert len(Store(tmp_path / "out").rows()) == 2 * 3
    assert not list((tmp_path / "out").rglob("*.tmp"))
    report = run(study, tmp_path / "out", workers=1, progress=False)
    assert report.resumed == 2
    pd.testing.assert_frame_equal(report.rows, values(study, tmp_path / "whole"))


def test_a_second_run_is_kept_out_while_rows_can_be_read(tmp_path):
    study = tasks.slow_study(0.0, count=1)
    with Store(tmp_path / "out").locked():
        assert "another run is writing there" in refused(study, tmp_path / "out")
    values(study, tmp_path / "out")
    with Store(tmp_path / "out").locked():
        assert len(Store(tmp_path / "out").rows()) == 6


def test_filters_and_bad_studies():
    study = tasks.slow_study(0.0, count=3)
    assert [job.parameters for job in study.only(["number=1,2", "letter=b"]).jobs] == [
        {"number": 1, "letter": "b"},
        {"number": 2, "letter": "b"},
    ]
    for text, message in (
        ("size=1", "NAME one of number, letter"),
        ("number", "must be NAME=VALUE"),
        ("number=7", "--only number: must be among 0, 1, 2, found 7"),
    ):
        with pytest.raises(ValueError, match=message):
            study.only([text])
    with pytest.raises(ValueError, match="at least one job"):
        Study("none", tasks.healed, [])
    with pytest.raises(ValueError, match="found two alike"):
        Study("twice", tasks.healed, [Job({"number": 1}), Job({"number": 1})])
    with pytest.raises(ValueError, match="the same parameters"):
        Study("mixed", tasks.healed, [Job({"number": 1}), Job({"letter": 1})])
    with pytest.raises(ValueError, match="size must be a text, a number, true, false or none, found list"):
        Study("lists", tasks.healed, [Job({"size": [1, 2]})])
    for protocol, places in (({"number": 1}, {}), ({}, {"number": 1}), ({"size": 1}, {"size": 2})):
        with pytest.raises(ValueError, match="must be in one of protocol, jobs and places, found it in two"):
            Study("clash", tasks.healed, grid(number=range(2)), protocol, places=places)
    assert grid(number=np.arange(2))[1] == Job({"number": 1})
    with pytest.raises(ValueError, match="exclude each other"):
        runner.run(study, "nowhere", workers=1, ray="auto")
    with pytest.raises(ValueError, match="workers must be"):
        runner.run(study, "nowhere", workers=0)

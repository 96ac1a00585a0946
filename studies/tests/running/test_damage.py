"""Damage on disk: no altered bit is read back as if nothing had happened, and no finished row is lost over it."""

import json
import random
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from dffl_studies.running import Store, frames, run, store
from dffl_studies.running.job import Finished
from studies.tests.running import tasks

PAPER = Path(__file__).parents[2] / "results" / "paper-authors"
FILES = ("rows.parquet", "jobs.parquet", "study.json", "part")


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0] ^ (1 << bit % 8)
        file.seek(bit // 8)
        file.write(bytes([byte]))


def unpacked(out: Path, study=None) -> Path:
    """A folder whose jobs are all done and not yet packed; returns the part of the second job."""
    study, keeper = study or tasks.slow_study(0.0, count=2), Store(out)
    out.mkdir()
    keeper.prepare(study)
    for job in study.jobs:
        keeper.write(job, Finished(tasks.noisy_rows(**study.protocol, **job.parameters), 1.0, 0.5))
    return out / "parts" / f"{study.jobs[1].key}.parquet"


def everything(out: Path):
    """All that can be read of a folder. A damaged part is not refused but left out, and named."""
    keeper = Store(out)
    found = (keeper.describe(), keeper.rows().to_csv(), keeper.jobs().to_csv())
    if keeper.damaged:
        raise ValueError(f"{keeper.damaged[0]}: is damaged; run again")
    return found


def outcomes(path: Path, out: Path, bits) -> Counter:
    whole, counts = everything(out), Counter()
    for bit in bits:
        flip(path, bit)
        try:
            counts["identical" if everything(out) == whole else "different"] += 1
        except ValueError as error:
            line = str(error)
            counts["refused" if line.startswith(f"{path}: ") and "; " in line and "\n" not in line else line] += 1
        except Exception as error:
            counts[repr(error)] += 1
        flip(path, bit)
    assert everything(out) == whole
    return counts


def folder_with(name: str, out: Path) -> Path:
    """A folder, and the file in it with that name."""
    study = tasks.slow_study(0.0, count=1)
    part = unpacked(out, study)
    if name != "part":
        Store(out).pack(list(study.jobs))
    return part if name == "part" else out / name


@pytest.mark.parametrize("name", FILES)
def test_no_altered_bit_is_read_silently(tmp_path, name):
    path = folder_with(name, tmp_path / "out")
    bits = range(path.stat().st_size * 8)
    ends = {*bits[:64], *bits[-64:]}  # the numbers by which a reader finds its way
    counts = outcomes(path, tmp_path / "out", {*random.Random(1).sample(bits, 200), *ends})
    assert set(counts) <= {"refused", "identical"}, counts
    assert counts["refused"] > 250


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_no_altered_bit_of_a_whole_file_is_read_silently(tmp_path, name):
    path = folder_with(name, tmp_path / "out")
    counts = outcomes(path, tmp_path / "out", range(path.stat().st_size * 8))
    print(name, path.stat().st_size, "bytes:", dict(counts))
    assert set(counts) <= {"refused", "identical"}, counts


@pytest.mark.slow
@pytest.mark.skipif(not PAPER.exists(), reason="needs the results of the repository")
def test_no_altered_bit_of_a_large_file_is_read_silently(tmp_path):
    unpacked(tmp_path / "out")
    keeper = Store(tmp_path / "out")
    path = tmp_path / "out" / "rows.parquet"
    path.write_bytes(frames.compact(Store(PAPER).rows()))
    pd.testing.assert_frame_equal(keeper._packed("rows.parquet"), Store(PAPER).rows())
    counts, moments = Counter(), random.Random(2)
    for _ in range(10_000):
        bit = moments.randrange(path.stat().st_size * 8)
        flip(path, bit)
        try:
            keeper._packed("rows.parquet")
            counts["read"] += 1
        except ValueError as error:
            counts["refused" if "\n" not in str(error) and str(error).startswith(f"{path}: ") else str(error)] += 1
        flip(path, bit)
    print(path.stat().st_size, "bytes:", dict(counts))
    assert set(counts) == {"refused"}, counts


def test_files_cut_short_or_empty_are_refused(tmp_path):
    unpacked(tmp_path / "out")
    Store(tmp_path / "out").pack([])
    path = tmp_path / "out" / "rows.parquet"
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:-1], whole[1:], whole + b"\0", whole[:200] + bytes(100) + whole[300:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"rows\.parquet: is damaged .*; restore it from a copy"):
            Store(tmp_path / "out").rows()


def test_rows_with_a_digest_are_ordinary_parquet(tmp_path):
    unpacked(tmp_path / "out")
    Store(tmp_path / "out").pack([])
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out" / "rows.parquet"), Store(tmp_path / "out").rows())


def alter_data(part: Path) -> None:
    """Alter the data of a part and leave its footer alone, so that its shape still reads well."""
    place = pq.ParquetFile(part).metadata.row_group(0).column(5)  # value
    start = place.dictionary_page_offset or place.data_page_offset
    for byte in range(start, start + place.total_compressed_size):
        flip(part, 8 * byte)
    assert pq.read_metadata(part).num_rows == 3


def test_a_part_with_altered_data_is_run_again_in_the_same_call(tmp_path):
    study, out = tasks.slow_study(0.0, count=2), tmp_path / "out"
    part = unpacked(out)
    whole = Store(out).rows()
    alter_data(part)
    report = run(study, out, workers=1, progress=False)
    assert (report.resumed, report.damaged, report.failed) == (3, [part], [])
    assert sorted(report.rows["value"]) == sorted(whole["value"])
    assert not (out / "parts").exists()


def test_a_part_that_is_damaged_during_the_run_stops_it_with_a_clear_line(tmp_path, monkeypatch):
    study, out = tasks.slow_study(0.0, count=2), tmp_path / "out"
    part = unpacked(out)
    whole = Store(out).rows()
    pack = Store.pack
    monkeypatch.setattr(Store, "pack", lambda *given: (alter_data(part), pack(*given)))
    with pytest.raises(OSError, match="the rows of 1 jobs were damaged on disk in this run; run it again"):
        run(study, out, workers=1, progress=False)
    monkeypatch.undo()
    assert len(Store(out).rows()) == 9
    report = run(study, out, workers=1, progress=False)
    assert report.resumed == 3
    assert sorted(report.rows["value"]) == sorted(whole["value"])


def test_a_damaged_part_of_another_grid_stays_for_the_run_that_has_its_job(tmp_path):
    study, out = tasks.slow_study(0.0, count=2), tmp_path / "out"
    part = unpacked(out)
    alter_data(part)
    report = run(study.only(["letter=a"]), out, workers=1, progress=False)
    assert report.damaged == [part]
    assert len(report.rows) == 9
    assert run(study, out, workers=1, progress=False).resumed == 3


def test_a_study_json_that_is_damaged_during_the_run_costs_no_part(tmp_path, monkeypatch):
    study, out = tasks.slow_study(0.0, count=2), tmp_path / "out"
    unpacked(out)
    pack = Store.pack
    monkeypatch.setattr(Store, "pack", lambda *given: (flip(out / "study.json", 400), pack(*given)))
    with pytest.raises(ValueError, match=r"study\.json: "):
        run(study, out, workers=1, progress=False)
    assert len(list((out / "parts").iterdir())) == 4


SOUND = {"format": 1, "study": "slow", "dffl": "0.1.0", "protocol": {}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be an object with the fields of a study, found list"),
        ("null", "must be an object with the fields of a study, found NoneType"),
        ("7", "must be an object with the fields of a study, found int"),
        ("[" * 100_000, "cannot be read"),
        ("{}", "format must be 1 to 3, found None"),
        (json.dumps(SOUND | {"format": True}), "format must be 1 to 3, found True"),
        (json.dumps(SOUND | {"format": [1]}), r"format must be 1 to 3, found \[1\]"),
        (json.dumps(SOUND | {"format": 2}), "is damaged or was edited"),
        (json.dumps(SOUND | {"digest": "00"}), "is damaged or was edited"),
        (json.dumps({"format": 1}), "study must be a text, found None"),
        (json.dumps(SOUND | {"study": 3}), "study must be a text, found 3"),
        (json.dumps(SOUND | {"dffl": None}), "dffl must be a text, found None"),
        (json.dumps(SOUND | {"protocol": [1, 2]}), r"protocol must be an object, found \[1, 2\]"),
    ],
)
def test_a_study_json_of_another_shape_is_one_clear_line(tmp_path, text, message):
    (tmp_path / "study.json").write_text(text)
    for ask in (Store(tmp_path).describe, lambda: run(tasks.slow_study(0.0, count=1), tmp_path, workers=1, progress=False)):
        with pytest.raises(ValueError, match=message) as caught:
            ask()
        assert str(caught.value).startswith(f"{tmp_path / 'study.json'}: ")
        assert "\n" not in str(caught.value)


def as_format_1(out: Path) -> None:
    """Write a packed folder anew as the first version did: no digests."""
    rows, jobs, described = Store(out).rows(), Store(out).jobs(), Store(out).describe()
    del described["digest"]
    (out / "study.json").write_text(json.dumps(described | {"format": 1}))
    rows.to_parquet(out / "rows.parquet", index=False)
    jobs.to_parquet(out / "jobs.parquet", index=False)


def test_folders_of_format_1_are_read_as_they_are_until_they_are_added_to(tmp_path):
    study, out = tasks.slow_study(0.0, count=2), tmp_path / "out"
    before = run(study, out, workers=1, progress=False).rows
    as_format_1(out)
    pd.testing.assert_frame_equal(Store(out).rows(), before)
    assert len(Store(out).jobs()) == 4
    pd.testing.assert_frame_equal(run(study, out, progress=False).rows, before)  # all there: nothing to run
    assert Store(out).describe()["format"] == 1
    assert run(tasks.slow_study(0.0, count=3), out, workers=1, progress=False).resumed == 4
    assert Store(out).describe()["format"] == 3
    assert outcomes(out / "rows.parquet", out, range(400, 410)) == {"refused": 10}


def test_a_damaged_part_of_format_1_counts_as_not_done(tmp_path):
    study, out = tasks.slow_study(0.0, count=2), tmp_path / "out"
    part = unpacked(out)
    described = Store(out).describe()
    del described["digest"]
    (out / "study.json").write_text(json.dumps(described | {"format": 1}))
    assert Store(out).missing(study) == []
    alter_data(part)
    assert [job.key for job in Store(out).missing(study)] == [part.stem]


@pytest.mark.skipif(not PAPER.exists(), reason="needs the results of the repository")
def test_the_results_of_the_repository_are_read():
    for folder in sorted(path.parent for path in PAPER.parent.glob("*/study.json")):
        keeper = Store(folder)
        assert set(keeper.rows()["job"]) == set(keeper.jobs()["job"])


def test_parts_that_are_packed_while_they_are_read_are_neither_lost_nor_damaged(tmp_path, monkeypatch):
    study, out = tasks.slow_study(0.0, count=2), tmp_path / "out"
    unpacked(out)
    read, packing = store._content, iter([True])

    def packed_first(path, sealed):
        if next(packing, False):
            Store(out).pack(list(study.jobs))
        return read(path, sealed)

    monkeypatch.setattr(store, "_content", packed_first)
    reader = Store(out)
    assert len(reader.rows()) == 12
    assert reader.damaged == []
    assert not (out / "parts").exists()

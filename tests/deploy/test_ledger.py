"""The record of a run on disk: a line that was cut short is left out, any other damage is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dffl.deploy.ledger import ACCEPTED, DEAD, LATE, Ledger, RoundRecord, counted, read_ledger


def record(job: int, round: int, **outcomes: str) -> RoundRecord:
    return RoundRecord(job, round, outcomes, 0.5, 0.25, 10, 20, {"loss": 0.1})


def filled(path: Path) -> Ledger:
    ledger = Ledger(path)
    ledger.add(record(0, 0, north=ACCEPTED, south=DEAD))
    ledger.add(record(0, 1, north=ACCEPTED, south="refused: vector is not finite"))
    ledger.add(record(1, 0, north=LATE, south=ACCEPTED))
    return ledger


def test_what_is_added_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    assert read_ledger(path) == []
    ledger = filled(path)
    assert read_ledger(path) == ledger.records == Ledger(path).records
    assert ledger.records[0].accepted == ["north"]
    assert [ledger.last_taken(job, "north") for job in (0, 1)] == [1, -1]
    south = {"accepted": 1, "left out": 0, "refused": 1, "late": 0, "dead": 1}
    assert counted(ledger.records, ["north", "south"])["south"] == south


def test_a_last_line_that_was_cut_anywhere_does_not_count_and_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    whole = filled(path).records
    content = path.read_bytes()
    last = content[:-1].rindex(b"\n") + 1
    for cut in range(last, len(content)):
        path.write_bytes(content[:cut])
        found = read_ledger(path)
        assert found in (whole[:2], whole)  # only the sign for the end of the line may be missing
        ledger = Ledger(path)
        ledger.keep_before(1, 0)
        ledger.add(record(1, 0, north=ACCEPTED))
        assert [(one.job, one.round) for one in read_ledger(path)] == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("damage", [b"\x00\x00", b"{}", b'{"job": 0}', b"[]", b"null", b"7", b"\xff\xfe"])
def test_damage_before_the_last_line_is_refused_with_its_line(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    filled(path)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], damage, *lines[2:]]))
    with pytest.raises(ValueError, match=r"rounds\.jsonl, line 2: is damaged"):
        read_ledger(path)


def test_what_is_ahead_of_a_state_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    ledger = filled(path)
    ledger.keep_before(1, 1)
    assert len(ledger.records) == 3
    ledger.keep_before(0, 1)
    assert [(one.job, one.round) for one in ledger.records] == [(0, 0)]
    assert read_ledger(path) == ledger.records
    ledger.keep_before(0, 0)
    assert read_ledger(path) == []

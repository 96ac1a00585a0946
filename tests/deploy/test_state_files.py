"""State on disk is read back to the bit, or refused in one line that names the file."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from dffl import archive
from dffl.deploy.run_state import FINISHED, WAITING, CoordinatorFolder, RunState, read_status, write_status
from dffl.deploy.site_state import SiteState
from dffl.predictor import Normaliser
from dffl.training.trainers.federated import ServerState

VECTOR = np.linspace(-1, 1, 9, dtype=np.float32)


def a_run() -> RunState:
    run = RunState.new("digest")
    run.finals = [ServerState(3, VECTOR * 2, {}), ServerState(4, np.stack([VECTOR, -VECTOR]), {"0/m": VECTOR.astype(float)})]
    run.job, run.state = 2, ServerState(1, VECTOR, {"control": np.arange(4.0), "aggregate/momentum": VECTOR.astype(float)})
    return run


def same(one: ServerState, other: ServerState) -> bool:
    return (
        one.round == other.round
        and one.shared.tobytes() == other.shared.tobytes()
        and one.shared.dtype == other.shared.dtype
        and list(one.memory) == list(other.memory)
        and all(one.memory[name].tobytes() == other.memory[name].tobytes() for name in one.memory)
    )


def test_a_run_is_read_back_to_the_bit(tmp_path: Path) -> None:
    path, run = tmp_path / "state.dffl", a_run()
    run.write(path)
    found = RunState.read(path)
    assert (found.run, found.plan, found.job) == (run.run, run.plan, run.job)
    assert found.state is not None
    assert run.state is not None
    assert same(found.state, run.state)
    assert all(same(one, other) for one, other in zip(found.finals, run.finals, strict=True))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    run.state = None
    run.write(path)
    assert RunState.read(path).state is None


def test_a_new_run_removes_earlier_runs_and_nothing_else(tmp_path: Path) -> None:
    mine = tmp_path / "state" / "backup"
    mine.mkdir(parents=True)
    (mine / "prices.csv").write_text("a\n")
    state = SiteState(tmp_path / "state")
    state.begin("first", "plan", data="rows")
    state.begin("second", "plan", data="rows")
    assert sorted(path.name for path in state.folder.iterdir()) == ["backup", "second"]
    assert (mine / "prices.csv").read_text() == "a\n"


def test_a_run_keeps_its_clip_and_that_of_version_0_2_0_is_20(tmp_path: Path) -> None:
    path = tmp_path / "state.dffl"
    RunState.new("digest", tau=80.0).write(path)
    assert RunState.read(path).tau == 80.0
    members = archive.read(path, "about.json", "a run").members
    about = json.loads(members["about.json"])
    about.pop("tau")  # as version 0.2.0 wrote it
    archive.write(path, members | {"about.json": json.dumps(about).encode()})
    assert RunState.read(path).tau == 20.0
    state = SiteState(tmp_path / "state")
    assert state.begin("r1", "a plan", 80.0) == state.begin("r1", "a plan", 60.0) == 80.0
    (tmp_path / "state" / "r1" / "tau.txt").unlink()
    assert state.begin("r1", "a plan", 80.0) == 20.0
    assert state.begin("r2", "a plan", 80.0) == 80.0


def damaged(content: bytes) -> list[bytes]:
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 16
    return [b"", content[:50], content[: len(content) // 2], content[:-1], bytes(flipped), b"x" * 500, content + b"more"]


def test_a_damaged_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.dffl"
    a_run().write(path)
    for wrong in damaged(path.read_bytes()):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"state\.dffl: cannot be read as the state of a run") as refused:
            RunState.read(path)
        assert "\n" not in str(refused.value)


def test_a_damaged_state_of_a_site_is_refused(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "state")
    state.begin("r1", "a plan")
    state.keep(0, 0, -1, {"personal": VECTOR}, {})
    path = tmp_path / "state" / "r1" / "kept-0.dffl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for wrong in damaged(path.read_bytes()):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"kept-0\.dffl: cannot be read as the state of a site"):
            state.kept(0, 0)


def test_the_state_of_one_kind_is_not_taken_for_another(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "state")
    state.begin("r1", "a plan")
    a_run().write(tmp_path / "state" / "r1" / "kept-0.dffl")
    with pytest.raises(ValueError, match="cannot be read as the state of a site"):
        state.kept(0, 0)
    state.keep(1, 0, -1, {"personal": VECTOR}, {})
    with pytest.raises(ValueError, match="cannot be read as the state of a run"):
        RunState.read(tmp_path / "state" / "r1" / "kept-1.dffl")


def test_a_site_keeps_the_state_before_a_round_until_the_next_order(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "state")
    state.begin("r1", "a plan")
    state.keep(0, 0, -1, {"personal": VECTOR}, {})
    state.keep(0, 1, 0, {"personal": VECTOR + 1}, {})
    np.testing.assert_array_equal(state.kept(0, 0)["personal"], VECTOR)  # the answer of round 1 may never have arrived
    state.keep(0, 2, 0, {"personal": VECTOR + 2}, {})  # it had not
    assert state.kept(0, 1) == {}
    state.keep(0, 3, 2, {"personal": VECTOR + 3}, {})
    assert state.kept(0, 0) == {}
    np.testing.assert_array_equal(state.kept(0, 3)["personal"], VECTOR + 3)
    assert state.kept(0, -1) == {}
    assert state.kept(1, 0) == {}


def test_units_and_finals_are_read_back(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "state")
    state.begin("r1", "a plan")
    assert state.units() == {}
    assert state.finals() == {}
    state.keep_units({"all": Normaliser(VECTOR, VECTOR + 2, np.asarray(3.0))})
    np.testing.assert_array_equal(state.units()["all"].x_scale, VECTOR + 2)
    state.keep_finals({0: (ServerState(3, VECTOR, {}), 2), 1: (ServerState(4, -VECTOR, {}), -1)}, {"west": 7})
    assert state.unused() == {"west": 7}
    found = state.finals()
    assert [(place, one.round, last) for place, (one, last) in found.items()] == [(0, 3, 2), (1, 4, -1)]
    np.testing.assert_array_equal(found[1][0].shared, -VECTOR)


def test_a_new_run_removes_what_an_earlier_one_kept(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "state")
    state.begin("r1", "a plan")
    state.keep(0, 0, -1, {"personal": VECTOR}, {})
    state.begin("r1", "a plan")
    assert state.kept(0, 0) != {}
    state.begin("r2", "a plan")
    assert state.kept(0, 0) == {}
    assert os.listdir(tmp_path / "state") == ["r2"]


def test_runs_are_numbered_and_the_last_one_is_found(tmp_path: Path) -> None:
    folder = CoordinatorFolder(tmp_path)
    assert folder.latest() is None
    made = [folder.new_run() for _ in range(11)]
    assert folder.latest() == made[-1]
    assert made[-1].name == "11"
    assert read_status(made[0]) == {"status": WAITING}
    write_status(made[0], FINISHED, run="x")
    assert read_status(made[0]) == {"status": FINISHED, "run": "x"}
    (made[0] / "run.json").write_text("[1")
    assert read_status(made[0]) == {"status": WAITING}


def test_a_model_that_is_gone_is_made_again_from_what_the_site_has(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "state")
    assert state.run_with_model() == ""
    state.begin("0123456789ab", "a plan")
    state.keep_finals({0: (ServerState(3, VECTOR, {}), 2)}, {})
    assert (state.run_with_model(), state.unfinished("a plan")) == ("", "0123456789ab")
    state.mark_finished()
    assert (state.run_with_model(), state.unfinished("a plan")) == ("0123456789ab", "")
    state.mark_unfinished()
    assert (state.run_with_model(), state.unfinished("a plan")) == ("", "0123456789ab")


def test_a_round_that_was_asked_for_is_the_same_only_with_the_same_order_and_rows(tmp_path: Path) -> None:
    state = SiteState(tmp_path / "state")
    state.begin("first", "plan")
    order = {"last": -1, "rate": 1.0, "sent": {"shared": np.zeros(3)}}
    assert state.is_same_order(0, 0, order, b"rows")
    assert state.is_same_order(0, 0, order, b"rows")
    assert not state.is_same_order(0, 0, order, b"other rows")
    assert not state.is_same_order(0, 0, order | {"rate": 0.5}, b"rows")
    assert not state.is_same_order(0, 0, order | {"sent": {"shared": np.ones(3)}}, b"rows")
    assert state.is_same_order(0, 1, order, b"other rows")

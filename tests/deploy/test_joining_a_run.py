"""What it takes to join, and what becomes of those who may not: one clear line at the side that can mend it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dffl.deploy.ledger import ACCEPTED, DEAD, read_ledger
from dffl.deploy.messages import encode
from dffl.deploy.network import Event
from tests.deploy.made import DIM, INPUTS, a_plan
from tests.deploy.simulated import SimulatedSite, Stage, honest, simulated_time

PATIENCE = {"join_seconds": 10, "round_seconds": 20, "dead_seconds": 5, "quorum_seconds": 40}
REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "messages": ({"protocol": 99}, "messages of version 99, the coordinator 3; install the same version"),
    "dffl": ({"dffl": "0.0.1"}, "this site has dffl 0.0.1, the coordinator"),
    "carrier": ({"carrier": "2.6.0"}, "this site has NVFlare 2.6.0, the coordinator"),
    "plan": ({"plan": "x"}, "another plan than the coordinator; ask for a new kit"),
    "clock ahead": ({"time": 1.8e9 + 1000 + 3600}, "this site's clock is 3600 s ahead of the coordinator's; set it"),
    "clock behind": ({"time": 1.8e9 + 1000 - 3600}, "this site's clock is 3600 s behind the coordinator's; set it"),
    "columns": ({"columns": "others"}, "columns differ from those of earlier sites, or are in another order"),
    "rows": ({"rows": 3}, "this site has 3 training rows, the plan allows 4"),
}


@pytest.mark.parametrize(("offer", "why"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_site_that_may_not_join_is_told_why_and_the_others_train(offer: dict[str, Any], why: str, tmp_path: Path) -> None:
    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE), clock)
        stage.sites["west"].offer = offer
        stage.train(tmp_path / "run")
    assert [one["accepted"] for one in stage.sites["west"].welcomes] == [False, False]
    assert all(why in one["why"] for one in stage.sites["west"].welcomes)
    for record in read_ledger(tmp_path / "run" / "rounds.jsonl"):
        assert record.outcomes == {"north": ACCEPTED, "south": ACCEPTED, "west": DEAD}


def test_columns_of_a_site_that_has_gone_bind_nobody() -> None:
    """Else the first to come would decide for ever, and all others would be refused if it was wrong."""
    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE), clock)
        stage.network._due = []
        north, south = stage.sites["north"], stage.sites["south"]
        north.offer = {"columns": "wrong"}
        north.connect()
        south.connect(after=1)
        for _ in range(20):
            stage.coordinator.step()
        assert not south.welcomes[-1]["accepted"]
        north.vanish()
        stage.coordinator.step()
        south.join()
        stage.coordinator.step()
        assert south.welcomes[-1]["accepted"]


def test_who_has_a_certificate_but_is_not_in_the_plan_is_told_so(tmp_path: Path) -> None:
    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE), clock)
        stranger = SimulatedSite(stage.network, stage.plan, "stranger", up=True)
        stranger.connect()
        stage.train(tmp_path / "run")
    assert [(one["accepted"], one["why"]) for one in stranger.welcomes] == [(False, "this name is not a site of the plan")]


def test_a_second_process_under_a_name_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    said: list[str] = []

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        if site.name == "south" and order["round"] == 1:
            site.join(instance="second")
        honest(site, order)

    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE), clock, behaviour)
        stage.train(tmp_path / "run")
        said += [one["why"] for one in stage.sites["south"].welcomes if not one["accepted"]]
    assert len(said) == 2
    assert "another process has joined under this name" in said[0]
    assert all(set(one.outcomes.values()) == {ACCEPTED} for one in read_ledger(tmp_path / "run" / "rounds.jsonl"))


def test_a_site_that_was_taken_for_dead_is_asked_to_join_again() -> None:
    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE), clock)
        for _ in range(10):
            stage.coordinator.step()
        south = stage.sites["south"]
        south.beats = False
        for _ in range(40):
            stage.coordinator.step()
        assert not stage.coordinator.sites["south"].joined
        stage.network.put("south", encode("beat"))
        for _ in range(5):
            stage.coordinator.step()
        assert stage.coordinator.sites["south"].joined


def test_a_site_that_opens_with_numbers_that_cannot_be_true_is_stopped_with_the_reason(tmp_path: Path) -> None:
    for counts, why in (
        ({"0": 0}, "not between 1 and"),
        ({"0": 10**6}, "not between 1 and"),
        ({}, "does not report its number of samples"),
    ):
        with simulated_time() as clock:
            stage = Stage.of(a_plan(rounds=PATIENCE), clock)
            west = stage.sites["west"]

            def receive(message: Any, west: Any = west, counts: Any = counts) -> None:
                if message.kind == "open":
                    west.send("opened", run=message.values["run"], counts=counts, units={})
                elif message.kind == "stop":
                    west.stopped.append(message.values["why"])

            west.receive = receive  # type: ignore[method-assign]
            stage.train(tmp_path / f"run {counts}")
        assert why in west.stopped[0]
        for record in read_ledger(tmp_path / f"run {counts}" / "rounds.jsonl"):
            assert record.outcomes["west"] == DEAD


UNITS = {"all/x_mean": np.zeros(INPUTS), "all/x_scale": np.ones(INPUTS), "all/c_scale": np.asarray(2.0)}
BAD_UNITS = {
    "none": {},
    "another part": {name.replace("all", "fold"): array for name, array in UNITS.items()},
    "a field less": {name: array for name, array in UNITS.items() if "mean" not in name},
    "a field more": UNITS | {"all/secret": np.ones(2)},
    "another shape": UNITS | {"all/x_mean": np.zeros(INPUTS + 1)},
    "a table": UNITS | {"all/c_scale": np.ones((DIM, DIM))},
    "NaN": UNITS | {"all/x_mean": np.full(INPUTS, np.nan)},
    "a scale of 0": UNITS | {"all/x_scale": np.zeros(INPUTS)},
    "a cost scale below 0": UNITS | {"all/c_scale": np.asarray(-1.0)},
}


@pytest.mark.parametrize("units", [UNITS, *BAD_UNITS.values()], ids=["right", *BAD_UNITS])
def test_units_that_cannot_be_true_are_refused(units: dict[str, np.ndarray]) -> None:
    plan = a_plan(rounds=PATIENCE, training={"pooled_units": True}, wire={"statistics": "pooled"})
    with simulated_time() as clock:
        stage = Stage.of(plan, clock)
        for _ in range(5):
            stage.coordinator.step()
        from dffl.deploy.run_state import RunState

        counts = {"0": 10, "part all": 10}
        site, run = stage.coordinator.sites["north"], RunState.new(plan.digest)
        why = stage.coordinator.on_opened(site, run, 1, {"counts": counts, "units": units})
    assert (why is None) == (units is UNITS)
    assert site.is_ready(run.run) == (units is UNITS)


def test_events_of_peers_that_nobody_knows_change_nothing() -> None:
    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE), clock)
        for what in ("up", "message", "down", "message"):
            stage.network.at(0.0, lambda what=what: Event(what, "nobody", b"x"))
        for _ in range(10):
            stage.coordinator.step()
        assert set(stage.coordinator.sites) == set(stage.plan.sites)
        assert all(site.joined for site in stage.coordinator.sites.values())


@pytest.mark.parametrize("has_its_model", [True, False])
def test_who_comes_after_the_end_gets_the_models_unless_it_has_its_own(has_its_model: bool, tmp_path: Path) -> None:
    """A site that has its model waits for another run; it does not compute the old one again."""
    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE), clock)
        run = stage.train(tmp_path)
        south = stage.sites["south"]
        south.vanish()
        stage.coordinator.step()
        south.finals.clear()
        south.offer = {"finished": run.run if has_its_model else ""}
        south.connect()
        for _ in range(20):
            stage.coordinator.step()
        assert stage.coordinator.sites["south"].joined == has_its_model  # the other one left when it had its model
        assert bool(south.finals) != has_its_model

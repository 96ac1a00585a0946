"""Who is late, dead or back, how long a round waits for a quorum, and that waiting has an end. All in simulated time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dffl.deploy.coordinator import Coordinator
from dffl.deploy.ledger import ACCEPTED, DEAD, LATE, read_ledger
from dffl.deploy.round import QuorumError
from dffl.deploy.run_state import FINISHED, LOST, STOPPED, RunState, read_status
from dffl.deploy.site_registry import StopRequestedError
from tests.deploy.made import a_plan
from tests.deploy.simulated import LOG, Behaviour, SimulatedSite, Stage, honest, mean_of, simulated_time

PATIENCE = {"join_seconds": 30, "round_seconds": 20, "dead_seconds": 5, "quorum_seconds": 40}


def only(who: str, round: int, fault: Behaviour) -> Behaviour:
    """One site does something else in one round, the first time that it is asked."""

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        chosen = site.name == who and order["round"] == round and site.orders[order["job"], round] == 1
        (fault if chosen else honest)(site, order)

    return behaviour


def outcomes(folder: Path) -> list[dict[str, str]]:
    return [record.outcomes for record in read_ledger(folder / "rounds.jsonl")]


def test_a_site_that_needs_too_long_is_late_and_its_answer_does_not_count(tmp_path: Path) -> None:
    plan = a_plan(rounds=PATIENCE)
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, only("south", 1, lambda site, order: site.answer(order, after=25)))
        begun = clock.now
        stage.train(tmp_path / "run")
    assert [one["south"] for one in outcomes(tmp_path / "run")] == [ACCEPTED, LATE, ACCEPTED]
    assert 20 <= clock.now - begun <= 22
    seen = stage.sites["north"].seen
    counts = {name: stage.sites[name].count for name in ("north", "west")}
    np.testing.assert_array_equal(seen[0, 2], mean_of(seen[0, 1], 0, 1, counts))


@pytest.mark.parametrize("quiet", [False, True], ids=["its connection breaks", "it says nothing"])
def test_a_site_that_is_gone_is_dead_in_time_and_the_run_goes_on(quiet: bool, tmp_path: Path) -> None:
    plan = a_plan(rounds=PATIENCE)
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, only("south", 1, lambda site, order: site.vanish(quiet=quiet)))
        stage.train(tmp_path / "run")
    assert [one["south"] for one in outcomes(tmp_path / "run")] == [ACCEPTED, DEAD, DEAD]
    seconds = [record.seconds for record in read_ledger(tmp_path / "run" / "rounds.jsonl")]
    assert 3.9 <= seconds[1] <= 5.5
    assert seconds[2] < 1


def test_a_site_that_is_back_in_time_is_asked_again_and_counts(tmp_path: Path) -> None:
    plan = a_plan(rounds=PATIENCE)
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, only("south", 1, lambda site, order: site.vanish(back=3.0)))
        run = stage.train(tmp_path / "run")
    assert all(set(one.values()) == {ACCEPTED} for one in outcomes(tmp_path / "run"))
    assert stage.sites["south"].orders[0, 1] == 2
    with simulated_time() as clock:
        undisturbed = Stage.of(plan, clock).train(tmp_path / "other")
    assert run.finals[0].shared.tobytes() == undisturbed.finals[0].shared.tobytes()


def test_a_site_that_is_restarted_before_its_end_is_noticed_takes_its_own_place(tmp_path: Path) -> None:
    """As after a cut connection, or a machine that lost its power: the coordinator still takes it for joined."""
    plan = a_plan(rounds={**PATIENCE, "dead_seconds": 8})
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, only("south", 1, lambda site, order: site.vanish(back=2.0, quiet=True)))
        stage.train(tmp_path / "run")
    assert all(set(one.values()) == {ACCEPTED} for one in outcomes(tmp_path / "run"))
    assert all(one["accepted"] for one in stage.sites["south"].welcomes)
    assert 5 <= read_ledger(tmp_path / "run" / "rounds.jsonl")[1].seconds <= 6


def test_a_site_that_is_back_later_takes_part_from_then_on(tmp_path: Path) -> None:
    plan = a_plan(training={"rounds": 4}, rounds=PATIENCE)

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        if site.name == "south" and order["round"] == 1:
            site.vanish(back=8.0)
        else:
            site.answer(order, after=4.0)  # two rounds pass while it is away

    with simulated_time() as clock:
        Stage.of(plan, clock, behaviour).train(tmp_path / "run")
    assert [one["south"] for one in outcomes(tmp_path / "run")] == [ACCEPTED, DEAD, DEAD, ACCEPTED]


def test_waiting_for_a_quorum_ends_and_the_state_is_kept(tmp_path: Path) -> None:
    plan = a_plan(rounds={**PATIENCE, "quorum": 1.0})
    gone = only("south", 1, lambda site, order: site.vanish())
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, gone)
        begun = clock.now
        with pytest.raises(QuorumError, match=r"round 1: 2 updates were accepted, 3 are needed .*south dead"):
            stage.train(tmp_path / "run")
        assert 40 <= clock.now - begun <= 50
        assert [one["south"] for one in outcomes(tmp_path / "run")] == [ACCEPTED]
        assert read_status(tmp_path / "run")["status"] == LOST
        kept = RunState.read(tmp_path / "run" / "state.dffl").state
        assert kept is not None
        assert kept.round == 1
        assert all("not enough sites returned" in stage.sites[name].stopped[0] for name in ("north", "west"))
    with simulated_time() as clock:  # the same command goes on
        run = Stage.of(plan, clock).train(tmp_path / "run")
        whole = Stage.of(plan, clock).train(tmp_path / "whole")
    assert run.finals[0].shared.tobytes() == whole.finals[0].shared.tobytes()
    assert read_status(tmp_path / "run")["status"] == FINISHED


def test_a_round_waits_for_the_quorum_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    plan = a_plan(rounds={**PATIENCE, "quorum": 1.0})
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, only("south", 1, lambda site, order: site.vanish(back=30)))
        stage.train(tmp_path / "run")
    assert all(set(one.values()) == {ACCEPTED} for one in outcomes(tmp_path / "run"))
    assert 29 <= read_ledger(tmp_path / "run" / "rounds.jsonl")[1].seconds <= 32


def test_a_site_that_is_always_too_slow_does_not_make_a_round_endless(tmp_path: Path) -> None:
    plan = a_plan(rounds={**PATIENCE, "quorum": 1.0})

    def never(site: SimulatedSite, order: dict[str, Any]) -> None:
        if site.name != "south":
            site.answer(order)

    with simulated_time() as clock:
        stage = Stage.of(plan, clock, never)
        begun = clock.now
        with pytest.raises(QuorumError, match="south late"):
            stage.train(tmp_path / "run")
        assert clock.now - begun <= 20 + 40 + 20 + 2


def test_updates_that_are_all_refused_end_the_run_in_time(tmp_path: Path) -> None:
    plan = a_plan(rounds=PATIENCE)
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, lambda site, order: site.answer(order, fields={}))
        begun = clock.now
        with pytest.raises(QuorumError, match="0 updates were accepted, 2 are needed"):
            stage.train(tmp_path / "run")
        assert clock.now - begun <= 45


def test_too_few_sites_at_the_beginning_end_it_in_time(tmp_path: Path) -> None:
    plan = a_plan(rounds=PATIENCE)
    with simulated_time() as clock:
        stage = Stage.of(plan, clock)
        stage.sites["south"].up = stage.sites["west"].up = False
        for name in ("south", "west"):
            stage.sites[name].connect(after=1e6)
        stage.network._due = [due for due in stage.network._due if due[0] > 1e5 or due[1] == 1]
        begun = clock.now
        with pytest.raises(QuorumError, match="1 of 3 sites joined within 30 s, 2 are needed; missing: south, west"):
            stage.train(tmp_path / "run")
        assert 30 <= clock.now - begun <= 31


def test_a_site_that_comes_for_the_first_time_in_a_waiting_round_counts_with_its_samples(tmp_path: Path) -> None:
    """West has never been there; it comes while a round waits for its quorum, and weighs as much as it has samples."""
    plan = a_plan(training={"rounds": 1}, rounds={**PATIENCE, "quorum": 0.6})
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, only("south", 0, lambda site, order: site.vanish()))
        stage.network._due.pop()
        stage.sites["west"].connect(after=45)
        run = stage.train(tmp_path / "run")
    assert outcomes(tmp_path / "run") == [{"north": ACCEPTED, "south": DEAD, "west": ACCEPTED}]
    shared = stage.sites["north"].seen[0, 0]
    counts = {name: stage.sites[name].count for name in ("north", "west")}
    np.testing.assert_array_equal(run.finals[0].shared, mean_of(shared, 0, 0, counts))


@pytest.mark.parametrize(("what", "status"), [("run", STOPPED), ("server", "training")])
def test_a_run_that_is_asked_to_stop_keeps_its_state(what: str, status: str, tmp_path: Path) -> None:
    plan = a_plan(rounds=PATIENCE)
    with simulated_time() as clock:
        stage = Stage.of(plan, clock)
        link: Any = stage.network
        rounds = tmp_path / "run" / "rounds.jsonl"
        stage.coordinator = Coordinator(plan, link, LOG, lambda: what if len(read_ledger(rounds)) == 2 else "")
        with pytest.raises(StopRequestedError, match="the state is kept"):
            stage.train(tmp_path / "run")
        assert read_status(tmp_path / "run")["status"] == status
        run = Stage.of(plan, clock).train(tmp_path / "run")
        whole = Stage.of(plan, clock).train(tmp_path / "whole")
    assert run.finals[0].shared.tobytes() == whole.finals[0].shared.tobytes()


def test_robust_aggregators_get_as_many_updates_as_they_need(tmp_path: Path) -> None:
    """Krum with f=1 needs five: with one of six gone a round goes on, with two gone it does not."""
    names = ("a", "b", "c", "d", "e", "f")
    training = {"aggregate": {"name": "krum", "f": 1}}
    plan = a_plan(names, training=training, rounds={**PATIENCE, "quorum": 0.2})
    with simulated_time() as clock:
        Stage.of(plan, clock, only("b", 1, lambda site, order: site.vanish())).train(tmp_path / "run")
        assert outcomes(tmp_path / "run")[2]["b"] == DEAD

        def two(site: SimulatedSite, order: dict[str, Any]) -> None:
            site.vanish() if site.name in "bc" else site.answer(order)

        with pytest.raises(QuorumError, match="4 updates were accepted, 5 are needed"):
            Stage.of(plan, clock, two).train(tmp_path / "two")

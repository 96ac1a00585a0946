"""Members that send too much, too often or too early, and a coordinator that was away itself."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dffl.deploy import server_process
from dffl.deploy.ledger import ACCEPTED, read_ledger
from dffl.deploy.messages import TROUBLES, encode
from dffl.deploy.network import Event
from dffl.deploy.provisioning import create, init
from dffl.deploy.run_state import STOPPED, TRAINING, CoordinatorFolder, RunState, read_status, write_status
from dffl.deploy.server_process import FederationServer, file_log
from dffl.deploy.site_view import SiteView
from tests.deploy.made import a_plan
from tests.deploy.simulated import Behaviour, SimulatedSite, Stage, simulated_time

PATIENCE = {"join_seconds": 10, "round_seconds": 300, "dead_seconds": 5, "quorum_seconds": 40}


def test_sites_are_not_dead_because_the_coordinator_was_away(tmp_path: Path) -> None:
    """It was paused, or busy: the signs of life of that time wait to be read."""
    with simulated_time() as clock:

        def pause() -> Event:
            clock.now += 60.0
            return Event("message", "north", encode("beat"))

        def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
            if site.name == "north" and order["round"] == 1:
                site.network.at(0.1, pause)
            site.answer(order, after=0.5)

        stage = Stage.of(a_plan(rounds=PATIENCE), clock, behaviour)
        stage.train(tmp_path / "run")
    for record in read_ledger(tmp_path / "run" / "rounds.jsonl"):
        assert set(record.outcomes.values()) == {ACCEPTED}
    assert all(site.orders[0, 1] == 1 for site in stage.sites.values())
    assert all(len(site.welcomes) == 1 for site in stage.sites.values())


def test_no_wait_of_the_plan_runs_on_while_the_coordinator_is_away(tmp_path: Path) -> None:
    """It is away for longer than any of them; sites that answer in time by what the coordinator has lived are not late."""
    with simulated_time() as clock:

        def pause() -> Event:
            clock.now += 1000.0
            return Event("down", "nobody")

        def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
            if order["round"] == 1 and site.name == "north":
                site.network.at(0.1, pause)
            site.answer(order, after=0.5 if order["round"] != 1 else 1250.0)

        stage = Stage.of(a_plan(rounds=PATIENCE), clock, behaviour)
        stage.network.at(0.05, pause)  # before the sites have joined
        stage.train(tmp_path / "run")
    for record in read_ledger(tmp_path / "run" / "rounds.jsonl"):
        assert set(record.outcomes.values()) == {ACCEPTED}


def test_time_that_the_coordinator_takes_for_a_message_is_no_silence_of_the_others(tmp_path: Path) -> None:
    """A disk that answers after 60 s while a message is worked on; the signs of life of that time are still to be read."""
    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE), clock)
        said = stage.coordinator.on_message

        def slowly(site: SiteView, kind: str, values: dict[str, Any], size: int) -> None:
            clock.now += 60.0 if kind == "answer" and site.name == "north" else 0.0
            said(site, kind, values, size)

        stage.coordinator.on_message = slowly  # type: ignore[method-assign]
        stage.train(tmp_path / "run")
    for record in read_ledger(tmp_path / "run" / "rounds.jsonl"):
        assert set(record.outcomes.values()) == {ACCEPTED}
    assert all(len(site.welcomes) == 1 for site in stage.sites.values())


def refused(site: SimulatedSite, order: dict[str, Any]) -> None:
    """Answer that the update cannot be computed."""
    site.send("trouble", 0.1, **{key: order[key] for key in ("run", "job", "round")}, why=TROUBLES[1])


def orders_of_north(behaviour: Behaviour, folder: Path) -> int:
    """How often north is asked in the second round, of a run in which all sites must be accepted in all rounds."""
    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE | {"quorum": 1.0}), clock, behaviour)
        stage.train(folder)
    records = read_ledger(folder / "rounds.jsonl")
    assert [set(record.outcomes.values()) for record in records] == [{ACCEPTED}] * len(records)
    return stage.sites["north"].orders[0, 1]


def test_a_site_whose_answer_was_refused_is_asked_again_when_it_has_started_again(tmp_path: Path) -> None:
    """The round waits for a quorum; the site mends what was wrong, such as a full disk, and joins as a new process."""

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        if (site.name, order["round"], site.instance) == ("north", 1, "first"):
            refused(site, order)
            site.network.at(3.0, lambda: site.vanish(back=2.0))
        else:
            site.answer(order)

    assert orders_of_north(behaviour, tmp_path / "run") == 2


def test_a_site_that_was_accepted_after_a_refusal_is_not_asked_again_while_the_round_waits_for_others(tmp_path: Path) -> None:
    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        first = order["round"] == 1 and site.instance == "first"
        if first and site.name == "north":
            refused(site, order)
            site.network.at(1.0, lambda: site.vanish(back=1.0))
        elif first:
            site.vanish(back=20.0)
        else:
            site.answer(order)

    assert orders_of_north(behaviour, tmp_path / "run") == 2


def test_a_site_that_says_again_that_it_is_ready_does_not_get_the_model_again(tmp_path: Path) -> None:
    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        for _ in range(50 if site.orders[0, order["round"]] == 1 else 0):
            site.send("opened", run=site.run, counts={"0": site.count}, units={})
        site.answer(order, after=0.5)

    with simulated_time() as clock:
        stage = Stage.of(a_plan(rounds=PATIENCE), clock, behaviour)
        stage.train(tmp_path / "run")
    assert {count for site in stage.sites.values() for count in site.orders.values()} == {1}


def test_a_result_that_is_no_number_is_not_recorded() -> None:
    plan = a_plan(wire={"results": ["out_of_fold_regret"]})
    with simulated_time() as clock:
        coordinator = Stage.of(plan, clock).coordinator
        coordinator.run = RunState.new(plan.digest)
        site = coordinator.sites["north"]
        for found, wanted in ((np.nan, {}), (np.inf, {}), ([1.0], {}), (0.5, {"out_of_fold_regret": 0.5})):
            scalars = {"out_of_fold_regret": np.asarray(found), "secret": np.asarray(1.0)}
            coordinator.on_message(site, "done", {"run": coordinator.run.run, "scalars": scalars}, 10)
            assert site.results == wanted


def test_the_mean_loss_does_not_depend_on_who_answers_first(tmp_path: Path) -> None:
    losses, found = {"north": 0.1, "south": 0.2, "west": 0.3}, []
    for waits in ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1)):
        after = dict(zip(losses, waits, strict=True))

        def behaviour(site: SimulatedSite, order: dict[str, Any], after: dict[str, float] = after) -> None:
            site.answer(order, after=after[site.name], scalars={"loss": np.asarray(losses[site.name])})

        with simulated_time() as clock:
            Stage.of(a_plan(rounds=PATIENCE), clock, behaviour).train(tmp_path / str(waits))
        found.append([record.scalars["loss"] for record in read_ledger(tmp_path / str(waits) / "rounds.jsonl")])
    assert found[0] == found[1]


def test_models_that_do_not_go_into_the_last_message_are_refused_before_the_first_round(tmp_path: Path) -> None:
    large = {"method": "crossfit", "folds": 2, "hidden": 20_000}
    with simulated_time() as clock:
        stage = Stage.of(a_plan(training=large, wire={"most_megabytes": 1}), clock, jobs=2)
        with pytest.raises(ValueError, match=r"set most_megabytes under \[wire\] to 2 or more"):
            stage.train(tmp_path / "run")
    assert not (tmp_path / "run" / "state.dffl").exists()


def test_a_run_whose_plan_was_changed_stands_still_and_goes_on_when_it_is_put_back(tmp_path: Path) -> None:
    init(tmp_path)
    create(tmp_path / "plan.toml")
    folder = CoordinatorFolder(tmp_path)
    run = folder.new_run()
    text = (tmp_path / "plan.toml").read_text()
    before = FederationServer(folder, logging.getLogger("test"))
    RunState.new(before.plan.digest).write(run / "state.dffl")
    write_status(run, TRAINING)
    (tmp_path / "plan.toml").write_text(text.replace("round_seconds = 600", "round_seconds = 700"))
    changed = FederationServer(folder, logging.getLogger("test"))
    coordinator: Any = None  # nothing is held
    changed._resume(coordinator)
    assert read_status(run)["status"] == STOPPED
    assert "the plan was changed" in read_status(run)["why"]
    (tmp_path / "plan.toml").write_text(text)
    assert FederationServer(folder, logging.getLogger("test"))._run_folder(fresh=False) == run
    assert changed._run_folder(fresh=False) != run


def test_a_log_does_not_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "MAX_LOG_BYTES", 2000)
    log = file_log(f"dffl.test.{tmp_path}", tmp_path / "log.txt")
    for number in range(1000):
        log.warning("north: rejected a message: a malformed message, %d", number)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 4000
    assert "999" in (tmp_path / "log.txt").read_text()

"""A coordinator that is killed at any moment goes on to the same model, bit for bit, and to a record without gaps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dffl.deploy import ledger, run_state
from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.ledger import ACCEPTED, read_ledger
from dffl.deploy.run_state import FINISHED, RunState, read_status
from tests.deploy.made import a_plan
from tests.deploy.simulated import Behaviour, SimulatedSite, Stage, formula, honest, simulated_time

PATIENCE = {"join_seconds": 30, "round_seconds": 20, "dead_seconds": 5, "quorum_seconds": 40}
TRAININGS: dict[str, tuple[dict[str, Any], int]] = {
    "momentum on the server, part of the sites": ({"aggregate": "momentum", "client_fraction": 0.7, "rounds": 4}, 1),
    "several trainings": ({"method": "crossfit", "folds": 2, "rounds": 2}, 3),
    "control variates": ({"method": "scaffold", "rounds": 3}, 1),
}


class KilledError(BaseException):
    """The process is gone: nothing catches it."""


@contextmanager
def killed_at(moment: int) -> Iterator[list[str]]:
    """Count the moments around every write to disk, and end at one of them; half a line of the ledger counts as well."""
    seen: list[str] = []

    def pass_by(what: str) -> None:
        seen.append(what)
        if len(seen) - 1 == moment:
            raise KilledError(what)

    write, add = RunState.write, ledger.Ledger.add

    def writing(run: RunState, path: Path) -> None:
        pass_by("before the state")
        write(run, path)
        pass_by("after the state")

    def adding(self: ledger.Ledger, record: ledger.RoundRecord) -> None:
        pass_by("before the ledger")
        if len(seen) == moment:
            add(self, record)
            content = self.path.read_bytes()
            os.truncate(self.path, len(content) - 20)
        pass_by("in the middle of the ledger's line")
        add(self, record)
        pass_by("after the ledger")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_state.RunState, "write", writing)
        patched.setattr(ledger.Ledger, "add", adding)
        yield seen


class Scaffolding:
    """Honest answers of sites in `scaffold`, by the formula."""

    def __call__(self, site: SimulatedSite, order: dict[str, Any]) -> None:
        fields = site.update(order)
        if "control" in order["sent"]:
            fields["change"] = formula(site.name + "'", order["job"], order["round"], order["sent"]["control"])
        site.answer(order, fields=fields)


def finals(run: RunState) -> list[tuple[int, bytes, list[tuple[str, bytes]]]]:
    return [(one.round, one.shared.tobytes(), [(k, v.tobytes()) for k, v in one.memory.items()]) for one in run.finals]


def accepted(folder: Path) -> list[tuple[int, int, dict[str, str]]]:
    return [(one.job, one.round, one.outcomes) for one in read_ledger(folder / "rounds.jsonl")]


def trained(plan: FederationPlan, jobs: int, folder: Path, behaviour: Behaviour | None = None) -> RunState:
    behaviour = behaviour or Scaffolding()
    with simulated_time() as clock:
        return Stage.of(plan, clock, behaviour, jobs).train(folder)


@pytest.mark.parametrize(("training", "jobs"), TRAININGS.values(), ids=TRAININGS.keys())
def test_killed_at_any_moment_it_ends_with_the_same_model(training: dict[str, Any], jobs: int, tmp_path: Path) -> None:
    plan = a_plan(training=training, rounds=PATIENCE)
    with killed_at(-1) as moments:
        whole = trained(plan, jobs, tmp_path / "whole")
    assert len(moments) > 15
    for moment, what in enumerate(moments):
        folder = tmp_path / str(moment)
        with killed_at(moment), pytest.raises(KilledError):
            trained(plan, jobs, folder)
        run = trained(plan, jobs, folder)
        assert finals(run) == finals(whole), what
        assert accepted(folder) == accepted(tmp_path / "whole"), what
        assert read_status(folder)["status"] == FINISHED


def test_killed_again_and_again_it_ends_with_the_same_model(tmp_path: Path) -> None:
    training, jobs = TRAININGS["several trainings"]
    plan = a_plan(training=training, rounds=PATIENCE)
    whole = trained(plan, jobs, tmp_path / "whole")
    for moment in [3, 4, 5, 6, 9, 11, 8, 7] * 20:
        try:
            with killed_at(moment):
                run = trained(plan, jobs, tmp_path / "run")
            break
        except KilledError:
            continue
    else:
        pytest.fail("it never came to its end")
    assert finals(run) == finals(whole)
    assert accepted(tmp_path / "run") == accepted(tmp_path / "whole")


def test_a_site_that_stays_away_after_the_kill_weighs_in_the_means_as_before(tmp_path: Path) -> None:
    """Control variates are means over all sites, also those that are gone: the coordinator must not forget their samples."""
    plan = a_plan(training={"method": "scaffold", "rounds": 4}, rounds=PATIENCE)

    def gone(site: SimulatedSite, order: dict[str, Any]) -> None:
        if site.name == "south" and order["round"] >= 1:
            site.vanish()
        else:
            Scaffolding()(site, order)

    whole = trained(plan, 1, tmp_path / "whole", gone)
    with killed_at(-1) as moments:
        trained(plan, 1, tmp_path / "counted", gone)
    after_two = [place for place, what in enumerate(moments) if what == "after the ledger"][2]
    with killed_at(after_two), pytest.raises(KilledError):
        trained(plan, 1, tmp_path / "run", gone)
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, gone)
        del stage.network.sites["south"]
        stage.network._due = [due for due in stage.network._due if due[1] != 2]
        run = stage.train(tmp_path / "run")
    assert finals(run) == finals(whole)
    assert accepted(tmp_path / "run") == accepted(tmp_path / "whole")


def test_a_run_that_goes_on_waits_for_all_who_were_there(tmp_path: Path) -> None:
    """With part of the sites in a round, those of the last round are not all who are needed in the next."""
    plan = a_plan(training={"client_fraction": 0.4, "rounds": 6}, rounds=PATIENCE)
    whole = trained(plan, 1, tmp_path / "whole", honest)
    with killed_at(14), pytest.raises(KilledError):
        trained(plan, 1, tmp_path / "run", honest)
    with simulated_time() as clock:
        stage = Stage.of(plan, clock)
        stage.network._due = []
        for place, site in enumerate(stage.sites.values()):
            site.connect(after=5.0 * place)
        run = stage.train(tmp_path / "run")
    assert finals(run) == finals(whole)
    assert all(set(outcomes.values()) == {ACCEPTED} for _, _, outcomes in accepted(tmp_path / "run"))


def damaged_by(change: Callable[[bytes], bytes], path: Path) -> None:
    path.write_bytes(change(path.read_bytes()))


def test_a_run_whose_files_are_damaged_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    plan = a_plan(rounds=PATIENCE)
    trained(plan, 1, tmp_path / "run", honest)
    path = tmp_path / "run" / "state.dffl"
    whole = path.read_bytes()
    damaged_by(lambda content: content[:-7] + b"changed", path)
    with pytest.raises(ValueError, match=r"state\.dffl: cannot be read"):
        trained(plan, 1, tmp_path / "run", honest)
    path.write_bytes(whole)
    damaged_by(lambda content: b"{" + content, tmp_path / "run" / "rounds.jsonl")
    with pytest.raises(ValueError, match=r"rounds\.jsonl, line 1: is damaged"):
        trained(plan, 1, tmp_path / "run", honest)
    assert path.read_bytes() == whole


def test_a_run_of_another_plan_is_refused(tmp_path: Path) -> None:
    trained(a_plan(rounds=PATIENCE), 1, tmp_path / "run", honest)
    with pytest.raises(ValueError, match="belongs to another plan"):
        trained(a_plan(training={"rounds": 9}, rounds=PATIENCE), 1, tmp_path / "run", honest)

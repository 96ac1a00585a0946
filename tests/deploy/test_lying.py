"""One lying site of five: what it sends does not reach the model of the others, and it is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dffl
from dffl.cli import app
from dffl.deploy import run_status
from dffl.deploy.federation_plan import MAX_TIMES_MEDIAN, FederationPlan
from dffl.deploy.ledger import ACCEPTED, LEFT_OUT, REFUSED, read_ledger
from dffl.deploy.replay import replayed
from dffl.deploy.run_state import CoordinatorFolder, RunState
from dffl.deploy.run_status import RunResult
from dffl.terminal import Exit
from dffl.training import change_limit
from tests.deploy.in_memory import deployed
from tests.deploy.made import a_plan
from tests.deploy.simulated import SimulatedSite, Stage, mean_of, simulated_time
from tests.deploy.test_equal_to_fit import FOUR, QUICK, federation, planned, require_same

FIVE = ("centre", "east", "north", "south", "west")
HONEST = FIVE[:-1]
LIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "-20 x its vector": lambda vector: -20 * vector,
    "1,000 x its vector": lambda vector: 1000 * vector,
    "a constant": lambda vector: np.full_like(vector, 5.0),
    "noise": lambda vector: np.random.default_rng(0).normal(size=vector.shape).astype(vector.dtype) * 10,
}


def liar(lie: Callable[[np.ndarray], np.ndarray], since: int = 0) -> Any:
    """West lies from a round on; the others are honest."""

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        fields = site.update(order)
        if site.name == "west" and order["round"] >= since:
            fields = {"vector": lie(fields["vector"])}
        site.answer(order, fields=fields)

    return behaviour


def simulated(
    folder: Path, plan: FederationPlan, behaviour: Any = None, rows: int | None = None
) -> tuple[RunState, dict[str, int]]:
    """The end of a run, and the sites' numbers of samples."""
    with simulated_time() as clock:
        stage = Stage.of(plan, clock, *([behaviour] if behaviour else []))
        if rows is not None:
            stage.sites["west"].count = rows
        state = stage.train(folder)
    return state, {name: site.count for name, site in stage.sites.items()}


def honest_model(plan: FederationPlan, counts: dict[str, int], sites: tuple[str, ...] = HONEST) -> np.ndarray:
    """The model of some sites alone, computed on its own."""
    with simulated_time() as clock:
        stage = Stage.of(plan, clock)
        shared = next(iter(stage.coordinator._jobs().values())).trainer.begin(_engine(stage)).shared
    for number in range(plan.settings.rounds):
        shared = mean_of(shared, 0, number, {name: counts[name] for name in sites})
    return shared


def _engine(stage: Stage) -> Any:
    from dffl.deploy.training_loop import RemoteEngine

    return RemoteEngine(stage.plan, next(iter(stage.coordinator._jobs().values())))


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_the_model_is_that_of_the_others_alone(lie: Callable[[np.ndarray], np.ndarray], tmp_path: Path) -> None:
    plan = a_plan(FIVE)
    state, counts = simulated(tmp_path, plan, liar(lie))
    np.testing.assert_array_equal(state.finals[0].shared, honest_model(plan, counts))
    for record in read_ledger(tmp_path / "rounds.jsonl"):
        assert record.outcomes["west"].startswith(f"{LEFT_OUT}: its vector changed by ")
        assert record.accepted == list(HONEST)


def test_honest_sites_are_not_touched(tmp_path: Path) -> None:
    plan = a_plan(FIVE)
    state, counts = simulated(tmp_path, plan)
    np.testing.assert_array_equal(state.finals[0].shared, honest_model(plan, counts, FIVE))
    assert RunResult.of(tmp_path, FIVE).unused == []


def test_three_sites_have_the_limits_of_the_plan_alone(tmp_path: Path) -> None:
    plan = a_plan(("north", "south", "west"))
    simulated(tmp_path, plan, liar(LIES["-20 x its vector"]))
    assert all(set(record.outcomes.values()) == {ACCEPTED} for record in read_ledger(tmp_path / "rounds.jsonl"))


def test_a_site_that_is_lost_does_not_switch_the_limit_off(tmp_path: Path) -> None:
    # Four sites; north is lost in round 1, and west lies from round 2 on.
    plan = a_plan(("east", "north", "south", "west"), training={"rounds": 5})
    lying = liar(LIES["-20 x its vector"], since=2)

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        if site.name != "north" or order["round"] < 1:
            lying(site, order)

    simulated(tmp_path, plan, behaviour)
    records = read_ledger(tmp_path / "rounds.jsonl")
    assert [len(record.taken) for record in records] == [4, 3, 3, 3, 3]
    assert [record.outcomes["west"].partition(":")[0] for record in records] == [ACCEPTED] * 2 + [LEFT_OUT] * 3
    assert all(record.accepted[0] == "east" and "south" in record.accepted for record in records)


def test_a_false_number_of_rows_is_refused_in_every_round(tmp_path: Path) -> None:
    plan = a_plan(FIVE)
    state, counts = simulated(tmp_path, plan, rows=900_000_000)
    np.testing.assert_array_equal(state.finals[0].shared, honest_model(plan, counts))
    for record in read_ledger(tmp_path / "rounds.jsonl"):
        assert record.outcomes["west"] == (
            "refused: it reports 900000000 samples, more than 100 times the median of the other sites (14.5); if that is true, "
            "set max_rows under [federation] in the plan"
        )


@pytest.mark.parametrize(("rows", "federation", "outcome"), [
    (1450, {}, ACCEPTED), (1451, {}, REFUSED), (5000, {"max_rows": 10_000}, ACCEPTED),
])  # fmt: skip
def test_the_limit_of_rows_is_a_hundred_times_the_others_median_or_the_plans(
    rows: int, federation: dict[str, Any], outcome: str, tmp_path: Path
) -> None:
    simulated(tmp_path, a_plan(FIVE, federation=federation), rows=rows)
    found = {record.outcomes["west"].partition(":")[0] for record in read_ledger(tmp_path / "rounds.jsonl")}
    assert found == {outcome}


def test_claims_are_compared_from_four_sites_on() -> None:
    plan, counts = a_plan(FIVE), {name: {"0": 10} for name in FIVE}
    assert plan.too_many(counts) == {}
    assert list(plan.too_many(counts | {"west": {"0": 10 * MAX_TIMES_MEDIAN + 1}})) == ["west"]
    three = {name: counts[name] for name in FIVE[:2]} | {"west": {"0": 10**9}}
    assert plan.too_many(three) == {}


def test_large_sites_protect_each_other_and_a_single_liar_is_refused() -> None:
    plan, honest = a_plan(FIVE), {"a": {"0": 20}, "b": {"0": 20}, "c": {"0": 3000}, "d": {"0": 5000}}
    assert plan.too_many(honest) == {}
    assert plan.too_many(honest | {"e": {"0": 50_000}}) == {}
    assert list(plan.too_many(honest | {"e": {"0": 10**6}})) == ["e"]
    assert list(plan.too_many(honest | {"d": {"0": 10**6}})) == ["d"]


def test_it_is_named_on_the_screen_and_by_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = a_plan(FIVE)
    folder = CoordinatorFolder(tmp_path)
    folder.runs.mkdir()
    simulated(folder.runs / "1", plan, liar(LIES["a constant"], since=1))
    (tmp_path / "plan.toml").write_text(plan.text)
    monkeypatch.setattr(run_status, "begin", lambda *_: folder.runs / "1")
    monkeypatch.setattr(run_status, "follow", lambda _, run, sites, shown: RunResult.of(run, sites))
    told = "west: 2 updates were not used; the last: job 0, round 2: left out: its vector changed by"
    for command, code in (("train", Exit.SOME_UNUSED), ("status", Exit.OK)):
        answer = CliRunner().invoke(app, ["federation", command, str(tmp_path)])
        assert (answer.exit_code, told in answer.stdout) == (code, True)
    answer = CliRunner().invoke(app, ["federation", "train", str(tmp_path), "--json"])
    assert (answer.exit_code, json.loads(answer.stdout)["unused"]) == (6, {"west": 2})


def test_a_run_without_refused_updates_ends_with_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = a_plan(FIVE)
    folder = CoordinatorFolder(tmp_path)
    folder.runs.mkdir()
    simulated(folder.runs / "1", plan)
    (tmp_path / "plan.toml").write_text(plan.text)
    monkeypatch.setattr(run_status, "begin", lambda *_: folder.runs / "1")
    monkeypatch.setattr(run_status, "follow", lambda _, run, sites, shown: RunResult.of(run, sites))
    assert CliRunner().invoke(app, ["federation", "train", str(tmp_path)]).exit_code == Exit.OK


# With sites that train.


def a_real_plan(method: str, **training: Any) -> FederationPlan:
    return planned({"method": method, **training}, FOUR)


def test_the_sites_of_a_run_with_a_liar_have_the_models_of_the_others_and_are_told(tmp_path: Path) -> None:
    data, plan = federation(FOUR), a_real_plan("fedavg")
    lies = {"west": lambda fields: {"vector": -20 * fields["vector"]}}
    found = deployed(plan, data, tmp_path, lies=lies)
    require_same(found.fits, replayed(data, plan.settings, plan.one_method, found.records), data)
    alone = dffl.Federation([one for one in data if one.name != "west"])
    without = dffl.fit(alone, "fedavg", progress=False, **QUICK)
    for one in alone:
        np.testing.assert_array_equal(found.fits[one.name].predict(one.name, one.x), without.predict(one.name, one.x))
        assert found.fits[one.name].about["unused_updates"] == {"west": QUICK["rounds"]}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["scaffold", "apfl", "fedrep", "clustered"])
def test_a_client_that_is_left_out_is_so_in_a_fit_and_in_a_deployment(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An honest one, by a limit that is far too low: what it keeps for itself is then the same too."""
    monkeypatch.setattr(change_limit, "REACH", 0.0)
    more = {"change_limit": 1.0, "rounds": 3} | ({"clusters": 2} if method == "clustered" else {})
    data, plan = federation(FOUR), a_real_plan(method, **more)
    found = deployed(plan, data, tmp_path)
    assert any(record.left_out for record in found.records)
    with pytest.warns(UserWarning, match="its update is left out"):
        whole = dffl.fit(data, method, progress=False, **QUICK | more)
    require_same(found.fits, whole, data)
    require_same(found.fits, replayed(data, plan.settings, plan.one_method, found.records), data)
    counts = {name: sum(name in record.left_out for record in found.records) for name in FOUR}
    assert whole.about["unused_updates"] == {name: count for name, count in counts.items() if count}


def test_a_round_whose_answers_are_all_left_out_changes_nothing(tmp_path: Path) -> None:
    # Only west answers after the first round, and lies from the third on.
    plan = a_plan(("east", "north", "south", "west"), training={"rounds": 5}, rounds={"quorum": 0.25})
    lying = liar(LIES["1,000 x its vector"], since=2)

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        if site.name == "west" or order["round"] < 1:
            lying(site, order)

    state, _ = simulated(tmp_path, plan, behaviour)
    records = read_ledger(tmp_path / "rounds.jsonl")
    assert [record.outcomes["west"].partition(":")[0] for record in records] == [ACCEPTED] * 2 + [LEFT_OUT] * 3
    assert np.isfinite(state.finals[0].shared).all()

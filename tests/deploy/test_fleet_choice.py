"""The choice over time of a fleet whose rows stay apart: as in one process to the last bit, and no liar chooses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.jobs import jobs_of, rule_of
from dffl.deploy.joining import require_matching_data, site_description, taking_part
from dffl.deploy.ledger import read_ledger
from dffl.deploy.replay import replayed_choice
from dffl.deploy.round import QuorumError
from dffl.deploy.run_state import FINISHED, RunState, read_status
from dffl.tables.chosen import chosen_apart, words_of
from dffl.tables.description import Description
from dffl.time.backtest import NETWORKS
from dffl.time.chosen import Chosen
from dffl.time.fleet import fit_apart
from dffl.time.own_past import OwnPast
from dffl.training.keywords import MethodChoice
from tests.deploy.in_memory import Fuse, deployed
from tests.deploy.made import a_plan
from tests.deploy.simulated import Behaviour, SimulatedSite, Stage, simulated_time
from tests.deploy.test_resume import KilledError, finals, killed_at
from tests.time.made import ITEMS, series

NAMES = ("a", "b", "c")
SOON = {"join_seconds": 300, "quorum_seconds": 2, "dead_seconds": 600}
FEDERATION: dict[str, Any] = {
    "features": "temp", "costs": "price_*", "inputs": 1, "dimension": ITEMS, "order": "day", "split": "time",
    "train_from": "2021-01-04", "test_from": "2021-02-18", "seed": 3,
}  # fmt: skip
TRAINING = {"method": "chosen", "rounds": 1, "local_epochs": 1, "hidden": None}
TIME = {"lags": [1], "means": [3]}


def chosen_plan(time: dict[str, Any] | None = None, sites: tuple[str, ...] = NAMES, **more: Any) -> FederationPlan:
    federation = FEDERATION | more.pop("federation", {})
    training = TRAINING | more.pop("training", {})
    return a_plan(sites, federation=federation, training=training, rounds=SOON, time=TIME | (time or {}), **more)


def fleet(names: tuple[str, ...] = NAMES, more: int = 1) -> dffl.Federation:
    """Sites each with some ``more`` rows than the one before; times are seconds, as tables have them."""
    made = [series(name, number, None, 80 + more * number) for number, name in enumerate(names)]
    return dffl.Federation([one.with_rows(one.x, one.c, np.asarray(one.times) / 1e9) for one in made])


def with_networks(plan: FederationPlan, wanted: tuple[MethodChoice, ...]) -> FederationPlan:
    """The same plan with these candidates: fewer are sooner compiled."""
    assert plan.choice is not None
    return replace(plan, choice=replace(plan.choice, wanted=wanted))


def require_same(fits: dict[str, Any], models: dict[str, Chosen]) -> None:
    """The rule, what it decides by, the ranges and the evidence, to the last bit."""
    assert set(fits) == set(models)
    for name, mine in fits.items():
        assert set(mine.parts) == set(mine.trained), "networks decide, so that they are compared"
        assert mine.rules == models[name].rules
        assert mine.digest(name) == models[name].digest(name)
        assert mine.evidence == models[name].evidence
        np.testing.assert_array_equal(mine.predict(name, np.zeros((1, 1))), models[name].predict(name, np.zeros((1, 1))))


ONE, BOTH = ("fedavg",), NETWORKS


@pytest.mark.parametrize(("wanted", "later"), [(ONE, []), (BOTH, ["2021-03-05"])], ids=["one network", "both, trained again"])
def test_a_deployment_chooses_and_fits_as_one_process_does(
    wanted: tuple[MethodChoice, ...], later: list[str], tmp_path: Path
) -> None:
    data, plan = fleet(more=len(later)), with_networks(chosen_plan({"later": later}), wanted)
    assert plan.choice is not None
    found = deployed(plan, data, tmp_path)
    assert len({record.job for record in found.records}) == len(wanted) * (2 + len(later)) + 1
    require_same(found.fits, fit_apart(data, plan.choice))


def test_with_updates_missing_it_chooses_and_fits_as_the_same_participants(tmp_path: Path) -> None:
    """One site's update is lost in the first training, and its numbers at the choice, which the other three make."""
    names = ("a", "b", "c", "d")
    data, plan = fleet(names=names), chosen_plan(sites=names)
    found = deployed(plan, data, tmp_path, {"b": {(0, 0)}, "c": {(2, 0)}})
    require_same(found.fits, replayed_choice(data, plan, found.records))


def test_a_deployment_with_a_forecast_and_features_of_items_too(tmp_path: Path) -> None:
    """The forecast is the usual rule; a bad one is left for what lost less at the median site."""
    rng, brings = np.random.default_rng(8), []
    for one in fleet(more=0):
        items, mine = rng.normal(size=(one.n, ITEMS, 1)), one.c + rng.normal(0, 6, one.c.shape)
        brings.append(dffl.Client(one.name, one.x, one.c, one.set, times=one.times, items=items, forecast=mine))
    data, more = dffl.Federation(brings), {"forecast": "mine_*", "inputs": 1 + 2 * ITEMS}
    plan = with_networks(chosen_plan(federation=more, items={"features": ["wind_*"]}), ONE)
    assert plan.choice is not None
    assert (plan.choice.usual, plan.choice.brings, plan.settings.item_features) == ("forecast", True, 1)
    found, models = deployed(plan, data, tmp_path).fits, fit_apart(data, plan.choice)
    for name, mine in found.items():
        assert mine.rules[name] != "forecast"  # type: ignore[union-attr]
        assert (mine.digest(name), mine.evidence) == (models[name].digest(name), models[name].evidence)  # type: ignore[union-attr]


def test_a_site_that_is_killed_around_the_choice_resumes_to_the_same_model(tmp_path: Path) -> None:
    data, plan = fleet(more=0), with_networks(chosen_plan(), ONE)
    assert plan.choice is not None
    models = fit_apart(data, plan.choice)
    for moment in (8, 10, 11, 17):  # before and after its numbers are kept and sent, and when it has the last models
        fuse = Fuse(moment)
        found = deployed(plan, data, tmp_path / str(moment), fuses={"b": fuse})
        assert fuse.seen > moment, "it was killed"
        require_same(found.fits, models)


def margins_of(plan: FederationPlan, **values: float) -> np.ndarray:
    """Numbers of a site: those of some rules, and 1 for the others."""
    assert plan.choice is not None
    assert set(values) <= set(map(_word, plan.choice.names))
    return np.array([0.0 if name == plan.choice.usual else values.get(_word(name), 1.0) for name in plan.choice.names])


def _word(rule: str) -> str:
    return rule.replace("-", "_").replace("+", "_and_")


def telling(plan: FederationPlan, numbers: dict[str, np.ndarray]) -> Behaviour:
    """Sites that train by a formula, and answer the choice with given numbers; a site without numbers is gone."""

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        if "model 0" not in order["sent"]:
            site.answer(order)
        elif site.name in numbers:
            site.answer(order, fields={"margins": numbers[site.name]})
        else:
            site.vanish()

    return behaviour


def ran(plan: FederationPlan, numbers: dict[str, np.ndarray], folder: Path) -> tuple[str, RunState]:
    """The rule that a coordinator chooses, and the end of its run."""
    jobs = jobs_of(plan)
    with simulated_time() as clock:
        run = Stage.of(plan, clock, telling(plan, numbers), len(jobs)).train(folder)
    return rule_of(plan.choice, jobs, run.finals), run


def test_the_median_chooses_and_no_liar_does(tmp_path: Path) -> None:
    plan = chosen_plan()
    assert plan.choice is not None
    for number, lie in enumerate((-1e5, 1e5)):
        against = {"a": margins_of(plan, mean_7=0.1), "b": margins_of(plan, mean_7=0.3), "c": margins_of(plan) * 0 + lie}
        assert ran(plan, against, tmp_path / f"against {number}")[0] == plan.choice.usual
        pro = {"a": margins_of(plan, mean_7=-0.1), "b": margins_of(plan, mean_7=-0.3), "c": margins_of(plan) * 0 + lie}
        assert ran(plan, pro, tmp_path / f"for {number}")[0] == "mean-7"


def test_a_lie_about_two_rules_cannot_make_one_win_that_lost_more_everywhere_else(tmp_path: Path) -> None:
    """Medians of each rule's own regret could: the liar makes one look bad and the other good."""
    plan = chosen_plan()
    regrets = np.array([[1.0, 2.0], [3.0, 4.0], [9.0, 0.0]])  # of the usual rule and another: the third site lies
    assert np.median(regrets, axis=0).argmin() == 1
    numbers = {name: margins_of(plan, steady=other - usual) for name, (usual, other) in zip(NAMES, regrets, strict=True)}
    assert plan.choice is not None
    assert ran(plan, numbers, tmp_path)[0] == plan.choice.usual


def test_trainings_that_the_rule_does_not_need_have_no_round(tmp_path: Path) -> None:
    plan = chosen_plan()
    rule, run = ran(plan, dict.fromkeys(NAMES, margins_of(plan, mean_7=-0.1)), tmp_path / "naive")
    assert (rule, [final.round for final in run.finals]) == ("mean-7", [1, 1, 1, 0, 0])
    rule, run = ran(plan, dict.fromkeys(NAMES, margins_of(plan, fedavg_and_steady=-0.1)), tmp_path / "one")
    assert (rule, [final.round for final in run.finals]) == ("fedavg+steady", [1, 1, 1, 1, 0])
    status = read_status(tmp_path / "one")
    assert (status["status"], status["rule"]) == (FINISHED, "fedavg+steady")


def test_two_sites_do_not_choose(tmp_path: Path) -> None:
    """The quorum of the plan is half of the sites, and a choice needs three numbers."""
    names = ("a", "b", "c", "d")
    plan = chosen_plan(sites=names)
    three = {name: margins_of(plan) for name in names[:3]}
    assert ran(plan, three, tmp_path / "three")[1].finals[2].round == 1
    with pytest.raises(QuorumError, match="job 2, round 0: 2 updates were accepted, 3 are needed"):
        ran(plan, {name: margins_of(plan) for name in names[:2]}, tmp_path / "two")


@pytest.mark.parametrize("wrong", [np.zeros(3), np.full(11, np.nan), np.full(11, 1e9), np.zeros(11, np.float32)])
def test_numbers_of_another_form_do_not_count(wrong: np.ndarray, tmp_path: Path) -> None:
    names = ("a", "b", "c", "d")
    plan = chosen_plan(sites=names)
    right = {name: margins_of(plan, mean_7=-0.1) for name in names[:3]}
    rule, _ = ran(plan, right | {"d": wrong}, tmp_path)
    assert rule == "mean-7"
    [record] = [one for one in read_ledger(tmp_path / "rounds.jsonl") if one.job == 2]
    assert record.accepted == list(names[:3])
    assert record.outcomes["d"].startswith("refused")


def test_killed_at_any_moment_it_chooses_the_same(tmp_path: Path) -> None:
    plan = chosen_plan()
    numbers = {name: margins_of(plan, mean_7=-0.1 * place, mix=0.0) for place, name in enumerate(NAMES)}
    with killed_at(-1) as moments:
        whole = ran(plan, numbers, tmp_path / "whole")
    for moment, what in list(enumerate(moments))[1::7]:
        with killed_at(moment), pytest.raises(KilledError):
            ran(plan, numbers, tmp_path / str(moment))
        again = ran(plan, numbers, tmp_path / str(moment))
        assert again[0] == whole[0] == "mean-7", what
        assert finals(again[1]) == finals(whole[1]), what


def described(folder: Path, plan: FederationPlan, rows: int = 80) -> list[Description]:
    """Each site's own table, constraint and description."""
    made = []
    for number, name in enumerate(plan.sites):
        one = series(name, number, None, rows + number)
        frame = pd.DataFrame(one.c, columns=[f"price_{k}" for k in range(ITEMS)]).assign(temp=one.x[:, 0])
        frame["day"] = (np.datetime64("2021-01-04") + np.arange(one.n)).astype(str)
        (folder / name).mkdir()
        frame.to_csv(folder / name / "history.csv", index=False)
        (folder / name / "site.toml").write_text('[client]\ntable = "history.csv"\nset = { type = "top-k", k = 2 }\n')
        made.append(site_description(plan, name, folder / name / "site.toml"))
    return made


def test_a_site_takes_part_with_all_its_rows_and_is_refused_with_too_few(tmp_path: Path) -> None:
    plan = chosen_plan()
    [first, *_] = described(tmp_path, plan)
    require_matching_data(plan, first)
    assert (first.train[0].n, taking_part(plan, first).n) == (45, 80)
    late = chosen_plan(federation={"test_from": "2021-03-01"})
    with pytest.raises(ValueError, match=r"site.toml: client 'a': has 24 rows from 2021-03-01 on, .* needs 28"):
        require_matching_data(late, first)


def test_a_site_saves_its_model_and_decides_by_it(tmp_path: Path) -> None:
    plan = chosen_plan()
    found = described(tmp_path, plan)
    data = dffl.Federation([taking_part(plan, one) for one in found])
    assert plan.choice is not None
    model = fit_apart(data, plan.choice)["a"]
    own = OwnPast(data["a"], plan.choice)
    fits = {(0, label): fit for label, fit in model.parts.items()}  # of all rows: their place is what counts here
    judged = own.outcome(own.judged(fits), model.rules["a"])
    made = chosen_apart(found[0], model, judged, "dffl site join a.kit --client site.toml")
    assert words_of(made.fit, made.table).startswith("Use mix, the choice of all sites together")
    assert {"steady", "mean-7", "mean-cost", "local", "local-tuned", "chosen"} <= set(made.table["method"])
    made.fit.save(tmp_path / "model.dffl")
    again: Any = dffl.load(tmp_path / "model.dffl")
    new = pd.DataFrame({"temp": [0.5], "day": ["2021-03-25"]})
    np.testing.assert_array_equal(again.decide("a", new), made.fit.decide("a", new))
    assert again.digest("a") == model.digest("a")

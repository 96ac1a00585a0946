"""A report from real fits: what `compare` says, what clients decide, how training went."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import dffl
from dffl.comparing import against, judge_starts
from dffl.fitting import UNUSED, Fit
from dffl.report import ReportData, from_comparison, from_starts, render
from dffl.report.curves import POINTS
from tests.federations import client, feasible_sets

METHODS = ("mean-cost", "local", ("local-tuned", {"epochs": [1, 2], "folds": 2}), "fedavg")
SETS = feasible_sets()


@pytest.fixture(scope="module")
def found() -> tuple[ReportData, dict[str, Fit], object, object]:
    kinds = {"plain": "topk", "$x$": "knapsack"}
    train = dffl.Federation([client(name, SETS[kind]) for name, kind in kinds.items()])
    test = dffl.Federation([client(name, SETS[kind], seed=0, n=9) for name, kind in kinds.items()])
    fits: dict[str, Fit] = {}
    starts = judge_starts(train, METHODS, test=test, rounds=2, local_epochs=1, progress=False, keep=fits)
    limits = dffl.bounds(train, search=False, progress=False)
    data = from_starts(starts, test, fits=fits, bounds=limits, units={"plain": "EUR"}, main="fedavg", title="Two")
    return data, fits, against(starts, test), against(starts, test, "local-tuned")


def test_every_number_is_of_the_comparison(found) -> None:
    data, _, table, fair = found
    for reference, one in (("local", table), ("local-tuned", fair)):
        for row in one.to_dict("records"):
            result, change = (
                data.result(row["client"], row["method"]),
                data.change(row["client"], row["method"], reference),
            )
            assert result.regret == row["relative_regret"]
            assert result.lost == row["regret"]
            assert result.low == row["relative_regret_low"]
            assert result.low <= result.regret <= result.high
            assert (change.value, change.verdict) == (row["change"], row["verdict"])
            assert change.harmed == row["harmed"]
            assert change.low == (row["change_low"] if math.isfinite(row["change_low"]) else None)
    assert data.references == ("local-tuned", "local")
    assert data.starts == 3
    assert {tuple(one.chosen) for one in data.results} == {(), ("epochs",)}


def test_clients_settings_curves_and_differences(found) -> None:
    data, fits, _, _ = found
    plain, odd = data.clients
    assert (plain.n, plain.n_test, plain.sense, plain.decides, plain.unit) == (12, 9, "minimises", "choose 2.5 of 5", "EUR")
    assert (odd.name, odd.unit) == ("$x$", "")
    assert data.settings["rounds"] == 2
    assert data.settings["loss"] == "spo+"
    assert data.versions["dffl"] == dffl.__version__
    by_job = {one.job: one for one in data.curves}
    history = fits["fedavg"].history
    assert by_job["fedavg/all"].mean[0] == pytest.approx(history[history["round"] == 0]["loss"].mean(), rel=1e-3)
    assert sum("mean of 2 folds" in job for job in by_job) == 1
    assert all(len(one.rounds) <= POINTS for one in data.curves)
    assert data.differences is not None
    assert data.differences.values[0][1] == data.differences.values[1][0]
    assert ReportData.from_json(data.as_json()) == data
    assert "$x$" in render(data)


def test_updates_that_were_not_used_are_named_on_the_page(found) -> None:
    _, fits, table, _ = found
    told = {**fits, "fedavg": replace(fits["fedavg"], about={UNUSED: {"plain": 2}})}
    for own, notes in ((fits, 0), (told, 1)):
        page = render(from_comparison(table, fits=own, main="fedavg"))
        assert page.count("plain: 2 of its updates were not used in training") == notes


def test_one_start_is_enough_for_a_page(found) -> None:
    _, _, table, _ = found
    once = table.drop(columns=["relative_regret_low", "relative_regret_high"]).assign(
        harmed=None, verdict="not judged", change_low=-math.inf, change_high=math.inf
    )
    data = from_comparison(once, main="fedavg")
    assert data.results[0].low is None
    assert "was not judged" in render(data)


def test_sets_in_words() -> None:
    words = {kind: one.in_words() for kind, one in SETS.items()}
    assert words["topk"] == "choose 2.5 of 5"
    assert words["knapsack"] == "shares of 5 items, budget for 40% of their weight"
    assert words["hours"] == "run 2 of 5 hours on end"
    assert words["polytope"] == "linear program, 5 decisions"
    assert all(len(text) < 60 for text in words.values())
    assert dffl.Solver(lambda c: c, 4).in_words() == "Solver, 4 decisions"

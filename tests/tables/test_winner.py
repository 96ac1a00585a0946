"""What `dffl fit` recommended instead of a model, when the model decides."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from dffl.tables.chosen import ChosenModel
from dffl.tables.winner import advised_against, instead_of
from dffl.time.chosen import Chosen

Rows = dict[str, list[float | None]]
FEW: Rows = {"crossfit": [0.02, 0.04], "forecast": [0.01, 0.03], "mean-cost": [0.2, 0.3]}


def evaluation(rows: Rows) -> list[dict[str, Any]]:
    """One regret for each client."""
    return [
        {"client": f"c{place}", "method": method, "relative_regret": value}
        for method, values in rows.items()
        for place, value in enumerate(values)
    ]


def fitted(**about: Any) -> Any:
    return SimpleNamespace(method="crossfit", about=about)


def model(rows: Rows, **about: Any) -> Any:
    return SimpleNamespace(fit=fitted(), about={"evaluation": evaluation(rows), **about})


def instead(rows: Rows, fit: Any = None) -> str | None:
    return instead_of(fit or fitted(), pd.DataFrame(evaluation(rows)))


def test_what_fit_recommended_instead_is_said_with_what_was_lost_at_the_client() -> None:
    assert instead(FEW) == "forecast"
    assert instead(FEW | {"mean-cost": [None, 0.3]}) == "forecast"  # without the client whose regret is infinite
    first = "dffl fit did not recommend this model. Keep your forecast"
    assert advised_against(model(FEW), "c1") == f"{first}: at c1 it lost 3.00 % on the test rows, and crossfit 4.00 %."
    assert advised_against(model({"crossfit": [0.01]}, instead="forecast"), "c0") == f"{first}."
    assert advised_against(model(FEW, instead=None), "c0") is None


@pytest.mark.parametrize(
    "rows",
    [
        {"crossfit": [0.01], "forecast": [0.01]},
        {"crossfit": [0.01], "finetune": [0.0]},  # not a baseline
        {"forecast": [0.01]},
        {"crossfit": [0.01]},
        {"crossfit": [None], "ridge": [None]},
        {},
    ],
)
def test_nothing_is_said_without_a_better_baseline(rows: Rows) -> None:
    assert instead(rows) is None
    assert advised_against(model(rows), "c0") is None


def test_a_choice_without_an_order_rests_on_more_than_the_test_rows() -> None:
    assert instead({"crossfit": [0.2], "ridge": [0.1]}, fitted(chosen={})) is None


def test_damaged_evaluations_say_nothing() -> None:
    assert instead_of(fitted(), pd.DataFrame([{"client": "a"}])) is None
    assert instead_of(fitted(), pd.DataFrame([{"client": "a", "method": "ridge", "relative_regret": 0.1}] * 2)) is None


@pytest.mark.parametrize(
    ("why", "rules", "this"),
    [("recent", {"c0": "ridge+steady"}, "the choice over time 3.00 %"), ("simple", {"c0": "forecast"}, "your forecast 2.00 %")],
)
def test_a_method_that_beats_the_choice_over_time_is_named(why: str, rules: dict[str, str], this: str) -> None:
    fit = object.__new__(Chosen)
    object.__setattr__(fit, "evidence", {"why": why})
    object.__setattr__(fit, "rules", rules)
    rows: Rows = {"chosen": [0.03], "forecast": [0.02], "local": [0.01], "mean-7": [0.0]}
    said = advised_against(SimpleNamespace(fit=fit, about={"evaluation": evaluation(rows)}), "c0")  # type: ignore[arg-type]
    assert said == f"dffl fit did not recommend this model. Use local: at c0 it lost 1.00 % on the test rows, and {this}."
    assert instead({"chosen": [0.03], "forecast": [0.02], "mean-7": [0.0]}, fit) is None  # it was chosen among these


def test_what_may_be_noise_is_not_recommended_by_fit_nor_by_decide() -> None:
    fit = object.__new__(Chosen)
    object.__setattr__(fit, "evidence", {"why": "recent"})
    table = pd.DataFrame(evaluation({"chosen": [0.03], "ridge": [0.01], "local": [0.02], "mean-7": [0.0]}))
    made = ChosenModel(fit, table, 1, SimpleNamespace(), [], better={"local"})  # type: ignore[arg-type]
    assert instead_of(fit, table) == "ridge"
    assert instead_of(fit, made.beyond_noise) == "local"
    assert instead_of(fit, replace(made, better=set()).beyond_noise) is None
    assert list(made.beyond_noise["method"]) == ["chosen", "local", "mean-7"]

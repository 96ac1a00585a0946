"""What `dffl fit` says below its table: a simpler model that does better is named, and no other."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from dffl.tables.chosen import ChosenModel, rules_table
from dffl.tables.chosen import words_of as chosen_words
from dffl.tables.cost_range import CostRange
from dffl.tables.decisions import Decided
from dffl.tables.reading import reading, regrets_by_client
from dffl.tables.reading import words_of as chosen_without_order
from dffl.tables.trained_model import train
from dffl.time.words import said


def table(**regrets: tuple[float, float]) -> pd.DataFrame:
    rows = [
        {"client": client, "method": method.replace("_", "-"), "relative_regret": lost, "harmed": False}
        for method, both in regrets.items()
        for client, lost in zip(("north", "south"), both, strict=True)
    ]
    return pd.DataFrame(rows)


def test_a_simpler_model_that_does_better_is_named() -> None:
    words = reading(
        table(mean_cost=(0.03, 0.03), ridge=(0.01, 0.02), local=(0.04, 0.04), local_tuned=(0.02, 0.03), crossfit=(0.02, 0.018)),
        "crossfit",
        3,
    )
    first = "Use ridge: it loses least on average (1.50 %), and less than crossfit at 1 of 2 clients."
    assert words.startswith(f"{first} Do not use crossfit here yet.")


@pytest.mark.parametrize(
    ("column", "first"),
    [
        ("forecast", "Keep your forecast: it loses least on average (0.50 %)"),
        ("mean_14", "Keep to the moving average of 14 rows (mean-14): it loses least on average (0.50 %)"),
        ("steady", "Keep to the steady moving average (steady): it loses least on average (0.50 %)"),
    ],
)
def test_what_a_user_has_already_is_named_first_where_it_is_best(column: str, first: str) -> None:
    both = table(mean_cost=(0.03, 0.03), local=(0.04, 0.04), local_tuned=(0.02, 0.03), crossfit=(0.01, 0.01))
    words = reading(pd.concat([both, table(**{column: (0.005, 0.005)})]), "crossfit", 3)
    assert words.startswith(first)


def test_a_method_that_is_best_has_no_such_line() -> None:
    words = reading(
        table(mean_cost=(0.03, 0.03), ridge=(0.02, 0.02), local=(0.04, 0.04), local_tuned=(0.02, 0.03), crossfit=(0.01, 0.01)),
        "crossfit",
        1,
    )
    assert words.startswith("Use crossfit: it loses least on average (1.00 %).")
    assert "One training is not enough" in words


def test_two_trainings_are_not_called_one() -> None:
    both = table(
        mean_cost=(0.03, 0.03), ridge=(0.02, 0.02), local=(0.04, 0.04), local_tuned=(0.02, 0.03), crossfit=(0.01, 0.01)
    )
    words = reading(both, "crossfit", 2)
    assert "2 trainings are not enough to say whether a difference is real: --starts 3 judges it." in words
    assert "One training" not in words


def test_a_client_with_an_infinite_regret_hides_no_warning() -> None:
    inf = float("inf")
    both = table(mean_cost=(0.03, inf), ridge=(0.01, inf), local=(0.04, inf), local_tuned=(0.02, inf), crossfit=(0.025, inf))
    words = reading(both, "crossfit", 1)
    assert words.startswith("Use ridge: it loses least (1.00 %). Do not use crossfit here yet.\ncrossfit loses 2.50 %")
    assert "Left out of these means: south; their best possible objective is zero" in words
    shown = regrets_by_client(both.assign(n_test=3), "crossfit")
    assert [list(column.cells)[-1] for column in shown.columns] == ["mean", "1 of 2", "3.00", "1.00", "4.00", "2.00", "2.50"]
    assert reading(both[both["client"] == "south"], "crossfit", 1).startswith(
        "The best possible objective of all clients is zero"
    )


def test_rounding_is_no_lower_regret() -> None:
    both = table(mean_cost=(0, 0), ridge=(-2e-15, -2e-15), local=(0, 0), local_tuned=(3e-15, 0), crossfit=(2e-15, 0))
    words = reading(both, "crossfit", 1)
    assert words.startswith("All methods lose the same on average (0.00 %)")
    assert "-0.00" not in words
    assert "It loses less than local-tuned for 0 of 2 clients." in words


@pytest.mark.parametrize("starts", [0, -3, 1.5, True])
def test_a_training_has_at_least_one_seed(starts: Any) -> None:
    with pytest.raises(ValueError, match="starts must be a whole number >= 1, found"):
        train(None, starts=starts)  # type: ignore[arg-type]  # it is refused before the description is looked at


def test_of_one_client_nothing_is_said_of_clients() -> None:
    both = table(mean_cost=(0.02, 0), ridge=(0.01, 0), local=(0.04, 0), local_tuned=(0.03, 0), crossfit=(0.02, 0))
    words = reading(both[both["client"] == "north"], "crossfit", 1, "ask")
    assert words.splitlines() == [
        "Use ridge: it loses least (1.00 %). Do not use crossfit here yet.",
        "crossfit loses 2.00 %, the client's own tuned model (local-tuned) 3.00 %, the mean of past costs 2.00 %.",
        "One training is not enough to say whether a difference is real: ask.",
        "The mean of past costs does as well or better: look at the features.",
    ]


def test_cells_of_a_table_do_not_steer_a_terminal() -> None:
    decisions, keys = pd.DataFrame({"price_1": [1.0]}), pd.DataFrame({"order": ["\x1b]0;renamed\x07"]})
    made = Decided("north", decisions, np.ones((1, 3)), CostRange(5, 1.0, 2.0, 3.0, 0.8, why="few"), "EUR", False, keys=keys)
    console = Console(file=io.StringIO(), width=150, markup=False, highlight=False)
    made.show(console)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in said
    assert r"\x1b]0;renamed\x07" in said


def test_a_client_that_was_not_judged_is_not_said_to_be_unharmed() -> None:
    """It has one test row: there is no interval."""
    both = table(
        mean_cost=(0.05, 0.05), ridge=(0.04, 0.04), local=(0.04, 0.04), local_tuned=(0.03, 0.03), crossfit=(0.01, 0.01)
    )
    unknown = both.assign(harmed=pd.array([False, pd.NA] * 5, "boolean"), independent=[40.0, 1.0] * 5)
    said = "Significantly harmed, compared with local: "
    few = "not judged, with fewer than two test rows: "
    assert f"{said}no client; {few}south." in reading(unknown, "crossfit", 3)
    assert f"{said}no client." in reading(both, "crossfit", 3)
    assert f"{said}{few}south." in reading(unknown[unknown["client"] == "south"], "crossfit", 3)
    harmed = unknown.assign(harmed=pd.array([True, pd.NA] * 5, "boolean"))
    assert f"{said}north; {few}south." in reading(harmed, "crossfit", 3)
    alike = "not judged, as the test rows are too alike in time (they count as about 3 independent ones): "
    assert f"{said}north; {alike}south." in reading(harmed.assign(independent=[40.0, 2.9] * 5), "crossfit", 3)


def test_a_client_that_loses_nothing_has_no_poor_features() -> None:
    """All its decisions cost the same: the mean of past costs is as good as anything."""
    both = table(mean_cost=(0.05, 0.0), ridge=(0.04, 0.0), local=(0.04, 0.0), local_tuned=(0.03, 0.0), crossfit=(0.01, 0.0))
    assert "the mean of past costs does" not in reading(both, "crossfit", 1)


def test_methods_that_all_lose_the_same_are_not_told_apart() -> None:
    """As where all decisions cost the same: `Use crossfit: it loses least (0.00 %)` said nothing."""
    same = table(mean_cost=(0.0, 0.0), ridge=(0.0, 0.0), local=(0.0, 0.0), local_tuned=(0.0, 0.0), crossfit=(0.0, 0.0))
    first = "All methods lose the same on average (0.00 %): these rows cannot tell which one to use."
    assert reading(same, "crossfit", 1).startswith(first)
    words = chosen_without_order({"rule": "mean-cost", "means": [["mean-cost", 0.0], ["ridge", 0.0]]})
    assert words == "Use mean-cost: all methods lose the same on training rows that they had not seen (0.00 %)."


EVIDENCE = {"why": "recent", "reference": "steady", "rows": 24, "from": "2024-04-06", "share": 0.8, "inside": {}, "rules": {}}


def test_a_choice_without_a_relative_regret_has_no_percentage() -> None:
    """Two free hours on each day: no share of nothing can be lost."""
    evidence = {**EVIDENCE, "means": [["steady", None], ["chosen", None]], "gain": [None, None, None]}
    words = said(evidence, {"north": "steady"})
    assert words.endswith(
        "The best possible objective of all clients is zero on the test rows: no relative regret can be given."
    )
    assert "nan" not in words


def test_a_choice_names_the_clients_that_are_in_no_mean() -> None:
    """And it is compared with methods that were fitted once on the same clients."""
    inf = float("inf")
    both = table(local=(0.13, inf), mean_28=(0.18, inf), chosen=(0.18, inf)).assign(n_test=3)
    evidence = {**EVIDENCE, "why": "simple", "means": [["mean-28", 0.18], ["chosen", 0.18]], "gain": [0, 0, 0]}
    model = SimpleNamespace(evidence=evidence, rules={"north": "mean-28", "south": "mean-28"}, own=())
    words = chosen_words(model, both)  # type: ignore[arg-type]
    assert words.startswith("local loses least on the test rows (13.00 %)")
    assert words.endswith(
        "Left out of these means: south; their best possible objective is zero, so their relative regret is infinite."
    )
    assert [list(column.cells) for column in rules_table(both).columns][1] == ["13.00", "18.00", "18.00"]


def test_a_method_that_may_be_better_by_noise_is_not_named_before_the_choice() -> None:
    """A model of own features is no candidate beside a forecast, and is named only where it is better by more than noise."""
    both = table(ridge=(0.01, 0.02), local=(0.03, 0.04), forecast=(0.02, 0.03), chosen=(0.02, 0.03)).assign(n_test=40)
    evidence = {
        **EVIDENCE,
        "why": "simple",
        "base": "forecast",
        "means": [["forecast", 0.025], ["chosen", 0.025]],
        "gain": [0, 0, 0],
    }
    fit: Any = SimpleNamespace(evidence=evidence, rules={"north": "forecast"}, own=("ridge-own",))
    said = [ChosenModel(fit, both, 1, None, [], better=better).words() for better in (None, ["ridge"], ["local"], [])]  # type: ignore[arg-type]
    assert [words.split()[0] for words in said] == ["ridge", "ridge", "Keep", "Keep"]

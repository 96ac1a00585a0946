"""What a plan with ``method = "chosen"`` says of the choice over time: `FleetRecipe`, by which all sites choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dffl.cells import A_MOMENT, moment_of
from dffl.splitting import TIME
from dffl.tables.keys import Keys
from dffl.tables.over_time import NOT_OF_REFITS, past_of
from dffl.tables.plan import Plan
from dffl.time.backtest import WINDOW
from dffl.time.bases import FORECAST, STEADY
from dffl.time.choice import FLEET
from dffl.time.fleet import FEWEST_SITES, FleetRecipe
from dffl.time.outcome import CHOSEN
from dffl.time.past import DAYS_OF_YEAR
from dffl.time.ranges import SHARE
from dffl.time.timeline import DAY
from dffl.training.methods import request
from dffl.training.settings import Settings

SEASON_YEARS = 2


def read_later(keys: Keys) -> list[Any]:
    """The key ``later`` under ``[time]``, which a plan has and a `federation.toml` has not."""
    wanted = f"a list of moments after test_from, each {A_MOMENT}"
    return list(keys.take("later", wanted, lambda value: isinstance(value, list) and None not in map(moment_of, value), []))


def recipe_of(plan: Plan, sites: int, later: Sequence[Any], statistics: str, results: Sequence[str]) -> FleetRecipe:
    """How sites choose. What they cannot do while their rows stay apart is refused."""
    if sites < FEWEST_SITES:
        why = "the median of two is moved by each of them"
        raise ValueError(f'federation.sites: method = "{CHOSEN}" needs {FEWEST_SITES} or more sites, found {sites}; {why}')
    if plan.order is None or plan.split != TIME:
        fix = 'name the column of dates or numbers as federation.order, and write split = "time"'
        raise ValueError(f'federation.order: method = "{CHOSEN}" decides over time and needs an order; {fix}')
    if statistics != "own" or results:
        raise ValueError(f'wire: with method = "{CHOSEN}" sites send no statistics and no results; leave both out')
    if "refit" in plan.time:
        fix = "write the moments of further trainings, such as later = [2024-07-01]"
        raise ValueError(f"time.refit: counts rows, which sites that are apart cannot compare; {fix}")
    if plan.time.get("choice", FLEET) != FLEET:
        raise ValueError(f'time.choose.by: must be "{FLEET}", as no record of a site leaves it, found {plan.time["choice"]!r}')
    first, start = moment_of(plan.train_from), moment_of(plan.test_from)
    if first is None or start is None:
        key = "train_from" if first is None else "test_from"
        raise ValueError(f"federation.{key}: is missing; sites cannot see each other's days, so the plan must set it")
    return _checked(plan, first, start, later)


def _checked(plan: Plan, first: float, start: float, later: Sequence[Any]) -> FleetRecipe:
    dates = not isinstance(plan.test_from, int | float)
    moments = [moment for value in later if (moment := moment_of(value)) is not None]
    if any(isinstance(value, int | float) == dates for value in later):
        raise ValueError(f"time.later: must be {'dates' if dates else 'numbers'}, as test_from is, found {later!r:.60}")
    if sorted({start, *moments}) != [start, *moments]:
        raise ValueError(f"time.later: must be moments after test_from, in ascending order, found {later!r:.60}")
    past = past_of(plan)
    settings = {name: value for name, value in plan.settings.items() if name not in NOT_OF_REFITS}
    recipe = FleetRecipe(
        start=start,
        later=tuple(moments),
        dates=dates,
        base=plan.time.get("base") or (FORECAST if plan.forecast else STEADY),
        brings=bool(plan.forecast),
        past=type(past)(past.lags, past.means, past.weights, past.known_after, dates and _has_seasons(first, start)),
        window=plan.time.get("window", WINDOW),
        share=plan.time.get("share", SHARE),
        settings={**settings, "seed": plan.settings["seed"], "period": (first, start)},
    )
    for candidate in recipe.candidates:  # refuse what cannot be trained, before anybody joins
        form = recipe.form(2 + recipe.brings, 1)
        Settings.of(**request(candidate.method, form.keywords(candidate, recipe.settings))[1])
    return recipe


def _has_seasons(first: float, start: float) -> bool:
    """Whether two years come before the first origin: with less, a model would be asked about seasons it has not seen."""
    return (start - first) / DAY >= SEASON_YEARS * DAYS_OF_YEAR

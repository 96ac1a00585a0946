"""One client's side of the choice of a fleet (`dffl.time.fleet`): its own bases, features, backtest and model.

All of it follows from the client's own rows and from the common settings of the fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dffl.cells import shown_moment
from dffl.federation import Client
from dffl.fitting import Fit
from dffl.judging import regrets_at_each
from dffl.time.bases import FORECAST, MEANS, STEADY, SteadyAverage, plain_mean
from dffl.time.choice import day_scaled, margins
from dffl.time.choosing import evidence_of, last_rows, learned_range
from dffl.time.chosen import KEPT, Chosen, part_of
from dffl.time.mixtures import mixed, mixtures
from dffl.time.outcome import Backtest, Choice
from dffl.time.refits import Prepared
from dffl.time.spans import ranges_of
from dffl.time.timeline import DAY, FEWEST, NANOSECONDS, NUMBERS, SECONDS, SURELY_NANOSECONDS, Timeline, times_in
from dffl.time.words import FLEET

if TYPE_CHECKING:
    from dffl.time.fleet import FleetRecipe


class JudgedRows(NamedTuple):
    """The rows that a client has judged."""

    client: Client
    expected: dict[str, np.ndarray]
    """The predictions of each rule for them."""
    lost: dict[str, np.ndarray]
    """The loss of each row with each rule."""


def origins_in(client: Client, recipe: FleetRecipe) -> tuple[Client, list[int]]:
    """The client with times in the units of the recipe, and the number of its rows before each origin, and in total.

    A client with too few rows is refused.
    """
    who = f"client {client.name!r}"
    if client.times is None:
        fix = "name the column as `order` in the plan, or pass dffl.Client(..., times=...)"
        raise ValueError(f"{who}: the choice over time needs an order of the rows, found none; {fix}")
    surely = float(np.abs(client.times).min()) > SURELY_NANOSECONDS
    clock = (NANOSECONDS if surely else SECONDS) if recipe.dates else NUMBERS
    when = times_in(client, clock)
    ends = [*(int(np.searchsorted(when, moment)) for moment in recipe.origins), len(when)]
    shown = [shown_moment(moment, recipe.dates) for moment in recipe.origins]
    needed = recipe.past.longest + recipe.past.known_after + FEWEST
    if ends[0] < needed:
        raise ValueError(f"{who}: has {ends[0]} rows before {shown[0]}, and the choice over time needs {needed}")
    if ends[-1] - ends[0] < FEWEST:
        raise ValueError(f"{who}: has {ends[-1] - ends[0]} rows from {shown[0]} on, and the choice over time needs {FEWEST}")
    for number in range(1, len(recipe.origins)):
        if ends[number] == ends[number - 1] or ends[number] == ends[-1]:
            raise ValueError(f"{who}: has no row between two trainings of the backtest, or after the last, at {shown[number]}")
    return client.with_rows(client.x, client.c, when), ends


class OwnPast:
    """One client and its own computations. Origins are counted from 0; after the last one, all rows are known."""

    def __init__(self, client: Client, recipe: FleetRecipe):
        self.recipe = recipe
        self.client, self._ends = origins_in(client, recipe)
        assert self.client.times is not None, "it was checked"
        when, first, wait = self.client.times, self._ends[0], recipe.past.known_after
        self.timeline = Timeline((when,), when, (first,), first, len(when) - first, wait, recipe.dates)
        self.days = when / DAY if recipe.dates else None
        self._prepared: dict[int, Prepared] = {}

    @cached_property
    def _average(self) -> SteadyAverage:
        return SteadyAverage([self.client], [self.days], self.recipe.past.known_after)

    def known(self, number: int) -> int:
        """The number of rows that are known at an origin."""
        if number == len(self.recipe.origins):
            return self.client.n
        return max(self._ends[number] - self.recipe.past.known_after, 0)

    def weight(self, number: int) -> float:
        """The weight of the steady average with the smallest loss on this client's known rows."""
        return self._average.weight([self.known(number)])

    def tables(self, number: int) -> dict[str, np.ndarray]:
        """The predictions of the rules without training for all rows, at an origin."""
        wait = self.recipe.past.known_after
        tables = {rule: plain_mean(rule, self.client.c, wait) for rule in MEANS}
        tables[STEADY] = self._average.forecasts(self.weight(number))[0]
        return tables | ({FORECAST: np.asarray(self.client.forecast)} if self.recipe.brings else {})

    def prepared(self, number: int) -> Prepared:
        """This client alone in the form of models, at an origin."""
        if number not in self._prepared:
            base = self.tables(number)[self.recipe.base]
            self._prepared[number] = Prepared([self.client], [self.days], [base], self.recipe.past, self.recipe.brought)
        return self._prepared[number]

    def judged(self, models: Mapping[tuple[int, str], Fit]) -> JudgedRows:
        """Decide the rows from the first origin on by every rule; ``models`` are those of each origin and candidate."""
        recipe, client = self.recipe, self.client
        blocks: dict[str, list[np.ndarray]] = {rule: [] for rule in recipe.rules}
        for number in range(len(recipe.origins)):
            rows = slice(self._ends[number], self._ends[number + 1])
            block = {rule: [table[rows]] for rule, table in self.tables(number).items()}
            for label in recipe.labels:
                block[label] = self.prepared(number).predictions(models[number, label], [rows])
            block |= {rule: mixed(parts, block) for rule, parts in mixtures(recipe.labels, recipe.base).items()}
            for rule, expected in blocks.items():
                expected.append(block[rule][0])
        judged = client.rows(slice(self._ends[0], client.n))
        by_rule = {rule: np.concatenate(parts) for rule, parts in blocks.items()}
        return JudgedRows(judged, by_rule, {rule: regrets_at_each([judged], [table])[0] for rule, table in by_rule.items()})

    def margins(self, judged: JudgedRows) -> np.ndarray:
        """The client's number for each rule that may be chosen; nothing else leaves it for the choice."""
        recipe, names = self.recipe, self.recipe.names
        scaled = np.stack([day_scaled(judged.lost[name], judged.client.c) for name in names])
        return margins(names, scaled, recipe.usual, recipe.base, recipe.window, recipe.brought)

    def outcome(self, judged: JudgedRows, rule: str) -> Backtest:
        """The judged rows as a backtest of this client, decided by the fleet's rule."""
        recipe, lost = self.recipe, {name: [values] for name, values in judged.lost.items()}
        expected = {name: [table] for name, table in judged.expected.items()}
        choices = [Choice(self._ends[0], (rule,), (slice(0, judged.client.n),))]
        wait = recipe.past.known_after
        spans = ranges_of([self.client], [judged.client], expected, recipe.base, choices, recipe.share, wait)
        return Backtest(self.timeline, recipe.base, (judged.client,), lost, choices, spans, recipe.share, recipe.labels)

    def model(self, outcome: Backtest, rule: str, fits: Mapping[str, Fit]) -> Chosen:
        """The client's model from now on; ``fits`` are those on all rows of the candidates that the rule needs."""
        recipe, name = self.recipe, self.client.name
        assert self.client.times is not None, "it was checked"
        rows_kept = max(KEPT, 2 * recipe.past.longest)
        return Chosen(
            rules={name: rule},
            base=recipe.base,
            weight=self.weight(len(recipe.origins)),
            past=recipe.past,
            dates=recipe.dates,
            share=recipe.share,
            trained=recipe.labels,
            parts={label: part_of(fit, name) for label, fit in fits.items()},
            kept={name: last_rows(self.client, self.client.times, rows_kept)},
            ranges={name: learned_range(outcome, 0)},
            evidence=evidence_of(outcome, [rule], FLEET),
        )

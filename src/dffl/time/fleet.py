"""The choice of a fleet whose rows stay apart: each client backtests on its own rows, and one number per rule is compared.

What needs all clients is trained together: the networks of the candidates, once at each origin of the backtest and once on all
rows. All else is each client's own (`dffl.time.own_past`): its features, bases, steady weight, backtest and ranges. At the end
each client says for every rule how much more it lost by it than by the usual rule, with the noise that a change must exceed
(`dffl.time.choice.margins`). The fleet changes to the rule with the lowest median if that is below 0. So it needs half of the
clients: one that lies, of three or more, neither brings in a rule that lost more at all others, nor keeps one out.

A deployed federation does the same in messages, to the same bits (`dffl.deploy`); `fit_apart` does it in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dffl.federation import Client, Federation
from dffl.fitting import Fit
from dffl.sets import Box
from dffl.time.backtest import NETWORKS, WINDOW
from dffl.time.bases import FORECAST, MEANS, STEADY
from dffl.time.choice import eligible
from dffl.time.chosen import Chosen, parts_of
from dffl.time.mixtures import mixtures, usual_rule
from dffl.time.own_past import OwnPast
from dffl.time.past import Past
from dffl.time.ranges import SHARE
from dffl.time.refits import Candidate, Prepared
from dffl.time.timeline import DAY, FEWEST
from dffl.training.keywords import MethodChoice

FEWEST_SITES = 3
"""The fewest clients of a choice: with two, one alone could decide it."""


@dataclass(frozen=True)
class FleetRecipe:
    """The common settings of a fleet. No part of them depends on rows of a client."""

    start: float
    """The moment from which rows are judged: the first origin of the backtest. Seconds since 1970, or a number."""
    later: tuple[float, ...] = ()
    """Further origins, at which networks are trained again."""
    dates: bool = True
    base: str = STEADY
    brings: bool = False
    """Whether clients have a forecast."""
    past: Past = field(default_factory=lambda: Past(season=False))
    window: int = WINDOW
    share: float = SHARE
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of all trainings."""
    wanted: tuple[MethodChoice, ...] = NETWORKS

    @property
    def origins(self) -> tuple[float, ...]:
        """The moments at which networks are trained; a last training is on all rows."""
        return (self.start, *self.later)

    @property
    def candidates(self) -> list[Candidate]:
        """The methods to train."""
        return [Candidate.of(choice) for choice in self.wanted]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the candidates."""
        return tuple(candidate.label for candidate in self.candidates)

    @property
    def brought(self) -> bool:
        """Whether predictions start at the clients' forecast."""
        return self.base == FORECAST

    @property
    def rules(self) -> list[str]:
        """All rules that are judged, the base first."""
        naive = [*MEANS, STEADY, *([FORECAST] if self.brings else [])]
        return list(dict.fromkeys([self.base, *naive, *self.labels, *mixtures(self.labels, self.base)]))

    @property
    def names(self) -> list[str]:
        """The rules that may be chosen, in the order of the clients' numbers."""
        return eligible(self.rules, self.labels, self.base, self.brought)

    @property
    def usual(self) -> str:
        """The rule that is used unless another one is better."""
        return usual_rule(self.labels, self.base, self.brought)

    def chosen(self, middle: np.ndarray) -> str:
        """The rule that the medians of the clients' numbers select."""
        names, usual = self.names, self.names.index(self.usual)
        middle = np.where(np.arange(len(names)) == usual, 0.0, middle)
        best = int(middle.argmin())
        return names[best] if middle[best] < 0 else names[usual]

    def needs(self, rule: str) -> list[Candidate]:
        """The candidates that a rule needs."""
        parts = parts_of(rule, self.labels, self.base)
        return [candidate for candidate in self.candidates if candidate.label in parts]

    def form(self, features: int, dim: int, item_features: int = 0) -> Prepared:
        """Placeholder rows of a client in the form of models: for the shapes of networks, on a machine without rows."""
        count = self.past.longest + self.past.known_after + FEWEST
        x = np.random.default_rng(0).normal(size=(count, features))
        row_features = features - dim * (item_features + self.brings)
        items = (
            x[:, row_features : row_features + dim * item_features].reshape(count, dim, item_features)
            if item_features
            else None
        )
        forecast = x[:, features - dim :] if self.brings else None
        box = Box(np.zeros(dim), np.ones(dim))
        times = np.arange(count) * DAY
        client = Client("rows", x, np.ones((count, dim)), box, times=times, items=items, forecast=forecast)
        days = times / DAY if self.dates else None
        return Prepared([client], [days], [np.ones((count, dim))], self.past, self.brought)


def middle_of(numbers: Sequence[np.ndarray]) -> np.ndarray:
    """The median over clients of each rule's number; all clients have equal weight."""
    return np.asarray(np.median(np.stack(numbers), axis=0))


Trained = Callable[[Prepared, Candidate, Sequence[int], int], Fit]
"""Trains a candidate on all clients, with the first rows of each, at an origin."""


def fit_apart(
    federation: Federation, recipe: FleetRecipe, trained: Trained | None = None, heard: Sequence[str] | None = None
) -> dict[str, Chosen]:
    """Choose and fit as a deployed fleet does: for each client the model that its site would have.

    ``trained`` and ``heard`` repeat a recorded run: how candidates were trained, and the clients whose numbers were used.
    """
    if len(federation) < FEWEST_SITES:
        raise ValueError(f"the choice of a fleet needs {FEWEST_SITES} or more clients, found {len(federation)}")
    trained = trained or (lambda prepared, candidate, known, _: prepared.trained(candidate, known, recipe.settings))
    owns = [OwnPast(client, recipe) for client in federation]
    models: dict[tuple[int, str], Fit] = {}
    for number in range(len(recipe.origins)):
        prepared = _prepared(owns, recipe, number)
        for candidate in recipe.candidates:
            known = [past.known(number) for past in owns]
            models[number, candidate.label] = trained(prepared, candidate, known, number)
    judged = [past.judged(models) for past in owns]
    told = [pair for pair in zip(owns, judged, strict=True) if heard is None or pair[0].client.name in heard]
    rule, end = recipe.chosen(middle_of([past.margins(entry) for past, entry in told])), len(recipe.origins)
    last, known = _prepared(owns, recipe, end), [past.known(end) for past in owns]
    fits = {entry.label: trained(last, entry, known, end) for entry in recipe.needs(rule)}
    return {
        past.client.name: past.model(past.outcome(entry, rule), rule, fits) for past, entry in zip(owns, judged, strict=True)
    }


def _prepared(owns: Sequence[OwnPast], recipe: FleetRecipe, number: int) -> Prepared:
    """All clients in the form of models at an origin, each with its own base."""
    bases = [past.tables(number)[recipe.base] for past in owns]
    return Prepared([past.client for past in owns], [past.days for past in owns], bases, recipe.past, recipe.brought)

"""Models that see a client's own features: where these explain the costs, such models need no base to start from.

``own``: the client's features and costs as they are, which is what `dffl.fit` fits. ``both``: its features, what its last costs
were, and what the base expects; such a model learns what to add to the base, in units of the recent past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Protocol

import numpy as np

from dffl.federation import Client, Federation
from dffl.fitting import Fit, fit
from dffl.time.past import Past, calendar, lagged, mean_before
from dffl.time.refits import BOTH, OWN, PAST, SEEN, Candidate, Prepared
from dffl.time.units import Units, for_training, middles, recent
from dffl.training import Settings
from dffl.training.methods.crossfit import LOCAL_EPOCHS
from dffl.training.trainers.tuning import checked_epochs

WIDEST = 48
"""With more costs in a row, their lags are left out: a regression would have more slopes than there are rows."""
MARK = "features"
"""The key of a fit's `about` for its kind of features."""


class Refits(Protocol):
    """The clients of a backtest in the form of some candidates."""

    def trained(self, candidate: Candidate, known: Sequence[int], settings: Mapping[str, Any]) -> Fit:
        """The candidate, fitted on the first ``known`` rows of each client."""

    def predictions(self, model: Fit, rows: Sequence[slice]) -> list[np.ndarray]:
        """The predictions of a model for some rows of each client, as raw costs."""


class OwnFeatures:
    """The clients as they are, from row ``first`` on."""

    def __init__(self, clients: Sequence[Client], first: int = 0):
        self._clients, self._first = clients, first

    def trained(self, candidate: Candidate, known: Sequence[int], settings: Mapping[str, Any]) -> Fit:
        members = [client.rows(slice(self._first, count)) for client, count in zip(self._clients, known, strict=True)]
        usual: dict[str, Any] = {"split": "time"} if members[0].times is not None else {}
        options = usual | dict(settings) | dict(candidate.keywords)
        if candidate.method == "local-tuned":
            options["epochs"] = at_most_as_long(options)
        fitted = fit(Federation(members), candidate.method, progress=False, **options)
        return replace(fitted, about=fitted.about | {MARK: candidate.features})

    def predictions(self, model: Fit, rows: Sequence[slice]) -> list[np.ndarray]:
        return [model.predict(client.name, client.x[some]) for client, some in zip(self._clients, rows, strict=True)]


class OwnAndPast:
    """The clients' own features with those of the past, and the correction to the base, in recent units."""

    def __init__(
        self, clients: Sequence[Client], days: Sequence[np.ndarray | None], bases: Sequence[np.ndarray], past: Past,
        brought: bool = False,
    ):  # fmt: skip
        clients_with_past: list[Client] = []
        self._starts: list[np.ndarray] = []
        self._units: list[Units] = []
        for client, when, base in zip(clients, days, bases, strict=True):
            costs, start, units = for_training(client.c, base, recent(client.c, past.known_after), client.set)
            x = np.column_stack([client.x, *described(client.c, None if brought else base, past, when)])
            clients_with_past.append(Client(client.name, x, costs - start, client.set, client.maximize, times=client.times))
            self._starts.append(start)
            self._units.append(units)
        self._inner = OwnFeatures(clients_with_past, past.longest)

    def trained(self, candidate: Candidate, known: Sequence[int], settings: Mapping[str, Any]) -> Fit:
        return self._inner.trained(candidate, known, settings)

    def predictions(self, model: Fit, rows: Sequence[slice]) -> list[np.ndarray]:
        added = self._inner.predictions(model, rows)
        return [
            units.take(some).raw(more + start[some])
            for more, start, units, some in zip(added, self._starts, self._units, rows, strict=True)
        ]


class Views:
    """The clients of a backtest in the form of all candidates; each form is computed on first use."""

    def __init__(
        self, clients: Sequence[Client], days: Sequence[np.ndarray | None], bases: Sequence[np.ndarray], past: Past,
        brought: bool = False,
    ):  # fmt: skip
        self._given = clients, days, bases, past, brought
        self._made: dict[str, Refits] = {}
        self._lock = Lock()

    def of(self, features: str) -> Refits:
        """The inputs of candidates with these ``features``."""
        with self._lock:
            if features not in self._made:
                self._made[features] = self._view(features)
            return self._made[features]

    def _view(self, features: str) -> Refits:
        if features == OWN:
            return OwnFeatures(self._given[0])
        return OwnAndPast(*self._given) if features == BOTH else Prepared(*self._given)

    def predictions(self, model: Fit, rows: Sequence[slice]) -> list[np.ndarray]:
        """The predictions of a model for some rows of each client; the model says which inputs it needs."""
        return self.of(seen_by(model)).predictions(model, rows)


def seen_by(model: Fit) -> str:
    """The kind of features of a fit; those of the past by default."""
    features = model.about.get(MARK, PAST)
    if features not in SEEN:
        raise ValueError(f"features of a part must be one of {', '.join(SEEN)}, found {features!r:.40}")
    return str(features)


def features_of_past(model: Fit, past: Past, dim: int) -> int:
    """The fewest features of the past that are made for a fit."""
    seen = seen_by(model)
    if seen == PAST:
        return dim * past.own_width
    lags = len(past.known_lags)
    return lags * (1 + (dim if dim <= WIDEST else 0)) + len(past.means) if seen == BOTH else 0


def described(costs: np.ndarray, base: np.ndarray | None, past: Past, days: np.ndarray | None) -> list[np.ndarray]:
    """Columns that describe each row by its past: lags of the costs, lags and means of their level, the base, the weekday."""
    level, wait = middles(costs), past.known_after
    columns = [lagged(costs, lag, wait) for lag in past.known_lags] if costs.shape[1] <= WIDEST else []
    columns += [lagged(level, lag, wait) for lag in past.known_lags]
    columns += [mean_before(level, count, wait) for count in past.means]
    columns += [base] if base is not None and costs.shape[1] <= WIDEST else []
    return [*columns, calendar(days, len(costs), season=False)]


def at_most_as_long(settings: Mapping[str, Any]) -> tuple[int, ...]:
    """The candidate epochs of `local-tuned`: at most those of a training with these settings, as in `dffl fit`."""
    keywords = {name: settings[name] for name in ("rounds", "local_epochs") if name in settings}
    usual = Settings.of(**keywords)
    asked = checked_epochs(settings.get("epochs", LOCAL_EPOCHS))
    return tuple(sorted({min(epochs, usual.rounds * usual.local_epochs) for epochs in asked}))

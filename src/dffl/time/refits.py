"""Refits: each is an ordinary `dffl.fit` on the rows before an origin, with predictions that start at a base.

A model sees features of the past and the client's other features, and learns what to add to the base, in units of the recent
past. With no training at all its predictions are the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dffl.federation import Client, Federation
from dffl.fitting import Fit, fit
from dffl.time.network import ITEM, NETWORKS, VECTOR
from dffl.time.past import Past, features
from dffl.time.units import Units, for_training, recent
from dffl.training.keywords import MethodChoice

SETTINGS: dict[str, Any] = {
    "rounds": 20, "local_epochs": 2, "batch_size": 32, "learning_rate": 3e-3, "schedule": "cosine", "scale_features": False,
}  # fmt: skip
"""Settings of a refit: short, because it starts at a base. A candidate's own settings replace them."""
OF_NETWORK: dict[str, dict[str, Any]] = {VECTOR: {"rounds": 10}}
"""Other settings for a network with more numbers, which overfits earlier."""

OF_FORECAST: dict[str, Any] = {"rounds": 5, "learning_rate": 1e-3}
"""Other settings if predictions start at the clients' forecast: the rest to learn is small and noisy."""
PAST, OWN, BOTH = SEEN = ("past", "own", "both")
"""The inputs of a candidate: features of the past, with which it corrects the base; a client's own features; or both."""


def relaxed_where_slow(clients: Sequence[Client], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of refits: without integer conditions where each training would ask a solver for every row and epoch.

    Decisions and regrets keep the conditions. It takes about a tenth of the time, and changes regret by hundredths of a point.
    """
    slow = any(client.oracle.on_host and client.set.relaxed is not client.set for client in clients)
    return {"relax": True, **settings} if slow else dict(settings)


@dataclass(frozen=True)
class Candidate:
    """A method that a backtest trains at each refit, with its options and settings, and a label."""

    label: str
    method: str
    keywords: Mapping[str, Any]
    features: str = PAST
    once: bool = False
    """Whether it is trained only twice: before the first row that is judged, and before the first that is reported."""

    @classmethod
    def of(cls, choice: MethodChoice) -> Candidate:
        """From a name, or a name with options and settings: ``("fedavg", {"loss": "mse"})`` is called ``fedavg-mse``.

        ``network`` may be ``item`` (the default) or ``vector``, and ``features`` ``past`` (the default), ``own`` or ``both``.
        With ``once``, it is not trained at each refit. What sees a client's own features once is the method as `dffl.fit` has
        it, and keeps its name.
        """
        if isinstance(choice, str):
            return cls(choice, choice, {})
        name, options = choice
        keywords = dict(options)
        features, once = keywords.pop("features", PAST), bool(keywords.pop("once", False))
        network = keywords.get("network", ITEM)
        if isinstance(network, str) and network not in NETWORKS:
            raise ValueError(f"candidates: network must be one of {', '.join(NETWORKS)}, found {network!r:.40}")
        if features not in SEEN:
            raise ValueError(f"candidates: features must be one of {', '.join(SEEN)}, found {features!r:.40}")
        if features != PAST and "network" in keywords and isinstance(network, str):
            raise ValueError(f"candidates: network = {network!r} corrects a base, and needs features = {PAST!r}")
        plain = ("loss", "network", *(["degree"] if features != PAST else []))
        words = [str(value) if key in plain else f"{key}={value}" for key, value in keywords.items()]
        seen = [] if features == PAST or (once and features == OWN) else [features]
        return cls("-".join([name, *seen, *words]), name, keywords, features, once)


class Prepared:
    """The clients of a backtest as inputs of models, for one base: features of the past, in units of the recent past.

    ``brought``: the base is the clients' forecast.
    """

    def __init__(
        self, clients: Sequence[Client], days: Sequence[np.ndarray | None], bases: Sequence[np.ndarray], past: Past,
        brought: bool = False,
    ):  # fmt: skip
        self._clients, self._past, self._brought = clients, past, brought
        self._units: list[Units] = []
        self._x: list[np.ndarray] = []
        self._bases: list[np.ndarray] = []
        self._costs: list[np.ndarray] = []
        for client, when, base in zip(clients, days, bases, strict=True):
            units = recent(client.c, past.known_after)
            table = features(client.c, base, units, past, when, client.row_features, client.items)
            self.width = table.items.shape[-1]
            costs, start, predicted = for_training(client.c, base, units, client.set)
            self._x.append(np.column_stack([table.items.reshape(len(base), -1), table.rows]))
            self._costs.append(costs)
            self._bases.append(start)
            self._units.append(predicted)

    @property
    def rows(self) -> int:
        """The number of rows of the first client."""
        return len(self._x[0])

    def federation(self, known: Sequence[int]) -> Federation:
        """The first ``known`` rows of each client, without those that have too little past for the features."""
        members = []
        for place, client in enumerate(self._clients):
            rows = slice(self._past.longest, known[place])
            times = None if client.times is None else client.times[rows]
            members.append(
                Client(
                    client.name,
                    self._x[place][rows],
                    self._costs[place][rows],
                    client.set,
                    client.maximize,
                    times=times,
                    forecast=self._bases[place][rows],
                )
            )
        return Federation(members)

    def trained(self, candidate: Candidate, known: Sequence[int], settings: Mapping[str, Any]) -> Fit:
        """The candidate, fitted on the first ``known`` rows of each client."""
        return fit(self.federation(known), candidate.method, progress=False, **self.keywords(candidate, settings))

    def keywords(self, candidate: Candidate, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The options and settings of a candidate: the usual ones, then the given ``settings``, then its own."""
        options = dict(candidate.keywords)
        network = options.pop("network", ITEM)
        usual = SETTINGS | OF_NETWORK.get(network, {}) if isinstance(network, str) else SETTINGS
        usual = usual | (OF_FORECAST if self._brought else {})
        if self._clients[0].times is not None:
            usual = usual | {"split": "time"}
        factory = NETWORKS[network](self.width, self._past.own_width) if isinstance(network, str) else network
        return usual | {"network": factory} | dict(settings) | options

    def predictions(self, model: Fit, rows: Sequence[slice]) -> list[np.ndarray]:
        """The predictions of a model for some rows of each client, as raw costs."""
        predicted = []
        for client, x, base, units, some in zip(self._clients, self._x, self._bases, self._units, rows, strict=True):
            inputs = np.column_stack([x[some], base[some]])
            predicted.append(units.take(some).raw(model.predict(client.name, inputs)))
        return predicted

"""The method `chosen` without an order: the method whose decisions lose least on samples that it has not seen.

Every sample is held out once. All methods are judged on the same folds, by the mean over clients of the relative regret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dffl.comparing import fit_all
from dffl.federation import Client, Federation
from dffl.fitting import Fit, fit
from dffl.judging import judged, regrets_at
from dffl.training import Settings
from dffl.training.keywords import MethodChoice
from dffl.training.trainers.crossfit import FOLDS

CHOSEN = "chosen"
CANDIDATES: tuple[MethodChoice, ...] = ("mean-cost", "ridge", "local-tuned", "crossfit")
"""What is chosen among, besides the forecast that clients bring."""
KEPT = ("local-tuned", "crossfit")
"""The methods that judge themselves on samples which they have not seen."""


def fit_best(
    federation: Federation,
    candidates: Sequence[MethodChoice] | None = None,
    *,
    progress: bool | None = None,
    checkpoint: Any = None,
    **settings: Any,
) -> Fit:
    """The best of several methods, by out-of-fold regret, fitted on all samples; `about` says what was compared."""
    wanted = list(candidates or (*CANDIDATES, *(["forecast"] if federation.has_forecast else [])))
    fits = fit_all(federation, wanted, progress=progress, checkpoint=checkpoint, **settings)
    fits = {name: one for name, one in fits.items() if name in [_name(method) for method in wanted]}
    lost = {name: held_out(name, one, federation, settings) for name, one in fits.items()}
    means = {name: float(np.mean([by[client] for client in by if np.isfinite(by[client])])) for name, by in lost.items()}
    best = min(means, key=lambda name: means[name])
    order = sorted(means, key=lambda name: means[name])
    found = {"rule": best, "means": [[name, means[name]] for name in order], "rules": lost}
    return replace(fits[best], about=fits[best].about | {CHOSEN: found})


def held_out(name: str, one: Fit, federation: Federation, settings: dict[str, Any]) -> dict[str, float]:
    """Each client's relative out-of-fold regret under a method."""
    if name in KEPT:
        lost = {client.name: one.out_of_fold(client.name)["regret"] for client in federation}
    elif name == "forecast":  # nothing was trained
        lost = {client.name: regrets_at(client, client.forecast) for client in federation}
    else:
        lost = _refitted(name, federation, settings)
    return {client.name: judged(lost[client.name], client)["relative_regret"] for client in federation}


def _refitted(name: str, federation: Federation, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """The regret of each sample under the fits of the other folds."""
    how = Settings.of(**settings).for_clients(federation).splitting
    count = min(FOLDS, min(federation.counts))
    lost = {client.name: np.zeros(client.n) for client in federation}
    index = {client.name: how.folds(client, count) for client in federation}
    for number in range(count):
        parts = [_parted(client, index[client.name][number]) for client in federation]
        model = fit(Federation([train for train, _ in parts]), name, progress=False, **settings)
        for (_, held), client in zip(parts, federation, strict=True):
            if held.n:
                lost[client.name][index[client.name][number]] = model.regrets(held)
    return lost


def _parted(client: Client, held: np.ndarray) -> tuple[Client, Client]:
    return client.rows(np.setdiff1d(np.arange(client.n), held)), client.rows(held)


def _name(method: MethodChoice) -> str:
    return method if isinstance(method, str) else method[0]

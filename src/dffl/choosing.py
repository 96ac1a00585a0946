"""The method `chosen` without an order: the method with the smallest loss on samples that it was not trained on.

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
"""The candidates, in addition to the clients' forecast."""
RELATIVE = ("relative_regret", "regret")
KEPT = ("local-tuned", "crossfit")
"""The methods that have out-of-fold regrets of their own."""


def fit_best(
    federation: Federation,
    candidates: Sequence[MethodChoice] | None = None,
    *,
    progress: bool | None = None,
    checkpoint: Any = None,
    **settings: Any,
) -> Fit:
    """The best of several methods, by out-of-fold regret, fitted on all samples. `about` says what was compared."""
    wanted = list(candidates or (*CANDIDATES, *(["forecast"] if federation.has_forecast else [])))
    fits = fit_all(federation, wanted, progress=progress, checkpoint=checkpoint, **settings)
    asked = dict(zip(fits, wanted, strict=False))  # `local` follows them, if it was not asked for
    judgements = {name: held_out(method, fits[name], federation, settings) for name, method in asked.items()}
    order = ranked({name: list(by.values()) for name, by in judgements.items()})
    best = order[0][0]
    lost = {name: {client: row["relative_regret"] for client, row in by.items()} for name, by in judgements.items()}
    choice = {"rule": best, "means": [[name, mean] for name, mean in order], "rules": lost}
    return replace(fits[best], about=fits[best].about | {CHOSEN: choice})


def ranked(judgements: dict[str, list[dict[str, float]]]) -> list[tuple[str, float]]:
    """The methods with their mean relative regrets, the best first, from the summaries of each client's regrets.

    Clients with an infinite value, because their best possible objective is zero, are left out. If no client is left,
    regrets are relative to the mean size of each client, and the means are NaN.
    """
    relative, amounts = (np.array([[row[key] for row in rows] for rows in judgements.values()]) for key in RELATIVE)
    finite = np.isfinite(relative).all(axis=0)
    if finite.any():
        means = scores = relative[:, finite].mean(axis=1)
    else:
        size = amounts.mean(axis=0)
        means, scores = np.full(len(amounts), np.nan), (amounts / np.where(size > 0, size, 1.0)).mean(axis=1)
    names = list(judgements)
    return [(names[place], float(means[place])) for place in np.argsort(scores, kind="stable")]


def held_out(method: MethodChoice, fit: Fit, federation: Federation, settings: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The summary of each client's out-of-fold regrets with a method."""
    name = method if isinstance(method, str) else method[0]
    if name in KEPT:
        lost = {client.name: fit.out_of_fold(client.name)["regret"] for client in federation}
    elif name == "forecast":  # nothing was trained
        lost = {client.name: regrets_at(client, client.forecast) for client in federation}
    else:
        lost = _refitted(method, federation, settings)
    return {client.name: judged(lost[client.name], client) for client in federation}


def _refitted(method: MethodChoice, federation: Federation, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """The regret of each sample under the fits of the other folds."""
    name, options = (method, {}) if isinstance(method, str) else method
    how = Settings.of(**settings).for_clients(federation).splitting
    count = min(FOLDS, min(federation.counts))
    lost = {client.name: np.zeros(client.n) for client in federation}
    index = {client.name: how.folds(client, count) for client in federation}
    for number in range(count):
        parts = [_parted(client, index[client.name][number]) for client in federation]
        model = fit(Federation([train for train, _ in parts]), name, progress=False, **{**settings, **options})
        for (_, held_out_rows), client in zip(parts, federation, strict=True):
            if held_out_rows.n:
                lost[client.name][index[client.name][number]] = model.regrets(held_out_rows)
    return lost


def _parted(client: Client, held_out_rows: np.ndarray) -> tuple[Client, Client]:
    return client.rows(np.setdiff1d(np.arange(client.n), held_out_rows)), client.rows(held_out_rows)

"""The evidence: the regret of each sample under models that were trained without it.

`trained.py` trains the models of each fold, `quick.py` replaces them by closed-form ones, and `given` uses out-of-fold
results of existing fits: three ways to the same kind of evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dffl.advice.folds import Fold
from dffl.federation import Client, Federation
from dffl.fitting import Fit
from dffl.judging import regrets_at_each
from dffl.shapes import evenly_spaced

Guess = Callable[[np.ndarray], np.ndarray]
"""From raw features (n, p) to raw costs (n, d)."""
Candidates = list[dict[str, Guess]]
"""For each client its models, by their names in `Evidence`."""
FITTED = {"crossfit": "crossfit", "local-tuned": "local_tuned"}
"""The methods whose fits have out-of-fold regrets, and their names in `Evidence`."""


GUESSED = 100
"""The most samples of a client whose predictions are kept."""


def _unknown() -> np.ndarray:
    return np.full(1, np.nan)


class Guesses(NamedTuple):
    """The costs (k, d) of some samples, predicted by models that were trained without them; `causes` compares them."""

    rows: np.ndarray
    """The samples' numbers (k,), evenly spaced."""
    costs: tuple[np.ndarray, np.ndarray, np.ndarray]
    """By the mean of past costs, by a closed-form model of the client's own costs, and by the shared model."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """One client's samples, (n,) each, judged by models that were trained without them. Regrets are relative to the mean of
    |z*|.

    Unknown values are NaN.
    """

    name: str
    n: int
    mean_cost: np.ndarray
    """The regret of each sample if the client decides by the mean of its past costs."""
    local: np.ndarray = field(default_factory=_unknown)
    """Under the client's own model, trained as long as the shared one."""
    local_tuned: np.ndarray = field(default_factory=_unknown)
    """Under the client's own model, trained for the number of epochs that is best in the other folds."""
    federated: np.ndarray = field(default_factory=_unknown)
    """Under the shared model."""
    finetuned: np.ndarray = field(default_factory=_unknown)
    """Under the shared model tuned at the client, for as long as is best in the other folds (or not at all)."""
    crossfit: np.ndarray = field(default_factory=_unknown)
    """The same with the settings and the candidates of `crossfit`."""
    half_local: np.ndarray = field(default_factory=_unknown)
    """Under the client's own model from half the data, which shows how regret falls with more data."""
    half_federated: np.ndarray = field(default_factory=_unknown)
    guesses: Guesses | None = None
    """The predictions for some of the samples, if there is a shared model of each fold."""


def judged(federation: Federation, parts: Sequence[Fold], models: Callable[[Fold], Candidates]) -> list[dict[str, np.ndarray]]:
    """Each client's regrets by the names of its models; every sample is judged in the fold that holds it out."""
    regrets: list[dict[str, np.ndarray]] = [{} for _ in federation]
    for fold in parts:
        fold_models = models(fold)
        some = [(client, client_models) for client, client_models in zip(fold.held, fold_models, strict=True) if client.n]
        asked = [(client, guess(client.x)) for client, client_models in some for guess in client_models.values()]
        lost = iter(regrets_at_each([client for client, _ in asked], [guess for _, guess in asked]))
        for place, (client, client_models) in enumerate(zip(federation, fold_models, strict=True)):
            for name in client_models:
                rule_regrets = regrets[place].setdefault(name, np.empty(client.n))
                if len(fold.index[place]):
                    rule_regrets[fold.index[place]] = _relative(next(lost), client)
    return regrets


def guessed(federation: Federation, parts: Sequence[Fold], models: Callable[[Fold], Candidates]) -> list[Guesses]:
    """The predictions of each client's models ``mean_cost``, ``closed_form`` and ``federated`` for some of its samples."""
    names = ("mean_cost", "closed_form", "federated")
    rows = [evenly_spaced(client.n, min(client.n, GUESSED)) for client in federation]
    costs = [np.empty((len(names), len(some), federation.dim)) for some in rows]
    for fold in parts:
        for place, client_models in enumerate(models(fold)):
            mine = np.isin(rows[place], fold.index[place])
            if not mine.any():
                continue
            x = federation[place].x[rows[place][mine]]
            for table, name in zip(costs[place], names, strict=True):
                table[mine] = client_models[name](x)
    return [Guesses(some, (pair[0], pair[1], pair[2])) for some, pair in zip(rows, costs, strict=True)]


def mean_costs(fold: Fold) -> list[Guess]:
    """The mean of each client's training costs."""
    return [_constant(client.c.mean(axis=0)) for client in fold.train]


def given(federation: Federation, fits: Mapping[str, Fit], parts: Sequence[Fold]) -> list[Evidence]:
    """The out-of-fold results of fits of `crossfit` and `local-tuned`, as evidence. Nothing is trained."""
    naive = judged(federation, parts, lambda fold: [{"mean_cost": mean} for mean in mean_costs(fold)])
    collected = []
    for client, regrets in zip(federation, naive, strict=True):
        known = {name: _relative(_kept(fits[method], client), client) for method, name in FITTED.items()}
        collected.append(Evidence(client.name, client.n, **regrets, **known, guesses=None))
    return collected


def check_fits(federation: Federation, fits: Mapping[str, Fit]) -> None:
    """Refuse fits that are not those of `crossfit` and `local-tuned` to this federation."""
    if not isinstance(fits, Mapping) or set(fits) != set(FITTED):
        raise ValueError(f"fits must be {{'crossfit': fit, 'local-tuned': fit}}, found {fits!r:.80}")
    for method, fit in fits.items():
        if not isinstance(fit, Fit) or fit.method != method:
            kind = f"one of {fit.method!r}" if isinstance(fit, Fit) else type(fit).__name__
            raise ValueError(f"fits[{method!r}] must be a fit of {method!r}, found {kind}")
        for client in federation:
            _kept(fit, client)


def _kept(fit: Fit, client: Client) -> np.ndarray:
    """A fit's out-of-fold regrets of a client, if they belong to these samples: the best decisions have the same objective."""
    table = fit.out_of_fold(client.name)
    lost = table["regret"]
    same = len(lost) == client.n and np.allclose(
        np.abs(table["objective"] - client.sense * lost), client.z_star_size, rtol=1e-4, atol=1e-6 * client.z_star_size.max()
    )
    if not same:
        raise ValueError(f"client {client.name!r}: its samples are not those that the fit of {fit.method!r} was trained on")
    return lost


def _relative(lost: np.ndarray, client: Client) -> np.ndarray:
    return np.maximum(lost, 0) / (float(client.z_star_size.mean()) or 1.0)  # a value below zero is rounding


def _constant(costs: np.ndarray) -> Guess:
    return lambda x: np.broadcast_to(costs, (len(x), len(costs)))

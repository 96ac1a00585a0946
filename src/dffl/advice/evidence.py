"""The evidence: the regret of each sample under models that have not seen it.

Every fold trains the local models, the shared one, and the shared one tuned at each client, on the other folds. So each
sample is judged once by all of them, and by the historical mean. With `quick` nothing is trained: closed-form models of the
costs replace the networks. They ignore decisions, but take a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dffl.advice.folds import Fold, folds, halved
from dffl.cache import keep_compiled_programs
from dffl.federation import Client, Federation
from dffl.judging import predicted, regrets_at_each
from dffl.predictor import Normaliser, Predictor
from dffl.progress import Progress
from dffl.theory.costmodel import Ridge, fit_own_ridge, fit_ridge
from dffl.training import FedAvg, Local, Run, Settings
from dffl.training.trainers import Stops
from dffl.training.trainers.tuning import EPOCHS, checked_epochs
from dffl.training.units import client_units, in_units

Guess = Callable[[np.ndarray], np.ndarray]
"""From raw features (n, p) to raw costs (n, d)."""
Candidates = list[list[Guess]]
"""For each client: the historical mean, the own model, the shared one, and the shared one tuned for increasing epochs."""
FoldTrainer = Callable[[Federation, tuple[int, ...], Settings, Progress], Candidates]


@dataclass(frozen=True, eq=False)
class Evidence:
    """One client's samples, judged by models that have not seen them. Regrets are relative to the mean of |z*|."""

    name: str
    mean_cost: np.ndarray
    """(n,): the regret of each sample when the client decides by the mean of its past costs."""
    local: np.ndarray
    """(n,): under the own model."""
    federated: np.ndarray
    """(n,): under the shared model."""
    tuned: np.ndarray
    """(n,): under the shared model tuned at the client, for as long as the other folds find best (or not at all)."""
    half: np.ndarray
    """(n, 2): under the own and the shared model of half the data, which shows how regret falls with data."""

    @property
    def n(self) -> int:
        return len(self.local)


def gather(
    federation: Federation,
    settings: Settings,
    count: int = 5,
    blocks: bool = False,
    quick: bool = False,
    progress: bool | None = None,
    tuning: Sequence[int] = EPOCHS,
) -> list[Evidence]:
    """Evidence for every client from ``count`` folds, and from others for the models of half the data.

    ``tuning`` holds the numbers of epochs that the shared model is tuned for at each client.
    """
    whole = folds(federation, count, settings.seed, blocks)
    # The two halves of a time series differ by their seasons, not only in what they train on.
    half = halved(whole) if blocks else folds(federation, 2, settings.seed)
    stops = () if quick else tuple(epochs for epochs in checked_epochs(tuning) if epochs > 0)
    train = _regress if quick else _train
    passes = settings.rounds * settings.local_epochs
    with Progress(progress) as bar:
        long, short = (sum(sum(fold.train.counts) for fold in part) for part in (whole, half))
        bar.expect((2 * passes + max(stops, default=0)) * long + 2 * passes * short)
        full = _judge(federation, whole, train, stops, settings, bar)
        halves = _judge(federation, half, train, (), settings, bar)
    found = []
    for place, client in enumerate(federation):
        size = float(client.z_star_size.mean()) or 1.0
        mean_cost, local, *shared = (full[place] / size).T
        fold = np.empty(client.n, int)
        for number, part in enumerate(whole):
            fold[part.index[place]] = number
        tuned = _chosen(np.stack(shared, axis=1), fold)
        found.append(Evidence(client.name, mean_cost, local, shared[0], tuned, halves[place][:, 1:] / size))
    return found


def _chosen(lost: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Each sample's regret under the column that is best on the other folds: no choice is judged on samples that made it."""
    best = {number: int(np.argmin(lost[fold != number].mean(axis=0))) for number in np.unique(fold)}
    return lost[np.arange(len(fold)), [best[number] for number in fold]]


def _judge(
    federation: Federation, parts: Sequence[Fold], train: FoldTrainer, stops: tuple[int, ...], settings: Settings, bar: Progress
) -> list[np.ndarray]:
    """Each client's regrets, (samples, candidates), every sample judged by the fold that holds it out."""
    regrets = [np.empty((client.n, 3 + len(stops))) for client in federation]
    for fold in parts:
        models = train(fold.train, stops, settings, bar)
        for place, lost in enumerate(candidate_regrets(models, fold.held)):
            regrets[place][fold.index[place]] = lost
    return regrets


def _train(federation: Federation, stops: tuple[int, ...], settings: Settings, bar: Progress) -> Candidates:
    keep_compiled_programs()
    with Run(federation, settings, progress=bar) as run:
        own, (common, _) = run.personal(run.trained(Local())), run.common(run.trained(FedAvg()))
        tuned = run.trained(Stops(FedAvg(), stops)).swapaxes(0, 1) if stops else ()
        columns = [own, common, *(run.personal(one) for one in tuned)]
    return [
        [_mean_cost(client), *(partial(_guess, model) for model in models)]
        for client, models in zip(federation, zip(*columns, strict=True), strict=True)
    ]


def _regress(federation: Federation, stops: tuple[int, ...], settings: Settings, bar: Progress) -> Candidates:
    """The own and the pooled ridge regression of scaled costs, instead of networks trained on decisions."""
    units = client_units(federation, settings)
    rows = [in_units(client, unit) for client, unit in zip(federation, units, strict=True)]
    features = np.concatenate([z for z, _ in rows])
    pooled = fit_ridge(features, np.concatenate([client.sense * c for client, (_, c) in zip(federation, rows, strict=True)]))
    return [
        [_mean_cost(client), *(partial(_in_units, ridge, unit) for ridge in (fit_own_ridge(client, unit), pooled))]
        for client, unit in zip(federation, units, strict=True)
    ]


def _guess(model: Predictor, x: np.ndarray) -> np.ndarray:
    return np.asarray(predicted(model, x))


def _in_units(ridge: Ridge, unit: Normaliser, x: np.ndarray) -> np.ndarray:
    return ridge(unit.features(x)) * float(unit.c_scale)


def _mean_cost(client: Client) -> Guess:
    mean = client.c.mean(axis=0)
    return lambda x: np.broadcast_to(mean, (len(x), len(mean)))


def candidate_regrets(models: Candidates, held: Federation) -> list[np.ndarray]:
    """Each client's regrets, (samples, candidates), when it decides by each of its candidates."""
    asked = [(client, model(client.x)) for client, own in zip(held, models, strict=True) for model in own]
    lost = iter(regrets_at_each([client for client, _ in asked], [guess for _, guess in asked]))
    return [np.maximum(np.stack([next(lost) for _ in own], axis=1), 0) for own in models]  # below zero is rounding

"""Evidence without training: closed-form models of the costs replace the networks. They ignore decisions, but take a second."""

from __future__ import annotations

from functools import partial

import numpy as np

from dffl.advice.evidence import Candidates, Evidence, guessed, judged, mean_costs
from dffl.advice.folds import Fold, folds, half_folds
from dffl.federation import Federation
from dffl.predictor import Normaliser
from dffl.theory.scaled import Ridge, fit_own_ridge, fit_ridge
from dffl.training import Settings
from dffl.training.units import client_units, in_units


def regressed(federation: Federation, settings: Settings, count: int) -> list[Evidence]:
    """Evidence for every client from ``count`` folds, and from other folds for the models of half the data."""
    all_folds = folds(federation, count, settings.splitting)
    less = half_folds(federation, all_folds, settings.splitting)
    full, half = (judged(federation, parts, partial(_models, settings)) for parts in (all_folds, less))
    predicted = guessed(federation, all_folds, partial(closed_forms, settings))
    return [
        Evidence(client.name, client.n, **mine, half_local=short["local"], half_federated=short["federated"], guesses=seen)
        for client, mine, short, seen in zip(federation, full, half, predicted, strict=True)
    ]


def closed_forms(settings: Settings, fold: Fold) -> Candidates:
    """The models whose predictions `guessed` keeps."""
    return [{**models, "closed_form": models["local"]} for models in _models(settings, fold)]


def _models(settings: Settings, fold: Fold) -> Candidates:
    """The own and the pooled ridge regression of scaled costs, instead of networks trained on decisions."""
    units = client_units(fold.train, settings)
    rows = [in_units(client, unit) for client, unit in zip(fold.train, units, strict=True)]
    features = np.concatenate([z for z, _ in rows])
    pooled = fit_ridge(features, np.concatenate([client.sense * c for client, (_, c) in zip(fold.train, rows, strict=True)]))
    return [
        {
            "mean_cost": mean,
            "local": partial(_guess, fit_own_ridge(client, unit), unit),
            "federated": partial(_guess, pooled, unit),
        }
        for client, unit, mean in zip(fold.train, units, mean_costs(fold), strict=True)
    ]


def _guess(ridge: Ridge, unit: Normaliser, x: np.ndarray) -> np.ndarray:
    return ridge(unit.features(x)) * float(unit.c_scale)

"""Training curves for a page: a few dozen points for each training, for any number of clients and rounds."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from dffl.fitting import Fit
from dffl.report.data import Curve

POINTS = 60
RANGE = (0.1, 0.9)
FOLD = re.compile(r"fold \d+ of (\d+)")
"""Trainings of folds differ only in this: a page shows their mean."""


def curves(fits: Mapping[str, Fit]) -> tuple[Curve, ...]:
    """The curves of all trainings of these fits. A training that several methods share is listed under the first of them."""
    all_curves: list[Curve] = []
    seen: set[str] = set()
    for method, fit in fits.items():
        if not len(fit.history):
            continue
        groups: dict[str, list[str]] = {}
        for job in dict.fromkeys(fit.history["job"]):
            groups.setdefault(FOLD.sub(r"mean of \1 folds", str(job)), []).append(job)
        for name, jobs in groups.items():
            if name not in seen:
                seen.add(name)
                all_curves.append(_curve(method, name, fit.history[fit.history["job"].isin(jobs)]))
    return tuple(all_curves)


def _curve(method: str, name: str, history: pd.DataFrame) -> Curve:
    """One training, or the mean of those of folds."""
    by_client = history.pivot_table(index="round", columns="client", values="loss")
    points = by_client.iloc[np.unique(np.linspace(0, len(by_client) - 1, min(POINTS, len(by_client))).round().astype(int))]
    low, high = (points.quantile(end, axis=1) for end in RANGE)
    rounds = tuple(int(number) for number in points.index)
    return Curve(method, name, rounds, _plain(points.mean(axis=1)), _plain(low), _plain(high))


def _plain(values: pd.Series) -> tuple[float | None, ...]:
    """Four digits: curves are only looked at, and a fit that contains them should stay small."""
    return tuple(float(f"{value:.4g}") if np.isfinite(value) else None for value in values)

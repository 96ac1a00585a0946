"""The differences between clients, from `dffl.bounds`, in a size for a page."""

from __future__ import annotations

import numpy as np

from dffl.report.data import Differences
from dffl.theory.report import Bounds

SHOWN = 60
"""A picture cannot show more clients than this: those with the largest differences are kept."""


def differences(bounds: Bounds) -> Differences:
    """The best bound for each pair; none for a pair of one client that minimises and one that maximises."""
    table = bounds.matrix("best")
    values = table.to_numpy(float)
    others = np.where(np.eye(len(values), dtype=bool), np.nan, values)
    known = np.isfinite(others)
    means = np.where(known, others, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    largest = np.sort(np.argsort(-means, kind="stable")[:SHOWN])
    rows = tuple(tuple(_plain(value) for value in row) for row in others[np.ix_(largest, largest)])
    note = bounds.label
    if len(largest) < len(values):
        note += f"; the {SHOWN} of {len(values)} clients that are most unlike the others"
    return Differences(tuple(str(table.index[place]) for place in largest), rows, note)


def _plain(value: float) -> float | None:
    return float(f"{value:.4g}") if np.isfinite(value) else None

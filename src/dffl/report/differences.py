"""How different the clients are, from `dffl.bounds`, in the size that a page can show."""

from __future__ import annotations

import numpy as np

from dffl.report.data import Differences
from dffl.theory.report import Bounds

SHOWN = 60
"""More clients than this cannot be distinguished in a picture: those most unlike the others are kept."""


def differences(bounds: Bounds) -> Differences:
    """The best bound for each pair; a pair that cannot be compared (one minimises, one maximises) has none."""
    table = bounds.matrix("best")
    values = table.to_numpy(float)
    others = np.where(np.eye(len(values), dtype=bool), np.nan, values)
    known = np.isfinite(others)
    means = np.where(known, others, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    kept = np.sort(np.argsort(-means, kind="stable")[:SHOWN])
    rows = tuple(tuple(_plain(value) for value in row) for row in others[np.ix_(kept, kept)])
    note = bounds.label
    if len(kept) < len(values):
        note += f"; the {SHOWN} of {len(values)} clients that are most unlike the others"
    return Differences(tuple(str(table.index[place]) for place in kept), rows, note)


def _plain(value: float) -> float | None:
    return float(f"{value:.4g}") if np.isfinite(value) else None

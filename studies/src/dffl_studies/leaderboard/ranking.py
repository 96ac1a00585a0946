"""Comparisons of entries: paired over federations, and corrected for the number of comparisons."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd

LEVEL = 0.05


class Standing(NamedTuple):
    """An entry among the others: its difference to the reference with half the width of its interval, and its ranks.

    It may have any rank from ``best`` to ``worst``: entries whose ranges overlap cannot be distinguished.
    """

    difference: float
    half: float
    best: int
    worst: int


def standings(units: pd.DataFrame, reference: str) -> dict[str, Standing]:
    """Every entry's standing. ``units`` has one row per federation (or zone) and one column per entry: the mean regret there.

    Two entries differ if Wilcoxon's signed-rank test of their paired differences says so at 5 %, after Holm's correction for
    all pairs.
    """
    entries = [str(entry) for entry in units]
    above, below = dict.fromkeys(entries, 0), dict.fromkeys(entries, 0)
    for first, second in different(units):
        better, worse = (first, second) if units[first].mean() < units[second].mean() else (second, first)
        above[worse] += 1
        below[better] += 1
    differences = {entry: paired(units[entry].to_numpy() - units[reference].to_numpy()) for entry in entries}
    return {entry: Standing(*differences[entry], 1 + above[entry], len(entries) - below[entry]) for entry in entries}


def different(units: pd.DataFrame) -> list[tuple[str, str]]:
    """The pairs of entries that can be distinguished."""
    from scipy.stats import wilcoxon  # slow to import, and needed only here

    pairs, p_values = list(itertools.combinations(units.columns, 2)), []
    for first, second in pairs:
        gap = (units[first] - units[second]).to_numpy()
        p_values.append(float(wilcoxon(gap).pvalue) if np.any(gap != 0) else 1.0)
    pairs_apart = []
    for place, number in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[number] > LEVEL / (len(pairs) - place):
            break
        pairs_apart.append(pairs[number])
    return pairs_apart


def paired(differences: np.ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """The mean of paired differences and half the width of its Student interval; NaN for a single one."""
    from scipy.special import stdtrit

    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return mean, float("nan")
    return mean, float(stdtrit(n - 1, 0.5 + confidence / 2)) * float(differences.std(ddof=1)) / np.sqrt(n)

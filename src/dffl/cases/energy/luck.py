"""Is a difference more than luck? Two models differ by the starts of their training and by the samples that test them."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit


def interval(differences: np.ndarray, confidence: float = 0.95) -> tuple[float, float, float]:
    """The mean of differences, (starts, samples), and the ends of its Student interval.

    Its variance is that of the samples (of their means over the starts) plus that of the starts (of their means over the
    samples), with the degrees of freedom of Welch and Satterthwaite. A single start tells nothing of other starts, so that the
    interval is of the samples alone; a single sample gives no interval: it is unbounded.
    """
    starts, samples = differences.shape
    middle = float(differences.mean())
    if samples < 2:
        return middle, -np.inf, np.inf
    counts = [samples, starts] if starts > 1 else [samples]
    means = [differences.mean(axis=axis) for axis in range(len(counts))]
    parts = np.array([mean.var(ddof=1) / count for mean, count in zip(means, counts, strict=True)])
    if not parts.sum() > 0:
        return middle, middle, middle
    freedom = parts.sum() ** 2 / (parts**2 / (np.array(counts) - 1)).sum()
    half = float(stdtrit(freedom, 0.5 + confidence / 2) * np.sqrt(parts.sum()))
    return middle, middle - half, middle + half

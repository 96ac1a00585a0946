"""Is a difference more than luck? It depends on the starts of training and on the samples that test it."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

ENOUGH_STARTS = 3
"""Fewer starts say too little of their spread."""


def interval(differences: np.ndarray, confidence: float = 0.95) -> tuple[float, float, float]:
    """The mean of differences (starts, samples), and the ends of its interval over other samples and other starts.

    Unbounded with fewer than three starts or two samples: the spread of what was drawn once is unknown.
    """
    starts, samples = differences.shape
    mean = float(differences.mean())
    if starts < ENOUGH_STARTS or samples < 2:
        return mean, -math.inf, math.inf
    by_sample = differences.mean(axis=0).var(ddof=1) / samples
    by_start = differences.mean(axis=1).var(ddof=1) / starts
    # Each source has its own Student quantile, and the half-widths add as squares (Banerjee 1960): that holds for every
    # ratio of the two variances, which one quantile with Welch and Satterthwaite's degrees of freedom does not.
    quantiles = stdtrit(np.array([samples - 1, starts - 1]), 0.5 + confidence / 2)
    half = math.sqrt(float(quantiles**2 @ [by_sample, by_start]))
    return mean, mean - half, mean + half

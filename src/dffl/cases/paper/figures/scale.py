"""A logarithmic axis of percentages that people can read."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from dffl.cases.paper.figures.parts import level_name

COARSE = np.array([0.01, 0.1, 1, 10, 100])
MIDDLE = np.array([0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100])
FINE = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100])
LEAST = 0.01
"""Percent. Differences below it are of no interest, so the axis is linear there."""


def logarithmic(axes: Axes, values: np.ndarray) -> str:
    """Make the y axis logarithmic over the values, and say so; it is linear near zero if some values are there."""
    low, high = float(np.min(values)), max(1.2 * float(np.max(values)), 3 * LEAST)
    zero, reading = low < LEAST, "Logarithmic axis."
    if zero:
        positive = values[values >= LEAST]
        threshold = float(max(tick for tick in FINE if tick <= positive.min())) if positive.size else LEAST
        axes.set_yscale("symlog", linthresh=threshold, linscale=0.3)
        axes.set_ylim(-0.3 * threshold, high)  # a little below zero, or the frame would hide the clients there
        reading = f"Logarithmic axis, linear below {threshold:g} %."
        low = 2 * threshold  # a tick nearer to zero's would touch it
    else:
        axes.set_yscale("log")
        low /= 1.2
        axes.set_ylim(low, high)
    found = [ticks[(ticks >= low) & (ticks <= high)] for ticks in (COARSE, MIDDLE, FINE)]
    ticks = [*([0.0] if zero else []), *next((some for some in found if len(some) >= 3), found[-1])]
    axes.set_yticks(ticks, [level_name(tick) for tick in ticks])
    axes.minorticks_off()
    return reading

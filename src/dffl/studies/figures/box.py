"""One way to draw a distribution over clients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

WHISKERS = (5, 95)
"""Percentiles. Beyond them a few clients would squeeze all boxes flat."""
READING = "Boxes: quartiles and median; whiskers: 5th to 95th percentile of the clients."


def paint_boxes(axes: Axes, values: Sequence[np.ndarray], places: Sequence[float], colour: str, width: float) -> None:
    """Draw a box for each array of values. The median is black, so that it shows on every colour."""
    if not values:
        return
    thin = {"linewidth": 0.7, "color": "#444444"}
    axes.boxplot(
        list(values), positions=list(places), widths=width, whis=WHISKERS, showfliers=False, patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "edgecolor": "#444444", "linewidth": 0.6},
        medianprops={"color": "black", "linewidth": 1.1}, whiskerprops=thin, capprops=thin,
    )  # fmt: skip

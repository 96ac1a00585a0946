"""What the figures of the paper's study share: their rows, their labels, their colours, and a box of clients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dffl.cases.paper import tables
from dffl.cases.paper.tables import client_group, percent
from dffl.studies.drawing import in_print

PROBLEM_NAMES = {"knapsack": "Knapsack", "portfolio": "Portfolio"}
ETA_NAMES = {
    "eta_obj": "objective heterogeneity $\\eta_{\\mathrm{obj}}$",
    "eta_constr": "constraint heterogeneity $\\eta_{\\mathrm{constr}}$",
}
ETA_SYMBOLS = {"eta_obj": "$\\eta_{\\mathrm{obj}}$", "eta_constr": "$\\eta_{\\mathrm{constr}}$"}
REGRET = "relative regret, %"

Arguments = ParamSpec("Arguments")
Draw = Callable[[pd.DataFrame], Figure | None]

ALL_GROUPS = ("balanced", *tables.GROUPS)
BALANCED, RICH, POOR = ALL_GROUPS

SIZE_COLOURS = {BALANCED: "#777777", RICH: "#56B4E9", POOR: "#E69F00"}
"""Blue and orange as in the paper; the blue is not the one of the local models."""
SIZE_INKS = {BALANCED: "#444444", RICH: "#1F6E9C", POOR: "#946300"}
"""The same, dark enough for small letters."""

WHISKERS = (5, 95)
"""Percentiles. Beyond them a few clients would squeeze all boxes flat."""
BOX_CAPTION = "Boxes: quartiles and median; whiskers: 5th to 95th percentile of the clients."


def drawing(
    draw: Callable[Concatenate[pd.DataFrame, Arguments], Figure | None],
) -> Callable[Concatenate[pd.DataFrame, Arguments], Figure | None]:
    """Let a function draw in print style from the rows without noise, regret in percent; no rows, no figure."""

    @functools.wraps(draw)
    def draw_quiet(rows: pd.DataFrame, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Figure | None:
        quiet = rows if rows.empty else rows[rows["noise"] == 0]
        if quiet.empty:
            return None
        with in_print():
            return draw(percent(quiet), *args, **kwargs)

    return draw_quiet


def grouped(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``group``: balanced, data-rich or data-poor."""
    return rows.assign(group=client_group(rows))


def problems_in(rows: pd.DataFrame) -> list[str]:
    """The problems that have rows, in the paper's order."""
    found = set(rows["problem"].unique())
    return [problem for problem in PROBLEM_NAMES if problem in found]


def levels_in(rows: pd.DataFrame, axis: str) -> list[float]:
    """The heterogeneity levels that have rows, lowest first."""
    return sorted(float(level) for level in rows[axis].unique())


def level_name(level: float) -> str:
    """A level as an axis writes it: .25 and not 0.25, which saves the width that small panels lack."""
    return f"{level:g}".removeprefix("0") or "0"


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


# A logarithmic axis of percentages that people can read.

COARSE = np.array([0.01, 0.1, 1, 10, 100])
MIDDLE = np.array([0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100])
FINE = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100])
LEAST = 0.01
"""Percent. Differences below it are of no interest, so the axis is linear there."""


def logarithmic(axes: Axes, values: np.ndarray) -> str:
    """Make the y axis logarithmic over the values, linear near zero if some values are there; the sentence that explains it."""
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

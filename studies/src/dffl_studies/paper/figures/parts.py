"""What the figures of the paper's study share: their rows, their labels, and boxes of clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Protocol

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dffl.drawing import in_print, note
from dffl_studies.paper.by_level import ALL_GROUPS, level_name
from dffl_studies.paper.tables import READING, client_group, percent

PROBLEM_NAMES = {"knapsack": "Knapsack", "portfolio": "Portfolio"}
ETA_NAMES = {
    "eta_obj": "objective heterogeneity $\\eta_{\\mathrm{obj}}$",
    "eta_constr": "constraint heterogeneity $\\eta_{\\mathrm{constr}}$",
}
ETA_SYMBOLS = {"eta_obj": "$\\eta_{\\mathrm{obj}}$", "eta_constr": "$\\eta_{\\mathrm{constr}}$"}
REGRET = "relative regret, %"

LINE = 132
"""Characters of a note across `WIDE` inches."""
WHISKERS = (5, 95)
"""Percentiles. The clients beyond them are drawn as points."""
BOX_CAPTION = "Boxes: quartiles and median. Whiskers: 5th to 95th percentile. Points: every client beyond them."
CLIENT_CAPTION = "A client's regret is its mean over degrees."
LOWER_CAPTION = "Percentages: clients with lower regret when federated (a tie is not lower), mean over seeds."


class Draw(Protocol):
    """A figure from a study's rows with this noise; None where these hold nothing that it could draw."""

    def __call__(self, rows: pd.DataFrame, noise: float = 0.0, reading: str = READING) -> Figure | None: ...


def drawing(draw: Callable[[pd.DataFrame], Figure | None]) -> Draw:
    """Let a function draw in print style from the rows with one noise, regret in percent; no rows, no figure."""

    def draw_rows(rows: pd.DataFrame, noise: float = 0.0, reading: str = READING) -> Figure | None:
        chosen = rows if rows.empty else rows[rows["noise"] == noise]
        if chosen.empty:
            return None
        with in_print():
            figure = draw(percent(chosen, reading))
            if figure is not None and noise:
                explain(figure, figure.get_supxlabel(), f"Configurations with noise {noise:g}, judged at realised costs.")
        return figure

    return draw_rows


def explain(figure: Figure, *sentences: str) -> None:
    """How to read a figure, under it, in lines that are no wider than the page."""
    note(figure, fill(" ".join(sentence for sentence in sentences if sentence), LINE))


def grouped(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``group``: balanced, data-rich or data-poor."""
    return rows.assign(group=client_group(rows))


def groups_in(rows: pd.DataFrame) -> list[str]:
    """The groups that have rows."""
    return [group for group in ALL_GROUPS if (rows["group"] == group).any()]


def problems_in(rows: pd.DataFrame) -> list[str]:
    """The problems that have rows, in the paper's order."""
    present = set(rows["problem"].unique())
    return [problem for problem in PROBLEM_NAMES if problem in present]


def equals(axis: str, level: float) -> str:
    """A level with its symbol, for titles."""
    return f"{ETA_SYMBOLS[axis]} = {level_name(level)}"


def paint_boxes(axes: Axes, values: Sequence[np.ndarray], places: Sequence[float], colour: str, width: float) -> None:
    """Draw a box for each array of values, with its tails. The median is black, so that it shows on every colour."""
    if not values:
        return
    thin = {"linewidth": 0.7, "color": "#444444"}
    points = {"marker": "o", "markersize": 1.6, "markerfacecolor": colour, "markeredgecolor": "none", "alpha": 0.7}
    axes.boxplot(
        list(values), positions=list(places), widths=width, whis=WHISKERS, showfliers=True, patch_artist=True,
        manage_ticks=False, flierprops=points,
        boxprops={"facecolor": colour, "edgecolor": "#444444", "linewidth": 0.6},
        medianprops={"color": "black", "linewidth": 1.1}, whiskerprops=thin, capprops=thin,
    )  # fmt: skip


# A logarithmic axis of percentages that people can read.

COARSE = np.array([0.001, 0.01, 0.1, 1, 10, 100, 1000])
MIDDLE = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000])
FINE = np.array([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
LEAST = 0.001
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
    shown = [ticks[(ticks >= low) & (ticks <= high)] for ticks in (COARSE, MIDDLE, FINE)]
    ticks = [*([0.0] if zero else []), *next((some for some in shown if len(some) >= 3), shown[-1])]
    axes.set_yticks(ticks, [level_name(tick) for tick in ticks])
    axes.minorticks_off()
    return reading

"""One figure: the regret of each entry against its cost."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator

from dffl.drawing import INK, PALE_INK, WIDE, blank, in_print, note, write_figures
from dffl.training.methods import colour_of
from dffl_studies.leaderboard.entries import ENTRIES
from dffl_studies.leaderboard.tables import shared_federations, summary

MARKERS = {"naive": "s", "alone": "D", "shared": "^", "personal": "o"}
DRAWN = 18
"""The number of best entries that are drawn; the others are named under the title."""
FAR = 4.0
"""Entries with more than this many times the lowest regret are only named: they would compress the others."""
GAP = 0.052
"""The least distance of two names, as a share of a panel's height."""


def draw(rows: pd.DataFrame, folder: Path) -> list[Path]:
    """Regret against core-seconds, one panel for each problem; the line connects entries that no cheaper entry beats."""
    rows = rows[rows["entry"].map(lambda name: ENTRIES[name].kind != "loss")]
    problems = sorted(str(name) for name in rows["problem"].unique())
    if not problems:  # losses alone were asked for
        return []
    with in_print():
        figure = blank(WIDE, 3.3 * len(problems[::2]))
        panels = figure.subplots(len(problems[::2]), min(2, len(problems)), squeeze=False)
        for axes, problem in zip(panels.flat, problems, strict=False):
            part = shared_federations(rows[rows["problem"] == problem])
            _panel(axes, problem, summary(part, harm=False).sort_values("core-seconds"))
        for axes in panels.flat[len(problems) :]:
            axes.set_visible(False)
        note(figure, "Lower left is better. Squares: no network. Diamonds: each client alone. Triangles: one shared model.\n"
                     "Circles: personal models. The line joins the entries that no cheaper one beats.")  # fmt: skip
        return write_figures([("regret-against-cost", figure)], folder, ("png", "pdf"), 200)


def _panel(axes: Any, problem: str, rows: pd.DataFrame) -> None:
    near = rows[(rows["mean"].rank(method="first") <= DRAWN) & (rows["mean"] <= FAR * rows["mean"].min())]
    for entry, row in near.iterrows():
        marker, colour = MARKERS[ENTRIES[str(entry)].kind], colour_of(ENTRIES[str(entry)].method)
        axes.scatter(row["core-seconds"], row["mean"], s=16, marker=marker, color=colour, zorder=3)
    front = near[near["mean"] <= near["mean"].cummin()]
    axes.plot(front["core-seconds"], front["mean"], color=PALE_INK, linewidth=0.7, zorder=1)
    for scale, axis in ((axes.set_xscale, axes.xaxis), (axes.set_yscale, axes.yaxis)):
        scale("log")
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel("core-seconds of a fit")
    axes.set_ylabel("mean relative regret, %")
    far = rows.drop(near.index).sort_values("mean")
    above = fill(", ".join(f"{entry} {row['mean']:.1f}" for entry, row in far.iterrows()), 52)
    axes.set_title(problem + (f"\nabove: {above}" if above else ""), fontsize=6.5)
    _name(axes, near.sort_values("mean"))


def _name(axes: Any, points: pd.DataFrame) -> None:
    """Write the names in a column next to the panel, each connected to its point, without overlap."""
    to_share = axes.transData + axes.transAxes.inverted()
    wanted = np.array([to_share.transform((row["core-seconds"], row["mean"]))[1] for _, row in points.iterrows()])
    heights = spread(wanted)
    for (entry, row), height in zip(points.iterrows(), heights, strict=True):
        line = {"arrowstyle": "-", "color": PALE_INK, "linewidth": 0.3, "shrinkA": 0, "shrinkB": 2}
        axes.annotate(
            str(entry), (row["core-seconds"], row["mean"]), (1.04, height), textcoords="axes fraction", va="center",
            fontsize=5.5, color=INK, arrowprops=line, annotation_clip=False,
        )  # fmt: skip


def spread(heights: np.ndarray, gap: float = GAP) -> np.ndarray:
    """Increasing heights, moved until all are ``gap`` apart, and inside the panel if they fit there."""
    most = 1 - gap * np.arange(len(heights))[::-1]  # there must be room for all above it, too
    places: list[float] = []
    for wanted, limit in zip(heights, most, strict=True):
        places.append(min(max(wanted, places[-1] + gap if places else 0.0), max(limit, places[-1] + gap if places else 0.0)))
    return np.array(places)

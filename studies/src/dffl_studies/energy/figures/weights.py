"""The weight that each zone gives to the shared model."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dffl.drawing import INK, PALE_INK, in_print, legend_above, note
from dffl.training.methods import colour_of
from dffl_studies.energy.figures.lines import lines_of, method_panels, name_lines, note_text
from dffl_studies.energy.summary import zone_order

WEIGHED = "interp-spo"
"""The method that chooses a weight."""
SPREAD = 0.5
"""The share of a line's height over which its seeds are spread, so that equal weights do not hide each other."""


def draw_zone_weights(rows: pd.DataFrame) -> Figure | None:
    """One line per zone: one dot per seed, a diamond at the mean; zones as in the changes."""
    if rows.empty or "lambda" not in rows:
        return None
    weighed = rows[(rows["method"] == WEIGHED) & rows["lambda"].notna()]
    if weighed.empty:
        return None
    known = set(weighed["zone"])
    order = [zone for zone in zone_order(rows) if zone in known]
    lines = lines_of(order)
    with in_print(formulas=False):
        figure, [axes] = method_panels("Weight of the shared model by zone", [WEIGHED], lines)
        _panel(axes, weighed[weighed["zone"].isin(list(lines))], lines)
        name_lines(axes, lines, rows, len(order) - len(lines))
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0: own", ".25", ".5", ".75", "1: shared"])
        axes.set_xlim(-0.05, 1.08)
        seeds = weighed["seed"].nunique()
        _legend(figure, seeds)
        note(figure, _explanation(seeds))
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, lines: dict[str, int]) -> None:
    seeds, colour = sorted(rows["seed"].unique()), colour_of(WEIGHED)
    offsets = dict(zip(seeds, np.linspace(-SPREAD / 2, SPREAD / 2, len(seeds)) if len(seeds) > 1 else [0.0], strict=True))
    heights = rows["zone"].map(lines).astype(float) + rows["seed"].map(offsets).astype(float)
    zones = rows.groupby("zone", observed=True)["lambda"].agg(["mean", "min", "max"])
    middles = [lines[zone] for zone in zones.index]
    axes.hlines(middles, zones["min"], zones["max"], color=colour, linewidth=0.8, alpha=0.4)
    axes.scatter(rows["lambda"], heights, s=8, color=colour, alpha=0.6, linewidths=0, clip_on=False, zorder=3)
    axes.scatter(
        zones["mean"], middles, s=22, marker="D", color=colour, edgecolors="white", linewidths=0.5,
        clip_on=False, zorder=4,
    )  # fmt: skip


def _legend(figure: Figure, seeds: int) -> None:
    dot = Line2D([], [], linestyle="", marker="o", markersize=2.5, color=PALE_INK)
    diamond = Line2D([], [], linestyle="", marker="D", markersize=4.5, color=INK, markeredgecolor="white", markeredgewidth=0.5)
    if seeds > 1:
        legend_above(figure, [dot, diamond], ["one seed", f"mean over {seeds} seeds"], 2)
    else:
        legend_above(figure, [diamond], ["the only seed"], 1)


def _explanation(seeds: int) -> str:
    return note_text(
        "At 0 a zone uses its own model alone, at 1 the shared one alone.",
        "Zones are in the order of their federated change of regret.",
        "Thin lines: the range over seeds; the dots of a zone are one below the other." if seeds > 1 else "",
    )

"""How much of the shared model each zone takes."""

from __future__ import annotations

from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dffl.cases.energy.figures.lines import NOTE_WIDTH, height_of, lines_of, name_lines
from dffl.cases.energy.order import zone_order
from dffl.cases.energy.tables import name_of
from dffl.studies.drawing import INK, PALE_INK, WIDE, blank, in_print, legend_above, note
from dffl.training.methods import colour_of

STRENGTHS = {"interp-spo": 1.0, "interp-mse": 0.6}
"""The methods that weigh, and how opaque each is drawn: the second is there to compare with."""
FAN = 0.5
"""The share of a line's height over which its seeds are fanned out, so that equal weights do not hide each other."""


def draw_zone_weights(rows: pd.DataFrame) -> Figure | None:
    """A panel a method, a line a zone: a dot a seed, a diamond their mean; zones as in the figure of changes."""
    if rows.empty or "lambda" not in rows:
        return None
    weighed = rows[rows["method"].isin(list(STRENGTHS)) & rows["lambda"].notna()]
    methods = [method for method in STRENGTHS if (weighed["method"] == method).any()]
    if not methods:
        return None
    known = set(weighed["zone"])
    order = [zone for zone in zone_order(rows) if zone in known]
    lines = lines_of(order)
    with in_print():
        figure = blank(WIDE, 1.15 + height_of(lines))
        figure.suptitle("Weight of the shared model by zone", x=0.01, ha="left")
        ratios = [3, 2][: len(methods)]
        panels = figure.subplots(1, len(methods), sharex=True, sharey=True, squeeze=False, width_ratios=ratios)[0]
        for axes, method in zip(panels, methods, strict=True):
            own = weighed[(weighed["method"] == method) & weighed["zone"].isin(list(lines))]
            _panel(axes, own, lines, colour_of(method), STRENGTHS[method])
            axes.set_title(name_of(method), fontweight="bold")
        name_lines(panels[0], lines, rows, len(order) - len(lines))
        panels[0].set_xticks([0, 0.25, 0.5, 0.75, 1], ["0: own", ".25", ".5", ".75", "1: shared"])
        panels[0].set_xlim(-0.05, 1.08)
        seeds = weighed["seed"].nunique()
        _legend(figure, seeds)
        note(figure, _reading(seeds))
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, lines: dict[str, int], colour: str, strength: float) -> None:
    seeds = sorted(rows["seed"].unique())
    fan = dict(zip(seeds, np.linspace(-FAN / 2, FAN / 2, len(seeds)) if len(seeds) > 1 else [0.0], strict=True))
    heights = rows["zone"].map(lines).astype(float) + rows["seed"].map(fan).astype(float)
    zones = rows.groupby("zone", observed=True)["lambda"].agg(["mean", "min", "max"])
    middles = [lines[zone] for zone in zones.index]
    axes.hlines(middles, zones["min"], zones["max"], color=colour, linewidth=0.8, alpha=0.4 * strength)
    axes.scatter(rows["lambda"], heights, s=8, color=colour, alpha=0.6 * strength, linewidths=0, clip_on=False, zorder=3)
    axes.scatter(
        zones["mean"], middles, s=22, marker="D", color=colour, alpha=strength, edgecolors="white", linewidths=0.5,
        clip_on=False, zorder=4,
    )  # fmt: skip
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _legend(figure: Figure, seeds: int) -> None:
    dot = Line2D([], [], linestyle="", marker="o", markersize=2.5, color=PALE_INK)
    diamond = Line2D([], [], linestyle="", marker="D", markersize=4.5, color=INK, markeredgecolor="white", markeredgewidth=0.5)
    if seeds > 1:
        legend_above(figure, [dot, diamond], ["a seed", f"mean over {seeds} seeds"], 2)
    else:
        legend_above(figure, [diamond], ["the only seed"], 1)


def _reading(seeds: int) -> str:
    parts = [
        "At 0 a zone uses its own model alone, at 1 the shared one alone.",
        "Zones in the order of their federated change of regret.",
        "Thin lines: the range over seeds, whose dots lie one below the other." if seeds > 1 else "",
    ]
    return fill(" ".join(parts), NOTE_WIDTH)

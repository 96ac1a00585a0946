"""The mean regret of the paper's methods by heterogeneity, and every method's paired difference to Interp-DFFL(SPO+)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dffl.drawing import INK, WIDE, blank, legend_above
from dffl.training.methods import colour_of
from dffl_studies.paper.by_level import REFERENCE, differences, level_name, levels_in, mean_by_level
from dffl_studies.paper.figures.parts import ETA_NAMES, PROBLEM_NAMES, REGRET, explain, problems_in
from dffl_studies.paper.tables import ORACLES, PAPER_FOUR, methods_in, name_of, over_degrees

OFF_SCALE = "mean-cost"
"""It uses no features, and would compress the others; its mean is in the note."""
DIFFERENCE = f"difference to\n{name_of(REFERENCE)}"
APART = 0.09
"""Between the points of two methods at one level, as a share of the smallest step of levels: bars do not cover each other."""


def draw_means(rows: pd.DataFrame) -> Figure | None:
    """Two rows per problem, means and differences; one column per heterogeneity. Each averages over the other."""
    shown = rows[rows["method"] != OFF_SCALE]
    problems, methods = problems_in(shown), methods_in(shown)
    if not problems:
        return None
    clients, changes = over_degrees(shown), differences(shown)
    kinds = [data for data in (clients[clients["method"].isin(PAPER_FOUR)], changes) if len(data)]
    if not kinds:
        return None
    figure = blank(WIDE, 1.1 + 1.62 * len(problems) * len(kinds))
    panels = figure.subplots(len(problems) * len(kinds), len(ETA_NAMES), sharey="row", sharex="col", squeeze=False)
    lines = iter(panels)
    for problem in problems:
        for data in kinds:
            line, part = next(lines), data[data["problem"] == problem]
            for axes, axis in zip(line, ETA_NAMES, strict=True):
                levels = levels_in(clients, axis)
                (_differences if data is changes else _means)(axes, mean_by_level(part, axis), levels)
                axes.set_xticks(levels, [level_name(level) for level in levels])
                axes.tick_params(labelbottom=True)
            line[0].set_title(f"{PROBLEM_NAMES[problem]}: {'paired differences' if data is changes else 'means'}")
            line[0].set_ylabel(f"{DIFFERENCE}, pp" if data is changes else REGRET)
            if data is not changes:
                line[0].set_ylim(bottom=0)
    for axes, label in zip(panels[-1], ETA_NAMES.values(), strict=True):
        axes.set_xlabel(label)
    handles = [panels[0, 0].plot([], [], "-", marker=_marker(name), color=colour_of(name))[0] for name in methods]
    legend_above(figure, handles, [name_of(name) for name in methods], 4)
    explain(figure, *_caption(rows, problems, len(kinds) > 1))
    return figure


def _means(axes: Axes, means: pd.DataFrame, levels: list[float]) -> None:
    for method in methods_of(means):
        line = means.loc[method]
        axes.plot(line.index, line["mean"], "-", marker=_marker(method), color=colour_of(method))
        if line["std"].notna().any():
            low, high = line["mean"] - line["std"], line["mean"] + line["std"]
            axes.fill_between(line.index, low, high, color=colour_of(method), alpha=0.16, linewidth=0)


def _differences(axes: Axes, means: pd.DataFrame, levels: list[float]) -> None:
    axes.axhline(0, color=INK, linewidth=0.8)
    methods = methods_of(means)
    step = min(APART, 0.8 / max(len(methods), 1)) * min(np.diff(levels), default=1.0)
    for place, method in enumerate(methods):
        line, colour = means.loc[method], colour_of(method)
        spots = line.index.to_numpy(float) + step * (place - (len(methods) - 1) / 2)
        spread = line["std"] if line["std"].notna().any() else None
        axes.plot(spots, line["mean"], color=colour, linewidth=0.5, alpha=0.6)
        axes.errorbar(spots, line["mean"], yerr=spread, fmt=_marker(method), color=colour, markersize=3, elinewidth=1.1)


def methods_of(means: pd.DataFrame) -> list[str]:
    """The methods of a table of `mean_by_level`, in the order of all tables."""
    return methods_in(means.reset_index()) if len(means) else []


def _marker(method: str) -> str:
    """Circles: the paper's methods. Squares: its oracles. Triangles: ours."""
    return "o" if method in PAPER_FOUR else "s" if method in ORACLES else "^"


def _caption(rows: pd.DataFrame, problems: list[str], compared: bool) -> list[str]:
    """How to read the panels, the method that is off the scale, and methods that lack configurations."""
    seeds = rows["seed"].nunique()
    words = ["Means over clients, degrees, balances and the other heterogeneity."]
    words.append(f"Bands and bars: +- one standard deviation over {seeds} seeds." if seeds > 1 else "One seed.")
    if compared:
        words.append("Differences (percentage points) are within a client and configuration; below 0 the method is better.")
        words.append("Their points are moved sideways, so that bars do not cover each other.")
    cost = over_degrees(rows[rows["method"] == OFF_SCALE])
    means = {name: cost.loc[cost["problem"] == name].groupby("seed")["regret"].mean().mean() for name in problems}
    known = [f"{PROBLEM_NAMES[name].lower()} {mean:.2f} %" for name, mean in means.items() if np.isfinite(mean)]
    if known:
        words.append(f"Not shown: {name_of(OFF_SCALE).lower()}, {', '.join(known)}.")
    jobs, total = rows.groupby("method")["job"].nunique(), rows["job"].nunique()
    few = [f"{name_of(name)} {jobs[name]:,} of {total:,}" for name in methods_in(rows) if jobs[name] < total]
    return [*words, *([f"Configurations: {', '.join(few)}."] if few else [])]

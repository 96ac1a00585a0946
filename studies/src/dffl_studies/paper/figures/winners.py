"""How often each method is a client's best one, by heterogeneity."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dffl.drawing import WIDE, blank, ink_on, legend_above
from dffl.training.methods import colour_of
from dffl_studies.paper.by_level import TIE, contests, level_name, levels_in, shares_by_level, ties, winner_shares
from dffl_studies.paper.figures.parts import ETA_SYMBOLS, PROBLEM_NAMES, explain, problems_in
from dffl_studies.paper.tables import methods_in, name_of

WRITTEN_FROM = 7.5
"""Percent. Thinner slices have no room for their number."""
WIN = (
    "The method with the lowest regret at each client of each configuration (every degree separately), mean over seeds. "
    f"Methods whose regrets differ by less than $10^{{{round(np.log10(TIE))}}}$ percentage points tie and "
    "share the win equally."
)


def draw_winners(rows: pd.DataFrame) -> Figure | None:
    """One row per problem; the paper's four methods on the left, ours among them on the right."""
    problems = problems_in(rows)
    shares = {title: winner_shares(rows, methods) for title, methods in contests(rows).items()}
    if all(wins.empty for wins in shares.values()):
        return None
    figure = blank(WIDE, 1.1 + 1.7 * len(problems))
    panels = figure.subplots(len(problems), 2 * len(shares), sharey=True, squeeze=False)
    for line, problem in zip(panels, problems, strict=True):
        spots = iter(line)
        for title, wins in shares.items():
            problem_wins = wins[wins.index.get_level_values("problem") == problem]
            for axis, label in ETA_SYMBOLS.items():
                axes = next(spots)
                _bars(axes, problem_wins, axis, levels_in(rows, axis))
                axes.set_xlabel(label)
                axes.set_title(f"{PROBLEM_NAMES[problem]}, {title}" if axis == "eta_obj" else "")
        line[0].set_ylabel("share of clients, %")
        line[0].set_ylim(0, 100)
    competing = {str(method) for wins in shares.values() for method in wins.columns}
    methods = [method for method in methods_in(rows) if method in competing]
    names = [name_of(method) for method in methods]
    legend_above(figure, [Patch(color=colour_of(method)) for method in methods], names, min(len(methods), 5))
    explain(figure, WIN, _shared(shares, problems))
    return figure


def _bars(axes: Axes, shares: pd.DataFrame, axis: str, levels: list[float]) -> None:
    axes.grid(visible=False)
    axes.set_xticks(range(len(levels)), [level_name(level) for level in levels])
    axes.set_xlim(-0.6, len(levels) - 0.4)
    if shares.empty:
        return
    means = shares_by_level(shares, axis)
    places, below = [levels.index(level) for level in means.index], np.zeros(len(means))
    for method in means.columns:
        height = means[method].to_numpy()
        axes.bar(places, height, bottom=below, color=colour_of(method), width=0.82, edgecolor="white", linewidth=0.4)
        for place, start, part in zip(places, below, height, strict=True):
            if part >= WRITTEN_FROM:
                ink = ink_on(colour_of(method))
                axes.text(place, start + part / 2, f"{part:.0f}", ha="center", va="center", fontsize=7, color=ink)
        below = below + height


def _shared(shares: dict[str, pd.DataFrame], problems: list[str]) -> str:
    """How many wins are shared."""
    counts = []
    for title, wins in shares.items():
        owner, tied = wins.index.get_level_values("problem"), ties(wins)
        each = [
            f"{PROBLEM_NAMES[name].lower()} {tied[owner == name].sum():,} of {(owner == name).sum():,}" for name in problems
        ]
        counts.append(f"{title}, {', '.join(each)}")
    return f"Shared wins: {'; '.join(counts)}."

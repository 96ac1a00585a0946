"""The mean regret of each method by heterogeneity, with the spread between seeds."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dffl.cases.paper.figures.parts import ETA_NAMES, PROBLEM_NAMES, REGRET, drawing, level_name, levels_in, problems_in
from dffl.cases.paper.tables import methods_in, name_of
from dffl.studies.drawing import WIDE, blank, legend_above, note
from dffl.training.methods import colour_of

OFF_SCALE = "mean-cost"
"""It uses no features, and would squeeze the others together; its mean is in the title."""


@drawing
def draw_means(rows: pd.DataFrame) -> Figure | None:
    """One row per problem, one column per heterogeneity; each averages over the other."""
    shown = rows[rows["method"] != OFF_SCALE]
    problems, methods = problems_in(shown), methods_in(shown)
    if not problems:
        return None
    figure = blank(WIDE, 1.0 + 1.9 * len(problems))
    panels = figure.subplots(len(problems), len(ETA_NAMES), sharey="row", squeeze=False)
    for line, problem in zip(panels, problems, strict=True):
        part = shown[shown["problem"] == problem]
        for axes, (axis, label) in zip(line, ETA_NAMES.items(), strict=True):
            _panel(axes, part, axis, methods)
            axes.set_xlabel(label)
        line[0].set_title(_title(rows, problem))
        line[0].set_ylabel(REGRET)
        line[0].set_ylim(bottom=0)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    legend_above(figure, handles, labels, 4)
    seeds = rows["seed"].nunique()
    spread = f"Bands: one standard deviation between {seeds} seeds." if seeds > 1 else "One seed."
    note(figure, f"Mean over clients, degrees, balances and the other heterogeneity. {spread}")
    return figure


def mean_by_level(rows: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The mean over seeds, and its inter-seed sd (nan for one seed), of each method's mean regret at each level."""
    seeds = rows.groupby(["method", axis, "seed"], observed=True)["regret"].mean()
    return seeds.groupby(["method", axis], observed=True).agg(["mean", "std"])


def _panel(axes: Axes, rows: pd.DataFrame, axis: str, methods: list[str]) -> None:
    means = mean_by_level(rows, axis)
    for method in methods:
        # A method that this problem lacks still draws an empty line: the first panel makes the legend of all.
        line = means.loc[method] if method in means.index else means.iloc[:0].droplevel(0)
        style = "--" if method.startswith("oracle") else "-"
        axes.plot(line.index, line["mean"], style, marker="o", color=colour_of(method), label=name_of(method))
        if line["std"].notna().any():
            low, high = line["mean"] - line["std"], line["mean"] + line["std"]
            axes.fill_between(line.index, low, high, color=colour_of(method), alpha=0.18, linewidth=0)
    levels = levels_in(rows, axis)
    axes.set_xticks(levels, [level_name(level) for level in levels])


def _title(rows: pd.DataFrame, problem: str) -> str:
    regret = rows.loc[(rows["problem"] == problem) & (rows["method"] == OFF_SCALE), "regret"]
    return PROBLEM_NAMES[problem] + (f" (mean cost without features, not shown: {regret.mean():.1f} %)" if len(regret) else "")

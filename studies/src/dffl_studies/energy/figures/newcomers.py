"""What a zone loses that begins today, by the number of days that it has."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from dffl.drawing import PALE_INK, blank, in_print, legend_above, note
from dffl_studies.energy.figures.lines import note_text

LINES = {
    "shared": ("the others' model", "#0072b2", "o", "-"),
    "tuned": ("that model, tuned on its own days", "#009e73", "s", "-"),
    "alone": ("a model of its own days alone", "#d55e00", "^", "-"),
    "steady": ("steady average of its own days", "#555555", "v", "--"),
    "mean-7": ("mean of its last 7 days", "#9a9a9a", "x", "--"),
}
"""Each rule: its words, colour, marker and line."""


def draw_newcomers(rows: pd.DataFrame, money: str, horizon: int) -> Figure | None:
    """One line for each rule: the mean regret over the zones that were left out."""
    if rows.empty:
        return None
    means = rows.pivot_table(index="days", columns="rule", values="regret")
    with in_print(formulas=False):
        figure = blank(5.6, 3.1)
        axes = figure.subplots()
        shown = [rule for rule in LINES if rule in means]
        drawn = []
        for rule in shown:
            _, colour, marker, line = LINES[rule]
            known = means[rule].dropna()
            drawn += axes.plot(range(len(means))[-len(known) :], known, color=colour, marker=marker, linestyle=line)
        axes.set_xticks(range(len(means)), [str(days) for days in means.index])
        axes.set_xlabel("days that the newcomer has")
        axes.set_ylabel(f"regret of a day, {money}")
        axes.set_ylim(bottom=0)
        axes.tick_params(colors=PALE_INK)
        legend_above(figure, drawn, [LINES[rule][0] for rule in shown], 2)
        zones = rows["zone"].nunique()
        note(figure, note_text(f"Mean over {zones} zones, each left out in turn and judged on the same {horizon} days."))
    return figure

"""One picture of the study: the loss of the chosen rules, compared with what a user has without training."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from dffl.drawing import INK, blank, in_print, note
from dffl.time.bases import FORECAST, MEANS, STEADY
from dffl.time.outcome import CHOSEN
from dffl_studies.time.tables import change, relative

AGAINST = (
    ("the best plain mean of 7, 14 or 28 days, in hindsight", "#9a9a9a"),
    ("the steady average", "#0072b2"),
    ("the published forecast", "#d55e00"),
)
"""The references of the chosen rules, and their colours."""
APART = 0.26


def draw_changes(rows: pd.DataFrame) -> Figure:
    """One group of intervals for each fleet: to the left of zero, the chosen rules lose less."""
    fleets = list(dict.fromkeys(rows["fleet"]))
    with in_print(formulas=False):
        figure = blank(6.4, 0.75 + 0.5 * len(fleets))
        axes = figure.subplots()
        for place, fleet in enumerate(fleets):
            some = rows[rows["fleet"] == fleet]
            losses = relative(some)
            others = (str(losses[list(MEANS)].idxmin()), STEADY, FORECAST)
            for line, ((words, colour), other) in enumerate(zip(AGAINST, others, strict=True)):
                if other not in losses:
                    continue
                value, low, high = change(some, CHOSEN, other)
                height = place + APART * (line - 1)
                axes.plot([low, high], [height, height], color=colour, linewidth=1.6)
                axes.plot(value, height, "o", color=colour, label=words)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(fleets)), fleets)
        axes.set_ylim(len(fleets) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("how much more (right) or less (left) the chosen rules lose, in %")
        handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        ordered = [words for words, _ in AGAINST if words in handles]
        figure.legend([handles[words] for words in ordered], ordered, loc="outside upper left", ncols=1)
        note(figure, "Second half of the days; dots with 95 % intervals over blocks of four weeks.")
    return figure

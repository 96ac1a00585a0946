"""A figure of a run: one cell for each round and site with its outcome, and the duration of each round."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dffl.deploy.ledger import ACCEPTED, DEAD, LATE, LEFT_OUT, REFUSED
from dffl.deploy.run_status import RunResult
from dffl.drawing import INK, WIDE, blank, in_print, write_figures

COLOURS = {ACCEPTED: "#88CCEE", LEFT_OUT: "#AA4499", REFUSED: "#CC6677", LATE: "#DDCC77", DEAD: "#444444"}
RESOLUTION = 200
MARKS = {ACCEPTED: "", LEFT_OUT: "o", REFUSED: "x", LATE: "l", DEAD: "+"}
"""Marks in addition to the colours, for prints in grey."""


def draw(result: RunResult, path: Path) -> None:
    """Write the figure."""
    rounds, sites = len(result.records), list(result.sites)
    with in_print(formulas=False):
        figure = blank(WIDE, 1.9 + 0.2 * len(sites))
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[max(len(sites), 3), 3])
        for number, record in enumerate(result.records):
            for row, site in enumerate(sites):
                if site in record.outcomes:
                    outcome = record.outcomes[site].partition(":")[0]
                    above.add_patch(_cell(number + 1, row, outcome))
                    if MARKS[outcome] and rounds <= 60:
                        above.text(number + 1, row, MARKS[outcome], ha="center", va="center", color="white", fontsize=6)
        above.set(xlim=(0.4, rounds + 0.6), ylim=(len(sites) - 0.4, -0.6), yticks=range(len(sites)), yticklabels=sites)
        above.set_title("Outcome of each site's update, by round")
        above.grid(False)
        shown = {record.outcomes[site].partition(":")[0] for record in result.records for site in record.outcomes}
        patches = [Patch(color=colour, label=outcome) for outcome, colour in COLOURS.items() if outcome in shown]
        figure.legend(handles=patches, loc="outside upper right", ncols=len(patches))
        at = np.arange(1, rounds + 1)
        seconds = [record.seconds for record in result.records]
        computing = [record.training_seconds for record in result.records]
        below.plot(at, seconds, color=INK, marker="o", markersize=2.5)
        below.plot(at, computing, color="#4477AA", linestyle="--")
        below.set(xlabel="round", ylabel="seconds", yscale="log")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        lines = [Line2D([], [], color=INK, marker="o", markersize=2.5, label="the whole round"),
                 Line2D([], [], color="#4477AA", linestyle="--", label="computing of the slowest site")]  # fmt: skip
        below.legend(handles=lines, loc="upper right")
        write_figures([(path.stem, figure)], path.parent, [path.suffix.removeprefix(".")], RESOLUTION)


def _cell(number: int, row: int, outcome: str) -> Patch:
    from matplotlib.patches import Rectangle

    return Rectangle((number - 0.45, row - 0.4), 0.9, 0.8, facecolor=COLOURS[outcome], edgecolor="none")

"""One figure: what each entry loses, against what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from dffl.cases.leaderboard.entries import ENTRIES
from dffl.cases.leaderboard.tables import shared_federations, summary
from dffl.studies.drawing import INK, PALE_INK, WIDE, blank, in_print, note, write_figures
from dffl.training.methods import colour_of

MARKERS = {"naive": "s", "alone": "D", "shared": "^", "personal": "o", "loss": "x"}


def draw(rows: pd.DataFrame, folder: Path) -> list[Path]:
    """Regret against core-seconds, one panel for each problem; the line joins what no cheaper entry beats."""
    problems = [str(name) for name in rows["problem"].unique()]
    tall = (len(problems) + 1) // 2
    with in_print():
        figure = blank(WIDE, 3.4 * tall)
        panels = figure.subplots(tall, min(2, len(problems)), squeeze=False)
        for axes, problem in zip(panels.flat, problems, strict=False):
            part = rows[(rows["problem"] == problem) & rows["entry"].map(lambda name: ENTRIES[name].kind != "loss")]
            _panel(axes, summary(shared_federations(part)).sort_values("core-seconds"))
            axes.set_title(problem)
            axes.set_xlabel("core-seconds of a fit")
            axes.set_ylabel("mean relative regret, %")
        for axes in panels.flat[len(problems) :]:
            axes.set_visible(False)
        note(figure, "Lower left is better. Squares: no network. Diamonds: each client alone. Triangles: one shared model.\n"
                     "Circles: personal models. The line joins the entries that no cheaper one beats.")  # fmt: skip
        return write_figures([("regret-against-cost", figure)], folder, ("png", "pdf"), 200)


def _panel(axes: Any, found: pd.DataFrame) -> None:
    best, front = float("inf"), []
    for entry, row in found.iterrows():
        kind = ENTRIES[str(entry)].kind
        axes.scatter(
            row["core-seconds"], row["mean"], s=16, marker=MARKERS[kind], color=colour_of(ENTRIES[str(entry)].method), zorder=3
        )
        if row["mean"] < best:
            best = row["mean"]
            front.append((row["core-seconds"], row["mean"]))
        axes.annotate(
            str(entry), (row["core-seconds"], row["mean"]), xytext=(3, 2), textcoords="offset points", fontsize=5.5, color=INK
        )
    axes.plot(*zip(*front, strict=True), color=PALE_INK, linewidth=0.7, zorder=1)
    axes.set_xscale("log")
    axes.set_yscale("log")

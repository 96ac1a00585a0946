"""What choosing a weight from few samples costs: each interpolation and its oracle."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dffl.drawing import PALE_INK, WIDE, blank
from dffl.training.methods import colour_of
from dffl_studies.paper.figures.parts import (
    BOX_CAPTION,
    CLIENT_CAPTION,
    PROBLEM_NAMES,
    REGRET,
    explain,
    logarithmic,
    paint_boxes,
    problems_in,
)
from dffl_studies.paper.tables import methods_in, over_degrees
from dffl_studies.running.tables import Value

LABELS = {
    "interp-mse": "Interp\n(MSE)",
    "oracle-interp-mse": "Oracle\nInterp\n(MSE)",
    "interp-spo": "Interp\n(SPO+)",
    "oracle-interp-spo": "Oracle\nInterp\n(SPO+)",
    "finetune": "Fine-\ntuned\n(ours)",
}


def draw_oracles(rows: pd.DataFrame) -> Figure | None:
    """One panel per problem, one box per method."""
    clients = over_degrees(rows[rows["method"].isin(LABELS)])
    problems, methods = problems_in(clients), methods_in(clients, LABELS)
    if not problems:
        return None
    figure = blank(WIDE, 3.2)
    panels = figure.subplots(1, len(problems), squeeze=False)[0]
    scales = {}
    for axes, problem in zip(panels, problems, strict=True):
        problem_rows = clients[clients["problem"] == problem]
        _panel(axes, problem_rows, methods)
        scales[logarithmic(axes, problem_rows["regret"].to_numpy())] = PROBLEM_NAMES[problem]
        axes.set_title(PROBLEM_NAMES[problem], pad=15)
    panels[0].set_ylabel(REGRET)
    named = [scale if len(scales) == 1 else f"{problem}: {scale[0].lower()}{scale[1:]}" for scale, problem in scales.items()]
    explain(figure, BOX_CAPTION, *named, CLIENT_CAPTION, "White dots and the numbers above them: means, as in the tables.")
    return figure


def _panel(axes: Axes, clients: pd.DataFrame, methods: list[str]) -> None:
    for place, method in enumerate(methods):
        rows = clients[clients["method"] == method]
        if rows.empty:
            continue
        paint_boxes(axes, [rows["regret"].to_numpy()], [place], colour_of(method), 0.55)
        mean = Value.over_seeds(rows.groupby("seed")["regret"].mean()).mean
        axes.plot(place, mean, "o", color="white", markeredgecolor="black", markeredgewidth=0.7, zorder=5)
        spot = axes.get_xaxis_transform()
        axes.text(place, 1.01, f"{mean:.2f}", transform=spot, ha="center", va="bottom", fontsize=7.5, color=PALE_INK)
    axes.set_xticks(range(len(methods)), [LABELS[method] for method in methods])
    axes.set_xlim(-0.5, len(methods) - 0.5)
    axes.grid(axis="x", visible=False)

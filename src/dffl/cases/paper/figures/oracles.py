"""What choosing a weight from few samples costs: each interpolation and its oracle."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dffl.cases.paper.figures.parts import BOX_CAPTION, PROBLEM_NAMES, REGRET, drawing, paint_boxes, problems_in
from dffl.cases.paper.tables import methods_in, over_degrees
from dffl.studies.drawing import WIDE, blank, note
from dffl.training.methods import colour_of

LABELS = {
    "interp-mse": "Interp\n(MSE)",
    "oracle-interp-mse": "Oracle\nInterp\n(MSE)",
    "interp-spo": "Interp\n(SPO+)",
    "oracle-interp-spo": "Oracle\nInterp\n(SPO+)",
    "finetune": "Fine-\ntuned\n(ours)",
}


@drawing
def draw_oracles(rows: pd.DataFrame) -> Figure | None:
    """One panel per problem, one box per method."""
    clients = over_degrees(rows[rows["method"].isin(LABELS)])
    problems, methods = problems_in(clients), methods_in(clients, LABELS)
    if not problems:
        return None
    figure = blank(WIDE, 2.7)
    panels = figure.subplots(1, len(problems), squeeze=False)[0]
    for axes, problem in zip(panels, problems, strict=True):
        _panel(axes, clients[clients["problem"] == problem], methods)
        axes.set_title(PROBLEM_NAMES[problem])
    panels[0].set_ylabel(REGRET)
    note(figure, f"{BOX_CAPTION} Dots and numbers: means.")
    return figure


def _panel(axes: Axes, clients: pd.DataFrame, methods: list[str]) -> None:
    for place, method in enumerate(methods):
        regret = clients.loc[clients["method"] == method, "regret"].to_numpy()
        if not len(regret):
            continue
        paint_boxes(axes, [regret], [place], colour_of(method), 0.55)
        axes.plot(place, regret.mean(), "o", color="white", markeredgecolor="black", markeredgewidth=0.7, zorder=5)
        mean, spot = f"{regret.mean():.2f}", (place + 0.28, regret.mean())
        axes.annotate(mean, spot, xytext=(2, 0), textcoords="offset points", va="center", fontsize=7)
    axes.set_xticks(range(len(methods)), [LABELS[method] for method in methods])
    axes.set_xlim(-0.5, len(methods) - 0.3)
    axes.set_ylim(bottom=0)
    axes.grid(axis="x", visible=False)

"""Local against federated: the clients' regrets by both heterogeneities and balance."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dffl.cases.paper.figures import parts
from dffl.cases.paper.tables import methods_in, name_of, over_degrees
from dffl.studies.drawing import PALE_INK, WIDE, blank, legend_above, note
from dffl.training.methods import colour_of

COMPARED = ("local", "fedavg")


@parts.drawing
def draw_boxes(rows: pd.DataFrame, problem: str) -> Figure | None:
    """Boxplots of one problem: one row per balance, one column per objective heterogeneity."""
    rows = rows[(rows["problem"] == problem) & rows["method"].isin(COMPARED)]
    if rows.empty:
        return None
    clients = over_degrees(rows)
    balances, levels = sorted(clients["imbalanced"].unique()), parts.levels_in(clients, "eta_obj")
    figure = blank(WIDE, 1.0 + 1.6 * len(balances))
    panels = figure.subplots(len(balances), len(levels), sharex=True, sharey=True, squeeze=False)
    ticks = parts.levels_in(clients, "eta_constr")
    for line, imbalanced in zip(panels, balances, strict=True):
        for axes, level in zip(line, levels, strict=True):
            _panel(axes, clients[(clients["imbalanced"] == imbalanced) & (clients["eta_obj"] == level)], ticks)
        line[0].set_ylabel(f"{'imbalanced' if imbalanced else 'balanced'}\n{parts.REGRET}")
    for axes, level in zip(panels[0], levels, strict=True):
        axes.set_title(f"{parts.ETA_SYMBOLS['eta_obj']} = {parts.level_name(level)}", pad=11)
    for axes in panels[-1]:
        axes.set_xticks(range(len(ticks)), [parts.level_name(tick) for tick in ticks])
        axes.set_xlabel(parts.ETA_SYMBOLS["eta_constr"])
    scale = parts.logarithmic(panels[0, 0], _whisker_ends(clients))
    methods = methods_in(clients, COMPARED)
    legend_above(figure, [Patch(color=colour_of(method)) for method in methods], [name_of(method) for method in methods], 2)
    note(figure, f"{parts.BOX_CAPTION} {scale}\nPercentages: clients with lower regret when federated, mean over seeds.")
    return figure


def federated_share(clients: pd.DataFrame) -> float:
    """The share of clients that the federated model leaves with lower regret, mean over seeds; nan without both methods."""
    wide = clients.pivot_table(
        index=["seed", "imbalanced", "eta_obj", "eta_constr", "client"], columns="method", values="regret"
    )
    if not set(COMPARED) <= set(wide.columns):
        return float("nan")
    wide = wide.dropna(subset=list(COMPARED))
    return float((wide["fedavg"] < wide["local"]).groupby("seed").mean().mean())


def _whisker_ends(clients: pd.DataFrame) -> np.ndarray:
    """Where the whiskers of all boxes end: what the axis has to hold."""
    boxes = clients.groupby(["method", "imbalanced", "eta_obj", "eta_constr"], observed=True)["regret"]
    return np.concatenate([boxes.quantile(percentile / 100).to_numpy() for percentile in parts.WHISKERS])


def _panel(axes: Axes, clients: pd.DataFrame, levels: list[float]) -> None:
    for method, shift in zip(COMPARED, (-0.2, 0.2), strict=True):
        own = clients[clients["method"] == method]
        found = {place: own.loc[own["eta_constr"] == level, "regret"].to_numpy() for place, level in enumerate(levels)}
        found = {place: values for place, values in found.items() if len(values)}
        parts.paint_boxes(axes, list(found.values()), [place + shift for place in found], colour_of(method), 0.34)
    for place, level in enumerate(levels):
        share = federated_share(clients[clients["eta_constr"] == level])
        if share == share:
            spot = axes.get_xaxis_transform()
            axes.text(place, 1.01, f"{100 * share:.0f}%", transform=spot, ha="center", va="bottom", fontsize=7, color=PALE_INK)
    axes.grid(axis="x", visible=False)

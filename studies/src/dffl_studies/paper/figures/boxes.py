"""Local against federated: the clients' regrets by both heterogeneities and balance."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dffl.drawing import PALE_INK, WIDE, blank, legend_above
from dffl.training.methods import colour_of
from dffl_studies.paper.by_level import COMPARED, federated_share, level_name, levels_in, paired
from dffl_studies.paper.figures import parts
from dffl_studies.paper.tables import methods_in, name_of, over_degrees


def draw_boxes(rows: pd.DataFrame, problem: str) -> Figure | None:
    """Boxplots of one problem: one row per balance, one column per objective heterogeneity."""
    rows = rows[(rows["problem"] == problem) & rows["method"].isin(COMPARED)]
    if rows.empty:
        return None
    clients = over_degrees(rows)
    balances, levels = sorted(clients["imbalanced"].unique()), levels_in(clients, "eta_obj")
    figure = blank(WIDE, 1.0 + 1.9 * len(balances))
    panels = figure.subplots(len(balances), len(levels), sharex=True, sharey=True, squeeze=False)
    ticks = levels_in(clients, "eta_constr")
    for line, imbalanced in zip(panels, balances, strict=True):
        for axes, level in zip(line, levels, strict=True):
            _panel(axes, clients[(clients["imbalanced"] == imbalanced) & (clients["eta_obj"] == level)], ticks)
        line[0].set_ylabel(f"{'imbalanced' if imbalanced else 'balanced'}\n{parts.REGRET}")
    for axes, level in zip(panels[0], levels, strict=True):
        axes.set_title(parts.equals("eta_obj", level), pad=13)
    for axes in panels[-1]:
        axes.set_xticks(range(len(ticks)), [level_name(tick) for tick in ticks])
        axes.set_xlabel(parts.ETA_SYMBOLS["eta_constr"])
    scale = parts.logarithmic(panels[0, 0], clients["regret"].to_numpy())
    methods = methods_in(clients, COMPARED)
    names = [f"{parts.PROBLEM_NAMES[problem]}, {name_of(method).lower()}" for method in methods]
    legend_above(figure, [Patch(color=colour_of(method)) for method in methods], names, len(methods))
    parts.explain(figure, parts.BOX_CAPTION, scale, parts.CLIENT_CAPTION, parts.LOWER_CAPTION)
    return figure


def _panel(axes: Axes, clients: pd.DataFrame, levels: list[float]) -> None:
    for method, shift in zip(COMPARED, (-0.2, 0.2), strict=True):
        rows = clients[clients["method"] == method]
        regrets = [rows.loc[rows["eta_constr"] == level, "regret"].to_numpy() for level in levels]
        drawn = {place + shift: values for place, values in enumerate(regrets) if len(values)}
        parts.paint_boxes(axes, list(drawn.values()), list(drawn), colour_of(method), 0.34)
    pairs = paired(clients)
    for place, level in enumerate(levels):
        share = federated_share(pairs[pairs["eta_constr"] == level]).mean
        if np.isfinite(share):
            spot = axes.get_xaxis_transform()
            axes.text(place, 1.01, f"{share:.0f}%", transform=spot, ha="center", va="bottom", fontsize=7, color=PALE_INK)
    axes.grid(axis="x", visible=False)

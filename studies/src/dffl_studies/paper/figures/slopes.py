"""Each client's step from the federated model to its own, at every pair of heterogeneities."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dffl.drawing import INK, WIDE, blank, legend_above
from dffl_studies.paper.by_level import ALL_GROUPS, federated_share, levels_in, paired
from dffl_studies.paper.figures import parts
from dffl_studies.paper.tables import over_degrees

ENDS = ("fedavg", "local")
BALANCED, RICH, POOR = ALL_GROUPS
SIZE_COLOURS = {BALANCED: "#777777", RICH: "#2F7FC1", POOR: "#E6850E"}
"""Blue and orange as in the paper; here they are sizes, not methods."""
SIZE_INKS = {BALANCED: INK, RICH: "#12507F", POOR: "#8A4B00"}
"""The same, dark enough for small letters and for the medians."""


def draw_slopes(rows: pd.DataFrame, problem: str, imbalanced: bool) -> Figure | None:
    """A grid of panels, one line per client and seed; upwards means that the client has lower regret when federated."""
    rows = rows[(rows["problem"] == problem) & (rows["imbalanced"] == imbalanced) & rows["method"].isin(ENDS)]
    clients = parts.grouped(paired(over_degrees(rows)))
    if clients.empty:
        return None
    down, across = levels_in(clients, "eta_obj"), levels_in(clients, "eta_constr")
    figure = blank(WIDE, 1.0 + 1.45 * len(down))
    panels = figure.subplots(len(down), len(across), sharex=True, sharey=True, squeeze=False)
    for line, row in zip(panels, down, strict=True):
        for axes, column in zip(line, across, strict=True):
            _panel(axes, clients[(clients["eta_obj"] == row) & (clients["eta_constr"] == column)])
        line[0].set_ylabel(f"{parts.equals('eta_obj', row)}\n{parts.REGRET}")
    for axes, column in zip(panels[0], across, strict=True):
        axes.set_title(parts.equals("eta_constr", column), pad=14)
    scale = parts.logarithmic(panels[0, 0], clients[list(ENDS)].to_numpy())
    panels[0, 0].set_xticks([0, 1], ["federated", "local"])
    panels[0, 0].set_xlim(-0.25, 1.25)
    groups = parts.groups_in(clients)
    names = [f"{parts.PROBLEM_NAMES[problem]}, {group} clients" for group in groups]
    legend_above(figure, [Line2D([], [], color=SIZE_COLOURS[group]) for group in groups], names, len(groups))
    sizes = "Black: all clients. In colour: each group." if imbalanced else ""
    lines = (
        "A thin line is a client in a seed, mean over degrees; a thick line joins the medians. Upwards: lower when federated."
    )
    parts.explain(figure, lines, scale, parts.LOWER_CAPTION, sizes)
    return figure


def _panel(axes: Axes, clients: pd.DataFrame) -> None:
    axes.grid(axis="x", visible=False)
    # In the order of seeds, so that neither group of clients lies on top of the other.
    lines = [[(0, federated), (1, local)] for federated, local in clients[list(ENDS)].to_numpy()]
    axes.add_collection(LineCollection(lines, colors=clients["group"].map(SIZE_COLOURS), linewidths=0.45, alpha=0.4))
    groups = parts.groups_in(clients)
    for group in groups:
        medians = clients.loc[clients["group"] == group, list(ENDS)].median()
        axes.plot([0, 1], medians, color=SIZE_INKS[group], linewidth=1.6)
    # Above the panel, where no line can run through it.
    shares = [(INK, clients)] if len(clients) else []
    shares += [(SIZE_INKS[group], clients[clients["group"] == group]) for group in groups if group != BALANCED]
    for place, (colour, part) in enumerate(reversed(shares)):
        axes.text(
            1 - 0.24 * place, 1.01, f"{federated_share(part).mean:.0f}%", transform=axes.transAxes, ha="right", va="bottom",
            fontsize=7, color=colour, fontweight="bold",
        )  # fmt: skip

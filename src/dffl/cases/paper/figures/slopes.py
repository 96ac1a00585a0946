"""Each client's step from the federated model to its own, at every pair of heterogeneities."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dffl.cases.paper.figures import parts
from dffl.cases.paper.tables import over_degrees
from dffl.studies.drawing import WIDE, blank, legend_above, note

ENDS = ("fedavg", "local")


@parts.drawing
def draw_slopes(rows: pd.DataFrame, problem: str, imbalanced: bool) -> Figure | None:
    """A grid of panels, one line per client; upwards means that the client is better off federated."""
    rows = rows[(rows["problem"] == problem) & (rows["imbalanced"] == imbalanced) & rows["method"].isin(ENDS)]
    clients = client_ends(rows)
    if clients.empty:
        return None
    down, across = parts.levels_in(clients, "eta_obj"), parts.levels_in(clients, "eta_constr")
    figure = blank(WIDE, 0.9 + 1.45 * len(down))
    panels = figure.subplots(len(down), len(across), sharex=True, sharey=True, squeeze=False)
    for line, row in zip(panels, down, strict=True):
        for axes, column in zip(line, across, strict=True):
            _panel(axes, clients[(clients["eta_obj"] == row) & (clients["eta_constr"] == column)])
        line[0].set_ylabel(f"{parts.ETA_SYMBOLS['eta_obj']} = {parts.level_name(row)}\n{parts.REGRET}")
    for axes, column in zip(panels[0], across, strict=True):
        axes.set_title(f"{parts.ETA_SYMBOLS['eta_constr']} = {parts.level_name(column)}")
    scale = parts.logarithmic(panels[0, 0], clients[list(ENDS)].to_numpy())
    panels[0, 0].set_xticks([0, 1], ["federated", "local"])
    panels[0, 0].set_xlim(-0.25, 1.25)
    groups = [group for group in parts.ALL_GROUPS if (clients["group"] == group).any()]
    names = [f"{parts.PROBLEM_NAMES[problem]}, {group} clients" for group in groups]
    legend_above(figure, [Line2D([], [], color=parts.SIZE_COLOURS[group]) for group in groups], names, len(groups))
    note(
        figure,
        f"A line is a client, mean over degrees and seeds. {scale} Percentages: clients with lower regret when federated.",
    )
    return figure


def client_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per client and pair of heterogeneities: its federated and local regret, over degrees and seeds, and its group."""
    keys = ["eta_obj", "eta_constr", "client", "group"]
    if not set(ENDS) <= set(rows["method"].unique()):
        return pd.DataFrame(columns=[*keys, *ENDS])
    clients = parts.grouped(over_degrees(rows))
    wide = clients.pivot_table(index=keys, columns="method", values="regret", observed=True)
    return wide.dropna().reset_index()


def _panel(axes: Axes, clients: pd.DataFrame) -> None:
    axes.grid(axis="x", visible=False)
    present = [group for group in parts.ALL_GROUPS if (clients["group"] == group).any()]
    for place, group in enumerate(reversed(present)):
        own = clients[clients["group"] == group]
        axes.plot([0, 1], own[list(ENDS)].to_numpy().T, color=parts.SIZE_COLOURS[group], linewidth=0.8, alpha=0.8)
        share = 100 * (own["fedavg"] < own["local"]).mean()
        # Above the panel, where no line can run through it.
        axes.text(
            1 - 0.25 * place, 1.02, f"{share:.0f}%", transform=axes.transAxes, ha="right", va="bottom", fontsize=7,
            color=parts.SIZE_INKS[group], fontweight="bold",
        )  # fmt: skip

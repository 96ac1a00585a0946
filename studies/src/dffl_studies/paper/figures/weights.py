"""The weight of the shared model that clients choose, over both heterogeneities."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from dffl.drawing import WIDE, blank, ink_on
from dffl.training.methods import colour_of
from dffl_studies.paper.by_level import REFERENCE, level_name, levels_in, mean_weights
from dffl_studies.paper.figures import parts
from dffl_studies.paper.tables import name_of, over_degrees


def draw_weights(rows: pd.DataFrame) -> Figure | None:
    """Annotated heat maps: one row per problem, one column per group of clients."""
    clients = parts.grouped(over_degrees(rows[(rows["method"] == REFERENCE) & rows["lambda"].notna()]))
    problems, groups = parts.problems_in(clients), parts.groups_in(clients)
    if not problems:
        return None
    figure = blank(WIDE, 0.7 + 1.75 * len(problems))
    panels = figure.subplots(len(problems), len(groups), sharex=True, sharey=True, squeeze=False)
    across, down = levels_in(clients, "eta_constr"), levels_in(clients, "eta_obj")
    for line, problem in zip(panels, problems, strict=True):
        for axes, group in zip(line, groups, strict=True):
            part = clients[(clients["problem"] == problem) & (clients["group"] == group)]
            means = mean_weights(part).pivot_table("mean", "eta_obj", "eta_constr").reindex(index=down, columns=across)
            image = _heat_map(axes, means.to_numpy(dtype=float))
            axes.set_title(f"{parts.PROBLEM_NAMES[problem]}, {group}")
        line[0].set_yticks(range(len(down)), [level_name(level) for level in down])
        line[0].set_ylabel(parts.ETA_SYMBOLS["eta_obj"])
    for axes in panels[-1]:
        axes.set_xticks(range(len(across)), [level_name(level) for level in across])
        axes.set_xlabel(parts.ETA_SYMBOLS["eta_constr"])
    bar = figure.colorbar(image, ax=panels, shrink=0.6, aspect=30, pad=0.02)
    bar.set_ticks([0, 0.5, 1], labels=["0: local", ".5", "1: federated"])
    bar.set_label("mean weight $\\lambda$", labelpad=-14)
    bar.outline.set_visible(False)
    parts.explain(figure, f"Mean $\\lambda$ of {name_of(REFERENCE)} over clients and degrees, then over seeds.")
    return figure


def _local_to_federated() -> Colormap:
    """The colours of the two ends are those of the two methods."""
    return LinearSegmentedColormap.from_list("weights", [colour_of("local"), "#f7f7f7", colour_of("fedavg")])


def _heat_map(axes: Axes, means: np.ndarray) -> AxesImage:
    colours = _local_to_federated()
    image = axes.imshow(np.ma.masked_invalid(means), cmap=colours, vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(means):
        if np.isfinite(value):
            colour = ink_on(colours(value))
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7.5, color=colour)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return image

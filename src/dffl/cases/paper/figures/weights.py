"""The weight of the shared model that clients choose, over both heterogeneities."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from dffl.cases.paper.figures import parts
from dffl.studies.drawing import WIDE, blank, ink_on, note
from dffl.training.methods import colour_of

METHOD = "interp-spo"


@parts.drawing
def draw_weights(rows: pd.DataFrame) -> Figure | None:
    """Annotated heat maps: one row per problem, one column per group of clients."""
    rows = parts.grouped(rows[(rows["method"] == METHOD) & rows["lambda"].notna()])
    problems, groups = parts.problems_in(rows), [group for group in parts.ALL_GROUPS if (rows["group"] == group).any()]
    if not problems:
        return None
    figure = blank(WIDE, 0.6 + 2.0 * len(problems))
    panels = figure.subplots(len(problems), len(groups), sharex=True, sharey=True, squeeze=False)
    across, down = parts.levels_in(rows, "eta_constr"), parts.levels_in(rows, "eta_obj")
    for line, problem in zip(panels, problems, strict=True):
        for axes, group in zip(line, groups, strict=True):
            part = rows[(rows["problem"] == problem) & (rows["group"] == group)]
            means = part.pivot_table(index="eta_obj", columns="eta_constr", values="lambda").reindex(index=down, columns=across)
            image = _heat_map(axes, means.to_numpy(dtype=float))
            axes.set_title(f"{parts.PROBLEM_NAMES[problem]}, {group}")
        line[0].set_yticks(range(len(down)), [parts.level_name(level) for level in down])
        line[0].set_ylabel(parts.ETA_SYMBOLS["eta_obj"])
    for axes in panels[-1]:
        axes.set_xticks(range(len(across)), [parts.level_name(level) for level in across])
        axes.set_xlabel(parts.ETA_SYMBOLS["eta_constr"])
    bar = figure.colorbar(image, ax=panels, shrink=0.6, aspect=30, pad=0.02)
    bar.set_ticks([0, 0.5, 1], labels=["0: local", ".5", "1: federated"])
    bar.outline.set_visible(False)
    note(figure, "Mean $\\lambda$ of Interp-DFFL(SPO+) over clients, degrees and seeds.")
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

"""One figure: regret against epsilon, and against the number of sites that lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.ticker import LogLocator

from dffl.drawing import PALE_INK, WIDE, blank, in_print, note, write_figures
from dffl.training.methods import colour_of
from dffl_studies.privacy.federations import DEMO, REAL
from dffl_studies.privacy.study import AGGREGATORS, LEVELS, NAIVE, NOTHING, TRAININGS
from dffl_studies.privacy.tables import in_order

NAIVE_LINES = {"mean-cost": (":", 0.01), "local": ("--", 0.32), "local-tuned": ("-", 0.55)}
"""The line style of each naive rule, and the position of its name, which differs so that names do not overlap."""
COLOURS = ("#222222", "#E69F00", "#0072B2", "#009E73", "#CC79A7", "#D55E00")
"""Of aggregators, in their order."""


def draw(rows: pd.DataFrame, folder: Path) -> list[Path]:
    """Above, a panel for each data set and level with epsilon across; below, one for each data set with liars across."""
    rows = in_order(rows)
    private = rows[rows["liars"] == 0].query("aggregate == 'mean'")
    above = [(data, level) for data in private["data"].unique() for level in LEVELS if _has(private, data, level)]
    below = [str(data) for data in (DEMO, REAL) if (rows["liars"].gt(0) & (rows["data"] == data)).any()]
    if not above and not below:
        return []
    columns = max(2, -(-len(above) // 2), len(below))
    with in_print():
        lines = -(-len(above) // columns) + (1 if below else 0)
        figure = blank(WIDE, 2.5 * lines)
        panels = figure.subplots(lines, columns, squeeze=False)
        upper: Any = panels[: lines - 1 if below else lines].flat
        used = set()
        for axes, (data, level) in zip(upper, above, strict=False):
            _epsilon_panel(axes, private[private["data"] == data], data, level)
            used.add(axes)
        for axes, data in zip(panels[-1] if below else [], below, strict=False):
            _liars_panel(axes, rows[(rows["data"] == data) & (rows["level"] == NOTHING)], data)
            used.add(axes)
        for axes in set(panels.flat) - used:
            axes.set_axis_off()
        if below:  # next to the last panel, where there are no lines
            handles = panels[-1][0].get_legend_handles_labels()
            panels[-1][min(len(below), columns - 1)].legend(*handles, loc="center left", title="aggregator", alignment="left")
        note(
            figure,
            "Mean relative regret in %, three starts. Above: the points at the right are the same methods with nothing hidden; "
            "pale lines\nare what a client has without others. Below: the shared model, at the clients that do not lie, under "
            "the worst attack.",
        )
        return write_figures([("privacy", figure)], folder, ("png", "pdf"), 200)


def _has(rows: pd.DataFrame, data: str, level: str) -> bool:
    return bool(((rows["data"] == data) & (rows["level"] == level)).any())


def _of(means: pd.Series, level: str, method: str) -> pd.Series:
    """The means of a method at a level, by epsilon."""
    levels, methods = (means.index.get_level_values(name) for name in ("level", "method"))
    rows = means[(levels == level) & (methods == method)]
    return pd.Series(rows.to_numpy(), index=rows.index.get_level_values("epsilon"))


def _epsilon_panel(axes: Any, rows: pd.DataFrame, data: str, level: str) -> None:
    means = 100 * rows.groupby(["level", "method", "epsilon"], dropna=False)["relative_regret"].mean()
    right = 0.0
    for method in TRAININGS:
        curve = _of(means, level, method)
        if curve.empty:
            continue
        right = 10 * float(curve.index.max())
        axes.plot(curve.index, curve, marker="o", color=colour_of(method), label=method)
        plain = _of(means, NOTHING, method)
        if len(plain):
            axes.plot(
                [right], plain.to_numpy()[:1], marker="o", color=colour_of(method), markerfacecolor="white", clip_on=False
            )
    for name in NAIVE:
        curve = _of(means, NOTHING, name)
        if len(curve):
            value = float(curve.iloc[0])
            style, place = NAIVE_LINES[name]
            axes.axhline(value, color=PALE_INK, linewidth=0.6, linestyle=style)
            axes.annotate(name, (place, value), xycoords=("axes fraction", "data"), fontsize=5.5, color=PALE_INK, va="bottom")
    axes.set_xscale("log")
    _log_heights(axes)
    ticks = [float(value) for value in sorted(rows["epsilon"].dropna().unique())]
    axes.set_xticks([*ticks, right], [*(f"{value:g}" for value in ticks), "no\nprivacy"])
    axes.minorticks_off()
    axes.set_xlabel("epsilon of the whole fit")
    axes.set_ylabel("mean relative regret, %")
    axes.set_title(f"{data}:\n{level}", fontsize=7)
    axes.legend(fontsize=6)


def _log_heights(axes: Any) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")


def _liars_panel(axes: Any, rows: pd.DataFrame, data: str) -> None:
    honest = rows[~rows["lies"] & (rows["method"] == "fedavg")]
    means = 100 * honest.groupby(["aggregate", "liars", "attack"])["relative_regret"].mean()
    worst = means.groupby(["aggregate", "liars"]).max()
    for colour, aggregate in zip(COLOURS, AGGREGATORS, strict=True):
        if aggregate in worst.index.get_level_values("aggregate"):
            curve = worst[aggregate]
            axes.plot(curve.index, curve, marker="o", color=colour, label=aggregate)
    _log_heights(axes)
    axes.set_xticks(sorted(set(worst.index.get_level_values("liars"))))
    axes.set_xlabel(f"sites that lie, of {rows['client'].nunique()}")
    axes.set_ylabel("mean relative regret, %")
    axes.set_title(f"{data}:\nthe worst attack on each aggregator", fontsize=7)

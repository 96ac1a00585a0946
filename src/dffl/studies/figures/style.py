"""What every figure shares: print sizes, labels, and the rows that figures are of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec

import matplotlib as mpl
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from dffl.studies.tables import client_group, percent

WIDE = 7.0
"""Inches across a page. Figures are drawn at the size that they are printed at."""

PRINT: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "figure.titlesize": 9,
    "legend.frameon": False,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # some publishers refuse the default, Type 3
}
INK, PALE_INK = "#222222", "#666666"

PROBLEMS = {"knapsack": "Knapsack", "portfolio": "Portfolio"}
ETAS = {
    "eta_obj": "objective heterogeneity $\\eta_{\\mathrm{obj}}$",
    "eta_constr": "constraint heterogeneity $\\eta_{\\mathrm{constr}}$",
}
SHORT_ETAS = {"eta_obj": "$\\eta_{\\mathrm{obj}}$", "eta_constr": "$\\eta_{\\mathrm{constr}}$"}
REGRET = "relative regret, %"

Arguments = ParamSpec("Arguments")
Draw = Callable[[pd.DataFrame], Figure | None]


def drawing(
    draw: Callable[Concatenate[pd.DataFrame, Arguments], Figure | None],
) -> Callable[Concatenate[pd.DataFrame, Arguments], Figure | None]:
    """Let a function draw in print style from the rows without noise, regret in percent; no rows, no figure."""

    @functools.wraps(draw)
    def draw_quiet(rows: pd.DataFrame, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Figure | None:
        quiet = rows if rows.empty else rows[rows["noise"] == 0]
        if quiet.empty:
            return None
        with in_print():
            return draw(percent(quiet), *args, **kwargs)

    return draw_quiet


def in_print() -> Any:
    """The context in which figures are drawn and saved."""
    return mpl.rc_context(PRINT)


def blank(width: float, height: float) -> Figure:
    """An empty figure, in inches. It is no window's and in no list of open figures, so nobody has to close it."""
    return Figure(figsize=(width, height), layout="constrained")


def note(figure: Figure, text: str) -> None:
    """How to read the figure, small, under it."""
    figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color=PALE_INK)


def legend_above(figure: Figure, handles: Iterable[Artist], labels: Iterable[str], columns: int) -> None:
    """One legend for all panels, where it covers none."""
    figure.legend(
        list(handles),
        list(labels),
        loc="outside upper center",
        ncols=columns,
        handlelength=1.4,
        columnspacing=1.4,
        borderpad=0.2,
    )


def ink_on(colour: str | tuple[float, float, float, float]) -> str:
    """White on the darkest colours, black on all others, by their luminance as the WCAG defines it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < 0.21 else "black"


def grouped(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``group``: balanced, data-rich or data-poor."""
    return rows.assign(group=client_group(rows))


def problems_in(rows: pd.DataFrame) -> list[str]:
    """The problems that have rows, in the paper's order."""
    found = set(rows["problem"].unique())
    return [problem for problem in PROBLEMS if problem in found]


def levels_in(rows: pd.DataFrame, axis: str) -> list[float]:
    """The heterogeneity levels that have rows, lowest first."""
    return sorted(float(level) for level in rows[axis].unique())


def level_name(level: float) -> str:
    """A level as an axis writes it: .25 and not 0.25, which saves the width that small panels lack."""
    return f"{level:g}".removeprefix("0") or "0"

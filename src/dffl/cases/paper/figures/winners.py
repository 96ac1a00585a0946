"""How often each method is a client's best one, by heterogeneity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dffl.cases.paper.figures.parts import ETA_SYMBOLS, PROBLEM_NAMES, drawing, level_name, levels_in, problems_in
from dffl.cases.paper.tables import ORDER, PAPER_FOUR, methods_in, name_of
from dffl.studies.drawing import WIDE, blank, ink_on, legend_above, note
from dffl.training.methods import colour_of

CONTESTS = {"the paper's four methods": PAPER_FOUR, "with fine-tuning": (*PAPER_FOUR, "finetune")}
TIE = 1e-7
"""Relative regrets, in percent, that differ by less are equal."""
WRITTEN_FROM = 0.08
"""Thinner slices have no room for their number."""


@drawing
def draw_winners(rows: pd.DataFrame) -> Figure | None:
    """One row per problem; the paper's four methods on the left, fine-tuning among them on the right."""
    problems = problems_in(rows)
    contests = {title: methods_in(rows, methods) for title, methods in CONTESTS.items()}
    if contests["with fine-tuning"] == contests["the paper's four methods"]:
        del contests["with fine-tuning"]
    shares = {title: winner_shares(rows, methods) for title, methods in contests.items() if len(methods) > 1}
    if all(found.empty for found in shares.values()):
        return None
    figure = blank(WIDE, 1.0 + 1.7 * len(problems))
    panels = figure.subplots(len(problems), 2 * len(shares), sharey=True, squeeze=False)
    for line, problem in zip(panels, problems, strict=True):
        spots = iter(line)
        for title, found in shares.items():
            own = found[found.index.get_level_values("problem") == problem]
            for axis, label in ETA_SYMBOLS.items():
                axes = next(spots)
                _bars(axes, own, axis, levels_in(rows, axis))
                axes.set_xlabel(label)
                axes.set_title(f"{PROBLEM_NAMES[problem]}, {title}" if axis == "eta_obj" else "")
        line[0].set_ylabel("share of clients, %")
        line[0].set_ylim(0, 100)
    shown = [str(method) for one in shares.values() for method in one.columns]
    methods = [method for method in dict.fromkeys((*ORDER, *shown)) if method in shown]
    legend_above(
        figure, [Patch(color=colour_of(method)) for method in methods], [name_of(method) for method in methods], len(methods)
    )
    note(figure, _ties(next(iter(shares.values())), problems))
    return figure


def winner_shares(rows: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """The share of the win that each method has at each client of each configuration; methods that tie share it equally.

    Clients that lack one of the methods are left out. Rows are indexed by problem, eta_obj, eta_constr, job and client.
    """
    keys = ["problem", "eta_obj", "eta_constr", "job", "client"]
    part = rows[rows["method"].isin(methods)]
    regret = part.pivot_table(index=keys, columns="method", values="regret", observed=True)
    regret = regret.reindex(columns=list(methods)).dropna()
    wins = regret.le(regret.min(axis=1) + TIE, axis=0).astype(float)
    return wins.div(wins.sum(axis=1), axis=0)


def _bars(axes: Axes, shares: pd.DataFrame, axis: str, levels: list[float]) -> None:
    axes.grid(visible=False)
    axes.set_xticks(range(len(levels)), [level_name(level) for level in levels])
    axes.set_xlim(-0.6, len(levels) - 0.4)
    if shares.empty:
        return
    means = 100 * shares.groupby(level=axis).mean()
    places, below = [levels.index(level) for level in means.index], np.zeros(len(means))
    for method in means.columns:
        height = means[method].to_numpy()
        axes.bar(places, height, bottom=below, color=colour_of(method), width=0.82, edgecolor="white", linewidth=0.4)
        for place, start, part in zip(places, below, height, strict=True):
            if part >= 100 * WRITTEN_FROM:
                ink = ink_on(colour_of(method))
                axes.text(place, start + part / 2, f"{part:.0f}", ha="center", va="center", fontsize=7, color=ink)
        below = below + height


def _ties(shares: pd.DataFrame, problems: list[str]) -> str:
    """How many clients every method serves equally well: mostly those whose budget covers everything."""
    tied = np.isclose(shares.max(axis=1), 1 / shares.shape[1])
    owner = shares.index.get_level_values("problem")
    counts = [f"{PROBLEM_NAMES[name].lower()} {tied[owner == name].sum():,} of {(owner == name).sum():,}" for name in problems]
    return f"A win is shared between methods that tie. All methods tie (clients x configurations): {', '.join(counts)}."

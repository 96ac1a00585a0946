"""The paper's Figure 7: each zone's change of regret against `local`, and next to it against `local-tuned`."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dffl.drawing import INK, in_print, note
from dffl.training.methods import colour_of
from dffl_studies.energy.figures.changes import HARM, limits, signed
from dffl_studies.energy.figures.lines import lines_of, method_panels, name_lines, note_text
from dffl_studies.energy.papers_tables import name_of
from dffl_studies.energy.summary import FAIR, PAPERS, zone_changes, zone_order

DRAWN = ("fedavg", "interp-spo")
"""The methods of the paper's figure, in the order of a zone's bars."""
AGAINST = {PAPERS: "as in the paper", FAIR: "the fair comparison"}
"""The own models, and what the comparison with each is."""
HEIGHT = 0.38
"""Of one bar; a line is 1 high."""


def draw_bars(rows: pd.DataFrame) -> Figure | None:
    """One panel for each own model, one line per zone, one bar per method; zones in the order of the paper's comparison."""
    if rows.empty:
        return None
    changes = {against: zone_changes(rows, against) for against in AGAINST}
    if any(method not in table for table in changes.values() for method in DRAWN):
        return None
    changes = {against: table[list(DRAWN)].dropna(how="all") for against, table in changes.items()}
    means = {against: table.groupby("zone").mean() for against, table in changes.items()}
    spreads = {against: table.groupby("zone").std() for against, table in changes.items()}
    known = set(means[PAPERS].index) & set(means[FAIR].index)
    order = [zone for zone in zone_order(rows, PAPERS) if zone in known]
    if not order:
        return None
    lines = lines_of(order)
    with in_print(formulas=False):
        titles = [f"against {against}\n({what})" for against, what in AGAINST.items()]
        figure, panels = method_panels("Change of each zone's regret against its own model", titles, lines, pad=24)
        for axes, against in zip(panels, AGAINST, strict=True):
            _panel(axes, means[against].loc[order], spreads[against].loc[order], lines)
        name_lines(panels[0], lines, rows, len(order) - len(lines))
        shown = list(lines)
        middle, spread = (pd.concat([part[against].loc[shown] for against in AGAINST], axis=1) for part in (means, spreads))
        cut = limits(panels[0], middle, spread)
        handles, names = [Patch(color=colour_of(method)) for method in DRAWN], [name_of(method) for method in DRAWN]
        figure.legend(handles, names, loc="outside upper right", ncols=2, handlelength=1.4, borderpad=0.2)
        note(figure, _explanation(rows, len(order), len(lines), cut))
    return figure


def _panel(axes: Axes, means: pd.DataFrame, spreads: pd.DataFrame, lines: dict[str, int]) -> None:
    axes.axvspan(0, 1e9, color=HARM, linewidth=0, zorder=0)
    places, shown, texts = np.array(list(lines.values()), float), list(lines), []
    for number, method in enumerate(DRAWN):
        spots, whiskers = places + (number - 0.5) * HEIGHT, spreads[method][shown]
        axes.barh(spots, means[method][shown], height=HEIGHT, color=colour_of(method), linewidth=0)
        if whiskers.notna().any():
            axes.errorbar(
                means[method][shown], spots, xerr=whiskers.fillna(0), fmt="none", ecolor=INK, elinewidth=0.5, capsize=1.0
            )  # fmt: skip
        texts.append(f"{name_of(method)}: mean {signed(means[method].mean())} %, worst {signed(means[method].max())} %")
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.annotate("\n".join(texts), (0, 1), (0, 2), "axes fraction", "offset points", va="bottom", fontsize=6.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("gain ← % → harm", fontsize=7)


def _explanation(rows: pd.DataFrame, known: int, shown: int, cut: bool) -> str:
    seeds, left_out = rows["seed"].nunique(), rows["zone"].nunique() - known
    return note_text(
        f"Bars: mean over {seeds} seeds; whiskers: one standard deviation between them." if seeds > 1 else "One seed.",
        "On the shaded background a zone is worse off than with its own model.",
        f"{PAPERS} trains for rounds x local epochs, {FAIR} chooses its number of epochs on held-out days.",
        "Worst: of the means over seeds; Table 4 has the mean of each seed's worst." if seeds > 1 else "",
        "Means and worst are over all zones." if shown < known else "",
        "Some bars are longer than the axis." if cut else "",
        f"Zones left out, as they have no regret of their own: {left_out:,}." if left_out else "",
    )

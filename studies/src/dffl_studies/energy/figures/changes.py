"""What a zone gains or loses: the change of its regret against its own model, made with the same care."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dffl.drawing import INK, PALE_INK, in_print, note
from dffl.harm import ENOUGH_STARTS, HARM_TOLERANCE
from dffl.time.bases import STEADY
from dffl.training.methods import colour_of
from dffl_studies.energy.figures.lines import lines_of, method_panels, name_lines, note_text
from dffl_studies.energy.summary import FAIR, excesses, harmed_zones, zone_changes, zone_order

CHANGED = ("fedavg", "interp-spo", "finetune-mix", "crossfit")
"""The methods that have a panel each; the last panel is of the steady average."""
HARM_PERCENT = 100 * HARM_TOLERANCE
HARM, HARM_INK = "#fbe6e1", "#a3200d"
"""The background where a zone is worse off than with its own model, and the colour of texts about harm."""
FAR = 4.0
"""The axis ends at this many times the 90th percentile of the changes; else one extreme zone would hide all others."""


def draw_changes(rows: pd.DataFrame) -> Figure | None:
    """One panel per method, one line per zone: the change in percent as a bar and as a number."""
    if rows.empty:
        return None
    changes = zone_changes(rows)
    methods = [method for method in CHANGED if method in changes and changes[method].notna().any()]
    if not methods:
        return None
    if STEADY in set(rows["method"]):
        methods.append(STEADY)
    changes = changes[methods].dropna(how="all")
    means, spreads = changes.groupby("zone").mean(), changes.groupby("zone").std()
    order = [zone for zone in zone_order(rows) if zone in means.index]
    lines, table, counts = lines_of(order), excesses(rows, FAIR), harmed_zones(rows, FAIR)
    with in_print(formulas=False):
        figure, panels = method_panels(f"Change of each zone's regret against its own model ({FAIR})", methods, lines, pad=34)
        for axes, method in zip(panels, methods, strict=True):
            harmed = set(table.loc[(table["method"] == method) & (table["harmed"] == 1), "zone"])
            _bars(axes, means[method], spreads[method], lines, colour_of(method), harmed)
            text = _harm(means[method], counts[method])
            axes.annotate(text, (0, 1), (0, 2), "axes fraction", "offset points", va="bottom", fontsize=7, color=HARM_INK)
        name_lines(panels[0], lines, rows, len(order) - len(lines))
        cut = limits(panels[0], means.loc[list(lines)], spreads.loc[list(lines)])
        note(figure, _explanation(rows, len(order), len(lines), cut))
    return figure


def _bars(
    axes: Axes, means: pd.Series, spreads: pd.Series, lines: dict[str, int], colour: str, harmed: set[str]
) -> None:  # fmt: skip
    axes.axvspan(0, 1e9, color=HARM, linewidth=0, zorder=0)
    method_means = means.reindex(list(lines)).dropna()
    places = [lines[zone] for zone in method_means.index]
    axes.barh(places, method_means, height=0.72, color=colour, linewidth=0)
    whiskers = spreads.reindex(method_means.index).dropna()
    if len(whiskers):
        spots = [lines[zone] for zone in whiskers.index]
        axes.errorbar(method_means[whiskers.index], spots, xerr=whiskers, fmt="none", ecolor=INK, elinewidth=0.6, capsize=1.2)
    axes.axvline(0, color=INK, linewidth=0.7)
    for place, (zone, change) in zip(places, method_means.items(), strict=True):
        axes.annotate(
            signed(change), (1, place), (3, 0), axes.get_yaxis_transform(), "offset points", ha="left", va="center",
            fontsize=6.5, color=HARM_INK if change > HARM_PERCENT else PALE_INK,
            fontweight="bold" if zone in harmed else "normal",
        )  # fmt: skip
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("gain ← % → harm", fontsize=7)


def limits(axes: Axes, means: pd.DataFrame, spreads: pd.DataFrame) -> bool:
    """Set the range of the axis to the bars and their whiskers; the answer is whether some bars are longer than the axis."""
    values, spread = means.to_numpy(), spreads.fillna(0).to_numpy()
    far = FAR * float(np.nanquantile(np.abs(values), 0.9)) or 1.0
    low = max(float(np.nanmin(values - spread, initial=0.0)), -far)
    high = min(float(np.nanmax(values + spread, initial=0.0)), far)
    room = 0.04 * (high - low) or 1.0
    low, high = min(low - room, -3 * room), max(high + room, 3 * room)  # both sides of zero are visible
    axes.set_xlim(low, high)
    return bool(((values < low) | (values > high)).any())


def _harm(means: pd.Series, harmed: float) -> str:
    known = means.dropna()
    over = int((known > HARM_PERCENT).sum())
    told = f"{harmed:,.0f} significant" if np.isfinite(harmed) else "perhaps noise"
    return f"{over:,} of {len(known):,} over {HARM_PERCENT:g} %\n{told}\nworst {signed(known.max())} %"


def signed(change: float) -> str:
    """A change in whole percent, with its sign; 0 has none."""
    text = f"{change:+z.0f}".replace("-", "\N{MINUS SIGN}")
    return "0" if text[1:] == "0" else text


def _explanation(rows: pd.DataFrame, known: int, shown: int, cut: bool) -> str:
    seeds, left_out = rows["seed"].nunique(), rows["zone"].nunique() - known
    return note_text(
        f"Bars: mean over {seeds} seeds; whiskers: one standard deviation between them." if seeds > 1 else "One seed.",
        f"On the shaded background a zone is worse off than with its own model; it is harmed (bold) if that is above "
        f"{HARM_PERCENT:g} % and more than noise explains."
        + ("" if seeds >= ENOUGH_STARTS else f" Fewer than {ENOUGH_STARTS} seeds do not tell."),
        "The last panel is the steady average of past prices.",
        "Numbers: the change of each bar, and the hours that each zone buys per day.",
        "Counts and worst are of the means over seeds." if seeds > 1 else "",
        "Counts and worst are over all zones." if shown < known else "",
        "Some bars are longer than the axis: their numbers are right." if cut else "",
        f"Zones left out, as they have no regret of their own: {left_out:,}." if left_out else "",
    )

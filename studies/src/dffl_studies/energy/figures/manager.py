"""The pictures of a market's page: money a year by zone, the days of two zones, ranges that held, and a map."""

from __future__ import annotations

import io
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dffl.drawing import INK, PALE_INK, WIDE, blank, in_print, note
from dffl.report.data import Picture
from dffl_studies.energy.answers import named
from dffl_studies.energy.backtests import CHOSEN, decoded
from dffl_studies.energy.fetch.market import with_places
from dffl_studies.energy.figures.calendar import draw_calendar
from dffl_studies.energy.figures.places import Coloured, draw_places
from dffl_studies.energy.market_result import MarketResult

MOST = 40
"""Zones that a picture of bars shows: those that gain and lose most."""
GAIN, LOSS, RANGE = "#0072b2", "#bb5566", "#0b5c8a"
HALF_WIDTH = 0.6


def pictures(result: MarketResult) -> tuple[Picture, ...]:
    """What can be drawn of a run."""
    return tuple(Picture(title, _svg(figure), words) for title, figure, words in _drawn(result) if figure is not None)


def _drawn(result: MarketResult) -> Iterator[tuple[str, Figure | None, str]]:
    answer, panel = result.answer, result.market.panel
    saved = answer.saved_by_zone
    low, high = answer.saved_ends
    words = (
        f"What the chosen rules save in a year against {named(answer.naive_rule)}, with 95 % intervals over weeks. "
        f"Mean of zones: {answer.saved:+,.0f} {panel.money}, from {low:+,.0f} to {high:+,.0f}."
    )
    yield "Money saved in a year, by zone", draw_saved(saved, panel.money), words
    ordered = saved["saved"].sort_values(ascending=False).index
    for zone in dict.fromkeys([ordered[0], ordered[-1]]):
        days = days_of(result, str(zone))
        if days is not None:
            figure = draw_calendar(days, str(zone), "chosen", f"{panel.currency or 'money'} per MW")
            which = "saves most" if zone == ordered[0] else "saves least"
            yield f"Every decision of {zone}", figure, f"{zone} {which}. One column for each test day."
    yield (
        "Ranges that held",
        draw_held(answer.held),
        "The share of test days whose cost was in the range of 80 % stated before.",
    )
    if not result.market.sets:
        lat, lon = with_places(panel).places.T
        zones = pd.DataFrame({"zone": panel.names, "demand": panel.demands, "lat": lat, "lon": lon})
        zones["saved"] = saved["saved"].reindex(zones["zone"]).to_numpy()
        title = "Where the zones are, and what they save"
        by = Coloured("saved", title, f"saved in a year, {panel.money}", "Saved: against the naive rule.")
        yield title, draw_places(zones, by), ""


def draw_saved(saved: pd.DataFrame, money: str) -> Figure:
    """One bar for each zone, with its interval and its number."""
    table = saved.sort_values("saved", ascending=False)
    if len(table) > MOST:
        table = pd.concat([table.iloc[: MOST // 2], table.iloc[-MOST // 2 :]])
    places = np.arange(len(table))
    with in_print(formulas=False):
        figure = blank(WIDE, 0.7 + 0.17 * len(table))
        axes = figure.subplots()
        axes.barh(places, table["saved"], color=[GAIN if value >= 0 else LOSS for value in table["saved"]], height=HALF_WIDTH)
        ends = table[["low", "high"]].to_numpy(float)
        if np.isfinite(ends).all():
            axes.hlines(places, ends[:, 0], ends[:, 1], color=INK, linewidth=0.8)
        reach = np.nanmax(np.where(np.isfinite(ends), ends, table[["saved"]].to_numpy()), axis=1)
        for place, value, right in zip(places, table["saved"], np.maximum(reach, 0), strict=True):
            axes.annotate(f"{value:+,.0f}", (right, place), (4, 0), textcoords="offset points", va="center", fontsize=7)
        axes.set_yticks(places, table.index)
        axes.invert_yaxis()
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.margins(x=0.12)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel(f"saved in a year, {money}, for 1 MW in each period bought")
    return figure


def draw_held(shares: pd.Series) -> Figure | None:
    """A dot for each zone: the share of costs inside their range."""
    known = 100 * shares[np.isfinite(shares)].sort_values()
    if known.empty:
        return None
    if len(known) > MOST:
        known = pd.concat([known.iloc[: MOST // 2], known.iloc[-MOST // 2 :]])
    with in_print(formulas=False):
        figure = blank(WIDE, 0.8 + 0.15 * len(known))
        axes = figure.subplots()
        axes.plot(known, np.arange(len(known)), "o", color=RANGE)
        axes.axvline(80, color=PALE_INK, linewidth=0.8, linestyle="--")
        axes.set_yticks(np.arange(len(known)), known.index)
        axes.set_xlim(min(50, known.min() - 2), 100)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("days whose cost was inside its range, %")
        note(figure, "Dashed: the 80 % that were stated.")
    return figure


def days_of(result: MarketResult, zone: str) -> pd.DataFrame | None:
    """Each period of a zone's test days: its price, and whether it was bought and should have been; None where neither says."""
    rows = result.rows[(result.rows["zone"] == zone) & (result.rows["rule"] == CHOSEN)].sort_values("seed")
    text = str(rows["decisions"].iloc[0]) if "decisions" in rows else ""
    if not text or not rows["decisions"].iloc[0]:
        return None
    bought, client = decoded(text, result.market.panel.periods), result.market.federation[zone]
    best = client.w_star[-len(bought) :]
    if best.shape[1] != bought.shape[1] or best.min() < 0 or not best.max() > 0:
        return None
    panel = result.market.panel
    dates = panel.dates[panel.rows(zone)][-len(bought) :]
    return pd.DataFrame(
        {
            "date": np.repeat(dates.astype(str), panel.periods), "hour": np.tile(np.arange(panel.periods), len(bought)),
            "price": client.c[-len(bought) :].ravel(), "chosen": bought.ravel(), "cheapest": (best / best.max()).ravel(),
        }
    )  # fmt: skip


def _svg(figure: Figure) -> str:
    """A figure as text, the same each time."""
    with in_print(formulas=False), mpl.rc_context({"svg.hashsalt": "dffl", "svg.fonttype": "none"}):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()

"""Which hours a zone bought on each day, and what the wrong ones cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dffl.drawing import INK, WIDE, blank, in_print, legend_above, note
from dffl_studies.energy.figures.lines import note_text
from dffl_studies.energy.papers_tables import name_of

HIT, EXPENSIVE, MISSED, REST = "#004488", "#BB5566", "#DDAA33", "#f2f2f2"
"""Tol's three colours of high contrast, distinct also for the colour-blind and in grey print; none is a method's colour."""
HOURS = 24


class Bought(NamedTuple):
    """The days as grids: one row per hour, one column per day, nan where a day has no row."""

    price: pd.DataFrame
    chosen: pd.DataFrame
    cheapest: pd.DataFrame

    @classmethod
    def of(cls, days: pd.DataFrame) -> Bought:
        """The grids of rows; the rows of several seeds are averaged, and days that are missing between others stay empty."""
        rows = days[["hour", *cls._fields]].astype(float).assign(date=pd.to_datetime(days["date"]).dt.normalize())
        every_day = pd.date_range(rows["date"].min(), rows["date"].max())
        grids = (rows.pivot_table(index="hour", columns="date", values=name) for name in cls._fields)
        periods = list(range(int(rows["hour"].max()) + 1))
        return cls(*(grid.reindex(index=periods, columns=every_day) for grid in grids))

    def regret(self) -> pd.Series:
        """What each day's hours cost beyond the cheapest ones, US$ for each MW; nan on days without prices."""
        return (self.price * (self.chosen - self.cheapest)).sum(min_count=1)

    def hit(self) -> float:
        """The percentage of the cheapest hours that were bought."""
        return 100.0 * float((self.chosen * self.cheapest).sum().sum() / self.cheapest.sum().sum())

    def expensive(self) -> float:
        """The percentage of the bought hours that are not among the cheapest."""
        return 100.0 * float((self.chosen * (1.0 - self.cheapest)).sum().sum() / self.chosen.sum().sum())


def draw_calendar(days: pd.DataFrame, zone: str, method: str, money: str = "US$ per MW") -> Figure | None:
    """One column per day, one cell per period: bought or not, among the cheapest or not; above, the regret of each day."""
    if days.empty:
        return None
    bought = Bought.of(days)
    with in_print(formulas=False):
        figure = blank(WIDE, 3.8)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, 3])
        hourly = len(bought.price) == HOURS
        above.set_title(f"{'Hours' if hourly else 'Periods'} bought by {zone}: {name_of(method)}")
        _strip(above, bought.regret(), money)
        _cells(below, bought)
        entries = {
            f"bought: hit {bought.hit():.0f} % of the cheapest {'hours' if hourly else 'periods'}": HIT,
            f"not bought: missed {100 - bought.hit():.0f} %": MISSED,
            f"bought too dear: {bought.expensive():.0f} % of purchases": EXPENSIVE,
        }
        legend_above(figure, [Patch(color=colour) for colour in entries.values()], entries, 3)
        note(figure, _explanation(bought, money))
    return figure


def _strip(axes: Axes, regret: pd.Series, money: str) -> None:
    known = regret.dropna()
    axes.bar(date2num(known.index), known, width=1.0, align="edge", color=INK, linewidth=0)
    axes.set_ylabel(f"regret,\n{money}")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_ylim(0, 1.25 * max(known.max(), 0.01))
    axes.grid(axis="x", visible=False)
    axes.tick_params(axis="x", length=0)
    if known.max() > 0:
        worst, late = known.idxmax(), int(known.argmax()) > 0.8 * len(known)
        axes.annotate(
            f"{worst:%Y-%m-%d}: {known.max():,.0f}", (date2num(worst) + (not late), known.max()), (-2 if late else 2, 0),
            textcoords="offset points", ha="right" if late else "left", va="center", fontsize=7, color=INK,
        )  # fmt: skip


def _cells(axes: Axes, bought: Bought) -> None:
    days = bought.price.columns
    chosen, cheapest = (grid.to_numpy()[..., None] for grid in (bought.chosen, bought.cheapest))
    hit, expensive, missed, rest = (np.array(to_rgb(colour)) for colour in (HIT, EXPENSIVE, MISSED, REST))
    colours = cheapest * (chosen * hit + (1 - chosen) * missed) + (1 - cheapest) * (chosen * expensive + (1 - chosen) * rest)
    first, last = date2num(days[0]), date2num(days[-1]) + 1
    axes.imshow(
        np.nan_to_num(colours, nan=1.0), aspect="auto", interpolation="nearest", extent=(first, last, len(bought.price), 0)
    )
    axes.set_ylabel("hour of the day" if len(bought.price) == HOURS else "period of the day")
    axes.set_yticks(np.linspace(0, len(bought.price), 5).round())
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    locator = AutoDateLocator(minticks=3, maxticks=13)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _explanation(bought: Bought, money: str) -> str:
    costs = bought.regret().dropna().sort_values(ascending=False)
    half = int((costs.cumsum() < costs.sum() / 2).sum()) + 1
    costliest = "the costliest day makes" if half == 1 else f"the {half:,} costliest days make"
    return note_text(
        f"{len(costs):,} days, mean regret {costs.mean():,.2f} {money} and day" + (";" if costs.sum() > 0 else "."),
        f"{costliest} half of the sum." if costs.sum() > 0 else "",
        "Mixed colours: hours bought in part." if ((bought.chosen % 1) > 0).to_numpy().any() else "",
    )

"""Where the zones are, how much they buy, and how far their prices go their own way."""

from __future__ import annotations

from textwrap import fill

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import ConnectionPatch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from dffl.cases.energy.figures.lines import MOST, NOTE_WIDTH
from dffl.cases.energy.figures.names import write_names
from dffl.cases.energy.figures.views import SIDE, View, find_views
from dffl.cases.energy.figures.window import Window
from dffl.studies.drawing import INK, PALE_INK, WIDE, blank, in_print, note

LARGEST = 11.0
"""Points across the marker of the zone that buys most, less where zones are very many. Areas are in proportion to demand."""
LISTED = 12
"""Zones without coordinates that the note names."""
ABOVE, BELOW, LINE = 0.3, 1.02, 0.13
"""Inches above and below the maps, and more below for each line of the note beyond the first."""


def draw_places(zones: pd.DataFrame) -> Figure | None:
    """A map: size is demand, colour the 95th percentile of the zone's own price; a crowded part is enlarged beside it."""
    placed = zones.dropna(subset=["lat", "lon"]) if len(zones) else zones
    if placed.empty:
        return None
    placed = placed.sort_values(["own_p95", "zone"], ascending=[False, True], ignore_index=True)  # who is named first
    placed = placed.assign(across=_across(placed["demand"], placed))
    views = find_views(placed)
    reading = _reading(zones, placed, len(placed) - sum(len(view.names) for view in views))
    below = BELOW + LINE * reading.count("\n")
    scale = ScalarMappable(Normalize(placed["own_p95"].min(), placed["own_p95"].max()), _pale_to_dark())
    with in_print():
        figure = blank(WIDE, below + max(view.bottom + view.window.height for view in views) + ABOVE)
        figure.set_layout_engine("none")  # the maps' sizes are exact, or names would not be where they have room
        figure.suptitle("Place, demand and own part of the price of each zone", x=0.01, ha="left")
        panels = []
        for window, names, left, bottom in views:
            panels.append(figure.add_axes(_share(figure, SIDE + left, below + bottom, window.width, window.height)))
            _map(panels[-1], placed, window, scale)
            write_names(panels[-1], names, window)
        if len(panels) > 1:
            _enlarge(figure, panels[0], panels[1], views[1])
        _keys(figure, placed, scale, below)
        note(figure, reading)
    return figure


def _across(demand: pd.Series, placed: pd.DataFrame) -> pd.Series:
    """The markers' diameters in points."""
    return LARGEST * min(1.0, MOST / len(placed)) ** 0.5 * (demand / placed["demand"].max()) ** 0.5


def _pale_to_dark() -> Colormap:
    """Without the ends that are hardly seen on white, or hardly told from black."""
    return LinearSegmentedColormap.from_list("own prices", mpl.colormaps["magma_r"](np.linspace(0.06, 0.85, 64)))


def _share(figure: Figure, left: float, bottom: float, width: float, height: float) -> tuple[float, float, float, float]:
    """Inches as shares of the figure."""
    across, up = figure.get_size_inches()
    return left / across, bottom / up, width / across, height / up


def _map(axes: Axes, placed: pd.DataFrame, window: Window, scale: ScalarMappable) -> None:
    drawn = placed.sort_values("across", ascending=False, kind="stable")  # no large marker hides a small one
    colours = scale.to_rgba(drawn["own_p95"].to_numpy())
    axes.scatter(drawn["lon"], drawn["lat"], s=drawn["across"] ** 2, c=colours, edgecolors=INK, linewidths=0.5, zorder=3)
    axes.set_xlim(window.west, window.east)
    axes.set_ylim(window.south, window.north)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: _degrees(at, "EW")))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda at, _: _degrees(at, "NS")))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(PALE_INK)


def _degrees(at: float, sides: str) -> str:
    return f"{abs(at):g}° {sides[int(at < 0)]}" if at else "0°"


def _enlarge(figure: Figure, whole: Axes, part: Axes, view: View) -> None:
    """Frame the enlarged part in the whole, and lead from there to it, or say so where lines would cross the map."""
    west, east, south, north = view.window[:4]
    frame = Rectangle((west, south), east - west, north - south, fill=False, edgecolor=PALE_INK, linewidth=0.7, zorder=2)
    whole.add_patch(frame)
    if not view.left:
        part.set_title("the frame above, enlarged", fontsize=7, color=PALE_INK, pad=3)
        return
    part.yaxis.tick_right()
    for latitude, edge in ((north, 1), (south, 0)):
        start, end = (east, latitude), (0, edge)
        lead = ConnectionPatch(start, end, "data", "axes fraction", axesA=whole, axesB=part, color=PALE_INK, linewidth=0.5)
        figure.add_artist(lead)


def _keys(figure: Figure, placed: pd.DataFrame, scale: ScalarMappable, below: float) -> None:
    """Below the maps: what colours and sizes mean."""
    bar = figure.colorbar(scale, cax=figure.add_axes(_share(figure, SIDE, below - 0.46, 2.6, 0.09)), orientation="horizontal")
    bar.set_label("95th percentile of the own price, US\\$/MWh", fontsize=7)
    bar.outline.set_visible(False)
    demands = placed["demand"].drop_duplicates().sort_values(ignore_index=True)
    shown = demands.iloc[sorted({0, len(demands) // 2, len(demands) - 1})]
    sizes = _across(shown, placed)
    handles = [Line2D([], [], linestyle="", marker="o", markersize=size, color="white", markeredgecolor=INK) for size in sizes]
    figure.legend(
        handles, [f"{demand:g} h" for demand in shown], title="bought a day", title_fontsize=7, ncols=3, loc="upper right",
        bbox_to_anchor=_share(figure, SIDE, below - 0.71, WIDE - 2 * SIDE, 0.45), borderaxespad=0, handletextpad=0.2,
    )  # fmt: skip


def _reading(zones: pd.DataFrame, placed: pd.DataFrame, nameless: int) -> str:
    lost = sorted(set(zones["zone"]) - set(placed["zone"]))
    more = f" and {len(lost) - LISTED:,} more" if len(lost) > LISTED else ""
    parts = [
        "Own price: a zone's price less the mean over zones, hour by hour.",
        f"Zones without a name for want of room: {nameless:,}." if nameless else "",
        f"Zones without known coordinates: {', '.join(lost[:LISTED])}{more}." if lost else "",
    ]
    return fill(" ".join(part for part in parts if part), NOTE_WIDTH)

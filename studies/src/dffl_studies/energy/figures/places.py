"""Where the zones are, how much they buy, and how far their prices differ from the mean over zones."""

from __future__ import annotations

from typing import NamedTuple

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

from dffl.drawing import INK, PALE_INK, WIDE, blank, in_print, note
from dffl.named import listed
from dffl_studies.energy.figures.lines import MOST, note_text
from dffl_studies.energy.figures.maps import SIDE, find_maps, write_labels
from dffl_studies.energy.figures.window import Window

LARGEST = 11.0
"""The diameter in points of the marker of the zone that buys most, less if there are very many zones. Areas show demand."""
LISTED = 12
"""Zones without coordinates that the note names."""
ABOVE, BELOW, LINE = 0.3, 1.02, 0.13
"""Inches above and below the maps, and more below for each line of the note beyond the first."""


class Coloured(NamedTuple):
    """What the colours of a map mean: a column of the zones, and words for it."""

    column: str
    title: str
    label: str
    note: str


OWN_PRICE = Coloured(
    "own_p95", "Place, demand and own part of the price of each zone", "95th percentile of the own price, US$/MWh",
    "Own price: a zone's price minus the mean over zones, for each hour.",
)  # fmt: skip


def draw_places(zones: pd.DataFrame, by: Coloured = OWN_PRICE) -> Figure | None:
    """A map: size is demand, colour as `Coloured` says; a crowded part is enlarged at the right."""
    placed = zones.dropna(subset=["lat", "lon"]) if len(zones) else zones
    if placed.empty:
        return None
    placed = placed.sort_values([by.column, "zone"], ascending=[False, True], ignore_index=True)  # the first are named first
    placed = placed.assign(diameter=_diameter(placed["demand"], placed), colour=placed[by.column])
    maps = find_maps(placed)
    explanation = _explanation(by, zones, placed, len(placed) - sum(len(zone_map.labels) for zone_map in maps))
    below = BELOW + LINE * explanation.count("\n")
    scale = ScalarMappable(Normalize(placed["colour"].min(), placed["colour"].max()), _pale_to_dark())
    with in_print(formulas=False):
        figure = blank(WIDE, below + max(zone_map.window.height for zone_map in maps) + ABOVE)
        figure.set_layout_engine("none")  # the sizes of the maps must be exact: labels were placed for them
        figure.suptitle(by.title, x=0.01, ha="left")
        panels = []
        for zone_map in maps:
            panels.append(
                figure.add_axes(_share(figure, SIDE + zone_map.left, below, zone_map.window.width, zone_map.window.height))
            )
            _draw_map(panels[-1], placed, zone_map.window, scale)
            write_labels(panels[-1], zone_map)
        if len(panels) > 1:
            _mark_enlarged(figure, panels[0], panels[1], maps[1].window)
        _keys(figure, placed, scale, below, by)
        note(figure, explanation)
    return figure


def _diameter(demand: pd.Series, placed: pd.DataFrame) -> pd.Series:
    """The diameters of the markers in points."""
    return LARGEST * min(1.0, MOST / len(placed)) ** 0.5 * (demand / placed["demand"].max()) ** 0.5


def _pale_to_dark() -> Colormap:
    """Without the colours that are too similar to white or to black."""
    return LinearSegmentedColormap.from_list("own prices", mpl.colormaps["magma_r"](np.linspace(0.06, 0.85, 64)))


def _share(figure: Figure, left: float, bottom: float, width: float, height: float) -> tuple[float, float, float, float]:
    """Inches as fractions of the figure."""
    across, up = figure.get_size_inches()
    return left / across, bottom / up, width / across, height / up


def _draw_map(axes: Axes, placed: pd.DataFrame, window: Window, scale: ScalarMappable) -> None:
    drawn = placed.sort_values("diameter", ascending=False, kind="stable")  # no large marker hides a small one
    colours = scale.to_rgba(drawn["colour"].to_numpy())
    axes.scatter(drawn["lon"], drawn["lat"], s=drawn["diameter"] ** 2, c=colours, edgecolors=INK, linewidths=0.5, zorder=3)
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


def _mark_enlarged(figure: Figure, main: Axes, part: Axes, window: Window) -> None:
    """Draw a frame around the enlarged part in the map of all zones, with lines from there to its own map."""
    west, east, south, north = window[:4]
    frame = Rectangle((west, south), east - west, north - south, fill=False, edgecolor=PALE_INK, linewidth=0.7, zorder=2)
    main.add_patch(frame)
    part.yaxis.tick_right()
    for latitude, edge in ((north, 1), (south, 0)):
        start, end = (east, latitude), (0, edge)
        lead = ConnectionPatch(start, end, "data", "axes fraction", axesA=main, axesB=part, color=PALE_INK, linewidth=0.5)
        figure.add_artist(lead)


def _keys(figure: Figure, placed: pd.DataFrame, scale: ScalarMappable, below: float, by: Coloured) -> None:
    """Explain colours and sizes below the maps."""
    bar = figure.colorbar(scale, cax=figure.add_axes(_share(figure, SIDE, below - 0.46, 2.6, 0.09)), orientation="horizontal")
    bar.set_label(by.label, fontsize=7)
    bar.outline.set_visible(False)
    demands = placed["demand"].drop_duplicates().sort_values(ignore_index=True)
    shown = demands.iloc[sorted({0, len(demands) // 2, len(demands) - 1})]
    sizes = _diameter(shown, placed)
    handles = [Line2D([], [], linestyle="", marker="o", markersize=size, color="white", markeredgecolor=INK) for size in sizes]
    figure.legend(
        handles, [f"{demand:g} h" for demand in shown], title="bought per day", title_fontsize=7, ncols=3, loc="upper right",
        bbox_to_anchor=_share(figure, SIDE, below - 0.71, WIDE - 2 * SIDE, 0.45), borderaxespad=0, handletextpad=0.2,
    )  # fmt: skip


def _explanation(by: Coloured, zones: pd.DataFrame, placed: pd.DataFrame, nameless: int) -> str:
    unplaced = sorted(set(zones["zone"]) - set(placed["zone"]))
    return note_text(
        by.note,
        f"Zones whose name has no room: {nameless:,}." if nameless else "",
        f"Zones without known coordinates: {listed(unplaced, LISTED)}." if unplaced else "",
    )

"""The maps that the zones need, one or two with the crowded part enlarged, and the names of zones on each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dffl.drawing import INK, WIDE
from dffl_studies.energy.figures.labels import Label, place_labels, text_size
from dffl_studies.energy.figures.lines import MOST
from dffl_studies.energy.figures.window import Window, crowded_part, natural_height

SIDE, BETWEEN, MARGIN = 0.5, 0.2, 0.3
"""Inches: on either side of the maps, between two maps, and from a map's frame to its zones."""
LEAST_ENLARGED = 2.0
"""A part gets a second map only if it is enlarged at least this many times."""
FONT_SIZE = 6.5
"""The size of names, in points."""


class ZoneMap(NamedTuple):
    """What a map shows, the labels of its zones (in points from its lower left corner), and how far right it is, in inches."""

    window: Window
    labels: dict[str, Label]
    left: float


def find_maps(placed: pd.DataFrame) -> list[ZoneMap]:
    """All zones with the crowded part enlarged at the right, or all zones alone: what has room for more names."""
    lon, lat = _positions(placed)

    def fitting(width: float, least: float, most: float) -> Window:
        height = float(np.clip(natural_height(lon, lat, width, MARGIN), least, most))
        return Window.around(lon, lat, width, height, MARGIN)

    width = WIDE - 2 * SIDE
    wide, half = fitting(width, 2.2, 3.8), fitting((width - BETWEEN) / 2, 2.6, 4.2)
    options = [[ZoneMap(wide, find_labels(placed, wide), 0.0)]]
    part = crowded_part(lon, lat, wide, half.width, half.height, MARGIN)
    if part is not None and part.inches_per_degree() > LEAST_ENLARGED * half.inches_per_degree():
        enlarged = ZoneMap(part, find_labels(placed, part), half.width + BETWEEN)
        options.insert(0, [ZoneMap(half, find_labels(placed, half, part), 0.0), enlarged])
    return max(options, key=lambda maps: sum(len(zone_map.labels) for zone_map in maps))


def find_labels(placed: pd.DataFrame, window: Window, enlarged: Window | None = None) -> dict[str, Label]:
    """The labels that have room, of zones in this window that are not in the enlarged one. The first zones choose first."""
    lon, lat = _positions(placed)
    named, blocked = window.holds(lon, lat), None
    if enlarged is not None:
        named &= ~enlarged.holds(lon, lat)
        corners = window.inches(np.array([enlarged.west, enlarged.east]), np.array([enlarged.south, enlarged.north]))
        blocked = 72 * corners.reshape(1, 4)
    order = np.argsort(~named, kind="stable")  # zones to be named first, then those that must only not be covered
    zones = placed["zone"].to_numpy()[order][: min(int(named.sum()), MOST)]
    points, radii = 72 * window.inches(lon, lat)[order], placed["diameter"].to_numpy()[order] / 2 + 0.5
    frame = 72 * window.width, 72 * window.height
    labels = place_labels(points, radii, [text_size(zone, FONT_SIZE) for zone in zones], frame, blocked)
    return {zone: label for zone, label in zip(zones, labels, strict=True) if label is not None}


def write_labels(axes: Axes, zone_map: ZoneMap) -> None:
    """Write the names, and draw the lines that lead to them."""
    frame = 72 * np.array([zone_map.window.width, zone_map.window.height])
    for zone, label in zone_map.labels.items():
        if label.line_end is not None:
            ends = np.array([label.point, label.line_end]) / frame
            axes.plot(*ends.T, transform=axes.transAxes, color=INK, linewidth=0.5, zorder=2)
        x, y = label.middle / frame
        axes.text(x, y, zone, transform=axes.transAxes, ha="center", va="center", fontsize=FONT_SIZE, color=INK, zorder=4)


def _positions(placed: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return placed["lon"].to_numpy(dtype=float), placed["lat"].to_numpy(dtype=float)

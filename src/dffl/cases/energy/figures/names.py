"""Which zones a map names, and where."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dffl.cases.energy.figures.labels import Spot, place_labels, text_size
from dffl.cases.energy.figures.lines import MOST
from dffl.cases.energy.figures.window import Window
from dffl.studies.drawing import INK

LETTERS = 6.5
"""The size of names, in points."""


class Name(NamedTuple):
    """A zone's name, its place and the name's spot, in points from the map's lower left corner."""

    zone: str
    point: np.ndarray
    spot: Spot


def find_names(placed: pd.DataFrame, window: Window, closer: Window | None) -> list[Name]:
    """The names that find room, of zones that this window shows and the closer one does not. The first zones choose first."""
    lon, lat = placed["lon"].to_numpy(dtype=float), placed["lat"].to_numpy(dtype=float)
    own, barred = window.holds(lon, lat), None
    if closer is not None:
        own &= ~closer.holds(lon, lat)
        corners = window.inches(np.array([closer.west, closer.east]), np.array([closer.south, closer.north]))
        barred = 72 * corners.reshape(1, 4)
    order = np.argsort(~own, kind="stable")  # those to be named, then those only not to be covered
    zones = placed["zone"].to_numpy()[order][: min(int(own.sum()), MOST)]
    points, radii = 72 * window.inches(lon, lat)[order], placed["across"].to_numpy()[order] / 2 + 0.5
    frame = 72 * window.width, 72 * window.height
    spots = place_labels(points, radii, [text_size(zone, LETTERS) for zone in zones], frame, barred)
    found = zip(zones, points, spots, strict=False)
    return [Name(zone, point, spot) for zone, point, spot in found if spot is not None]


def write_names(axes: Axes, names: list[Name], window: Window) -> None:
    """Write the names, and draw the lines that lead to them."""
    frame = 72 * np.array([window.width, window.height])
    for zone, point, spot in names:
        if spot.line_end is not None:
            ends = np.array([point, spot.line_end]) / frame
            axes.plot(*ends.T, transform=axes.transAxes, color=INK, linewidth=0.5, zorder=2)
        x, y = spot.middle / frame
        axes.text(x, y, zone, transform=axes.transAxes, ha="center", va="center", fontsize=LETTERS, color=INK, zorder=4)

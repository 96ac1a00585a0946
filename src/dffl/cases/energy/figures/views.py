"""The maps that the zones need: one, or two with the crowded part enlarged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.cases.energy.figures.names import Name, find_names
from dffl.cases.energy.figures.window import Window, crowd, natural_height
from dffl.studies.drawing import WIDE

SIDE, BESIDE, BENEATH, MARGIN, PART = 0.5, 0.2, 0.48, 0.3, 2.4
"""Inches: on either side, between maps side by side, between maps one above the other, from a map's frame to its zones, and
the height of a part that is beneath."""
CLOSER = 2.0
"""A part is not worth a map of its own unless it is enlarged so many times."""


class View(NamedTuple):
    """A map: what it shows, what it names, and where it is, in inches from the lower left corner of all maps."""

    window: Window
    names: list[Name]
    left: float
    bottom: float


def find_views(placed: pd.DataFrame) -> list[View]:
    """The whole with its crowded part beside it, or beneath it, or alone: the first that gives most zones room for a name."""
    lon, lat = placed["lon"].to_numpy(dtype=float), placed["lat"].to_numpy(dtype=float)

    def fitting(width: float, least: float, most: float) -> Window:
        height = float(np.clip(natural_height(lon, lat, width, MARGIN), least, most))
        return Window.around(lon, lat, width, height, MARGIN)

    width = WIDE - 2 * SIDE
    wide, small = fitting(width, 2.2, 3.8), fitting((width - BESIDE) / 2, 2.6, 4.2)
    options = []
    for whole, spot, size, part_spot in (
        (small, (0.0, 0.0), (small.width, small.height), (small.width + BESIDE, 0.0)),
        (wide, (0.0, PART + BENEATH), (width, PART), (0.0, 0.0)),
    ):
        part = crowd(lon, lat, wide, *size, MARGIN)
        if part is not None and part.inches_a_degree() > CLOSER * whole.inches_a_degree():
            names, part_names = find_names(placed, whole, part), find_names(placed, part, None)
            options.append([View(whole, names, *spot), View(part, part_names, *part_spot)])
    options.append([View(wide, find_names(placed, wide, None), 0.0, 0.0)])
    return max(options, key=lambda views: sum(len(view.names) for view in views))

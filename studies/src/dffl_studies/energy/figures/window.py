"""What a map of a given size shows of the Earth, and the part of it in which markers overlap."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

CROWDED = 0.2
"""Inches. Markers whose centres are nearer than this overlap."""
SEPARATE = 0.1
"""Inches. Markers with at least this distance can be distinguished, although they may touch."""
SQUARES = (1 / 3, 1 / 6, 1 / 12, 1 / 24)
"""The sides of the squares that may be enlarged, as shares of the map."""
LEAST_SPAN = 0.5
"""Degrees. A map shows at least this much, also of a single place."""


class Window(NamedTuple):
    """What a frame shows, in degrees, and its size in inches."""

    west: float
    east: float
    south: float
    north: float
    width: float
    height: float

    @classmethod
    def around(cls, lon: np.ndarray, lat: np.ndarray, width: float, height: float, margin: float) -> Window:
        """The closest view in which all places keep the margin, in inches, and a degree is as long north as east."""
        x, y = (lon.min() + lon.max()) / 2, (lat.min() + lat.max()) / 2
        shrink = _shrink(lat)
        spans = max(shrink * np.ptp(lon), LEAST_SPAN), max(np.ptp(lat), LEAST_SPAN)
        inch = 1 / min((width - 2 * margin) / spans[0], (height - 2 * margin) / spans[1])  # in degrees of latitude
        across, up = inch * width / 2 / shrink, inch * height / 2
        return cls(float(x - across), float(x + across), float(y - up), float(y + up), width, height)

    def inches(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        """The distances of the places from the frame's lower left corner, one row per place."""
        across = (lon - self.west) / (self.east - self.west) * self.width
        return np.column_stack([across, (lat - self.south) / (self.north - self.south) * self.height])

    def holds(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        """Which of the places are in the frame."""
        spots = self.inches(lon, lat)
        return np.all((spots >= 0) & (spots <= (self.width, self.height)), axis=1)

    def inches_per_degree(self) -> float:
        """The scale in the direction north."""
        return self.height / (self.north - self.south)


def natural_height(lon: np.ndarray, lat: np.ndarray, width: float, margin: float) -> float:
    """The height of a frame of this width that fits around the places."""
    across, up = max(_shrink(lat) * np.ptp(lon), LEAST_SPAN), max(np.ptp(lat), LEAST_SPAN)
    return 2 * margin + (width - 2 * margin) * float(up / across)


def crowded_part(lon: np.ndarray, lat: np.ndarray, full: Window, width: float, height: float, margin: float) -> Window | None:
    """A closer view, of the given size, of the square with most of the markers that overlap; None if there is no such square.

    It is the widest of `SQUARES` in whose closer view they can be distinguished, or else the smallest.
    """
    spots = full.inches(lon, lat)
    gaps = np.abs(spots[:, None] - spots[None, :])
    overlap = ((np.hypot(*gaps.T) < CROWDED).sum(axis=0) > 1).astype(float)
    view = None
    for share in SQUARES:
        near = gaps.max(axis=2) <= share / 2 * np.ptp(spots, axis=0).max()
        square = near[(near @ overlap + near.mean(axis=1)).argmax()]  # of equals, the one with most zones
        if square @ overlap < max(3.0, overlap.sum() / 2):
            break
        view = Window.around(lon[square], lat[square], width, height, margin)
        if _least_gap(view.inches(lon[square], lat[square])) > SEPARATE:
            break
    return view


def _least_gap(spots: np.ndarray) -> float:
    """The distance of the two nearest places that are not the same place."""
    gaps = np.hypot(*(spots[:, None] - spots[None, :]).T)
    return float(gaps[gaps > 0].min(initial=np.inf))


def _shrink(lat: np.ndarray) -> float:
    """A degree of longitude as a share of a degree of latitude, halfway up the map."""
    return math.cos(math.radians(float(lat.min() + lat.max()) / 2))

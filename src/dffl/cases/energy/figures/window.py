"""A piece of the Earth in a frame of given size, and the part of it that is too crowded to read."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

CROWDED = 0.2
"""Inches. Markers whose centres are nearer than that overlap."""
APART = 0.1
"""Inches. Markers that far apart are told apart, though they may touch."""
SQUARES = (1 / 3, 1 / 6, 1 / 12, 1 / 24)
"""The sides of the squares that may be enlarged, as shares of the map."""
LEAST_SPAN = 0.5
"""Degrees. A single place is not enlarged beyond that."""


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
        """The places' distances from the frame's lower left corner, a row each."""
        across = (lon - self.west) / (self.east - self.west) * self.width
        return np.column_stack([across, (lat - self.south) / (self.north - self.south) * self.height])

    def holds(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        """Which of the places are in the frame."""
        spots = self.inches(lon, lat)
        return np.all((spots >= 0) & (spots <= (self.width, self.height)), axis=1)

    def inches_a_degree(self) -> float:
        """The scale, north."""
        return self.height / (self.north - self.south)


def natural_height(lon: np.ndarray, lat: np.ndarray, width: float, margin: float) -> float:
    """The height of a frame of this width that fits around the places."""
    across, up = max(_shrink(lat) * np.ptp(lon), LEAST_SPAN), max(np.ptp(lat), LEAST_SPAN)
    return 2 * margin + (width - 2 * margin) * float(up / across)


def crowd(lon: np.ndarray, lat: np.ndarray, whole: Window, width: float, height: float, margin: float) -> Window | None:
    """A closer view, of the given size, of the square with most of the markers that overlap; None if there is no such square.

    It is the widest of `SQUARES` whose closer view tells them apart, or else the smallest.
    """
    spots = whole.inches(lon, lat)
    gaps = np.abs(spots[:, None] - spots[None, :])
    overlap = ((np.hypot(*gaps.T) < CROWDED).sum(axis=0) > 1).astype(float)
    view = None
    for share in SQUARES:
        near = gaps.max(axis=2) <= share / 2 * np.ptp(spots, axis=0).max()
        square = near[(near @ overlap + near.mean(axis=1)).argmax()]  # of equals, the one with most zones
        if square @ overlap < max(3.0, overlap.sum() / 2):
            break
        view = Window.around(lon[square], lat[square], width, height, margin)
        if _least_gap(view.inches(lon[square], lat[square])) > APART:
            break
    return view


def _least_gap(spots: np.ndarray) -> float:
    """The distance of the two nearest places, but for those that are one and the same."""
    gaps = np.hypot(*(spots[:, None] - spots[None, :]).T)
    return float(gaps[gaps > 0].min(initial=np.inf))


def _shrink(lat: np.ndarray) -> float:
    """A degree of longitude as a share of a degree of latitude, halfway up the map."""
    return math.cos(math.radians(float(lat.min() + lat.max()) / 2))

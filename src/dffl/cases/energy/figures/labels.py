"""Names beside points where they cover neither points nor each other: a greedy search, in which everything is a rectangle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

GAPS = (1.0, 5.0, 9.0, 14.0, 20.0, 27.0, 35.0, 44.0, 54.0, 65.0, 77.0)
"""How far from its point a name may be, nearest first; beyond the first a thin line leads to it."""
ANGLES = np.radians(
    [0, 180, 90, -90, *(sign * turn for turn in (30, 150, 60, 120, 15, 165, 45, 135, 75, 105) for sign in (1, -1))]
)
"""The directions, best first."""
EDGE = 2.0
"""How near a name may come to the frame."""
THIN = 1.2
"""The side of the squares that a leading line is made of."""

Boxes = np.ndarray
"""Rectangles, a row each: left, bottom, right, top."""


class Spot(NamedTuple):
    """Where a name is: its middle, and where its line ends if it is so far off as to need one."""

    middle: tuple[float, float]
    line_end: tuple[float, float] | None


def text_size(text: str, size: float) -> tuple[float, float]:
    """The width and height of a name, in points, with the little more that coarse screens need."""
    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return 1.06 * float(width), 1.25 * size


def place_labels(
    points: np.ndarray,
    radii: np.ndarray,
    sizes: Sequence[tuple[float, float]],
    frame: tuple[float, float],
    barred: Boxes | None = None,
) -> list[Spot | None]:
    """A spot for each of the first points' names, all in one unit; None for a name that finds no room in the frame.

    Points come in the order of who chooses first. Those beyond the names have none, but are not to be covered either, and nor
    are the barred rectangles.
    """
    taken = np.column_stack([points - radii[:, None], points + radii[:, None]])
    if barred is not None:
        taken = np.vstack([taken, barred])
    spots: list[Spot | None] = []
    for point, radius, size in zip(points, radii, sizes, strict=False):
        spot, boxes = _first_free(point, radius, np.array(size), taken, frame)
        spots.append(spot)
        taken = np.vstack([taken, boxes])
    return spots


def _first_free(
    point: np.ndarray, radius: float, size: np.ndarray, taken: Boxes, frame: tuple[float, float]
) -> tuple[Spot | None, Boxes]:
    """The nearest spot at which a name, and the line to it, are free; with the rectangles that they take."""
    ways = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
    starts = point + radius * ways
    in_the_way = taken[((taken[:, :2] > point) | (taken[:, 2:] < point)).any(axis=1)]  # not the markers that a line starts in
    for gap in GAPS:
        anchors = starts + gap * ways
        middles = anchors + ways * size / 2
        names = np.hstack([middles - size / 2, middles + size / 2])
        inside = (names[:, :2] >= EDGE).all(axis=1) & (names[:, 2:] <= np.subtract(frame, EDGE)).all(axis=1)
        for one in np.flatnonzero(inside & ~_meet(names, taken)):
            line = _line(starts[one], anchors[one]) if gap > GAPS[0] else names[:0]
            if not _meet(line, in_the_way).any():
                spot = Spot(_pair(middles[one]), _pair(anchors[one]) if len(line) else None)
                return spot, np.vstack([names[one], line])
    return None, taken[:0]


def _pair(point: np.ndarray) -> tuple[float, float]:
    return float(point[0]), float(point[1])


def _line(start: np.ndarray, end: np.ndarray) -> Boxes:
    """A line as squares that touch."""
    steps = np.linspace(0, 1, 2 + int(np.linalg.norm(end - start) / THIN))[:, None]
    centres = start + steps * (end - start)
    return np.hstack([centres - THIN / 2, centres + THIN / 2])


def _meet(some: Boxes, others: Boxes) -> np.ndarray:
    """Which of some rectangles overlap any of the others."""
    apart = (some[:, None, 2:] <= others[None, :, :2]) | (others[None, :, 2:] <= some[:, None, :2])
    return np.any(~apart.any(axis=2), axis=1)

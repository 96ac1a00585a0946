"""Labels next to points that cover neither points nor each other: a greedy search in which everything is a rectangle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

GAPS = (1.0, 5.0, 9.0, 14.0, 20.0, 27.0, 35.0, 44.0, 54.0, 65.0, 77.0)
"""How far from its point a label may be, nearest first; if it is not the nearest, a thin line leads to it."""
ANGLES = np.radians(
    [0, 180, 90, -90, *(sign * turn for turn in (30, 150, 60, 120, 15, 165, 45, 135, 75, 105) for sign in (1, -1))]
)
"""The directions, best first."""
EDGE = 2.0
"""The least distance of a label from the frame."""
THIN = 1.2
"""The side of the squares that represent a leading line in the search."""

Boxes = np.ndarray
"""Rectangles, one per row: left, bottom, right, top."""


class Label(NamedTuple):
    """Where a label is: its point, its middle, and where its leading line ends if it has one."""

    point: tuple[float, float]
    middle: tuple[float, float]
    line_end: tuple[float, float] | None


def text_size(text: str, size: float) -> tuple[float, float]:
    """The width and height of a text, in points, with a margin for screens of low resolution."""
    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return 1.06 * float(width), 1.25 * size


def place_labels(
    points: np.ndarray, radii: np.ndarray, sizes: Sequence[tuple[float, float]], frame: tuple[float, float],
    blocked: Boxes | None = None,
) -> list[Label | None]:  # fmt: skip
    """One label for each size, of the first points; None for a label that has no room in the frame. All in one unit.

    The first points choose first. Points without a label and ``blocked`` rectangles are not covered either.
    """
    taken = np.column_stack([points - radii[:, None], points + radii[:, None]])
    if blocked is not None:
        taken = np.vstack([taken, blocked])
    labels: list[Label | None] = []
    for point, radius, size in zip(points, radii, sizes, strict=False):
        label, boxes = _first_free(point, radius, np.array(size), taken, frame)
        labels.append(label)
        taken = np.vstack([taken, boxes])
    return labels


def _first_free(
    point: np.ndarray, radius: float, size: np.ndarray, taken: Boxes, frame: tuple[float, float]
) -> tuple[Label | None, Boxes]:
    """The nearest label that is free together with its line, and the rectangles that both take."""
    ways = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
    starts = point + radius * ways
    in_the_way = taken[((taken[:, :2] > point) | (taken[:, 2:] < point)).any(axis=1)]  # not the markers that a line starts in
    for gap in GAPS:
        anchors = starts + gap * ways
        middles = anchors + ways * size / 2
        texts = np.hstack([middles - size / 2, middles + size / 2])
        inside = (texts[:, :2] >= EDGE).all(axis=1) & (texts[:, 2:] <= np.subtract(frame, EDGE)).all(axis=1)
        for place in np.flatnonzero(inside & ~_overlap(texts, taken)):
            line = _line(starts[place], anchors[place]) if gap > GAPS[0] else texts[:0]
            if not _overlap(line, in_the_way).any():
                label = Label(_pair(point), _pair(middles[place]), _pair(anchors[place]) if len(line) else None)
                return label, np.vstack([texts[place], line])
    return None, taken[:0]


def _pair(point: np.ndarray) -> tuple[float, float]:
    return float(point[0]), float(point[1])


def _line(start: np.ndarray, end: np.ndarray) -> Boxes:
    """A line as squares that touch."""
    steps = np.linspace(0, 1, 2 + int(np.linalg.norm(end - start) / THIN))[:, None]
    centres = start + steps * (end - start)
    return np.hstack([centres - THIN / 2, centres + THIN / 2])


def _overlap(some: Boxes, others: Boxes) -> np.ndarray:
    """Which of some rectangles overlap any of the others."""
    separate = (some[:, None, 2:] <= others[None, :, :2]) | (others[None, :, 2:] <= some[:, None, :2])
    return np.any(~separate.any(axis=2), axis=1)

"""The entropy-bound portfolios of three assets, seen in their plane: flat along the simplex's edges, unless h > log 2."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Polygon
from scipy.optimize import brentq
from scipy.special import entr

from dffl.drawing import INK, PALE_INK, WIDE, blank, in_print
from dffl.sets import EntropySimplex
from dffl_studies.paper.by_level import level_name
from dffl_studies.paper.figures.parts import explain
from dffl_studies.paper.figures.toy import JUMP_COLOUR, SET_COLOUR

BELOW, ABOVE = 0.5, 0.9
"""Thresholds on either side of log 2 = .693."""
PORTFOLIOS = {"(.5, .5, 0)": (0.5, 0.5, 0.0), "(.55, .45, 0)": (0.55, 0.45, 0.0), "(.6, .4, 0)": (0.6, 0.4, 0.0)}
"""Two portfolios without the third asset, and their midpoint: the whole segment lies on the boundary."""
ACROSS, UP = np.array([-1.0, 1.0, 0.0]) / math.sqrt(2), np.array([-1.0, -1.0, 2.0]) / math.sqrt(6)
"""Unit vectors of the portfolios' plane."""
CAPTION = (
    "Triangles: all portfolios of three assets, without distortion. Grey: those of entropy at least h. "
    "Yellow: flat pieces of the boundary. Left: the three points lie on one piece, so no ball that touches the set there "
    "contains it. Right: dotted, a ball of radius {radius:.2f} that touches the set and contains it."
)


def to_plane(w: np.ndarray) -> np.ndarray:
    """Portfolios (..., 3) as points (..., 2) of their plane, distances kept: the third asset is at the top."""
    return np.stack([w @ ACROSS, w @ UP], axis=-1)


def outline(h: float, count: int = 1440) -> np.ndarray:
    """Points all around the boundary of {w >= 0, sum w = 1, H(w) >= h} for three assets: (count, 3)."""
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False)[:, None]
    ways = np.cos(angles) * ACROSS + np.sin(angles) * UP
    # The set is convex and holds the uniform point, so along each way from there the boundary is met once.
    inside, outside = np.zeros((count, 1)), -1 / (3 * ways.min(axis=-1, keepdims=True))
    edge = outside.copy()
    touching = entr(np.maximum(1 / 3 + edge * ways, 0)).sum(axis=-1, keepdims=True) >= h
    for _ in range(60):
        middle = (inside + outside) / 2
        enough = entr(np.maximum(1 / 3 + middle * ways, 0)).sum(axis=-1, keepdims=True) >= h
        inside, outside = np.where(enough, middle, inside), np.where(enough, outside, middle)
    return np.asarray(np.maximum(1 / 3 + np.where(touching, edge, inside) * ways, 0))


def flat_piece(h: float) -> tuple[float, float] | None:
    """The ends of the shares p for which (p, 1 - p, 0) is spread enough; None from log 2 on, where there is no interval."""
    if h >= math.log(2):
        return None
    least = float(brentq(lambda p: entr(p) + entr(1 - p) - h, 0.0, 0.5))
    return least, 1 - least


def draw_face(rows: pd.DataFrame | None = None, noise: float = 0.0, reading: str = "") -> Figure:
    """The set below and above log 2. It needs no rows."""
    with in_print():
        figure = blank(WIDE, 3.3)
        flat, round_ = figure.subplots(1, 2)
        _set(flat, BELOW, f"h = {level_name(BELOW)}, below log 2: flat pieces on every edge")
        _set(round_, ABOVE, f"h = {level_name(ABOVE)}, above log 2: round, strongly convex")
        _mark(flat)
        radius = EntropySimplex(3, ABOVE).curvature()
        _ball(round_, radius)
        explain(figure, CAPTION.format(radius=radius))
    return figure


def _set(axes: Axes, h: float, title: str) -> None:
    corners = to_plane(np.eye(3))
    axes.add_patch(Polygon(corners, facecolor="none", edgecolor=PALE_INK, linewidth=0.6))
    axes.add_patch(Polygon(to_plane(outline(h)), facecolor=SET_COLOUR, edgecolor=INK, linewidth=0.8, zorder=2))
    piece = flat_piece(h)
    if piece is not None:
        ends = np.array([[piece[0], piece[1], 0.0], [piece[1], piece[0], 0.0]])
        for turn in range(3):
            axes.plot(*to_plane(np.roll(ends, turn, axis=1)).T, color=JUMP_COLOUR, linewidth=3.5, zorder=3)
    for number, (x, y) in enumerate(corners, start=1):
        away = 0.07 if number == 3 else -0.07
        axes.text(x, y + away, f"asset {number}", ha="center", va="center", fontsize=7.5)
    axes.set(xlim=(-1.0, 1.0), ylim=(-0.72, 0.95), aspect="equal")
    axes.set_axis_off()
    axes.set_title(title)


def _mark(axes: Axes) -> None:
    """The two portfolios and their midpoint."""
    leader = {"arrowstyle": "-", "linewidth": 0.6, "color": PALE_INK, "shrinkA": 1, "shrinkB": 3}
    labels = {"(.5, .5, 0)": (0.34, -0.6), "(.55, .45, 0)": (-0.05, -0.6), "(.6, .4, 0)": (-0.44, -0.6)}
    for name, point in PORTFOLIOS.items():
        place = to_plane(np.array(point))
        axes.plot(*place, "o", color=INK, markersize=3.5, zorder=5)
        axes.annotate(
            name, tuple(place), xytext=labels[name], ha="center", va="center", fontsize=7, arrowprops=leader, zorder=6
        )


def _ball(axes: Axes, radius: float) -> None:
    """The lower part of a ball that holds the set and touches it where the third asset's share is least."""
    shape = to_plane(outline(ABOVE))
    lowest = shape[np.argmin(shape[:, 1])]
    centre = (lowest[0], lowest[1] + radius)
    axes.add_patch(
        Arc(centre, 2 * radius, 2 * radius, theta1=195, theta2=345, color=INK, linestyle=":", linewidth=1.0, zorder=3)
    )
    axes.plot(*lowest, "o", color=INK, markersize=3.5, zorder=5)

"""How far two ellipsoids are apart: bounds with their proofs. ``q`` is an ellipsoid's shape Q."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from dffl.sets.base import Bracket


def reach_out(q1: np.ndarray, q2: np.ndarray, gap: np.ndarray) -> Bracket:
    """The largest | u . gap | + sqrt(u' Q1 u) - sqrt(u' Q2 u) over unit u: how far the first reaches out of the second.

    Above: | u . gap | + sqrt(u' Q1 u) <= sqrt(u' Q u) with Q = (1 + r) gap gap' + (1 + 1 / r) Q1, for every r > 0 and with
    equality for the ratio of the two terms. So each r, and best that of the direction found below, gives a proof.
    """
    stretched, directions = stretch(q1, q2, sides=(0,))
    starts = np.vstack([*directions, gap, *np.eye(len(gap)), *np.linalg.eigh(q1 - q2)[1].T, *np.linalg.eigh(q2)[1].T])
    lower, u = _ascend(q1, q2, gap, np.repeat(starts, 2, axis=0))
    upper = float(np.linalg.norm(gap)) + stretched.upper
    ratio = math.sqrt(u @ q1 @ u) / max(abs(float(u @ gap)), 1e-9 * float(np.linalg.norm(gap)))
    for r in (ratio, 0.9 * ratio, 1.1 * ratio, 0.7 * ratio, 1.4 * ratio):
        if upper <= lower * (1 + 1e-9):
            break
        upper = min(upper, stretch((1 + r) * np.outer(gap, gap) + (1 + 1 / r) * q1, q2, sides=(0,), most=40)[0].upper)
    return Bracket(min(max(lower, 0.0), upper), upper)


def stretch(
    q1: np.ndarray, q2: np.ndarray, sides: tuple[int, ...] = (0, 1), most: int = 120
) -> tuple[Bracket, list[np.ndarray]]:
    """The largest | sqrt(u' Q1 u) - sqrt(u' Q2 u) | over unit u, and a direction for each sign.

    With ``sides`` (0,) only the first less the second counts, and 0 if that is never positive.

    The points (x, y) = (u' Q1 u, u' Q2 u) fill a plane set W with support function top eigenvalue of cos Q1 + sin Q2. Where
    sqrt x - sqrt y is positive it is quasi-convex (x <= (t + sqrt y)^2 is concave in y), so it is largest at an extreme point
    of conv W: at a top eigenvector, below; and below its largest value at the corners of the tangents' polygon, above. Each
    eigenproblem serves both signs, the top for x over y and the bottom for y over x. The worst corner is cut until they meet.
    """
    size1, size2 = float(np.linalg.norm(q1, 2)), float(np.linalg.norm(q2, 2))
    best, directions = 0.0, [np.eye(len(q1))[0]] * 2
    tangents: dict[float, tuple[float, float]] = {}

    def difference(x: float, y: float) -> float:
        return math.sqrt(size1 * max(x, 0.0)) - math.sqrt(size2 * max(y, 0.0))

    def cut(angle: float) -> None:
        nonlocal best
        values, vectors = np.linalg.eigh(math.cos(angle) / size1 * q1 - math.sin(angle) / size2 * q2)
        tangents[angle] = (float(values[-1]) + 1e-14, float(values[0]) - 1e-14)  # room for the eigenvalues' rounding
        for side in sides:
            u = vectors[:, side - 1]
            value = (1 - 2 * side) * difference(float(u @ q1 @ u) / size1, float(u @ q2 @ u) / size2)
            if value > best:
                best, directions[side] = value, u

    def corner(left: float, right: float) -> float:
        """The value where the tangents at these angles cross."""
        worst = 0.0
        for side in sides:
            h1, h2 = tangents[left][side], tangents[right][side]
            x = (h1 * math.sin(right) - h2 * math.sin(left)) / math.sin(right - left)
            y = (h1 * math.cos(right) - h2 * math.cos(left)) / math.sin(right - left)
            worst = max(worst, (1 - 2 * side) * difference(x, y))
        return worst

    angles = [float(a) for a in np.linspace(0, math.pi / 2, 9)]
    for angle in angles:
        cut(angle)
    corners = {pair: corner(*pair) for pair in pairwise(angles)}
    while len(tangents) < most:
        left, right = max(corners, key=lambda pair: corners[pair])
        if corners[left, right] <= best * (1 + 1e-10) or right - left < 1e-7:
            break
        middle = (left + right) / 2
        cut(middle)
        del corners[left, right]
        corners |= {(left, middle): corner(left, middle), (middle, right): corner(middle, right)}
    # Another proof, which is the better one where the two are nearly equal.
    upper = min(max(corners.values()), float(np.linalg.norm(_square_root(q1) - _square_root(q2), 2)))
    return Bracket(min(best, upper), upper), directions


def _square_root(q: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(q)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def _ascend(q1: np.ndarray, q2: np.ndarray, gap: np.ndarray, u: np.ndarray, steps: int = 80) -> tuple[float, np.ndarray]:
    """The largest u . gap + sqrt(u' Q1 u) - sqrt(u' Q2 u) that ascent from the rows of u meets, and where."""
    best, where = -math.inf, u[0]
    for _ in range(steps):
        u = u / np.linalg.norm(u, axis=-1, keepdims=True)
        u = np.where((u @ gap < 0)[:, None], -u, u)
        up1, up2 = u @ q1, u @ q2
        size1, size2 = np.sqrt(np.sum(u * up1, axis=-1)), np.sqrt(np.sum(u * up2, axis=-1))
        values = u @ gap + size1 - size2
        top = int(np.argmax(values))
        if values[top] > best:
            best, where = float(values[top]), u[top]
        ways = gap + up1 / size1[:, None] - up2 / size2[:, None]
        length = np.linalg.norm(ways, axis=-1, keepdims=True)
        # Half of the rows go all the way and half of them half of it: the former are quicker and may swing.
        u = ways / np.where(length > 0, length, 1) + np.where((np.arange(len(u)) % 2)[:, None] | (length == 0), u, 0)
    return best, where

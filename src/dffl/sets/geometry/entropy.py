"""How far points of an entropy set lie from the uniform one: what its diameter, distances and curvature are made of."""

from __future__ import annotations

import math

import numpy as np


def pull_to_uniform(d: int, inner: float, outer: float, reach: float, pieces: int = 1024) -> float:
    """How far a point with log d - H <= ``outer`` moves at most, towards the uniform point, until log d - H <= ``inner``.

    No such point is farther than ``reach`` from the uniform one. Take w at distance r, and let P be half its city-block
    distance. A share t of the way leaves log d - H <= (1 - t)(lack - 2 t P^2): concavity, and Pinsker's inequality for
    the two divergences that it drops. Here lack = log d - H(w) <= log(1 + d r^2), and P >= r / sqrt 2 as the entries sum
    to zero, and P^2 + P / d >= r^2 as none is below -1 / d. More r means a smaller share of a longer way: so cut
    [0, reach] into pieces and take each one's smallest P with its largest r and lack.
    """
    r = np.linspace(0, reach, pieces + 1)
    near, far = r[:-1], r[1:]
    half = np.maximum((np.sqrt(1 / d**2 + 4 * near**2) - 1 / d) / 2, near / math.sqrt(2))
    lack = np.minimum(outer, np.log1p(d * far**2))
    bend, need = 2 * half**2, np.maximum(lack - inner, 0)
    # The smaller root of bend t^2 - (lack + bend) t + need = 0. Without the bend it would be need / lack.
    root = np.sqrt(np.maximum((lack + bend) ** 2 - 4 * bend * need, 0))
    return float(np.max(2 * need / (lack + bend + root) * far))


def offset(d: int, h: float, end: float) -> float:
    """x between 0 and ``end`` at which one weight of 1 / d + x, the others being equal, has entropy h."""
    spare = math.log(d) - h
    if spare <= 0 or _lack(d, end) <= spare:
        return 0.0 if spare <= 0 else end
    from scipy.optimize import brentq  # slow to import, and needed here alone

    return float(brentq(lambda x: _lack(d, x) - spare, 0.0, end, xtol=1e-300))


def _lack(d: int, x: float) -> float:
    """log d - H of one weight 1 / d + x and d - 1 equal others; exact near x = 0, where H itself would cancel."""
    first, rest = 1 / d + x, 1 - 1 / d - x
    return _term(first, d * x, d) + _term(rest, -x * d / (d - 1), d / (d - 1))


def _term(share: float, change: float, n: float) -> float:
    """share log(n share), where n share = 1 + change."""
    return share * (math.log1p(change) if change > -0.5 else math.log(n * share)) if share > 0 else 0.0

"""Random small programs whose costs differ by many powers of ten: known penalties, and large predicted costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dffl.sets import MixedInteger, Polytope


class Wide(NamedTuple):
    """A program, and the costs that it is asked for."""

    kind: str
    set: MixedInteger | Polytope
    rows: dict[str, np.ndarray]
    """What `exact.optimum` takes, without the costs."""
    predicted: np.ndarray
    """(n, d)"""
    costs: np.ndarray
    """(n, columns): predicted and known costs of all columns, in the order of the program."""
    prices: float
    """The size of an ordinary cost."""


KINDS = "commitment", "rows", "linear", "polytope", "whole"


def sixteenths(values: np.ndarray) -> np.ndarray:
    """Rounded so that sums of products have no rounding errors: whether a point is feasible is then the same for all."""
    return np.round(16 * values) / 16


def program(seed: int, ratio: float, asked: int = 1) -> Wide | None:
    """The program of a seed, one of `KINDS` in turn; None if it has no point.

    Its largest cost is about ``ratio`` times the ordinary ones.
    """
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    if kind == "commitment":
        return _commitment(rng, ratio, asked)
    if kind in ("rows", "linear"):
        return _rows(rng, ratio, asked, kind)
    try:
        return _predicted(rng, ratio, asked, kind)
    except ValueError as error:
        if "no feasible point" in str(error) or "it is empty" in str(error):
            return None
        raise


def _commitment(rng: np.random.Generator, ratio: float, asked: int) -> Wide:
    """Units with switches serve a load; what they do not serve has a penalty. Prices of starts and of power are predicted."""
    units = int(rng.integers(2, 5))
    size = rng.integers(2, 12, units) / 2
    least = sixteenths(size * rng.uniform(0.1, 0.6, units))
    load = sixteenths(size.sum() * rng.uniform(0.2, 1.1))
    eye = np.eye(units)
    none = np.zeros((units, 1))
    a = np.vstack(
        [
            np.hstack([-np.diag(size), eye, none]),  # power <= size * on
            np.hstack([np.diag(least), -eye, none]),  # power >= least * on
            np.concatenate([np.zeros(units), -np.ones(units), [-1.0]])[None],  # power + unserved >= load
        ]
    )
    b = np.concatenate([np.zeros(2 * units), [-load]])
    whole = np.arange(2 * units + 1) < units
    upper = np.concatenate([np.ones(units), size, [100.0]])
    rows = {"a_ub": a, "b_ub": b, "lower": np.zeros(2 * units + 1), "upper": upper, "whole": whole}
    known = np.array([np.round(ratio * rng.uniform(1, 3))])
    s = MixedInteger(a, b, lower=rows["lower"], upper=upper, integer=whole, helpers=1, known_cost=known)
    predicted = np.round(rng.uniform(1, 5, (asked, 2 * units)), 2)
    return Wide("commitment", s, rows, predicted, np.hstack([predicted, np.tile(known, (asked, 1))]), 3.0)


def _rows(rng: np.random.Generator, ratio: float, asked: int, kind: str) -> Wide:
    """Rows of random numbers, each with a helper that makes room at a penalty; with whole numbers, or without."""
    d, count = int(rng.integers(3, 6)), int(rng.integers(1, 4))
    a = np.hstack([sixteenths(rng.normal(size=(count, d))), -np.eye(count)])
    b = sixteenths(rng.normal(size=count))
    upper = np.concatenate([rng.integers(1, 4, d).astype(float), np.full(count, 50.0)])
    whole = (np.arange(d + count) < d) & (rng.random(d + count) < 0.6) & (kind == "rows")
    rows = {"a_ub": a, "b_ub": b, "lower": np.zeros(d + count), "upper": upper, "whole": whole}
    known = np.round(ratio * 10 ** rng.uniform(-2, 0, count) * 3)
    given = {"A_ub": a, "b_ub": b, "lower": rows["lower"], "upper": upper, "helpers": count, "known_cost": known}
    s = MixedInteger(**given, integer=whole) if kind == "rows" else Polytope(**given)
    predicted = np.round(rng.normal(size=(asked, d)), 2)
    return Wide(kind, s, rows, predicted, np.hstack([predicted, np.tile(known, (asked, 1))]), 1.0)


def _predicted(rng: np.random.Generator, ratio: float, asked: int, kind: str) -> Wide:
    """All costs are predicted, and one or two are large; every column whole, or none."""
    d, count = int(rng.integers(3, 6)), int(rng.integers(1, 4))
    a = sixteenths(rng.uniform(0, 1, (count, d)))
    upper = rng.integers(1, 4, d).astype(float)
    b = sixteenths((a @ upper) * rng.uniform(0.2, 0.8, count))
    sign = rng.choice([-1.0, 1.0], count)  # at most, or at least
    a, b = a * sign[:, None], b * sign
    whole = np.full(d, kind == "whole")
    rows = {"a_ub": a, "b_ub": b, "lower": np.zeros(d), "upper": upper, "whole": whole}
    s = MixedInteger(a, b, lower=rows["lower"], upper=upper) if kind == "whole" else Polytope(a, b, lower=0.0, upper=upper)
    predicted = np.round(rng.normal(size=(asked, d)), 2) + 0.005
    large = rng.random((asked, d)) < 0.3
    predicted = np.where(large, predicted * np.round(ratio), predicted)
    return Wide(kind, s, rows, predicted, predicted, 1.0)

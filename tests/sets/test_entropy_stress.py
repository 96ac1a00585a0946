"""The entropy oracle where it is hardest: ties, heavy tails, extreme scales and thresholds. Never NaN, always feasible."""

from __future__ import annotations

import numpy as np
import pytest

from dffl.sets import EntropySimplex

from .instances import costs, entropy, solve

SHARES = (0.0, 1e-6, 1e-4, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-5, 1 - 1e-7, 1.0)
SCALES = {"float32": (1e-6, 1.0, 1e6), "float64": (1e-150, 1e-6, 1.0, 1e6, 1e150)}


def check(d: int, rows: int, dtype: str, seed: int) -> None:
    rng = np.random.default_rng([seed, d])
    h = np.asarray(SHARES) * np.log(d)
    s = EntropySimplex(d, h)
    for scale in SCALES[dtype]:
        base = np.asarray(costs(rng, (h.size, rows, d)), np.float64)
        c = np.asarray(scale * base / np.abs(base).max(axis=-1, keepdims=True, initial=1e-300), dtype)
        w = solve(s, c, dtype)
        assert np.isfinite(w).all()
        assert (w >= 0).all()
        assert np.abs(w.sum(axis=-1) - 1).max() <= (1e-12 if dtype == "float64" else 1e-5)
        # Entropy may exceed the threshold only where the ties alone do, or the costs are constant.
        ties = np.sum(c == c.min(axis=-1, keepdims=True), axis=-1)
        target = np.maximum(h[:, None], np.log(ties))
        error = np.abs(entropy(w) - target) / np.where(target > 0, target, 1)
        worst = np.unravel_index(error.argmax(), error.shape)
        limit = 1e-9 if dtype == "float64" else 1e-5
        assert error.max() <= limit, f"d={d} scale={scale} share={SHARES[worst[0]]} {error[worst]=} {c[worst]=} {w[worst]=}"


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("d", [2, 5, 50])
def test_entropy_meets_the_threshold_under_stress(d: int, dtype: str) -> None:
    check(d, 30, dtype, 0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("d", [2, 3, 4, 8, 16, 30, 50, 60, 200])
def test_entropy_meets_the_threshold_under_much_stress(d: int, dtype: str) -> None:
    check(d, 400, dtype, 1)


def test_near_ties_far_below_rounding_do_not_overflow() -> None:
    gaps = np.logspace(-38, -20, 500)
    c = np.stack([0 * gaps, gaps, 1 + 0 * gaps], axis=-1)
    for h in (1e-3, 0.1, 0.5, 0.69, 0.7, 1.0):
        w = solve(EntropySimplex(3, h), c, "float32")
        assert np.isfinite(w).all()
        assert (entropy(w) >= h - 1e-5).all()


def test_thresholds_near_log_d_keep_their_distance_from_it_in_float32() -> None:
    # log d - h is what decides there: rounded to float32 with h, it would be lost.
    shares = 1 - np.array([1e-7, 1e-6, 1e-5, 1e-3])
    c = np.random.default_rng(0).normal(size=(4, 20, 10)).astype(np.float32)
    s = EntropySimplex(10, shares * np.log(10))
    narrow, wide = solve(s, c, "float32"), solve(s, c, "float64")
    assert np.abs(np.sum(c * (narrow - wide), axis=-1)).max() <= 3e-6


def test_the_answer_does_not_depend_on_shifts_and_scales() -> None:
    c = np.random.default_rng(1).integers(-9, 9, (20, 6)) + 0.0  # shifts by powers of two are exact
    s = EntropySimplex(6, 0.7)
    for moved in (c + 1024, c * 2.0**40, c * 2.0**-300):
        np.testing.assert_allclose(solve(s, moved, "float64"), solve(s, c, "float64"), rtol=1e-12, atol=1e-300)

"""Small federations with an order."""

from __future__ import annotations

import numpy as np

import dffl

ROWS, ITEMS = 160, 6


def series(name: str, seed: int, forecast_error: float | None = None, rows: int = ROWS, shift: int = 0) -> dffl.Client:
    """A client whose costs follow a weekly shape that drifts; the forecast is the truth with an error."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2021-01-04") + np.arange(shift, rows + shift)
    shape = np.sin(np.arange(ITEMS) + np.cumsum(rng.normal(0, 0.1, rows))[:, None])
    costs = 30 + 8 * shape + rng.normal(0, 2, (rows, ITEMS))
    forecast = None if forecast_error is None else costs + np.random.default_rng(9).normal(0, forecast_error, costs.shape)
    return dffl.Client(name, rng.normal(size=(rows, 1)), costs, dffl.TopK(ITEMS, 2), times=days, forecast=forecast)


def federation(forecast_error: float | None = None, rows: int = ROWS) -> dffl.Federation:
    return dffl.Federation([series("a", 1, forecast_error, rows), series("b", 2, forecast_error, rows)])

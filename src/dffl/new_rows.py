"""New rows for a model: the given values, arranged in the columns of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dffl.federation import column_names
from dffl.forecasts import table_in_order
from dffl.items import block, combined


@dataclass(frozen=True)
class NewRows:
    """The columns that new rows must have."""

    count: int
    dim: int
    names: tuple[str, ...] | None
    cost_names: tuple[str, ...] | None
    has_forecast: bool
    item_features: int

    def features_of(self, x: Any, forecast: Any = None, items: Any = None, known: Any = None) -> np.ndarray:
        """x in the form of the models: with the forecast and the features of items in their places."""
        if forecast is not None and not self.has_forecast:
            raise ValueError("forecast: the clients of training brought none, so this fit does not use one")
        apart, place = (
            items is not None or known is not None,
            block(self.count, self.dim, self.item_features, self.has_forecast),
        )
        if apart and not self.item_features:
            raise ValueError("items: those of training had no features, so this fit does not use them")
        is_given = np.ones(self.count, bool)
        is_given[place] = not apart
        is_given[self.count - self.dim :] &= forecast is None
        if x is None and not is_given.any():
            x = np.zeros((*np.shape(items)[:-2], 0))
        array = self._table(x, is_given)
        if forecast is None and not apart:
            return array
        table = np.empty((*array.shape[:-1], self.count))
        table[..., is_given] = array
        if forecast is not None:
            table[..., -self.dim :] = self._forecast(forecast, array.shape[:-1])
        if apart:
            features = combined("", items, known, array.shape[:-1], self.dim)
            if features.shape[-1] != self.item_features:
                raise ValueError(different_items("items", features.shape[-1], self.item_features))
            table[..., place] = features.reshape(*array.shape[:-1], -1)
        return table

    def _table(self, x: Any, is_given: np.ndarray) -> np.ndarray:
        """The columns of x (..., p) that ``is_given`` marks; those of a data frame are found by name."""
        wanted, last = int(is_given.sum()), self.has_forecast and is_given[-1]
        if hasattr(x, "columns") and self.names is not None:
            names = [name for name, present in zip(self.names, is_given, strict=True) if present]
            if missing := [name for name in names if name not in x.columns]:
                brought = self.has_forecast and missing[0] in self.names[-self.dim :]
                more = ", a column of the forecast; pass that column, or the forecast as forecast=" if brought else ""
                raise ValueError(f"x must have the columns of training, found none named {missing[0]!r}{more}")
            x = x[names]
        array = _numbers("x", x)
        if array.ndim < 1 or array.shape[-1] != wanted:
            rest = f"; the last {self.dim} are the forecast: hand it in as forecast=" if last else ""
            place = block(self.count, self.dim, self.item_features, self.has_forecast)
            if self.item_features and is_given[place].all():
                rest += f"; columns {place.start} to {place.stop - 1} are features of items: hand them in as items="
            raise ValueError(f"x must have {wanted} columns, as in training, found shape {array.shape}{rest}")
        return array

    def _forecast(self, forecast: Any, rows: tuple[int, ...]) -> np.ndarray:
        """A forecast for new rows in the order of the costs; columns of a data frame are found by their names in training."""
        trained = None if self.names is None else list(self.names[-self.dim :])
        names = column_names(forecast)
        if names is not None and trained is not None and set(trained) <= set(names):
            forecast, names = forecast[trained], None
        array = _numbers("forecast", forecast)
        if array.shape != (*rows, self.dim):
            raise ValueError(f"forecast must have the shape {(*rows, self.dim)}, a column for each cost, found {array.shape}")
        return array if names is None else table_in_order("forecast", array, names, self.cost_names, array.shape)[0]


def _numbers(field: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{field} must be numbers ({error})") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{field} must be finite, found {array[~np.isfinite(array)][0]}")
    return array


def different_items(what: str, mine: int, theirs: int) -> str:
    """A message: items have other features than in training."""
    return f"{what}: items must have {theirs} features each, as in training, found {mine}; known ones count too"

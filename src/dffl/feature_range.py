"""The range of features at which a predictor may be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dffl.predictor import Normaliser, Predictor

REACH = 1e9
"""In units of a feature's scale in training: its standard deviation or its mean, whichever is larger."""
RAW = 1e100
"""For a feature without a scale: it was always zero in training, or is not standardised."""


def require_within_reach(name: str, predictor: Predictor, x: np.ndarray, names: Sequence[str] | None) -> None:
    """Refuse features (..., p) that are far outside the range on which the client's predictor was trained.

    Such values are fill values or have other units; drift is never that large. The output of a network would overflow.
    """
    for unit in normalisers(predictor):
        low, high = span(unit)
        outside = (x < low) | (x > high)
        if outside.any():
            place = tuple(np.argwhere(outside)[0])
            column = int(place[-1])
            label = column if names is None else repr(names[column])
            allowed = f"in [{low[column]:.6g}, {high[column]:.6g}], as far as its training features reach"
            raise ValueError(f"client {name!r}: x must be {allowed}, found {x[place]:g} in column {label}; check its units")


def span(unit: Normaliser) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest allowed value of each feature, in these units."""
    mean, scale = np.asarray(unit.x_mean, np.float64), np.asarray(unit.x_scale, np.float64)
    with np.errstate(over="ignore"):
        reach = np.where((mean == 0) & (scale == 1), RAW, REACH * np.maximum(scale, np.abs(mean)))
        return mean - reach, mean + reach


def normalisers(predictor: Predictor) -> list[Normaliser]:
    """The units inside a predictor: several for a mixture, none for a predictor without a network."""
    leaves: list[Any] = jax.tree.leaves(predictor, is_leaf=lambda node: isinstance(node, Normaliser))
    return [leaf for leaf in leaves if isinstance(leaf, Normaliser)]

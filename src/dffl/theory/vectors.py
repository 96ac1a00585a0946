"""Batches of vectors in NumPy float64: norms, directions and the projection onto {1 . x = 0}."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dffl.sets import FeasibleSet
from dffl.sets.base import float_array


def vectors(owner: str, field: str, value: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """``value`` as float64 numbers of shape (..., d) for the d of this single set."""
    if s.batch_shape:
        raise ValueError(f"{owner}: it is of single sets, found a stack of shape {s.batch_shape}: index it first")
    array = float_array(owner, field, np.asarray(value))
    if array.ndim < 1 or array.shape[-1] != s.dim:
        raise ValueError(f"{owner}: {field} must have shape (..., {s.dim}), found {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{owner}: {field} must be finite, found {array[~np.isfinite(array)][0]}")
    return array


def norm(x: np.ndarray) -> np.ndarray:
    """The Euclidean norm over the last axis; scaled first, so that neither tiny nor huge entries are lost when squared."""
    scale = np.max(np.abs(x), axis=-1, keepdims=True)
    safe = np.where((scale > 0) & np.isfinite(scale), scale, 1)
    return (np.linalg.norm(x / safe, axis=-1, keepdims=True) * safe)[..., 0]


def dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The inner product over the last axis."""
    return np.sum(x * y, axis=-1)


def centred(x: np.ndarray, flat: bool = True) -> np.ndarray:
    """P x = x - mean(x) where ``flat``, else x. The least entry goes first, so that a constant vector gives exactly 0."""
    if not flat:
        return x
    x = x - x.min(axis=-1, keepdims=True)
    return x - x.mean(axis=-1, keepdims=True)


def direction(x: np.ndarray) -> np.ndarray:
    """x / |x|, and 0 for 0."""
    scale = np.max(np.abs(x), axis=-1, keepdims=True)
    x = x / np.where(scale > 0, scale, 1)
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(size > 0, size, 1)


def times(size: np.ndarray, radius: ArrayLike) -> np.ndarray:
    """The product, and no bound at all (inf, also for a size of 0) where there is no radius."""
    none = np.isinf(radius)
    return np.where(none, np.inf, size * np.where(none, 0, radius))

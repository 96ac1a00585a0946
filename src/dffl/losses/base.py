"""What a loss is: one value for each predicted cost vector, and a gradient that JAX can take."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from dffl.named import Named
from dffl.sets import FeasibleSet

if TYPE_CHECKING:
    from dffl.arrays import LossPerSample, ScaledCosts, ScaledDecisions, ScaledFeatures


class Rows(NamedTuple):
    """Samples of one client as training sees them: standardised features, scaled costs with a minimiser's sign, w*(c)."""

    x: ScaledFeatures
    c: ScaledCosts
    w_star: ScaledDecisions
    smoothing: Array | None = None
    """The client's own smoothing, one number, for losses that smooth; else None."""
    present: LossPerSample | None = None
    """1 for a sample, and 0 for a row that only fills up the batch and repeats a sample; None: all are samples."""

    @classmethod
    def cut(cls, table: Array, features: int, dim: int, smoothing: Array | None = None, present: Array | None = None) -> Rows:
        """The columns of rows that hold x, c and w* side by side, the last two in places of equal width, at least ``dim``."""
        second = features + (table.shape[-1] - features) // 2
        c, w_star = table[..., features : features + dim], table[..., second : second + dim]
        return cls(table[..., :features], c, w_star, smoothing, present)

    def completed(self, predicted: ScaledCosts) -> ScaledCosts:
        """Predicted costs with the known costs of the rows behind them, where there are some."""
        known = self.c[..., predicted.shape[-1] :]
        return jnp.concatenate([predicted, known], axis=-1) if known.shape[-1] else predicted


class Loss(Named):
    """A user's own loss is a subclass with a ``name`` and one method.

    It sees every client as one that minimises, in scaled units; w*(c) is there, solved for once for each sample. Where a
    set has known costs (``s.predicted < s.dim``), the last costs are known: they are the same in ``c_hat`` and in ``rows.c``.
    A batch may have rows that are no samples, where ``rows.present`` is 0: the value of a sample must not depend on them.
    """

    what = "loss"
    group = "dffl.losses"
    random: ClassVar[bool] = False
    """Asks for a random key, a new one in every step."""
    trains: ClassVar[bool] = True
    """Has a useful gradient. A loss without one can judge candidates, and nothing more."""
    smooths: ClassVar[bool] = False
    """Asks for ``rows.smoothing``, and for sets that can `project`."""

    def check(self, s: FeasibleSet) -> None:
        """Refuse a set on which the loss cannot be computed."""
        if self.smooths and not s.projects:
            raise ValueError(f"loss {self.name!r} needs sets that can project; {s.no_projection}")

    @abstractmethod
    def __call__(self, c_hat: ScaledCosts, rows: Rows, s: FeasibleSet, key: Array | None) -> LossPerSample:
        """One value for each row; ``key`` is None unless the loss is random."""

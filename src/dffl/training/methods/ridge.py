"""`ridge`: a linear regression of the costs on the features, in closed form, at each client alone.

The penalty is chosen by leave-one-out, which a ridge has in closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import Array

from dffl.checks import require_number, require_whole
from dffl.federation import Client
from dffl.predictor import Normaliser, Predictor
from dffl.training.alone import Own, best_of, require_judge
from dffl.training.methods.registry import method
from dffl.training.ridge import PENALTIES, expanded, ridges
from dffl.training.run import Outcome, Run


class RidgePredictor(Predictor):
    """Costs that are linear in the standardised features or, at degree 2, in these with their squares and products."""

    normaliser: Normaliser
    coefficients: np.ndarray
    """(1 + q, d): the intercept above the slopes, in scaled costs."""
    degree: int

    def __call__(self, x: Array) -> Array:
        p = x.shape[-1]
        columns = p if self.degree == 1 else p * (p + 3) // 2
        if len(self.coefficients) != 1 + columns:  # products of many features fill the memory
            raise ValueError(
                f"a ridge of degree {self.degree} of {p} features must have {1 + columns} coefficients for each cost"
            )
        design = expanded(self.normaliser.features(x), self.degree)
        return (self.coefficients[0] + design @ self.coefficients[1:]) * self.normaliser.c_scale


@method("ridge", label="Ridge", colour="#E38D9A", kind="naive", words="a straight-line model of the client's own costs")
def ridge(run: Run, *, penalty: float | None = None, degree: int = 1, judge: str = "mse") -> Outcome:
    """The client's own ridge; ``degree`` 2 adds squares and products, ``judge`` chooses the penalty unless it is given."""
    candidates = checked_penalties(penalty)
    require_whole("degree", degree, least=1, most=2)
    require_judge(judge)
    return run.alone(lambda client: _ridge(client, candidates, degree, judge))


def checked_penalties(penalty: Any) -> np.ndarray:
    """The candidate penalties: the given one alone, or a grid."""
    if penalty is None:
        return PENALTIES
    require_number("penalty", penalty, 0.0, float("inf"), "> 0 and finite")
    return np.array([penalty], np.float64)


def _ridge(client: Client, penalties: np.ndarray, degree: int, judge: str) -> Own:
    unit = Normaliser.fit(client.x, client.c)
    candidates = list(ridges(expanded(unit.features(client.x), degree), client.c / unit.c_scale, penalties))
    best = candidates[best_of(client, [client.c - ridge.residuals * unit.c_scale for ridge in candidates], judge)]
    return Own(RidgePredictor(unit, best.coefficients, degree), {"penalty": best.penalty})

"""A model of PyEPO in a solver process: built from its class and arguments, as PyEPO's own workers do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from dffl.solving.rows import answers

Build = Callable[[], Any]
"""A class of models with its arguments; picklable."""


def solving(build: Build, cuts: list[tuple[Any, float]]) -> Callable[[np.ndarray], Iterator[np.ndarray]]:
    """The interface of a worker: minimisers of each row of costs, also if the model maximises."""
    return partial(answers, partial(_solve, *_built(build, cuts)), False)


def describing(build: Build, cuts: list[tuple[Any, float]]) -> Callable[[np.ndarray], Iterator[np.ndarray]]:
    """The number of costs and the sense, instead of answers, for a model that must not be built in this process."""
    model, sign = _built(build, cuts)
    return partial(answers, lambda _: np.array([model.num_cost, sign]), False)


def _built(build: Build, cuts: list[tuple[Any, float]]) -> tuple[Any, float]:
    from pyepo import EPO
    from pyepo.model.opt import optModel

    model = build()
    if not isinstance(model, optModel):
        raise ValueError(f"a model of PyEPO is expected, found {type(model).__name__}")
    if model.c_pred_index is not None:
        raise ValueError("it predicts the costs of some variables only; make all of them predicted")
    if getattr(getattr(model, "problem", None), "obj_Q", None) is not None:
        raise ValueError("its objective has a quadratic term; only linear objectives can be learned")
    for coefs, rhs in cuts:
        model = model.addConstr(coefs, rhs)
    return model, -1.0 if model.modelSense == EPO.MAXIMIZE else 1.0


def _solve(model: Any, sign: float, costs: np.ndarray) -> Any:
    model.setObj(sign * costs)
    return model.solve()[0]

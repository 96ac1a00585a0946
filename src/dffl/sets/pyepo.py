"""Optimisation models of PyEPO as feasible sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dffl.sets import _pool
from dffl.sets.base import FeasibleSet
from dffl.sets.solver import SECONDS, Solver
from dffl.solving import epo

ORTOOLS = ("ortools.linear_solver.pywraplp", "ortools.sat.python.cp_model")


def pyepo(
    model: Any,
    *,
    name: str | None = None,
    contains: Callable[[np.ndarray], Any] | FeasibleSet | None = None,
    processes: int = 1,
    seconds: float = SECONDS,
    **arguments: Any,
) -> Solver:
    """The feasible set of a model of PyEPO (``optModel``): an instance, or a class or function with its keyword arguments.

    The model is built again and solved in ``processes`` solver processes, which never load dffl's HiGHS: OR-Tools cannot be
    in one process with it. If this process has loaded HiGHS, a model of OR-Tools cannot be made here; pass its class:
    ``dffl.sets.pyepo(knapsackModel, weights=..., capacity=...)``.

    As every set, this one minimises. For a model that maximises, make its client with ``maximize=True`` and costs as PyEPO
    has them. PyEPO's own models round costs and answers to float32.

    The name is "pyepo" and the class, unless another is given: a fit whose clients have different models can only be saved if
    these have different names. ``contains`` and ``seconds`` are as for `dffl.Solver`.
    """
    whose = model if isinstance(model, type) else getattr(model, "func", model) if callable(model) else type(model)
    name = f"pyepo {getattr(whose, '__name__', type(whose).__name__)}" if name is None else name
    cuts: list[tuple[Any, float]] = []
    if isinstance(model, type) or callable(model):
        if isinstance(model, type) and not hasattr(model, "setObj"):
            raise ValueError(f"pyepo: model must be a class of models of PyEPO, found {model.__name__}")
        build: epo.Build = partial(model, **arguments)
        words = getattr(model, "keywords", {}) | arguments
    elif hasattr(model, "to_spec") and hasattr(model, "setObj"):
        if arguments:
            fix = "arguments go with a class; an instance has its own"
            names, kind = ", ".join(arguments), type(model).__name__
            raise ValueError(f"pyepo: {names} cannot be combined with an instance of {kind}; {fix}")
        recipe = model.to_spec()
        # PyEPO's recipe has the class and its arguments. The class itself is found by its name in the solver process.
        build, words, cuts = partial(recipe.model_type, *recipe.args, **recipe.config), recipe.config, _cuts(model)
    else:
        fix = "give an optModel, or its class with arguments"
        raise ValueError(f"pyepo: model must be a model of PyEPO >= 2.2, found {type(model).__name__}; {fix}")
    kind, first = _surroundings(whose, words)
    job = _pool.job(name, partial(epo.solving, build, cuts), kind, first)
    return Solver(job, _decisions(model, name, build, cuts, kind, first), contains, processes=processes, seconds=seconds)


def _decisions(
    model: Any, name: str, build: epo.Build, cuts: list[tuple[Any, float]], kind: str, first: tuple[str, ...]
) -> int:
    """The number of costs. Only a solver process builds a class: this one may be unable to."""
    if not callable(model):
        return int(model.num_cost)
    described = _pool.job(name, partial(epo.describing, build, cuts), kind, first)
    return int(_pool.shared().solve(described, np.zeros((1, 2)), 1, SECONDS)[0, 0])


def _surroundings(whose: Any, words: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Which workers may serve the model, and what they import first.

    PyEPO imports OR-Tools wherever that is installed. A worker whose model is solved by HiGHS has to be quicker.
    """
    homes = [base.__module__ for base in getattr(whose, "__mro__", ())]
    if any(home.startswith("pyepo.model.ort") for home in homes):
        return "ortools", ORTOOLS
    if any(isinstance(value, str) and "highs" in value.lower() for value in words.values()):
        return "highspy", ("highspy",)
    return "pyepo", ()


def _cuts(model: Any) -> list[tuple[Any, float]]:
    """The constraints that were added to an instance, which its class and arguments do not tell."""
    # Models of CP-SAT keep them as whole numbers, which are scaled again when they are added again.
    scale = getattr(model, "_OBJ_SCALE", 1)
    return [(np.asarray(coefs, dtype=float) / scale, float(rhs) / scale) for coefs, rhs in getattr(model, "_extra_constrs", [])]

"""PyEPO's models as sets: the same answers, the same SPO+, and what happens beside OR-Tools.

Skipped where PyEPO is not installed: ``pip install 'dffl[pyepo]'`` brings it, with both back-ends that need no licence.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import highspy  # noqa: F401  # first: PyEPO loads OR-Tools, beside which no polytope of other tests could be built
import jax
import numpy as np
import pytest

import dffl

from ..federations import P
from .pyepo_cases import CAPACITY, CASES, PLANS, WEIGHTS, best, costs, model_class, predicted

pytest.importorskip("pyepo")
pytest.importorskip("pyomo")

OR_TOOLS = pytest.mark.skipif(find_spec("ortools") is None, reason="could not import 'ortools'")
PYOMO = CASES["knapsack by Pyomo"][2]
ENV = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run(code: str, *arguments: str) -> str:
    """What a fresh process prints last."""
    done = subprocess.run(
        [sys.executable, *(["-c", code] if code else []), *arguments], capture_output=True, text=True, env=ENV
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=OR_TOOLS) if case.endswith(("OR-Tools", "CP-SAT")) else case for case in CASES]
)
def test_answers_and_spo_plus_are_those_of_pyepo(case: str) -> None:
    theirs = json.loads(run("", "-m", "tests.sets.pyepo_cases", case))
    true = costs(case)
    maximize = theirs["sense"] == -1
    assert maximize == case.startswith("knapsack")
    s = dffl.sets.pyepo(model_class(case), **CASES[case][2])
    assert s.dim == true.shape[1]
    sign = -1 if maximize else 1
    w = np.asarray(s.solve(sign * true))
    objectives = np.sum(w.astype(float) * true, axis=1)
    np.testing.assert_allclose(objectives, theirs["objectives"], rtol=1e-5)
    if case.startswith("knapsack"):  # whole costs and whole decisions: exact
        np.testing.assert_allclose(objectives, theirs["objectives"], rtol=1e-9)
        np.testing.assert_array_equal(objectives, [-np.min(PLANS @ -c) for c in true.astype(float)])
    w_star = np.array(theirs["solutions"], np.float32)

    def loss(guess: Any) -> Any:
        values = dffl.spo_plus(guess, true, s, maximize=maximize, w_star=w_star)
        return values.sum(), values

    (_, values), gradient = jax.value_and_grad(loss, has_aux=True)(predicted(true))
    np.testing.assert_allclose(values, theirs["loss"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradient, theirs["gradient"], rtol=1e-5, atol=1e-5)
    assert np.abs(gradient).max() > 0


def knapsack(processes: int = 1, **more: Any) -> dffl.Solver:
    return dffl.sets.pyepo(model_class("knapsack by Pyomo"), **PYOMO, processes=processes, **more)


def test_one_and_two_processes_give_the_same_and_it_is_pickled() -> None:
    rows = np.random.default_rng(0).normal(size=(9, 6))
    one, two = knapsack(), knapsack(2)
    with jax.enable_x64(True):
        expected = np.array([best(c) for c in rows])
        np.testing.assert_array_equal(one.solve(rows), expected)
        np.testing.assert_array_equal(two.solve(rows), expected)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).solve(rows), expected)
    assert one == knapsack()
    assert repr(one) == "Solver('pyepo knapsackModel', dim=6)"


def test_a_maximising_client_trains_saves_and_loads(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10, P))
    c = 3 + x @ rng.normal(size=(P, 6))

    def federation(s: dffl.FeasibleSet) -> dffl.Federation:
        return dffl.Federation([dffl.Client("a", x, c, s, maximize=True)])

    wanted = dffl.fit(federation(dffl.Solver(best, 6)), "fedavg", rounds=2)
    fit = dffl.fit(federation(knapsack()), "fedavg", rounds=2)
    np.testing.assert_array_equal(fit.predict("a", x), wanted.predict("a", x))
    np.testing.assert_array_equal(fit.decide("a", x), wanted.decide("a", x))
    path = tmp_path / "fit.dffl"
    fit.save(path)
    with pytest.raises(
        ValueError, match="it needs the solver 'pyepo knapsackModel', whose code is not in the file; hand it in"
    ):
        dffl.load(path)
    loaded = dffl.load(path, solvers={"pyepo knapsackModel": knapsack()})
    np.testing.assert_array_equal(loaded.decide("a", x), fit.decide("a", x))


def test_models_of_different_numbers_need_different_names_to_be_saved(tmp_path: Path) -> None:
    x, c = np.zeros((2, 1)), np.ones((2, 6))
    other = PYOMO | {"capacity": CAPACITY + 1}
    for name, words in ((None, "two different solvers are named 'pyepo knapsackModel'"), ("larger", None)):
        sets = [knapsack(), dffl.sets.pyepo(model_class("knapsack by Pyomo"), name=name, **other)]
        fit = dffl.fit(dffl.Federation([dffl.Client(f"c{k}", x, c, s) for k, s in enumerate(sets)]), "mean-cost")
        if words is None:
            fit.save(tmp_path / "fit.dffl")
        else:
            with pytest.raises(ValueError, match=words):
                fit.save(tmp_path / "fit.dffl")


BEGIN = """
import numpy as np
import dffl
from tests.sets.pyepo_cases import CASES, best, model_class
if __name__ == "__main__":
    rows = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    expected = np.array([best(c) for c in rows])
    kind, arguments = model_class("knapsack by OR-Tools"), CASES["knapsack by OR-Tools"][2]
"""


@OR_TOOLS
def test_an_instance_of_or_tools_in_this_process_is_built_again_with_its_cuts() -> None:
    code = """
    model = kind(**arguments)
    assert (np.asarray(dffl.sets.pyepo(model).solve(rows)) == expected).all()
    cut = model.addConstr(np.ones(6), 1.0)
    w = np.asarray(dffl.sets.pyepo(cut).solve(rows))
    assert (w.sum(axis=1) <= 1).all() and (expected.sum(axis=1) > 1).any()
    scaled = model_class("knapsack by CP-SAT")(**arguments).addConstr(np.ones(6), 1.0)
    assert (np.asarray(dffl.sets.pyepo(scaled).solve(rows)) == w).all()
    try:
        dffl.Polytope(lower=np.zeros(2), upper=np.ones(2))
    except ValueError as error:
        print(error)
    """
    found = run(BEGIN + code)
    assert found.startswith("HiGHS cannot be loaded together with OR-Tools, which brings its own HiGHS; import highspy before")


@OR_TOOLS
def test_a_class_of_or_tools_is_solved_beside_a_polytope() -> None:
    code = """
    polytope = dffl.Polytope(lower=np.zeros(6), upper=np.ones(6))
    s = dffl.sets.pyepo(kind, **arguments)
    assert (np.asarray(s.solve(rows)) == expected).all()
    x = np.zeros((5, 2))
    clients = [dffl.Client("a", x, rows, s), dffl.Client("b", x, rows, polytope)]
    print(sorted(dffl.fit(dffl.Federation(clients), "fedavg", rounds=1).members))
    """
    assert run("import highspy" + BEGIN + code) == "['a', 'b']"


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        (3, {}, "pyepo: model must be a model of PyEPO >= 2.2, found int; give an optModel, or its class with arguments"),
        (dict, {}, "pyepo: model must be a class of models of PyEPO, found dict"),
        (None, {"weights": WEIGHTS}, "solver 'pyepo knapsackModel': its process cannot build it: TypeError: .*'capacity'"),
        (None, PYOMO | {"processes": 0}, "solver 'pyepo knapsackModel': processes must be a whole number >= 1, found 0"),
        (None, PYOMO | {"capacity": -CAPACITY}, "solver 'pyepo knapsackModel': row 0: RuntimeError: Pyomo found no solution.*"),
    ],
)  # fmt: skip
def test_what_is_refused(model: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        dffl.sets.pyepo(model_class("knapsack by Pyomo") if model is None else model, **arguments)


def test_an_answer_outside_of_what_contains_says_is_refused() -> None:
    s = knapsack(contains=lambda w: bool(w.sum() < 1), name="tight")
    with pytest.raises(ValueError, match=r"^solver 'tight': row 1: its answer must be feasible, found that contains is False"):
        s.solve(np.stack([np.ones(6), -np.ones(6)]))

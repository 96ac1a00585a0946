"""A set can be saved and sent: pickled, rebuilt from its spec, hashed; and nothing can change it by accident."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from dffl.sets import FeasibleSet, FractionalKnapsack, Polytope, TopK, stack

from .test_stacking import COSTS as STACK_COSTS
from .test_stacking import STACKS
from .test_transforms import COSTS, SETS

STACKED = {f"stack of {name}": built for name, (built, _) in STACKS.items()}
POLYTOPES = [SETS["Polytope"], Polytope(A_eq=np.ones((1, 4)), b_eq=[1.0], lower=0), Polytope(lower=-np.ones(4), upper=2)]
ALL = [*((s, COSTS) for s in SETS.values()), *((s, STACK_COSTS) for s in STACKED.values()), (stack(POLYTOPES), STACK_COSTS)]
IDS = [*SETS, *STACKED, "stack of Polytope"]


@pytest.mark.parametrize(("s", "c"), ALL, ids=IDS)
def test_copies_answer_alike(s: FeasibleSet, c: np.ndarray) -> None:
    for other in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert type(other) is type(s)
        assert hash(other) == hash(s)
        assert other == s
        np.testing.assert_array_equal(other.solve(c), s.solve(c))


@pytest.mark.parametrize(("s", "c"), ALL[:-1], ids=IDS[:-1])
def test_the_spec_rebuilds_the_set(s: FeasibleSet, c: np.ndarray) -> None:
    other = type(s)(**s.spec())
    assert other == s
    assert FeasibleSet.families[type(s).__name__] is type(s)
    np.testing.assert_array_equal(other.solve(c), s.solve(c))


@pytest.mark.parametrize("s", [s for s, _ in ALL], ids=IDS)
def test_parameters_are_read_only(s: FeasibleSet) -> None:
    for part in (s, s[:1] if s.batch_shape else s, s[[0, 1]] if s.batch_shape else s):
        for leaf in jax.tree.leaves(part):
            assert not leaf.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                leaf[...] = 0
    with pytest.raises(AttributeError):
        s.extra = 1


def test_stacks_of_single_sets_are_read_only() -> None:
    s = stack([TopK(3, 1), TopK(3, 2)])
    with pytest.raises(ValueError, match="read-only"):
        s.k[0] = 3


def test_parameters_are_copies_of_what_the_user_gave() -> None:
    a = np.ones(3)
    s = FractionalKnapsack(a, 2)
    a[:] = 99
    np.testing.assert_array_equal(s.weights, np.ones(3))


def test_polytopes_travel_to_another_process(tmp_path: Path) -> None:
    path, sets = tmp_path / "sets.pkl", [POLYTOPES[0], stack(POLYTOPES)]
    path.write_bytes(pickle.dumps((sets, [COSTS, STACK_COSTS])))
    script = (
        "import pickle, sys; sets, costs = pickle.load(open(sys.argv[1], 'rb'));"
        "import numpy as np; pickle.dump([np.asarray(s.solve(c)) for s, c in zip(sets, costs)], open(sys.argv[1], 'wb'))"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=120)
    for found, s, c in zip(pickle.loads(path.read_bytes()), sets, [COSTS, STACK_COSTS], strict=True):
        np.testing.assert_array_equal(found, s.solve(c))


def test_equal_content_is_equal_and_other_content_is_not() -> None:
    assert hash(TopK(3, 1)) == hash(TopK(3, 1))
    assert TopK(3, 1) == TopK(3, 1)
    assert TopK(3, 1) != TopK(3, 2)
    assert TopK(3, 1) != TopK(4, 1)

"""Host models live exactly as long as something can ask for them."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dffl.sets import Polytope, _host, stack

from .test_host import Listed, Points

D = 4
COSTS = np.random.default_rng(0).integers(-1, 2, (3, 9, D)).astype(np.float32)  # many ties: history would show
PLACES = np.array([2, 0, 0])


def polytope(i: int) -> Polytope:
    """A set that no other test builds."""
    a = np.random.default_rng(i).integers(1, 4, (2, D))
    return Polytope(A_ub=a, b_ub=a.sum(axis=1) / 2 + 0.001, lower=np.zeros(D), upper=np.ones(D))


def listed(i: int) -> Listed:
    points = np.random.default_rng(i).integers(0, 2, (5, D)) + 100.0
    return Listed(points)


BUILDERS = [polytope, listed]
FAMILIES = pytest.mark.parametrize("build", BUILDERS)


def forget() -> None:
    """Free what nothing holds, also what is kept a little longer."""
    gc.collect()
    _host._late.clear()
    gc.collect()


def stacked(build: Callable[[int], _host.HostSet]) -> tuple[_host.HostSet, list[weakref.ref[_host.Loaded]], np.ndarray]:
    """A stack whose parts are gone, its models, and what it should answer."""
    parts = [build(1000 + i) for i in range(3)]
    models = [weakref.ref(s._loaded("model")) for s in parts]
    expected = np.stack([np.asarray(s.solve(c)) for s, c in zip(parts, COSTS, strict=True)])
    return stack(parts), models, expected


COPIES: dict[str, Callable[[_host.HostSet], _host.HostSet]] = {
    "itself": lambda s: s,
    "slice": lambda s: s[0:3],
    "stack of its parts": lambda s: stack(list(s)),
    "training": lambda s: jax.tree.map(lambda a: a[[0, 1, 2]], s.astype(np.float32)),
    "a copy": copy.copy,
    "a deep copy": copy.deepcopy,
    "pickled": lambda s: pickle.loads(pickle.dumps(s)),
    "on the device": jax.device_put,
    "through a program": lambda s: jax.jit(lambda t: t)(s),
    "through vmap": lambda s: jax.vmap(lambda t: t)(s),
    "stacked by JAX": lambda s: jax.tree.map(lambda *a: jnp.stack(a), *list(s)),
    "taken apart": lambda s: jax.tree.unflatten(jax.tree.structure(s), jax.tree.leaves(s)),
}


@FAMILIES
@pytest.mark.parametrize("name", COPIES)
def test_what_is_made_from_a_set_answers_when_the_set_is_gone(build: Callable, name: str) -> None:
    made, models, expected = stacked(build)
    made = COPIES[name](made)
    forget()
    np.testing.assert_array_equal(made.solve(COSTS), expected)
    np.testing.assert_array_equal(jax.jit(made.solve)(COSTS), expected)
    assert made.contains(expected).all()
    assert all(model() is not None for model in models)
    del made
    forget()
    assert all(model() is None for model in models)


@FAMILIES
def test_a_part_holds_its_own_model_and_no_other(build: Callable) -> None:
    whole, models, expected = stacked(build)
    some, one = jax.tree.map(lambda a: a[PLACES], whole), whole[2]
    del whole
    forget()
    assert [model() is not None for model in models] == [True, False, True]
    np.testing.assert_array_equal(some.solve(COSTS[PLACES]), expected[PLACES])
    np.testing.assert_array_equal(one.solve(COSTS[2]), expected[2])
    del some
    forget()
    assert [model() is not None for model in models] == [False, False, True]
    assert one.diameter().upper > 0


@FAMILIES
def test_compiled_programs_answer_after_a_collection_and_keep_nothing(build: Callable) -> None:
    s = build(2000)
    expected, model = np.asarray(s.solve(COSTS[0])), weakref.ref(s._loaded("model"))
    shared = jax.jit(lambda s, c: s.solve(c))
    np.testing.assert_array_equal(shared(s, COSTS[0]), expected)
    closed = [jax.jit(s.solve), jax.jit(lambda c, s=s: s.solve(c)), jax.jit(jax.vmap(s.solve))]
    first = [np.asarray(f(COSTS[0])) for f in closed]
    del s
    forget()
    for f, found in zip(closed, first, strict=True):  # they close over the set, and so hold it
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(f(COSTS[0]), expected)
    del closed, f
    forget()
    assert model() is None
    np.testing.assert_array_equal(shared(build(2000), COSTS[0]), expected)  # the program of a set that is gone serves its equal


def test_transforms_and_checks_outside_of_programs_keep_nothing() -> None:
    s = polytope(3000)
    model = weakref.ref(s._loaded("model"))
    jax.vmap(s.solve)(COSTS[0])
    jax.grad(lambda c, s=s: jnp.sum(s.solve(c)))(COSTS[0])
    s.contains(COSTS[0])
    s.diameter()
    repr(s)
    del s
    forget()
    assert model() is None


@pytest.mark.slow
def test_an_answer_in_flight_outlives_its_set() -> None:
    slow = jax.jit(lambda x: (x @ x @ x @ x)[0, :D] * 0 - 1)
    big = jnp.ones((1500, 1500))
    decide = jax.jit(lambda s, c: s.solve(c))
    expected = np.asarray(decide(polytope(4000), -jnp.ones(D)))
    slow(big).block_until_ready()
    for _ in range(3):
        forget()
        answer = decide(polytope(4000), slow(big))  # returns before the costs are there
        gc.collect()
        np.testing.assert_array_equal(answer, expected)
        answer = polytope(4000).solve(slow(big))
        forget()
        np.testing.assert_array_equal(answer, expected)


@pytest.mark.parametrize(("build", "count"), [(listed, 10_000), (polytope, 300)])
def test_sets_built_in_a_loop_do_not_pile_up(build: Callable, count: int) -> None:
    forget()
    before = len(_host._registry)
    for i in range(count):
        last = build(10_000 + i)
    assert len(_host._registry) <= before + _host.LATE + 1
    forget()
    assert len(_host._registry) <= before + 1
    last.solve(COSTS[0])


def test_a_freed_set_that_is_built_again_answers_as_before() -> None:
    s = polytope(5000)
    digest, model = s.digest.tobytes(), weakref.ref(s._loaded("model"))
    first, size = np.asarray(s.solve(COSTS[0])), s.diameter()
    del s
    forget()
    assert model() is None
    s = polytope(5000)
    s.solve(COSTS[1])
    assert s.digest.tobytes() == digest
    np.testing.assert_array_equal(s.solve(COSTS[0]), first)
    assert s.diameter() == size


def test_a_fingerprint_without_a_set_says_so() -> None:
    leaves, treedef = jax.tree.flatten(polytope(6000))
    forget()
    alone = jax.tree.unflatten(treedef, leaves)
    with pytest.raises(
        RuntimeError, match="Polytope: its host model is not loaded in this process, or no longer; keep the set"
    ):
        alone.spec()
    back = polytope(6000)  # whoever builds it again brings it back
    np.testing.assert_array_equal(alone.solve(COSTS[0]), back.solve(COSTS[0]))


def test_two_threads_that_build_equal_sets_get_one_model() -> None:
    both = threading.Barrier(2)

    class Slow(_host.HostSet):
        def __init__(self) -> None:
            def build() -> Points:
                both.wait(10)  # neither finds the other's
                return Points(np.eye(D))

            super().__init__(D, {}, build)

    built: list[Slow] = []
    threads = [threading.Thread(target=lambda: built.append(Slow())) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    first, second = built
    for mine, theirs in ((first, second), (second, first)):
        assert mine._held.models == theirs._held.models
        assert mine._held.models == (mine._loaded("model"),)


@pytest.mark.slow
@FAMILIES
def test_threads_build_stack_solve_and_drop_at_once(build: Callable) -> None:
    expected = {i: np.asarray(build(7000 + i).solve(COSTS[0])) for i in range(6)}
    forget()
    errors: list[BaseException] = []
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            start.wait()
            for turn in range(15):
                picks = rng.integers(0, 6, 3)
                both = stack([build(7000 + int(i)) for i in picks])
                if turn % 5 == 0:
                    forget()
                found = np.asarray(both[1:].solve(np.stack([COSTS[0]] * 2)))
                np.testing.assert_array_equal(found, np.stack([expected[int(i)] for i in picks[1:]]))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    forget()
    built = [build(7000 + i) for i in range(6)]
    assert len({id(s._loaded("model")) for s in built}) == 6

"""A family on the host is one file: what it has to say, what it gets, and what is refused."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dffl.sets import FeasibleSet, HostSet, Polytope, TopK, hausdorff, stack
from dffl.sets.base import parameter

D = 3
COSTS = np.random.default_rng(0).normal(size=(7, D)).astype(np.float32)


class Points:
    """Answers for listed points, and remembers what it was asked."""

    def __init__(self, points: np.ndarray):
        self.points = points
        self.asked: list[np.ndarray] = []

    def solve(self, costs: np.ndarray) -> np.ndarray:
        self.asked.append(costs)
        return self.points[np.argmin(costs @ self.points.T, axis=1)]

    def excess(self, w: np.ndarray) -> np.ndarray:
        return np.abs(w[:, None] - self.points).max(axis=2).min(axis=1)


class Listed(HostSet):
    def __init__(self, points: object, note: str = ""):
        points = parameter("Listed", "points", points, 2)
        super().__init__(points.shape[-1], {"points": points, "note": note}, lambda: Points(points))


class Other(HostSet):
    """Equal arguments, other answers."""

    def __init__(self, points: object, note: str = ""):
        points = parameter("Other", "points", points, 2)
        super().__init__(points.shape[-1], {"points": points, "note": note}, lambda: Points(-points))


LISTED = FeasibleSet.families.pop("Listed")  # this file's own: not families of the package
del FeasibleSet.families["Other"]
CORNERS = np.vstack([np.eye(D), 2 * np.eye(D)[:1]])
S = Listed(CORNERS)


def test_it_answers_alone_in_programs_and_in_stacks() -> None:
    expected = CORNERS[np.argmin(COSTS @ CORNERS.T, axis=1)].astype(np.float32)
    np.testing.assert_array_equal(S.solve(COSTS), expected)
    np.testing.assert_array_equal(jax.jit(S.solve)(COSTS), expected)
    np.testing.assert_array_equal(jax.vmap(S.solve)(COSTS), expected)
    np.testing.assert_array_equal(jax.grad(lambda c: jnp.sum(S.solve(c)))(COSTS), np.zeros_like(COSTS))
    both = stack([S, Listed(-CORNERS)])
    costs = np.stack([COSTS, COSTS])
    answers = np.stack([expected, np.asarray(Listed(-CORNERS).solve(COSTS))])
    np.testing.assert_array_equal(both.solve(costs), answers)
    np.testing.assert_array_equal(jax.vmap(lambda s, c: s.solve(c))(both, costs), answers)
    np.testing.assert_array_equal(jax.vmap(lambda s: s.solve(COSTS[0]))(both), answers[:, 0])
    np.testing.assert_array_equal(jax.vmap(both.solve)(costs[None]), answers[None])
    assert both.contains(answers).all()
    assert not S.contains(expected + 0.1).any()
    np.testing.assert_array_equal(S.support(-COSTS), -np.sum(COSTS * expected, axis=-1))


def test_stacks_of_two_client_axes() -> None:
    parts = [[Listed(CORNERS + i + 10 * j) for i in range(2)] for j in range(3)]
    s = stack([stack(row) for row in parts])
    costs = np.random.default_rng(1).normal(size=(3, 2, 5, D)).astype(np.float32)
    w = np.asarray(s.solve(costs))
    for j, i in np.ndindex(3, 2):
        np.testing.assert_array_equal(w[j, i], parts[j][i].solve(costs[j, i]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(s)).solve(costs), w)


def test_it_is_saved_and_sent_by_its_arguments() -> None:
    s = Listed(CORNERS, note="corners")
    assert s.spec()["note"] == "corners"
    np.testing.assert_array_equal(s.spec()["points"], CORNERS)
    for other in (type(s)(**s.spec()), pickle.loads(pickle.dumps(s))):
        assert other == s
        assert hash(other) == hash(s)
    assert s != S
    assert LISTED is Listed
    assert "HostSet" not in FeasibleSet.families  # what it leaves open, a family has to say


def test_equal_sets_share_a_model_and_families_do_not() -> None:
    assert Listed(CORNERS)._loaded("model") is S._loaded("model")
    other = Other(CORNERS)
    np.testing.assert_array_equal(other.digest, S.digest)
    assert other != S
    np.testing.assert_array_equal(other.solve(COSTS), Listed(-CORNERS).solve(COSTS))


def test_the_fingerprint_tells_names_kinds_and_shapes_apart() -> None:
    def digest(**spec: object) -> bytes:
        class Any(HostSet):
            def __init__(self) -> None:
                super().__init__(D, spec, lambda: Points(CORNERS))

        return Any().digest.tobytes()

    made = [{"a": 1.0}, {"b": 1.0}, {"a": 1}, {"a": [1.0]}, {"a": [[1.0]]}, {"a": "1.0"}, {"a": 1.0, "b": 1.0}, {}]
    assert len({digest(**spec) for spec in made}) == len(made)
    assert digest(a=1.0) == digest(a=np.float64(1))


def test_a_bracket_of_the_diameter_comes_with_it() -> None:
    found = S.diameter()
    exact = np.linalg.norm(CORNERS[:, None] - CORNERS[None], axis=-1).max()
    assert found.lower <= exact + 1e-12
    assert found.upper >= exact - 1e-12
    assert found == (np.sqrt(5), np.sqrt(6))
    lower, upper = hausdorff(S, Listed(CORNERS + 1.0))
    assert lower <= np.sqrt(3) <= upper


def test_rows_that_are_not_numbers_never_reach_the_model() -> None:
    s = Listed(CORNERS + 5)
    rows = np.stack([COSTS[0], np.full(D, np.nan), COSTS[1], [0, np.inf, 0]])
    w = np.asarray(s.solve(rows))
    assert np.isnan(w).all(axis=-1).tolist() == [False, True, False, True]
    model = s._loaded("model").model
    assert all(np.isfinite(asked).all() and asked.dtype == np.float64 for asked in model.asked)
    np.testing.assert_array_equal(w[[0, 2]], s.solve(COSTS[:2]))


def test_searches_ask_which_sets_are_on_the_host() -> None:
    assert (Listed.on_host, Polytope.on_host, TopK.on_host) == (True, True, False)


@pytest.mark.parametrize(("what", "shape"), [("solve", r"\(1, 3\)"), ("excess", r"\(1,\)")])
def test_answers_of_another_shape_are_refused_when_the_set_is_built(what: str, shape: str) -> None:
    class Crooked(HostSet):
        def __init__(self) -> None:
            model = Points(CORNERS)
            setattr(model, what, lambda rows: np.zeros((len(rows), D + 1)))
            super().__init__(D, {}, lambda: model)

    found = rf"Crooked: {what}\(\) of its host model must answer an array of shape {shape} for .*, found shape \(1, 4\)"
    with pytest.raises(ValueError, match=found):
        Crooked()


@pytest.mark.parametrize("odd", [len, [[1.0], [1.0, 2.0]], {"a": 1}, None])
def test_what_has_no_fingerprint_is_refused_unless_its_content_is_given(odd: object) -> None:
    class Loose(HostSet):
        def __init__(self, odd: object, **more: object):
            super().__init__(D, {"odd": odd}, lambda: Points(CORNERS), **more)

    with pytest.raises(ValueError, match="Loose: odd is neither numbers nor text; name by content= the arrays"):
        Loose(odd)
    assert Loose(odd, content=[CORNERS]).spec() == {"odd": odd}


def test_bad_dimensions_and_costs_are_refused() -> None:
    class Flat(HostSet):
        def __init__(self, dim: int):
            super().__init__(dim, {"dim": dim}, lambda: Points(CORNERS))

    with pytest.raises(ValueError, match="Flat: dim must be a whole number >= 1, found 0"):
        Flat(0)
    with pytest.raises(ValueError, match=r"Listed: costs must have shape \(..., 3\), found \(4,\)"):
        S.solve(np.zeros(4))
    with pytest.raises(ValueError, match=r"spec\(\) is of one set; this is a stack of shape \(2,\): index it first"):
        stack([S, S]).spec()
    with pytest.raises(TypeError, match="abstract"):
        HostSet(D, {}, lambda: Points(CORNERS))

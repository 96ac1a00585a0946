"""Fields of a custom set: numbers, texts and flags need no special mark, and a wrong one is refused with what to write."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from dffl.sets.base import parameter, stack


@pytest.fixture(autouse=True)
def unregistered() -> Iterator[None]:
    before = dict(dffl.FeasibleSet.families)
    yield
    dffl.FeasibleSet.families.clear()
    dffl.FeasibleSet.families.update(before)


def family(annotation: Any, make: Any) -> Any:
    """A family of one field ``k``, as a user writes it."""

    class Custom(dffl.FeasibleSet):
        k: annotation

        def __init__(self, k: Any):
            self.k = make(k)

        @property
        def dim(self) -> int:
            return 3

        @property
        def batch_shape(self) -> tuple[int, ...]:
            return ()

        def _minimise(self, c: jax.Array) -> jax.Array:
            return jnp.where(c < 0, 1.0, 0.0).astype(c.dtype)

        def _excess(self, w: jax.Array) -> jax.Array:
            return jnp.max(jnp.abs(w), axis=-1) - 1

    return Custom


@pytest.mark.parametrize(("annotation", "value"), [(int, 3), (float, 0.5), (bool, True), (str, "wide"), ("int", 3)])
def test_a_plain_field_works(annotation: Any, value: Any) -> None:
    kind = family(annotation, lambda k: k)
    s = kind(value)
    assert s.k == value
    assert type(s.k) is type(value)
    np.testing.assert_array_equal(s.solve([-1.0, 2.0, 0.0]), [1, 0, 0])
    np.testing.assert_array_equal(jax.jit(s.solve)(jnp.asarray([-1.0, 2.0, 0.0])), [1, 0, 0])
    assert hash(s) == hash(kind(value))
    assert s.spec() == {"k": value}
    both = stack([s, kind(value)])
    assert both.solve(np.ones((2, 3))).shape == (2, 3)
    assert both[1].k == value
    with pytest.raises(ValueError, match="takes sets of one family and shape"):
        stack([s, kind(type(value)())])


@pytest.mark.parametrize("annotation", [int | None, "int | None"])
def test_a_plain_field_may_be_none(annotation: Any) -> None:
    kind = family(annotation, lambda k: k)
    assert (kind(None).k, kind(2).k) == (None, 2)
    np.testing.assert_array_equal(kind(2).solve([-1.0, 2.0, 0.0]), [1, 0, 0])


def test_a_field_dim_takes_the_place_of_the_property() -> None:
    class Sized(dffl.FeasibleSet):
        dim: int

        def __init__(self, dim: int, sets_it: bool = True):
            if sets_it:
                self.dim = dim

        @property
        def batch_shape(self) -> tuple[int, ...]:
            return ()

        def _minimise(self, c: jax.Array) -> jax.Array:
            return jnp.zeros_like(c)

        def _excess(self, w: jax.Array) -> jax.Array:
            return jnp.max(jnp.abs(w), axis=-1)

    assert Sized(4).dim == 4
    assert Sized(4).in_words() == "Sized, 4 decisions"
    assert dffl.FeasibleSet.families["Sized"] is Sized
    with pytest.raises(ValueError, match=r"^Sized: dim must be a whole number >= 1, found 0; set it in __init__$"):
        Sized(4, sets_it=False)
    with pytest.raises(ValueError, match=r"^Sized: its argument 'sets_it' is lost; keep it as an attribute of the same name"):
        Sized(4).spec()


def test_a_field_that_is_not_what_it_says_is_refused_with_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"^Custom: field 'k' holds 3, which is not an array; write k: int in the class$"):
        family(np.ndarray, lambda k: k)(3)
    with pytest.raises(ValueError, match=r"^Custom: field 'k' holds 1.0, which is not an array; make it a NumPy array$"):
        family(list, lambda k: k)([1.0])
    with (
        pytest.warns(UserWarning, match="set as static"),
        pytest.raises(ValueError, match=r"^Custom: field 'k' holds an array; write k: np.ndarray in the class$"),
    ):
        family(float, lambda k: parameter("Custom", "k", k, 0))(0.5)


def test_a_set_without_a_diameter_is_compared_and_refuses_what_needs_one() -> None:
    s = family(int, lambda k: k)(1)
    assert not s.has_diameter
    assert s.extent() == pytest.approx(np.sqrt(3))
    with pytest.raises(
        ValueError, match=r"^Custom has no diameter; define _diameter\(\) in the family \(see docs/own-set.md\)$"
    ):
        s.diameter()
    distance = dffl.hausdorff(s, dffl.Box(np.zeros(3), np.ones(3)))
    assert distance.lower <= 1e-6
    assert distance.upper < 2
    assert dffl.TopK(4, 2).extent() == dffl.TopK(4, 2).diameter().upper

"""What a feasible set is: an immutable pytree that minimises linear costs.

A new family is one subclass in one file: it defines how one set minimises, what it contains, its name and parameters in a
federation.toml and its words in reports. Batching over costs, stacking over clients, precision and derivatives are handled
here, once.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias, TypeVar, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from dffl.cache import free_programs_in_time
from dffl.named import Catalogue, register
from dffl.plugins import plugins
from dffl.sets._calls import Calls
from dffl.sets.parameters import Kind

if TYPE_CHECKING:
    from dffl.arrays import DecisionsAt, TruthValues, Values, Vectors


Parameter: TypeAlias = Any
"""A set's parameter: a NumPy array, and a traced one inside compiled programs."""


class Bracket(NamedTuple):
    """A number that is known to lie between ``lower`` and ``upper``."""

    lower: float
    upper: float

    @classmethod
    def at(cls, value: float) -> Bracket:
        """The bracket of a number that is known exactly."""
        return cls(value, value)

    @property
    def exact(self) -> bool:
        """Whether the two ends meet, up to rounding."""
        return self.upper - self.lower <= 1e-12 * max(1.0, abs(self.upper))


PLAIN = (int, float, bool, str)
"""The types of fields that are fixed in a compiled program, where arrays are its inputs."""


def _is_plain(annotation: Any) -> bool:
    """Whether a field's type, which may be text, is one of `PLAIN`, or that or None."""
    if isinstance(annotation, str):
        return {part.strip() for part in annotation.split("|")} - {"None"} in [{kind.__name__} for kind in PLAIN]
    return set(get_args(annotation) or [annotation]) - {type(None)} in [{kind} for kind in PLAIN]


def _make_plain_fields_static(cls: type) -> None:
    """Let a field such as ``power: int`` or ``power: int = 2`` be what Equinox calls static, unless it says so itself."""
    for name, annotation in inspect.get_annotations(cls).items():
        default = cls.__dict__.get(name, MISSING)
        if _is_plain(annotation) and (default is None or default is MISSING or type(default) in PLAIN):
            if name == "dim" and default is MISSING:
                if "__init__" not in cls.__dict__:
                    raise ValueError(f"{cls.__name__}: write an __init__ that sets dim")
                default = 0  # a field without a default would leave the abstract property in its place
            setattr(cls, name, eqx.field(static=True, **({} if default is MISSING else {"default": default})))


class FeasibleSet(eqx.Module):
    """A compact set S in R^dim, convex or with a convex hull that takes its place (see `convex`).

    The parameters are NumPy float64 arrays, cast to the precision of the costs when they are used, so one set
    serves float32 training and float64 evaluation. They may carry leading client axes (``batch_shape``): such a
    stack holds one set per client, and the leading axes of the costs must then match it.
    """

    families: ClassVar[dict[str, type[FeasibleSet]]] = {}
    """Every family by the name of its class: saved sets are found by it (see `family_of`)."""
    by_toml_name: ClassVar[Catalogue[type[FeasibleSet]]] = Catalogue(
        "set", "dffl.sets", 'a subclass of dffl.FeasibleSet with toml_name = "{name}"'
    )
    """The families that a federation.toml can name."""
    toml_name: ClassVar[str] = ""
    """The ``type`` of the family in a federation.toml; "" for a family that Python alone can make."""
    toml_parameters: ClassVar[Mapping[str, Kind]] = {}
    """The constructor's arguments that a federation.toml can give, with their kinds (see `dffl.sets.parameters`)."""
    on_host: ClassVar[bool] = False
    """Whether the oracle runs outside compiled programs, one instance at a time: searches then ask it less often."""
    convex: ClassVar[bool] = True
    """Whether the set is convex. Support, diameter and distances of one that is not are those of its convex hull."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _make_plain_fields_static(cls)
        # A class that leaves something open is not a family yet.
        if not any(getattr(getattr(cls, name, None), "__isabstractmethod__", False) for name in dir(cls)):
            register(FeasibleSet.families, cls.__name__, cls, "feasible set")
            if cls.__dict__.get("toml_name"):
                register(FeasibleSet.by_toml_name, cls.toml_name, cls, "set")

    def __check_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            where = f"{type(self).__name__}: field {field.name!r}"
            if field.name == "dim" and value == 0:
                raise ValueError(f"{type(self).__name__}: dim must be a whole number >= 1, found 0; set it in __init__")
            if field.metadata.get("static"):
                if isinstance(value, np.ndarray | jax.Array):
                    raise ValueError(f"{where} holds an array; write {field.name}: np.ndarray in the class")
            else:
                for leaf in jax.tree.leaves(value):
                    if not hasattr(leaf, "dtype"):
                        kind = type(value).__name__
                        fix = f"write {field.name}: {kind} in the class" if type(value) in PLAIN else "make it a NumPy array"
                        raise ValueError(f"{where} holds {leaf!r:.40}, which is not an array; {fix}")

    @classmethod
    def family_of(cls, name: str) -> type[FeasibleSet] | None:
        """The family whose class has this name, here or in an installed package; None if there is none."""
        if name not in FeasibleSet.families:
            brought = plugins("dffl.sets", FeasibleSet.by_toml_name).usable.values()
            for plugin in brought:
                if plugin.entry.attr == name:
                    FeasibleSet.by_toml_name.load(plugin)
        return FeasibleSet.families.get(name)

    @classmethod
    def toml_sized(cls, d: int) -> dict[str, Any]:
        """The constructor's arguments that follow from the number of cost columns d: ``dim``, if it has this argument."""
        asked = "dim" in inspect.signature(cls).parameters and "dim" not in cls.toml_parameters
        return {"dim": d} if asked else {}

    @classmethod
    def toml_dim(cls, given: Mapping[str, Any]) -> int | None:
        """The number of decisions that parameters imply, if it is known before a (large) set is built; else None."""
        return None

    def in_words(self) -> str:
        """What a client decides, in a few words for reports, such as "choose 6 of 24"."""
        return f"{type(self).__name__}, {self.dim} decisions"

    local: ClassVar[tuple[str, ...]] = ()
    """Constructor arguments that name something on this machine, such as a path: a saved set never has them."""
    internal: ClassVar[bool] = False
    """Whether sets of this family are made from others while training, and are never saved."""

    @classmethod
    def asked(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        """What constructor arguments ask for, before anything is built, by the names of `dffl.limits.Limits`."""
        size = {"dim": spec["dim"]} if isinstance(spec.get("dim"), int) else {}
        return {"cells": sum(math.prod(shape) for shape in _shapes(spec))} | size

    # What a family has to define.

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of decisions d."""

    @property
    @abstractmethod
    def batch_shape(self) -> tuple[int, ...]:
        """The leading client axes: ``()`` for a single set."""

    @abstractmethod
    def _minimise(self, c: Array) -> Array:
        """A minimiser of ``c . w`` over this single set, for costs of shape (..., dim)."""

    @abstractmethod
    def _excess(self, w: Array) -> Array:
        """How far w violates the constraints, relative to their size; <= 0 inside. (..., dim) to (...)."""

    # What a family may define.

    def _diameter(self) -> Bracket:
        """The Euclidean diameter of this single set. `dffl.bounds` needs it."""
        raise ValueError(self.no_diameter)

    def _project(self, v: Array) -> Array:
        """The point of this single set that is nearest to v, for points of shape (..., dim). Losses that smooth need it."""
        raise ValueError(self.no_projection)

    def _largest_norm(self) -> float:
        """The largest Euclidean norm of a point of this single set, or an upper bound: here of the box around the set."""
        return float(np.linalg.norm(np.abs(self._sides()).max(axis=0)))

    def _sides(self) -> np.ndarray:
        """The supports along the axes, both ways, (2, dim)."""
        with jax.enable_x64(True):
            return np.asarray(self.support(np.concatenate([np.eye(self.dim), -np.eye(self.dim)]))).reshape(2, -1)

    def _curvature(self) -> float:
        """The radius rho of strong convexity of this single set; infinite where there is none."""
        return math.inf

    def _hausdorff(self, other: Self) -> Bracket | None:
        """The Hausdorff distance to a single set of the same family and dimension; None where no formula is known."""
        return None

    def _shape_distance(self, other: Self) -> Bracket | None:
        """The same after the best translation; None where no formula is known."""
        return None

    # What a family of real models has besides.

    @property
    def lifted(self) -> FeasibleSet:
        """The set that losses and regrets are computed on: this one, unless parts of its objective are known (see `Lifted`)."""
        return self

    @property
    def shadow(self) -> FeasibleSet:
        """The set of decisions alone, where parts of the objective are known; else this one. Geometry is of it."""
        return self

    @property
    def predicted(self) -> int:
        """How many of the coordinates have a predicted cost: all, but for a `Lifted` set, whose last costs are known."""
        return self.dim

    @property
    def relaxed(self) -> FeasibleSet:
        """The set without its integer conditions: an easier one to train on. This one where there are none."""
        return self

    @property
    def calls(self) -> Calls | None:
        """What the oracle of this single set was asked in this process, where it counts: a live count."""
        return None

    @property
    def variables(self) -> tuple[str, ...] | None:
        """The names of what `decide` returns, where the set has names."""
        return None

    def require_sense(self, maximize: bool) -> None:
        """Refuse a client that minimises, or one that maximises, where the set's known costs do not allow it."""

    def matched(self, cost_names: Sequence[str]) -> FeasibleSet:
        """The same set with its decisions in the order of these cost columns, where it knows its own by names."""
        return self

    def decide(self, c: ArrayLike, maximize: bool = False) -> DecisionsAt:
        """The decisions at costs (..., dim), in float64, with all variables of the model behind the set, if there is one."""
        with jax.enable_x64(True):
            signed = jnp.asarray(-np.asarray(c, np.float64) if maximize else np.asarray(c, np.float64))
            return np.asarray(self.solve(signed)) + 0.0  # no -0.0

    # What every family can do.

    def solve(self, c: ArrayLike) -> Vectors:
        """The minimiser of ``c . w`` over the set, for costs of shape (..., dim).

        Ties go to the lowest index (a polytope has a rule of its own); the answer is feasible even then. The derivative is
        zero. Safe under ``jax.jit`` and ``jax.vmap``; computed in the precision of ``c`` (float64 inside
        ``jax.enable_x64()``).
        """
        c = self._checked(c, "costs")
        # Fresh arrays of one precision: JAX confuses a 0-d float64 parameter that an eager scan has seen in float32.
        return _solve(self.astype(c.dtype), c)

    def project(self, v: ArrayLike) -> Vectors:
        """The Euclidean projection: the point of the set that is nearest to v, for points of shape (..., dim).

        As for `solve`, the derivative is zero, the precision is that of ``v``, and ``jax.jit`` and ``jax.vmap`` are safe.
        A family that cannot project refuses.
        """
        v = self._checked(v, "points")
        return _projected(self.astype(v.dtype), v)

    @property
    def projects(self) -> bool:
        """Whether the set can `project`."""
        return type(self)._project is not FeasibleSet._project

    def support(self, u: ArrayLike) -> Values:
        """The support function, the maximum of ``u . w`` over the set, for directions of shape (..., dim)."""
        u = self._checked(u, "directions")
        return jnp.sum(u * self.shadow.solve(-u), axis=-1)

    def contains(self, w: ArrayLike, tol: float = 1e-6) -> TruthValues:
        """Whether each w of shape (..., dim) satisfies the constraints within ``tol``, relative to their size."""
        return self._over_batch(type(self)._excess, self._checked(w, "points")) <= tol

    def diameter(self) -> Bracket:
        """The largest Euclidean distance between two points of the set, as a certified bracket."""
        return self._single("diameter").shadow._diameter()

    @property
    def has_diameter(self) -> bool:
        """Whether the family defines a diameter."""
        return type(self)._diameter is not FeasibleSet._diameter

    def extent(self) -> float:
        """An upper bound on the diameter: the upper end of `diameter`, or the diagonal of the box around a set without one."""
        return self.diameter().upper if self.has_diameter else float(np.linalg.norm(self._sides().sum(axis=0)))

    def largest_norm(self) -> float:
        """The largest Euclidean norm of a point of the set, or an upper bound on it."""
        return self._single("largest_norm").shadow._largest_norm()

    def curvature(self) -> float:
        """The radius rho such that the set is an intersection of balls of radius rho; infinite if there is none."""
        return self._single("curvature")._curvature()

    def spec(self) -> dict[str, Any]:
        """The constructor's arguments, for saving: ``type(s)(**s.spec())`` is the same set."""
        names = inspect.signature(type(self)).parameters
        for name in names:
            if not hasattr(self, name):
                fix = f"keep it as an attribute of the same name: self.{name} = {name}"
                raise ValueError(f"{type(self).__name__}: its argument {name!r} is lost; {fix}")
        return {name: getattr(self, name) for name in names}

    def astype(self, dtype: Any) -> Self:
        """The same set with floating-point parameters of this precision."""
        return jax.tree.map(lambda a: a.astype(dtype) if jnp.issubdtype(a.dtype, jnp.floating) else a, self)

    def __getitem__(self, index: Any) -> Self:
        """One set, or some, of a stack along its first client axis."""
        if not jax.tree.leaves(self):  # without arrays, a stack of equal sets is the set
            return self
        if not self.batch_shape:
            raise TypeError(f"{type(self).__name__} is a single set, not a stack")
        return jax.tree.map(lambda a: frozen(a[index]), self)

    # Internals.

    def __repr__(self) -> str:
        if self.batch_shape:
            return f"{type(self).__name__}(a stack of shape {self.batch_shape}, dim={self.dim})"
        return f"{type(self).__name__}({', '.join(f'{k}={_brief(v)}' for k, v in self.spec().items())})"

    def __hash__(self) -> int:
        # By content, so that a bound method can be compiled: jax.jit(s.solve).
        leaves, treedef = jax.tree.flatten(self)
        return hash((treedef, tuple(np.asarray(a).tobytes() for a in leaves)))

    def _checked(self, c: ArrayLike, what: str) -> Array:
        """``c`` as a floating-point array whose axes fit this set."""
        try:
            array = jnp.asarray(c)
        except (TypeError, ValueError):
            raise ValueError(f"{type(self).__name__}: {what} must be numbers, found {c!r:.80}") from None
        if not isinstance(array, jax.core.Tracer):
            free_programs_in_time()
        if not jnp.issubdtype(array.dtype, jnp.floating):
            array = array.astype(jnp.result_type(float))
        batch = self.batch_shape
        if array.ndim < len(batch) + 1 or array.shape[-1] != self.dim or array.shape[: len(batch)] != batch:
            wanted = ", ".join(str(n) for n in (*batch, "...", self.dim))
            raise ValueError(f"{type(self).__name__}: {what} must have shape ({wanted}), found {array.shape}")
        return array

    @property
    def no_diameter(self) -> str:
        """The message for a set without a diameter."""
        return f"{type(self).__name__} has no diameter; define _diameter() in the family (see docs/own-set.md)"

    @property
    def no_projection(self) -> str:
        """What a refusal says of a set that cannot `project`."""
        if not self.convex:
            return f"{type(self).__name__}: a set of whole numbers cannot; choose a loss that does not smooth"
        return f"{type(self).__name__}: it cannot project onto itself; define _project(v) in the family (see docs/own-set.md)"

    def _over_batch(self, function: Callable[[Any, Array], Array], c: Array) -> Array:
        for _ in self.batch_shape:
            function = jax.vmap(function)
        return function(self.astype(c.dtype), c)

    def _single(self, what: str) -> Self:
        if self.batch_shape:
            raise ValueError(f"{what}() is of one set; this is a stack of shape {self.batch_shape}: index it first")
        return self


class VectorSet(FeasibleSet):
    """A family whose first field is a vector with one entry per decision."""

    @classmethod
    def asked(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        wide = max((shape[-1] for shape in _shapes(spec) if shape), default=1)
        return {"dim": wide, "cells": _stacked(spec, wide)}

    @property
    def dim(self) -> int:
        return int(self._vector.shape[-1])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(self._vector.shape[:-1])

    @property
    def _vector(self) -> Parameter:
        return getattr(self, fields(self)[0].name)


class NumberSet(FeasibleSet):
    """A family with a dimension of its own, whose first other field is one number per set."""

    _dim: int = eqx.field(static=True)

    @classmethod
    def asked(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {"dim": spec.get("dim"), "cells": _stacked(spec, 1)}

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(np.shape(getattr(self, fields(self)[1].name)))


@jax.jit
def _solve(s: FeasibleSet, c: Array) -> Array:
    # The oracle is piecewise constant: no gradient passes, so nothing inside it is ever differentiated.
    return lax.stop_gradient(s._over_batch(type(s)._minimise, lax.stop_gradient(c)))


@jax.jit
def _projected(s: FeasibleSet, v: Array) -> Array:
    # As the oracle: the losses that use it take its answer as fixed (Danskin).
    return lax.stop_gradient(s._over_batch(type(s)._project, lax.stop_gradient(v)))


S = TypeVar("S", bound=FeasibleSet)


def structure(s: FeasibleSet) -> tuple[Any, ...]:
    """What two sets must share to be stacked: family, static fields and shapes."""
    leaves, treedef = jax.tree.flatten(s)
    return (treedef, tuple((np.shape(a), np.asarray(a).dtype.str) for a in leaves))


def stack(sets: Sequence[S]) -> S:
    """One set whose parameters carry a leading client axis, from single sets of one family and shape."""
    if len({structure(s) for s in sets}) != 1:
        raise ValueError("stack() takes sets of one family and shape; group the others first")
    return jax.tree.map(lambda *a: frozen(np.stack(a)), *sets)


def _stacked(spec: Mapping[str, Any], dim: int) -> int:
    """The most numbers of a set whose parameters, with all their leading axes, are broadcast against each other."""
    sizes = [(math.prod(shape), set(shape) <= {dim}) for shape in _shapes(spec)]
    return max((size for size, single in sizes if single), default=1) * math.prod(size for size, single in sizes if not single)


def _shapes(spec: Mapping[str, Any]) -> list[tuple[int, ...]]:
    return [np.shape(value) for value in spec.values() if isinstance(value, np.ndarray | tuple)]


def _brief(value: Any) -> str:
    if isinstance(value, FeasibleSet | bool | str | tuple | None):
        shown = repr(value)
        return shown if len(shown) <= 60 else f"{shown[:40]}... ({len(shown)} characters)"
    return f"{value:g}" if np.ndim(value) == 0 else f"array of shape {np.shape(value)}"


# Helpers for constructors.


def frozen(array: Any) -> Any:
    """The array, made read-only if it is NumPy's."""
    if isinstance(array, np.ndarray):
        array.flags.writeable = False
    return array


def float_array(owner: str, field: str, value: ArrayLike) -> np.ndarray:
    """A read-only float64 copy of real numbers; text is refused even where it spells a number."""
    try:
        if np.asarray(value).dtype.kind in "SUTcmM":
            raise TypeError
        return frozen(np.array(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{owner}: {field} must be numbers, found {value!r:.80}") from None


def parameter(owner: str, field: str, value: ArrayLike, ndim: int) -> np.ndarray:
    """``value`` as a finite, read-only float64 array with at least ``ndim`` axes."""
    array = float_array(owner, field, value)
    if array.ndim < ndim:
        raise ValueError(f"{owner}: {field} must have at least {ndim} axes, found shape {array.shape}")
    if ndim and 0 in array.shape[array.ndim - ndim :]:
        raise ValueError(f"{owner}: {field} must not be empty, found shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{owner}: {field} must be finite, found {array[~np.isfinite(array)][0]}")
    return array


def require(owner: str, field: str, array: np.ndarray, holds: np.ndarray, allowed: str) -> None:
    """Refuse a parameter, showing the first entry for which ``holds`` is false."""
    if not np.all(holds):
        wrong = float(np.broadcast_to(array, holds.shape)[~holds].flat[0])
        raise ValueError(f"{owner}: {field} must be {allowed}, found {wrong:g}")


def dimension(owner: str, dim: int) -> int:
    """``dim`` as a positive int."""
    real = isinstance(dim, (int, float, np.integer, np.floating)) and not isinstance(dim, bool)
    if not real or not math.isfinite(dim) or int(dim) != dim or dim < 1:
        raise ValueError(f"{owner}: dim must be a whole number >= 1, found {dim!r:.80}")
    return int(dim)


def broadcast_batch(owner: str, **arrays: tuple[np.ndarray, int]) -> Iterator[np.ndarray]:
    """The arrays, each given with its rank, with their leading client axes broadcast against each other."""
    batches = {name: a.shape[: a.ndim - rank] for name, (a, rank) in arrays.items()}
    try:
        batch = np.broadcast_shapes(*batches.values())
    except ValueError:
        raise ValueError(f"{owner}: leading client axes do not match: {batches}") from None
    for a, rank in arrays.values():
        yield frozen(np.broadcast_to(a, batch + a.shape[a.ndim - rank :]).copy())

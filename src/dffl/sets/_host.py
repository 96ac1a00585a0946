"""Sets whose oracle runs on the host: ordinary Python code that compiled programs call back.

What travels through JAX is a fingerprint, 16 bytes per set; the host model behind it stays in this process. Every set, stack
and slice holds the models of its own fingerprints, and nothing else does: a model is freed with the last of them.
"""

from __future__ import annotations

import hashlib
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar, Protocol
from weakref import WeakValueDictionary

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from dffl.interrupts import noticed
from dffl.sets._calls import REMEMBERED_BYTES, Calls, Remembered
from dffl.sets._errors import RowFailure, host_errors, passed_out
from dffl.sets._highspy import solving_within
from dffl.sets.base import Bracket, FeasibleSet, Parameter, dimension, stack


class HostModel(Protocol):
    """What answers for one set on the host. It is asked by one thread at a time."""

    def solve(self, costs: np.ndarray) -> np.ndarray:
        """A minimiser for each row of finite float64 costs, (n, d) to (n, d); it depends on that row alone.

        A model that is slow says ``remembered = True``: its answers are then kept (see `Remembered`). It is asked once at
        costs of zero when it is made, unless it says ``minimised = False``: what it adds to the costs has no least value.
        """

    def excess(self, w: np.ndarray) -> np.ndarray:
        """How far each row of w violates the constraints, relative to their size; <= 0 inside. (n, d) to (n,)."""


class Loaded:
    """A host model, built when it is first needed, and the constructor's arguments that it is built from."""

    def __init__(self, owner: str, build: Callable[[], HostModel], spec: dict[str, Any]):
        self.spec = spec
        self._owner, self._lock = owner, threading.Lock()
        self._build, self._building = build, threading.RLock()
        self._model: Any = None
        self._calls = Calls()
        self._remembered: Remembered | None = None

    @property
    def model(self) -> Any:
        """The model, built now if it was put off."""
        with self._building:
            if self._model is None:
                model = self._build()
                self._calls = getattr(model, "calls", None) or self._calls
                self._remembered = Remembered(REMEMBERED_BYTES) if getattr(model, "remembered", False) else None
                self._model = model
            return self._model

    @property
    def calls(self) -> Calls:
        """What the model was asked."""
        _ = self.model  # which may count by itself
        return self._calls

    def solve(self, costs: np.ndarray) -> np.ndarray:
        """One minimiser for each row of costs; NaN where a cost is not finite."""
        return self._where_finite("solve", costs)

    def project(self, points: np.ndarray) -> np.ndarray:
        """The nearest point for each row; NaN where a row is not finite."""
        return self._where_finite("project", points)

    def excess(self, w: np.ndarray) -> np.ndarray:
        """The violation of the constraints by each row of w."""
        return self._ask("excess", np.asarray(w, dtype=np.float64), lambda n, d: (n,))

    def _where_finite(self, what: str, rows: np.ndarray) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.float64)
        known = np.isfinite(rows).all(axis=-1)
        out = np.full(rows.shape, np.nan)
        if known.any():
            try:
                out[known] = self._ask(what, rows[known], lambda n, d: (n, d))
            except RowFailure as error:
                raise error.placed(np.flatnonzero(known)) from None
        return out

    def _ask(self, what: str, rows: np.ndarray, shape: Callable[[int, int], tuple[int, ...]]) -> np.ndarray:
        with self._lock:
            if what != "solve":
                return self._answered(what, rows, shape)
            self.calls.asked += len(rows)
            if self._remembered is None:
                return self._answered(what, rows, shape)
            return self._remembered.fill(rows, lambda new: self._answered(what, new, shape), self.calls)

    def _answered(self, what: str, rows: np.ndarray, shape: Callable[[int, int], tuple[int, ...]]) -> np.ndarray:
        out = np.asarray(getattr(self.model, what)(rows), dtype=np.float64)
        if out.shape != shape(*rows.shape):
            wanted = f"an array of shape {shape(*rows.shape)} for rows of shape {rows.shape}"
            raise ValueError(f"{self._owner}: {what}() of its host model must answer {wanted}, found shape {out.shape}")
        return out


# The registry: from a family and a fingerprint to what is loaded.

LATE = 64
_registry: WeakValueDictionary[tuple[type, bytes], Loaded] = WeakValueDictionary()
_loading = threading.Lock()
# The models released last. A program that was handed a set may be in flight when the caller drops the set: JAX lets some
# 32 programs wait for their inputs. It also saves time where a set is dropped and built again.
_late: deque[Loaded] = deque(maxlen=LATE)
_later: ContextVar[float | None] = ContextVar("later", default=None)


@contextmanager
def built_later(seconds: float) -> Iterator[None]:
    """Sets that are made inside build their models when they are first asked, which must not take longer than this.

    So a file of a stranger starts no solver when it is read, and reading the models of many clients is quick.
    """
    before = _later.set(seconds)
    try:
        yield
    finally:
        _later.reset(before)


def load_model(family: type, key: bytes, dim: int, spec: dict[str, Any], build: Callable[[], HostModel]) -> Loaded:
    """What is loaded under this key; built now, if there is nothing, and asked once, or when it is needed (`built_later`)."""
    loaded, later = _registry.get((family, key)), _later.get()
    if loaded is None:
        built = Loaded(family.__name__, build if later is None else partial(_built_within, later, build), spec)
        if later is None:
            with noticed():
                asked = getattr(built.model, "minimised", True)
            if asked:
                built.excess(built.solve(np.zeros((1, dim))))
        with _loading:  # two threads may have built it: both get the first one's
            loaded = _registry.setdefault((family, key), built)
    if later is None:
        _ = loaded.model  # one that was put off is built now
    return loaded


def _built_within(seconds: float, build: Callable[[], HostModel]) -> HostModel:
    with solving_within(seconds):
        return build()


def lookup(family: type, digest: np.ndarray) -> Loaded:
    """What is loaded under one fingerprint."""
    loaded = _registry.get((family, np.ascontiguousarray(digest, dtype=np.uint32).tobytes()))
    if loaded is None:
        fix = "keep the set until its answers are there, and pickle it as a whole"
        raise RuntimeError(f"{family.__name__}: its host model is not loaded in this process, or no longer; {fix}")
    return loaded


def fingerprint(content: Iterable[np.ndarray]) -> bytes:
    """16 bytes that differ where shapes or numbers do."""
    digest = hashlib.blake2b(digest_size=16)
    for array in content:
        digest.update(repr(array.shape).encode() + array.tobytes())
    return digest.digest()


def _content(owner: str, spec: dict[str, Any]) -> Iterable[np.ndarray]:
    for name, value in spec.items():
        try:
            array = np.asarray(value)
        except ValueError:  # lists of different lengths
            array = np.asarray(None)
        if array.dtype.hasobject:
            raise ValueError(f"{owner}: {name} is neither numbers nor text; name by content= the arrays that define it")
        yield np.asarray(f"{name} {array.dtype.str}")
        yield array


class HeldModels:
    """Fingerprints (..., 4), and the models behind them, held for as long as this object lives.

    A pytree of one leaf. Whoever makes a set from another, by stacking, indexing or ``jax.tree.map``, makes a new one of
    these, which finds its models while the old one still holds them. JAX's caches keep the structure of a pytree but not
    this object, and compiled programs get fingerprints as numbers: neither keeps a model alive.
    """

    def __init__(self, family: type, digest: Any):
        self.family, self.digest = family, digest
        self.models: tuple[Loaded, ...] = ()
        if _concrete(digest) and digest.dtype == np.uint32 and digest.shape[-1:] == (4,):
            words = np.asarray(digest).tobytes()
            entries = (_registry.get((family, words[i : i + 16])) for i in range(0, len(words), 16))
            self.models = tuple(loaded for loaded in entries if loaded is not None)

    def __del__(self, late: deque[Loaded] = _late) -> None:
        late.extend(self.models)


jax.tree_util.register_pytree_node(
    HeldModels, lambda held: ((held.digest,), held.family), lambda family, leaf: HeldModels(family, *leaf)
)


def _concrete(leaf: Any) -> bool:
    """Whether a leaf has numbers: inside compiled programs it has not, and JAX puts other things in its place as well."""
    if isinstance(leaf, jax.Array):
        return not isinstance(leaf, jax.core.Tracer) and leaf.is_fully_addressable and not leaf.is_deleted()
    return isinstance(leaf, np.ndarray)


# The family.


class HostSet(FeasibleSet):
    """A set whose oracle runs on the host. A family is a subclass whose constructor calls this one.

    ``spec`` holds the subclass's own constructor arguments, by name: checked arrays (see ``parameter``), numbers and text. The
    set is saved, sent and compared by them. ``build`` makes the ``HostModel`` from them, once for all equal sets of this
    process. ``content`` holds the arrays that make the set what it is, where ``spec`` holds something else. The model may also
    ``project`` rows of points, (n, d) to (n, d), which losses that smooth need.

    A model is freed when no set needs it any more. A program compiled ahead of time (``jax.jit(s.solve).lower(c).compile()``)
    does not hold the set that it was made from: keep the set as long as the program.
    """

    on_host: ClassVar[bool] = True

    _dim: int = eqx.field(static=True)
    _held: HeldModels

    @abstractmethod
    def __init__(
        self, dim: int, spec: dict[str, Any], build: Callable[[], HostModel], content: Iterable[np.ndarray] | None = None
    ):
        family = type(self)
        self._dim = dimension(family.__name__, dim)
        key = fingerprint(_content(family.__name__, spec) if content is None else content)
        loaded = load_model(family, key, self._dim, dict(spec), build)
        self._held = HeldModels(family, np.frombuffer(key, dtype=np.uint32))
        del loaded  # not earlier: the line above finds it by its key

    @property
    def digest(self) -> Parameter:
        """The fingerprints (..., 4): all of this set that travels through JAX, so any sets of one dimension stack."""
        return self._held.digest

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.digest)[:-1])

    def solve(self, c: ArrayLike) -> Array:
        # JAX may return before the host was asked, and the caller may then drop the set.
        with host_errors():
            return jax.block_until_ready(super().solve(c))

    def project(self, v: ArrayLike) -> Array:
        if not self.projects:
            raise ValueError(self.no_projection)
        with host_errors():
            return jax.block_until_ready(super().project(v))

    @property
    def projects(self) -> bool:
        # Inside compiled programs no models are held: whoever handed the set to the program has asked before.
        return all(hasattr(loaded.model, "project") for loaded in self._held.models)

    @property
    def calls(self) -> Calls:
        """What the oracle of this single set was asked in this process: a live count, shared by equal sets."""
        return self._loaded("calls").calls

    def spec(self) -> dict[str, Any]:
        return dict(self._loaded("spec").spec)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.batch_shape:
            return (stack, ([self[i] for i in range(self.batch_shape[0])],))
        return (_rebuild, (type(self), self.spec()))

    def _loaded(self, what: str) -> Loaded:
        """The model of this single set."""
        return lookup(type(self), np.asarray(self._single(what).digest))

    def _over_batch(self, function: Callable[[Any, Array], Array], c: Array) -> Array:
        with host_errors():
            return jax.block_until_ready(_compiled(function, self, c))

    def _minimise(self, c: Array) -> Array:
        return _from_host(Loaded.solve, self._held, c, c.shape)

    def _project(self, v: Array) -> Array:
        return _from_host(Loaded.project, self._held, v, v.shape)

    @property
    def no_projection(self) -> str:
        return f"{type(self).__name__}: it cannot project onto itself; give its host model a method project(points)"

    def _excess(self, w: Array) -> Array:
        return _from_host(Loaded.excess, self._held, w, w.shape[:-1])

    def _diameter(self) -> Bracket:
        loaded = self._loaded("diameter")
        low, high, best = np.empty(self.dim), np.empty(self.dim), 0.0
        rng = np.random.default_rng(0)
        for j, direction in enumerate([*np.eye(self.dim), *rng.normal(size=(self.dim, self.dim))]):
            # Power iteration: the two extreme points along a direction give the next, longer direction.
            length, axis = -1.0, j < self.dim
            while True:
                ends = loaded.solve(np.stack([direction, -direction]))
                if axis:
                    low[j], high[j], axis = ends[0, j], ends[1, j], False
                direction = ends[1] - ends[0]
                previous, length = length, float(np.linalg.norm(direction))
                if length <= previous * (1 + 1e-12):
                    break
            best = max(best, length)
        upper = float(np.linalg.norm(high - low))  # of the box around the set
        return Bracket(min(best, upper), upper)


@partial(jax.jit, static_argnums=0)
def _compiled(function: Callable[[Any, Array], Array], s: HostSet, c: Array) -> Array:
    # The host takes a stack as it is. Compiled, because JAX compiles a callback outside of a program again at each call.
    return function(s, c)


def _rebuild(family: type[HostSet], spec: dict[str, Any]) -> HostSet:
    return family(**spec)


def _from_host(
    function: Callable[[Loaded, np.ndarray], np.ndarray], models: HeldModels, values: Array, shape: tuple[int, ...]
) -> Array:
    """Call a function of the models from a compiled program, for values (clients..., ..., d).

    The callback runs on a thread of its own, on which JAX has no 64-bit numbers: they are passed as pairs of 32-bit words.
    """
    dtype = np.dtype(values.dtype)
    pair = (2,) if dtype == np.float64 else ()
    family, keep_last = models.family, len(shape) == values.ndim

    def call(digests: Any, words: Any) -> np.ndarray:
        floats = np.ascontiguousarray(words).view(dtype)
        out = _each(function, family, np.asarray(digests), floats[..., 0] if pair else floats, keep_last)
        return (out[..., None] if pair else out).view(np.uint32)

    result = jax.ShapeDtypeStruct(shape + pair, jnp.uint32)
    words = lax.bitcast_convert_type(values, jnp.uint32)
    return lax.bitcast_convert_type(jax.pure_callback(call, result, models.digest, words, vmap_method="expand_dims"), dtype)


def _each(
    function: Callable[[Loaded, np.ndarray], np.ndarray], family: type, digests: np.ndarray, values: np.ndarray, keep_last: bool
) -> np.ndarray:
    """Apply a model's function to its own rows. The fingerprints' leading axes are the clients'."""
    clients = digests.ndim - 1
    batch = np.broadcast_shapes(digests.shape[:-1], values.shape[:clients])
    digests = np.broadcast_to(digests, (*batch, digests.shape[-1]))
    values = np.broadcast_to(values, batch + values.shape[clients:])
    out = np.empty(values.shape if keep_last else values.shape[:-1], values.dtype)
    for index in np.ndindex(*batch):
        rows = values[index].reshape(-1, values.shape[-1])
        try:
            out[index] = function(lookup(family, digests[index]), rows).reshape(out[index].shape)
        except (Exception, KeyboardInterrupt) as error:
            raise passed_out(error, digests[index].tobytes(), rows) from None
    return out

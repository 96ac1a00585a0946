"""Predictors: from features to costs, in raw units, with everything that was learned inside.

A predictor contains its normalisers, so that the saved model decides by itself. Networks see standardised features and
return scaled costs; the predictor converts both.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dffl.items import block, over_items
from dffl.named import register
from dffl.networks import call, precise_outputs

NetworkFactory = Callable[[Array, int, int], eqx.Module]
"""Builds a network from a random key, the number of features p and the number of costs d."""


class Normaliser(eqx.Module):
    """A client's units: features are standardised; costs and forecasts of them are divided by their mean absolute value."""

    x_mean: np.ndarray
    x_scale: np.ndarray
    c_scale: np.ndarray

    @classmethod
    def fit(
        cls, x: np.ndarray, c: np.ndarray, features: bool = True, costs: bool = True, forecasts: int = 0, items: int = 0
    ) -> Self:
        """The units of these rows. A constant feature and all-zero costs keep a scale of 1.

        The last ``forecasts`` features are forecasts of costs and have the units of the costs. Each of the ``items``
        features of items has one mean and one scale for all items: separate scales would remove the differences between
        items.
        """
        mean, scale = np.zeros(x.shape[-1]), np.ones(x.shape[-1])
        if features:
            mean, scale = x.mean(axis=0), x.std(axis=0)
            if items:
                layout = c.shape[-1], items, forecasts > 0
                place = block(x.shape[-1], *layout)
                mean[place], scale[place] = (over_items(statistic, x, *layout) for statistic in (np.mean, np.std))
            # Rounding leaves a constant column with a tiny standard deviation, which must not be scaled up to 1.
            scale = np.where(scale > 1e-12 * np.maximum(np.abs(mean), 1e-300), scale, 1.0)
        size = float(np.abs(c).mean()) if costs else 1.0
        size = size if size > 0 else 1.0
        if forecasts:
            mean[-forecasts:], scale[-forecasts:] = 0.0, size
        return cls(mean, scale, np.asarray(size))

    @classmethod
    def pool(cls, parts: Sequence[Normaliser], counts: Sequence[int], forecasts: int = 0) -> Self:
        """The units of all the rows behind several normalisers together: for a client that did not take part."""
        share = np.asarray(counts, float) / np.sum(counts)
        means = np.stack([n.x_mean for n in parts])
        mean = share @ means
        variance = share @ (np.stack([n.x_scale for n in parts]) ** 2 + (means - mean) ** 2)
        scale, size = np.sqrt(variance), float(share @ np.array([float(n.c_scale) for n in parts]))
        if forecasts:
            scale[-forecasts:] = size
        return cls(mean, scale, np.asarray(size))

    @classmethod
    def middle(cls, parts: Sequence[Normaliser]) -> Self:
        """The mean of almost equal units: those of the folds of one client."""
        return cls(
            *(np.mean([np.asarray(getattr(n, name)) for n in parts], axis=0) for name in ("x_mean", "x_scale", "c_scale"))
        )

    def features(self, x: Any) -> Any:
        return (x - self.x_mean) / self.x_scale


class Network(eqx.Module):
    """Fully connected layers with ReLU between them, by default p -> 64 -> d; Glorot-uniform weights, zero biases."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def __init__(self, key: Array, inputs: int, outputs: int, hidden: Sequence[int] = (64,)):
        sizes = (inputs, *hidden, outputs)
        shapes = list(itertools.pairwise(sizes))
        keys = jax.random.split(key, len(shapes))
        glorot = jax.nn.initializers.glorot_uniform()
        self.weights = tuple(glorot(k, shape) for k, shape in zip(keys, shapes, strict=True))
        self.biases = tuple(jnp.zeros(shape[1]) for shape in shapes)

    def __call__(self, x: Array) -> Array:
        *inner, last = zip(self.weights, self.biases, strict=True)
        for weight, bias in inner:  # x @ weight, not weight @ x: a batch then needs no transposes
            x = jax.nn.relu(x @ weight + bias)
        return x @ last[0] + last[1]

    def silent(self) -> Self:
        """The network with an output of zero at the start."""
        return eqx.tree_at(lambda network: network.weights[-1], self, jnp.zeros_like(self.weights[-1]))


class Correction(eqx.Module):
    """A forecast of the costs, which are the last features, and a network of the other features that corrects it.

    Without other features, the network sees the forecast. The trust in the forecast is learnt too: its gain starts at 1, and
    increases where the forecast is too flat.
    """

    network: eqx.Module
    gain: Array
    costs: int = eqx.field(static=True)

    def __init__(self, network: eqx.Module, costs: int):
        self.network, self.gain, self.costs = network, jnp.ones(()), costs

    def __call__(self, x: Array, key: Array | None = None) -> Array:
        others = x[: -self.costs] if x.size > self.costs else x
        return self.gain * x[-self.costs :] + call(self.network, others, key)


def clip_norm(y: Array, tau: Any) -> tuple[Array, Array]:
    """y, shrunk to Euclidean norm tau if it is longer, and its norm before."""
    norm = jnp.sqrt(jnp.sum(y * y, axis=-1) + jnp.finfo(y.dtype).tiny)
    return y * jnp.minimum(1, tau / norm)[..., None], norm


class Predictor(eqx.Module):
    """From raw features (..., p) to raw costs (..., d)."""

    kinds: ClassVar[dict[str, type[Predictor]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register(Predictor.kinds, cls.__name__, cls, "predictor")  # saved predictors are found by this name

    @abstractmethod
    def __call__(self, x: Array) -> Array: ...


class NetworkPredictor(Predictor):
    """A network with a client's units; its output is clipped to norm tau in scaled units."""

    network: eqx.Module
    normaliser: Normaliser
    tau: np.ndarray

    def __call__(self, x: Array) -> Array:
        z = self.normaliser.features(x)
        y = precise_outputs(self.network, z.reshape(-1, z.shape[-1]))
        return clip_norm(y, self.tau)[0].reshape(*z.shape[:-1], -1) * self.normaliser.c_scale


class ConstantPredictor(Predictor):
    """The same costs for all features."""

    costs: np.ndarray

    def __call__(self, x: Array) -> Array:
        return jnp.broadcast_to(self.costs, (*x.shape[:-1], *self.costs.shape))


class ForecastPredictor(Predictor):
    """The forecast that a client has already: its last features."""

    costs: int

    def __call__(self, x: Array) -> Array:
        return x[..., -self.costs :]


class MixedPredictor(Predictor):
    """(1 - weight) own + weight shared: a mix of two predictors' outputs."""

    own: Predictor
    shared: Predictor
    weight: np.ndarray

    def __call__(self, x: Array) -> Array:
        return (1 - self.weight) * self.own(x) + self.weight * self.shared(x)


class MeanPredictor(Predictor):
    """The mean of several predictors' outputs."""

    models: tuple[Predictor, ...]

    def __call__(self, x: Array) -> Array:
        return sum((model(x) for model in self.models[1:]), start=self.models[0](x)) / len(self.models)


class Template:
    """The form of a network whose trainable numbers are one flat vector.

    Training, averaging and messages use that vector; only this class converts it to a network.
    """

    def __init__(self, network: eqx.Module):
        arrays, self._rest = eqx.partition(network, eqx.is_inexact_array)
        if not jax.tree.leaves(arrays) or any(jnp.iscomplexobj(array) for array in jax.tree.leaves(arrays)):
            raise ValueError("network must be an Equinox module with arrays of real numbers to train")
        paths, self._treedef = jax.tree_util.tree_flatten_with_path(arrays)
        self.names = tuple(".".join(_step(step) for step in path) for path, _ in paths)
        """The network's arrays, such as ``weights.0``, in the order of the vector."""
        self._shapes = tuple(leaf.shape for _, leaf in paths)
        self._ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        self.size = int(self._ends[-1])
        rest_leaves, rest_treedef = jax.tree.flatten(self._rest)
        self._key: Any = (self._treedef, self._shapes, rest_treedef, tuple(rest_leaves))
        try:
            hash(self._key)
        except TypeError:  # a network with arrays that are not trained is equal only to itself
            self._key = id(self)

    def vector(self, network: eqx.Module) -> Array:
        """The trainable numbers of a network of this form."""
        return self.join(jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))

    def network(self, vector: Any) -> Any:
        """The network with these trainable numbers."""
        return self.assemble(self.cut(vector))

    def cut(self, vector: Any) -> list[Any]:
        """The vector as the network's arrays."""
        starts = [0, *self._ends[:-1]]
        return [vector[a:b].reshape(shape) for a, b, shape in zip(starts, self._ends, self._shapes, strict=True)]

    def join(self, arrays: list[Array]) -> Array:
        """The network's arrays as a vector: the inverse of `cut`."""
        return jnp.concatenate([array.reshape(-1) for array in arrays])

    def assemble(self, arrays: list[Array]) -> Any:
        """The network that has these arrays."""
        return eqx.combine(jax.tree.unflatten(self._treedef, arrays), self._rest)

    def layers(self, wanted: str | Sequence[str]) -> Layers:
        """Some arrays of the network: names or patterns such as ``weights.1``, ``*.1`` or ``head.*``.

        ``last`` is the layer that the network declares last.
        """
        patterns = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        named = {pattern: [name for name in self.names if fnmatchcase(name, pattern)] for pattern in patterns}
        if patterns == ("last",):
            layers = {name: layer for name in self.names if (layer := _layer(name))}
            if layers:  # otherwise the array of this name, as networks of items have
                named["last"] = [name for name, layer in layers.items() if layer == list(layers.values())[-1]]
        if not patterns or not all(named.values()):  # each of several names must match: it may be mistyped
            unknown = next((pattern for pattern, names in named.items() if not names), wanted)
            raise ValueError(f"{unknown!r} names no layer of the network (it has {', '.join(self.names)})")
        selected = [name for name in self.names if any(name in names for names in named.values())]
        sizes = np.diff([0, *self._ends])
        mask = np.repeat([name in selected for name in self.names], sizes)
        return Layers(tuple(selected), np.packbits(mask).tobytes(), self.size)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and self._key == other._key


@dataclass(frozen=True)
class Layers:
    """Some of the numbers of a network's vector: those of the arrays with these names."""

    names: tuple[str, ...]
    _bits: bytes
    _size: int

    @property
    def mask(self) -> np.ndarray:
        """True for numbers of these layers."""
        return np.unpackbits(np.frombuffer(self._bits, np.uint8), count=self._size).astype(bool)

    @property
    def others(self) -> Layers:
        """All the other numbers."""
        return Layers(tuple(f"not {name}" for name in self.names), np.packbits(~self.mask).tobytes(), self._size)


def _layer(name: str) -> tuple[str, ...]:
    """The layer of an array: ``head`` for ``head.weight``, 1 for ``weights.1``; None for an array outside of layers."""
    *above, last = name.split(".")
    return (*above[:-1], last) if last.isdigit() else tuple(above)


def _step(step: Any) -> str:
    """One step of the path to an array, as a plain word or number."""
    return str(getattr(step, "name", getattr(step, "idx", getattr(step, "key", step))))

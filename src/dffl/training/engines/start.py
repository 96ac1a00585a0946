"""The start of every engine: precision, the network and the recipe, from the settings and the seed alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dffl.losses import Loss
from dffl.networks import draws, quiet
from dffl.predictor import Template
from dffl.randomness import Purpose, stream
from dffl.training.optimisers import Optimiser
from dffl.training.privacy.levels import SamplePrivacy
from dffl.training.settings import Settings
from dffl.training.update import NetworkForm, Recipe


def precision(settings: Settings) -> AbstractContextManager[Any]:
    """The context in which everything of a run is traced and computed."""
    return jax.enable_x64(settings.dtype == "float64")


def starting_recipe(settings: Settings, features: int, dim: int) -> tuple[Recipe, np.ndarray]:
    """The recipe of the run, and the start vector of every client."""
    network = _initial_network(settings, features, dim)
    template = Template(network)
    vector = np.asarray(template.vector(network)).astype(settings.dtype)
    random = _checked(template.network(jnp.asarray(vector)), features, dim, settings.dtype)
    recipe = Recipe(
        NetworkForm(template, settings.clip(dim), random),
        features,
        Loss.of(settings.loss),
        Optimiser.of(settings.optimiser),
        settings.learning_rate,
        settings.gradient_clip,
        protects=settings.hides if isinstance(settings.hides, SamplePrivacy) else None,
    )
    return recipe, vector


def _initial_network(settings: Settings, features: int, dim: int) -> Any:
    """The start network of every client."""
    seed = stream(settings.seed, Purpose.INITIALISE).integers(2**31)
    key = jax.random.key(int(seed))
    return settings.factory(key, features, dim)


def _checked(network: Any, features: int, dim: int, dtype: str) -> bool:
    """Whether a network asks for random keys in training. One that cannot be trained, or cannot predict, is refused."""
    wanted = f"network must map a vector of {features} features to a vector of {dim} costs"
    x = jax.ShapeDtypeStruct((features,), jnp.dtype(dtype))
    random = draws(network, x)
    ways: list[tuple[str, Callable[[Any], Any]]] = [
        ("in training", (lambda x: network(x, key=jax.random.key(0))) if random else network),
        ("in prediction, without a key", quiet(network)),
    ]
    for when, called in ways:
        try:
            output = jax.eval_shape(called, x)
        except (TypeError, ValueError, AttributeError, RuntimeError) as error:
            line = str(error).splitlines()[0] if str(error) else type(error).__name__
            hint = "; its __call__ must take key and pass it on" if "key" in line and not random else ""
            raise ValueError(f"{wanted}, {when} ({line}){hint}") from None
        shape, kind = getattr(output, "shape", None), getattr(output, "dtype", type(output).__name__)
        if shape != (dim,):
            raise ValueError(f"{wanted}, found output shape {shape}")
        if not jnp.issubdtype(kind, jnp.floating):
            raise ValueError(f"{wanted}, found numbers of type {kind}")
    return random

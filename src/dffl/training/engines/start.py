"""What every engine starts from: precision, the network and the recipe, from the settings and the seed alone."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dffl.losses import Loss
from dffl.predictor import Template
from dffl.randomness import Purpose, stream
from dffl.training.optimisers import Optimiser
from dffl.training.privacy.levels import SamplePrivacy
from dffl.training.settings import Settings
from dffl.training.update import NetworkForm, Recipe


def precision(settings: Settings) -> AbstractContextManager[Any]:
    """The context in which everything of a run is traced and run."""
    return jax.enable_x64(settings.dtype == "float64")


def starting_recipe(settings: Settings, features: int, dim: int) -> tuple[Recipe, np.ndarray]:
    """How the run trains, and the vector that every client starts from."""
    network = initial_network(settings, features, dim)
    template = Template(network)
    recipe = Recipe(
        NetworkForm(template, settings.tau),
        features,
        Loss.of(settings.loss),
        Optimiser.of(settings.optimiser),
        settings.learning_rate,
        settings.gradient_clip,
        protects=settings.hides if isinstance(settings.hides, SamplePrivacy) else None,
    )
    return recipe, np.asarray(template.vector(network)).astype(settings.dtype)


def initial_network(settings: Settings, features: int, dim: int) -> Any:
    """The network that every client starts from."""
    seed = stream(settings.seed, Purpose.INITIALISE).integers(2**31)
    key = jax.random.key(int(seed))
    network: Any = settings.factory(key, features, dim)
    try:
        shape = jax.eval_shape(network, jax.ShapeDtypeStruct((features,), jnp.float32)).shape
    except (TypeError, ValueError, AttributeError) as error:
        line = str(error).splitlines()[0]
        raise ValueError(f"network must map a vector of {features} features to a vector of {dim} costs ({line})") from None
    if shape != (dim,):
        wanted = f"a vector of {features} features to a vector of {dim} costs"
        raise ValueError(f"network must map {wanted}, found output shape {shape}")
    return network

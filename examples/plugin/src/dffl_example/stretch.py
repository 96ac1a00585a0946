"""A set with an int parameter: one stretch of neighbouring places, such as hours."""

import jax.numpy as jnp
import numpy as np
from jax import Array

import dffl
from dffl.sets.parameters import WHOLE


class Stretch(dffl.FeasibleSet):
    """Choose ``width`` neighbours out of ``dim`` places; of equal ones the first."""

    convex = False
    toml_name = "stretch"  # set = { type = "stretch", width = 3 }
    toml_parameters = {"width": WHOLE}  # dim is the number of cost columns

    dim: int
    width: int

    def __init__(self, dim: int, width: int):
        if not 1 <= width <= dim:
            raise ValueError(f"Stretch: width must be from 1 to {dim}, found {width}")
        self.dim, self.width = dim, width

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Without arrays there are no client axes."""
        return ()

    def in_words(self) -> str:
        """How reports call it."""
        return f"{self.width} neighbours of {self.dim}"

    def _minimise(self, c: Array) -> Array:
        stretches = jnp.asarray(self._stretches(), c.dtype)
        return stretches[jnp.argmin(c @ stretches.T, axis=-1)]

    def _excess(self, w: Array) -> Array:
        away = jnp.abs(w[..., None, :] - self._stretches())
        return away.max(axis=-1).min(axis=-1)

    def _stretches(self) -> np.ndarray:
        """All decisions, one in each row."""
        count = self.dim - self.width + 1
        places = np.arange(self.dim) - np.arange(count)[:, None]
        return ((places >= 0) & (places < self.width)).astype(np.float32)

"""A feasible set of one's own: all points within a city-block distance of a centre."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import dffl
from dffl.sets.base import parameter, require, stack


class CityBlockBall(dffl.FeasibleSet):
    """{w : |w - center|_1 <= radius}: move along the coordinate that matters most."""

    center: np.ndarray
    radius: np.ndarray

    def __init__(self, center: object, radius: object):
        self.center = parameter("CityBlockBall", "center", center, ndim=1)
        self.radius = parameter("CityBlockBall", "radius", radius, ndim=0)
        require("CityBlockBall", "radius", self.radius, self.radius >= 0, ">= 0")

    @property
    def dim(self) -> int:
        return int(self.center.shape[-1])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.radius))

    def _minimise(self, c: Array) -> Array:
        best = jax.nn.one_hot(jnp.argmax(jnp.abs(c), axis=-1), self.dim, dtype=c.dtype)
        return self.center - self.radius * jnp.sign(c) * best

    def _excess(self, w: Array) -> Array:
        distance = jnp.sum(jnp.abs(w - self.center), axis=-1)
        return (distance - self.radius) / jnp.maximum(self.radius, 1)

    def _diameter(self) -> dffl.Bracket:
        return dffl.Bracket(2 * float(self.radius), 2 * float(self.radius))


def client(name: str, s: dffl.FeasibleSet) -> dffl.Client:
    """A client with costs that follow its features."""
    rng = np.random.default_rng(len(name))
    x = rng.normal(size=(80, 3))
    return dffl.Client(
        name, x, x @ np.arange(12.0).reshape(3, 4) + rng.normal(size=(80, 4)), s
    )


# It trains beside the built-in families, and is saved and loaded like them.
federation = dffl.Federation(
    [client("ours", CityBlockBall(np.zeros(4), 2.0)), client("theirs", dffl.TopK(4, 2))]
)
fit = dffl.fit(federation, "interp-spo", rounds=5)
fit.save("own-set.dffl")
print(
    dffl.load("own-set.dffl")
    .evaluate(federation)[["client", "relative_regret", "lambda"]]
    .round(4)
    .to_string(index=False)
)

# Clients of one family train in one batch: parameters get a leading client axis.
both = stack([CityBlockBall(np.zeros(4), 1.0), CityBlockBall(np.ones(4), 3.0)])
print(both.solve(np.ones((2, 4))))

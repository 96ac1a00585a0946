"""A custom loss: the mean SPO+ loss over predictions with some noise."""

import jax
from jax import Array

import dffl
from dffl.losses import Rows, spo_plus_gap


class NoisySPOPlus(dffl.Loss):
    """Decisions that are good at nearby predictions, too."""

    name = "noisy-spo+"
    random = True  # asks for a key: a new one in every step, fixed by the seed

    def __init__(self, noise: float = 0.1):
        self.noise = noise

    def __call__(
        self, c_hat: Array, rows: Rows, s: dffl.FeasibleSet, key: Array
    ) -> Array:
        """One value for each row; w*(c) of each row is known."""
        nearby = c_hat + self.noise * jax.random.normal(key, c_hat.shape, c_hat.dtype)
        return spo_plus_gap(nearby, rows.c, rows.w_star, s)


if __name__ == "__main__":
    train = dffl.synthetic.knapsack(clients=4, samples=40)
    test = dffl.synthetic.knapsack(split="test", clients=4)
    fit = dffl.fit(train, "finetune", loss=NoisySPOPlus(noise=0.5), rounds=10)
    print(fit.evaluate(test)["relative_regret"].mean())

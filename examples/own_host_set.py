"""A feasible set of one's own whose oracle is a plain Python function."""

from itertools import product

import numpy as np

import dffl
from dffl.sets import HostSet
from dffl.sets.base import parameter


class Plans:
    """Answers for one set: any Python code may stand here, a solver's as well."""

    def __init__(self, weights: np.ndarray, budget: np.ndarray):
        every = np.array(list(product([0.0, 1.0], repeat=len(weights))))
        self.allowed = every[every @ weights <= budget]

    def solve(self, costs: np.ndarray) -> np.ndarray:
        """The cheapest plan for each row of costs, (n, d) to (n, d)."""
        return self.allowed[np.argmin(costs @ self.allowed.T, axis=1)]

    def excess(self, w: np.ndarray) -> np.ndarray:
        """How far each row is from the nearest plan, (n, d) to (n,)."""
        return np.abs(w[:, None] - self.allowed).max(axis=2).min(axis=1)


class WholeKnapsack(HostSet):
    """Items that are packed whole or not at all: all packings are tried."""

    def __init__(self, weights: object, budget: object):
        a = parameter("WholeKnapsack", "weights", weights, ndim=1)
        b = parameter("WholeKnapsack", "budget", budget, ndim=0)
        if not (a.ndim == 1 and b.ndim == 0 and (a >= 0).all() and b >= 0):
            raise ValueError("WholeKnapsack: give a weight >= 0 an item and one budget")
        super().__init__(len(a), {"weights": a, "budget": b}, lambda: Plans(a, b))


def client(name: str, s: dffl.FeasibleSet) -> dffl.Client:
    """A client that earns what it packs, or chooses."""
    rng = np.random.default_rng(len(name))
    x = rng.normal(size=(40, 3))
    c = x @ np.arange(12.0).reshape(3, 4) + rng.normal(size=(40, 4))
    return dffl.Client(name, x, c, s, maximize=True)


if __name__ == "__main__":
    ours = WholeKnapsack([1.0, 2.0, 2.0, 3.0], 4.0)
    print(ours.solve([-1.0, -2.0, -2.0, -3.5]), ours.diameter())
    federation = dffl.Federation(
        [client("ours", ours), client("theirs", dffl.TopK(4, 2))]
    )
    fit = dffl.fit(federation, "interp-spo", rounds=2)
    fit.save("own-host-set.dffl")
    table = dffl.load("own-host-set.dffl").evaluate(federation)
    print(table[["client", "relative_regret", "lambda"]].round(4).to_string())

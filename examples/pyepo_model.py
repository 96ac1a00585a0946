"""A model of PyEPO as a feasible set: pip install 'dffl[pyepo]'."""

import numpy as np
from pyepo.model.omo import knapsackModel

import dffl

WEIGHTS, CAPACITY = np.array([[3.0, 5.0, 4.0, 7.0, 6.0, 3.0]]), np.array([13.0])


def shop(name: str, s: dffl.FeasibleSet) -> dffl.Client:
    """A shop that earns what it packs."""
    rng = np.random.default_rng(len(name))
    x = rng.normal(size=(40, 3))
    c = 10 + 3 * x @ rng.normal(size=(3, 6))
    return dffl.Client(name, x, c, s, maximize=True)


if __name__ == "__main__":  # the model is solved in a process of its own
    packing = dffl.sets.pyepo(
        knapsackModel, weights=WEIGHTS, capacity=CAPACITY, solver="appsi_highs"
    )
    same = dffl.ZeroOneKnapsack(WEIGHTS[0], CAPACITY[0])
    shops = dffl.Federation([shop("corner", packing), shop("station", same)])
    fit = dffl.fit(shops, "fedavg", rounds=2)
    print(fit.evaluate(shops)[["client", "relative_regret"]].round(4).to_string())
    fit.save("pyepo-model.dffl")
    loaded = dffl.load("pyepo-model.dffl", solvers={packing.name: packing})
    print(loaded.decide("corner", shops["corner"].x[:2]))

"""Any Python function that minimises a linear cost is a feasible set."""

import numpy as np
from scipy.optimize import linear_sum_assignment

import dffl

N = 3


def assign(c: np.ndarray) -> np.ndarray:
    """Each of N workers gets one of N tasks, at the least cost in all."""
    w = np.zeros((N, N))
    w[linear_sum_assignment(c.reshape(N, N))] = 1.0
    return w.ravel()


def allowed(w: np.ndarray) -> bool:
    """Whether a decision is an assignment: every answer is checked by it."""
    table = w.reshape(N, N)
    return bool((table.sum(axis=0) == 1).all() and (table.sum(axis=1) == 1).all())


if __name__ == "__main__":
    plans = dffl.Solver(assign, N * N, contains=allowed, processes=1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 4))
    c = 5 + x @ rng.normal(size=(4, N * N))
    federation = dffl.Federation([dffl.Client("shop", x, c, plans)])
    fit = dffl.fit(federation, "local", rounds=2)
    fit.save("own-solver.dffl")
    loaded = dffl.load("own-solver.dffl", solvers={"assign": plans})
    print(loaded.decide("shop", x[0]).reshape(N, N))

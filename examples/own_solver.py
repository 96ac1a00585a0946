"""Your own function, with any solver inside, is a feasible set."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import dffl

# Which of six depots reach which of five towns. Every town needs an open depot.
REACHES = np.array(
    [
        [1, 0, 1, 0, 0, 1],
        [1, 1, 0, 0, 1, 0],
        [0, 1, 1, 1, 0, 0],
        [0, 0, 0, 1, 1, 0],
        [0, 1, 0, 0, 1, 1],
    ]
)


def depots(c: np.ndarray) -> np.ndarray:
    """The depots to open: every town is reached, at the least cost c . w."""
    found = milp(
        c,
        integrality=np.ones(6),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(REACHES, lb=1),
        options={"mip_rel_gap": 0},
    )
    return np.round(found.x)  # a solver may say 0.9999999


def reached(w: np.ndarray) -> bool:
    """Whether a decision is allowed: every answer is checked by it."""
    return bool(np.isin(w, (0, 1)).all() and (REACHES @ w >= 1).all())


if __name__ == "__main__":
    plans = dffl.Solver(depots, 6, contains=reached)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    c = 10 + 3 * x @ rng.normal(size=(3, 6)) + rng.normal(size=(40, 6))
    federation = dffl.Federation([dffl.Client("post", x, c, plans)])
    fit = dffl.fit(federation, "local", rounds=2)
    print(fit.evaluate(federation)[["client", "relative_regret"]].round(4).to_string())
    fit.save("own-solver.dffl")  # the name "depots" is saved, not the code
    loaded = dffl.load("own-solver.dffl", solvers={"depots": plans})
    print(loaded.decide("post", x[:3]))

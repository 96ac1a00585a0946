"""A mixed-integer set from arrays, trained on its relaxation and on itself."""

import numpy as np

import dffl

# Eight orders may be taken, all of an order or nothing. Their profits are predicted.
# One machine has 20 hours. More hours are a helper, whose cost of 2 an hour is known.
HOURS = np.array([5.0, 7.0, 4.0, 3.0, 8.0, 6.0, 5.0, 9.0])
orders = dffl.MixedInteger(
    A_ub=np.append(HOURS, -1.0)[None],  # hours of the orders - more hours <= 20
    b_ub=[20.0],
    lower=np.zeros(9),
    upper=np.append(np.ones(8), 10.0),
    integer=range(8),
    helpers=1,
    known_cost=[-2.0],  # in the client's own sense: it maximises, so a cost is negative
)


def shop(seed: int, days: int) -> dffl.Client:
    """A shop whose profits follow three features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(days, 3))
    effect = np.random.default_rng(9).normal(size=(3, 8))
    c = 15 + 6 * x @ effect + rng.normal(size=(days, 8))
    return dffl.Client(f"shop {seed}", x, c, orders, maximize=True)


train = dffl.Federation([shop(0, 60), shop(1, 60)])
test = dffl.Federation([shop(0, 500), shop(1, 500)])
for relax in (False, True):
    before = orders.calls.asked - orders.calls.repeated
    fit = dffl.fit(train, "local", rounds=15, relax=relax)
    solved = orders.calls.asked - orders.calls.repeated - before
    regret = fit.evaluate(test)["relative_regret"].mean()
    print(f"relax={relax}: {solved} integer programs in training, {regret:.2%} regret")
print(fit.decide("shop 0", test[0].x[:3]))  # the orders, then the hours of the helper

"""Three sites buy electricity for some hours of the day: who gains by federating?"""

import numpy as np

import dffl

HOURS, WEATHER = 24, 6
rng = np.random.default_rng(0)
price_model = rng.normal(size=(WEATHER, HOURS))


def site(name: str, days: int, k: float, difference: float) -> dffl.Client:
    """Weather x, prices c, and the site's own constraint: buy k of 24 hours."""
    x = rng.normal(size=(days, WEATHER))
    effect = price_model + difference * rng.normal(size=price_model.shape)
    prices = 60 + 4 * x @ effect + 3 * rng.normal(size=(days, HOURS))
    return dffl.Client(name, x, prices, dffl.TopK(HOURS, k))


sites = [
    site("mill", 380, 6, 0.0),
    site("bakery", 240, 10.5, 0.0),
    site("laundry", 240, 4, 1.0),
]

# Each site trains on its first days and is judged on its last 200.
train = dffl.Federation([client.rows(slice(None, -200)) for client in sites])
test = dffl.Federation([client.rows(slice(-200, None)) for client in sites])

methods = ["mean-cost", "local", "fedavg", "interp-spo", "finetune"]
table = dffl.compare(train, methods, test=test, rounds=20)  # three random seeds
print(table[["client", "method", "relative_regret", "verdict"]].round(4).to_string())

fit = dffl.fit(train, "finetune", rounds=20)
decision = fit.decide("bakery", test["bakery"].x[0])
print("the bakery buys the hours", np.flatnonzero(decision > 0))

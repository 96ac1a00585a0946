"""A custom method: small clients use the shared model, large ones their own."""

import numpy as np

import dffl


@dffl.method("by-size")
def by_size(run: dffl.Run) -> dffl.Outcome:
    """Small clients federate, large ones stay local."""
    local = run.personal(run.trained(dffl.Local()))  # trained once for all methods
    common, newcomer = run.common(run.trained(dffl.FedAvg()))
    median = np.median(run.federation.counts)
    weights = [float(n <= median) for n in run.federation.counts]
    mixed = [
        dffl.MixedPredictor(a, b, np.asarray(w))
        for a, b, w in zip(local, common, weights, strict=True)
    ]
    return dffl.Outcome(mixed, shared=newcomer, choices={"lambda": weights})


if __name__ == "__main__":
    samples = [200, 200, 200, 30, 30, 30]
    train = dffl.synthetic.knapsack(clients=6, samples=samples)
    test = dffl.synthetic.knapsack(split="test", clients=6)
    table = dffl.compare(train, ["local", "by-size"], test=test, rounds=10)
    print(dffl.summarise(table)[["mean", "median", "max"]].round(4).to_string())

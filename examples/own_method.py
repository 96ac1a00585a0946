"""A method of one's own: small clients use the shared model, large ones their own."""

import numpy as np

import dffl


@dffl.method("by-size")
def by_size(run: dffl.Run) -> dffl.Outcome:
    """Small clients federate, large ones stay local."""
    own = run.personal(run.trained(dffl.Local()))  # once, however many methods ask
    common, newcomer = run.common(run.trained(dffl.FedAvg()))
    median = np.median(run.federation.counts)
    weights = [float(n <= median) for n in run.federation.counts]
    mixed = [
        dffl.MixedPredictor(a, b, np.asarray(w))
        for a, b, w in zip(own, common, weights, strict=True)
    ]
    return dffl.Outcome(mixed, shared=newcomer, choices={"lambda": weights})


if __name__ == "__main__":
    options = {"seed": 0, "clients": 6, "samples": [200, 200, 200, 30, 30, 30]}
    federation = dffl.synthetic.knapsack(**options)
    test = dffl.synthetic.knapsack(split="test", **(options | {"samples": 500}))
    table = dffl.compare(
        federation, ["local", "fedavg", "by-size"], test=test, rounds=10
    )
    print((100 * dffl.summarise(table)[["mean", "median", "max"]]).round(2).to_string())

"""Your own study: when does federation pay, by the number of samples?"""

import dffl
from dffl_studies.running import Study, grid, run


def fit(samples, seed, rounds):
    """One job: from its parameters (and the protocol's) to rows."""
    train = dffl.synthetic.knapsack(seed, clients=5, samples=samples)
    test = dffl.synthetic.knapsack(seed, "test", clients=5, samples=200)
    table = dffl.compare(train, ["local", "fedavg"], test=test, rounds=rounds)
    return table[["client", "method", "relative_regret", "harmed"]]


study = Study(
    name="samples",
    task=fit,
    jobs=grid(samples=[20, 80], seed=[0, 1]),
    protocol={"rounds": 10},  # the same for all jobs; a folder holds one protocol
)

if __name__ == "__main__":  # workers are processes that import this file
    report = run(study, "samples-study")  # call it again: what is done is kept
    print(report.rows.groupby(["samples", "method"])["relative_regret"].mean())

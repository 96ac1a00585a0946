"""The real zones with a fair local model: what federating gains against a client that takes the same care alone.

    DFFL_ENERGY_DATA=FOLDER python benchmarks/fair_local.py          # four minutes on two cores

For each method the mean regret of a test day in US$ for each MW, and the largest increase of a zone's regret against `local`
(250 epochs, as in the paper) and against `local-tuned`; means over three seeds. With ``blocks``, what chooses is held out in
consecutive days.
"""

from __future__ import annotations

import os

import pandas as pd

from dffl.cases.energy.setup import Setup, halves
from dffl.comparing import fit_all, tabulate

METHODS = ("local", "local-tuned", "fedavg", "interp-spo", "finetune", "finetune-mix", "crossfit")
SEEDS = (0, 1, 2)


def judged(setup: Setup, folder: str, seed: int) -> pd.DataFrame:
    """One row per method, for one seed."""
    made = halves(setup.open(folder), setup)
    table = tabulate(fit_all(made.train, METHODS, progress=False, **setup.training(seed)), made.test)
    regret = table.pivot_table(index="client", columns="method", values="regret")[list(METHODS)]
    worst = {f"worst zone against {base}, %": 100 * (regret.div(regret[base], axis=0).max() - 1) for base in METHODS[:2]}
    return pd.DataFrame({"US$": regret.mean(), **worst})


def main() -> None:
    """Print a table for each kind of features and of folds."""
    folder = os.environ["DFFL_ENERGY_DATA"]
    for lags in (False, True):
        for blocks in (False, True):
            setup = Setup(lags=lags, without=("NE_INTERNAL_HUB",), settings={"validation_blocks": blocks})
            found = pd.concat([judged(setup, folder, seed) for seed in SEEDS])
            print(f"\n{'with past prices' if lags else 'from weather'}, {'blocks' if blocks else 'random folds'}")
            print(found.groupby(level=0, sort=False).mean().round(2).to_string(), flush=True)


if __name__ == "__main__":
    main()

"""Does the advice name the right cause? Federations of knapsacks in which it is known what is odd about one client.

    python benchmarks/causes.py --quick --seeds 20     # closed-form models, minutes
    python benchmarks/causes.py --seeds 3              # trained, minutes on one core

Six clients of 80 samples and 12 items. The last one has reversed weights (constraint), prices that move otherwise (prices),
both, or nothing (neither). Rows are what is odd, columns what the advice says of that client: none means that the shared model
loses no more than its own one, so that there is no cause to name.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd

import dffl
from dffl.advice.causes import causes
from dffl.advice.quick import regressed
from dffl.training import Settings

KINDS = ("constraint", "prices", "both", "neither")
STOPS = {"finetune.epochs": (0, 5), "crossfit.epochs": (0, 5), "local-tuned.epochs": (5, 20, 100)}
SETTINGS = {"rounds": 20, "learning_rate": 0.005, "hidden": 16, **STOPS}
WIDE = 3.0
"""Weights go from 1 / 3 to 3, so that reversing them matters."""


def fleet(kind: str, seed: int, samples: int = 80) -> dffl.Federation:
    """Five clients alike and an odd one."""
    how = {"clients": 6, "dim": 12, "features": 5, "degree": 2, "noise": 0.3, "samples": samples}
    weights = np.random.default_rng(seed).permutation(np.geomspace(1 / WIDE, WIDE, 12))
    usual, turned = (dffl.FractionalKnapsack(one, 0.4 * one.sum()) for one in (weights, 1 / weights))
    alike, apart = (list(dffl.synthetic.knapsack(seed, eta_obj=eta, **how)) for eta in (0.0, 2.0))
    odd = replace((apart if kind in ("prices", "both") else alike)[-1], name="odd")
    members = [*(replace(one, set=usual) for one in alike[:-1]), replace(odd, set=usual)]
    if kind in ("constraint", "both"):
        members[-1] = replace(odd, set=turned)
    return dffl.Federation(members)


def trained(federation: dffl.Federation, seed: int) -> list[str]:
    """The cause that the advice names for each client."""
    return list(dffl.advise(federation, progress=False, seed=seed, **SETTINGS).table["cause"])


def quickly(federation: dffl.Federation, seed: int) -> list[str]:
    """The column ``cause`` of a quick answer, without the rest of it."""
    evidence = regressed(federation, Settings(seed=seed), 5)
    return [one.cause for one in causes(federation, evidence, "local", seed=seed)]


def main() -> None:
    """Print how often each cause is named, for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="how many federations of each kind")
    parser.add_argument("--quick", action="store_true", help="nothing is trained")
    options = parser.parse_args()
    rows = []
    for seed in range(options.seeds):
        for kind in KINDS:
            *usual, odd = quickly(fleet(kind, seed), seed) if options.quick else trained(fleet(kind, seed), seed)
            rows.append({"odd": kind, "named": odd, "others": sum(one != "none" for one in usual), "of": len(usual)})
    table = pd.DataFrame(rows)
    print(pd.crosstab(table["odd"], table["named"]).reindex(KINDS).to_string())
    print(f"\na cause is named for {table['others'].sum()} of the {table['of'].sum()} clients that are not odd")


if __name__ == "__main__":
    main()

"""How often is a client "harmed" by nothing? The paper's local models, trained again from other starts.

    python benchmarks/luck.py --seeds 0          # minutes on one core

Both sides are `local` with the settings of the paper's study, on the configurations of `dffl paper --quick`, so any harm is
noise. In one run: over 1 % above local in one training from one start, which the paper study counts. Significant: by the
rule of `dffl.compare`, with three starts against three others. Shares are over clients and configurations; clients that
lose nothing on either side cannot be above local, and count.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np
import pandas as pd

from dffl import synthetic
from dffl.comparing import judge_starts
from dffl.harm import ENOUGH_STARTS, judge_harm
from dffl_studies.paper.study import AUTHORS, in_fraction, study

MAKE = {"knapsack": synthetic.knapsack, "portfolio": synthetic.portfolio}


def judged(problem: str, **job: Any) -> pd.DataFrame:
    """One row per client of a configuration: whether each rule calls it harmed by its own method."""
    train, test = MAKE[problem](**job), MAKE[problem](split="test", samples=AUTHORS["test_samples"], **job)
    settings = AUTHORS["settings"] | {"seed": job["seed"]}
    starts = judge_starts(train, ["local"], test=test, starts=2 * ENOUGH_STARTS, progress=False, **settings)
    rows = []
    for place, client in enumerate(test):
        lost = np.stack([start.lost["local"][place] for start in starts])
        own, again = lost[:ENOUGH_STARTS], lost[ENOUGH_STARTS:]
        found = judge_harm(again, own, margin=1e-12 * float(client.z_star_size.mean()))
        rows.append({"problem": problem, "in one run": found.above_tolerance, "significant": bool(found.harmed)})
    return pd.DataFrame(rows)


def main() -> None:
    """Print the share of clients that each rule calls harmed, for each problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of the study's grid")
    parser.add_argument("--cores", type=int, default=1)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    jobs = [job.parameters for job in study().jobs]
    rows = pd.DataFrame()
    for seed in options.seeds:
        kept = [job for job in jobs if job["seed"] == seed and not job["noise"] and in_fraction(job)]
        rows = pd.concat([rows, *(judged(**job) for job in kept)])
        grouped = rows.groupby("problem")
        print(f"up to seed {seed}, shares of clients in %")
        print((100 * grouped.mean()).assign(clients=grouped.size()).round(2).to_string(), flush=True)


if __name__ == "__main__":
    main()

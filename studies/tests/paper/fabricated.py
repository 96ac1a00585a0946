"""Rows as the paper's study writes them, with made-up regrets."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from dffl_studies.paper.tables import ORDER, READING

LEVELS = {"knapsack": 0.01, "portfolio": 0.1}


def fabricate(
    problems=("knapsack", "portfolio"),
    seeds=(0, 1),
    degrees=(2,),
    etas=(0.0, 1.0),
    balances=(False, True),
    methods=ORDER,
    clients=4,
) -> pd.DataFrame:
    """Rows as the study writes them; the first half of an imbalanced configuration's clients is data-rich."""
    rng = np.random.default_rng(0)
    rows = []
    for problem, seed, degree, obj, constr, imbalanced in itertools.product(problems, seeds, degrees, etas, etas, balances):
        job = f"{problem}-{seed}-{degree}-{obj}-{constr}-{imbalanced}"
        for method, client in itertools.product(methods, range(1, clients + 1)):
            saturated = problem == "knapsack" and constr == 1 and client == 1
            rows.append(
                {
                    "job": job, "noise": 0.0, "seed": seed, "imbalanced": imbalanced, "degree": degree, "eta_obj": obj,
                    "eta_constr": constr, "problem": problem, "method": method, "client": client,
                    "n": (500 if client <= clients // 2 else 50) if imbalanced else 100, "saturated": saturated,
                    READING: 0.0 if saturated else LEVELS[problem] * rng.uniform(0.5, 1.5),
                    "lambda": rng.uniform() if "interp" in method else np.nan, "epochs": np.nan,
                }
            )  # fmt: skip
    return pd.DataFrame(rows).astype({READING: "float32", "lambda": "float32"})

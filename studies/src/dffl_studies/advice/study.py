"""Does the advice work? Every client is advised from its training samples, and judged on test samples that no model has seen.

Truth is each client's test regret under the fits of all its data; the reference is `local-tuned`. The advice is compared with
rules that need no advice: always the same method, the paper's condition, and the interpolation weight.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dffl.federation import Federation
from dffl_studies.advice import alike
from dffl_studies.advice.federations import configurations
from dffl_studies.energy import data as energy
from dffl_studies.running.study import Parameters, Study, grid

METHODS = ("mean-cost", "local", "fedavg", "interp-spo", "finetune")
"""Methods that are fitted in addition to `crossfit` and `local-tuned`, whose fits come with the advice."""
SEARCH_STEPS = 100
"""Of the ascent behind the paper's condition: it is true for almost every client with any number of steps."""
LEFT_OUT = ("NE_INTERNAL_HUB",)
"""A neighbouring market's hub: no zone."""
WHY = ["reason", "shared_model", "pooled_cost_regret", "cost_p_value", "decision_distance"]
"""Columns of the advice that rows do not keep."""
SMALL: dict[str, Any] = {
    "rounds": 8, "local_epochs": 5, "learning_rate": 0.01, "hidden": 16, "finetune.epochs": [0, 5, 15, 40],
    "crossfit.epochs": [0, 5, 15, 40], "local-tuned.epochs": [5, 15, 40, 100],
}  # fmt: skip
"""Settings of the small federations: few steps, and larger ones."""
FIRST_HALF, SECOND_HALF = ("2021-01-01", "2021-06-30"), ("2021-07-01", "2021-12-31")


def study(seeds: Sequence[int] = (0,)) -> Study:
    """432 synthetic federations of 12 clients for each seed; the constants of the advice were fitted on other seeds."""
    return Study("advice-tuned", judge_synthetic, configurations(list(seeds)), {"settings": {}}, weight)


def zones(folder: Path, seeds: Sequence[int] = (0, 1, 2, 3, 4)) -> Study:
    """The zones of 2021: advised on the first half of the year in blocks, judged on the second.

    The protocol knows the data by their content. The folder itself is only where workers read them.
    """
    protocol, places = {"data": energy.digest(folder), "settings": {}}, {"folder": str(folder.resolve())}
    return Study("advice-tuned-zones", judge_zones, grid(seed=list(seeds)), protocol, places=places)


def shared_rows(seeds: Sequence[int] = range(60)) -> Study:
    """Copies of one table, pure noise, and sites of one price zone: 60 federations of 4 clients of each kind.

    The spread of the advice was developed on seeds from 1000 on.
    """
    return Study("advice-shared", judge_alike, alike.configurations(seeds), {"settings": SMALL})


def judge_alike(*, kind: str, seed: int, settings: dict[str, Any]) -> pd.DataFrame:
    """The rows of a federation in which the rows of others help little: the advice, and the results."""
    from dffl.advice.advising import advise_by_folds as advise
    from dffl.comparing import fit_all, tabulate

    train, test = (alike.federation(kind, seed, split) for split in ("train", "test"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # shared rows are the topic of the study
        advice = advise(train, progress=False, seed=seed, **settings)
        plain = {name: value for name, value in settings.items() if "." not in name}
        fits = fit_all(train, ("mean-cost", "fedavg"), progress=False, seed=seed, **plain)
    judged = tabulate(fits | advice.fits, test)
    truth = judged.pivot_table(index="client", columns="method", values="relative_regret").add_prefix("test_")
    table = advice.table.drop(columns=WHY).set_index("client").join(truth).assign(**alike.recipe(kind, seed)._asdict())
    numbers = table.select_dtypes("float64").columns
    return table.reset_index().astype(dict.fromkeys(numbers, "float32"))


def weight(job: Parameters) -> float:
    """Seconds on one core, roughly."""
    return 40.0 if job["problem"] == "portfolio" else 20.0


def judge_synthetic(*, settings: dict[str, Any], **job: Any) -> pd.DataFrame:
    """The rows of one synthetic federation."""
    from dffl_studies.advice.federations import federation

    train, test = (federation(split=split, **job) for split in ("train", "test"))
    return judge(train, test, blocks=False, seed=job["seed"], **settings)


def judge_zones(*, data: str, folder: str, seed: int, settings: dict[str, Any]) -> pd.DataFrame:
    """The rows of the real zones."""
    if energy.digest(folder) != data:
        raise ValueError(f"{folder}: the tables are not those that the study began with; start again in another folder")
    panel = energy.open_panel(folder, without=LEFT_OUT)
    train, test = (energy.federation(panel, None, *half) for half in (FIRST_HALF, SECOND_HALF))
    return judge(train, test, blocks=True, seed=seed, **settings)


def judge(train: Federation, test: Federation, blocks: bool, **settings: Any) -> pd.DataFrame:
    """One row per client: its advice, and the results."""
    from dffl.advice.advising import advise_by_folds as advise
    from dffl.comparing import fit_all, tabulate

    advice = advise(train, blocks=blocks, progress=False, **settings)
    quick = advise(train, blocks=blocks, quick=True, progress=False, **settings).table.set_index("client")
    mine = {name: value for name, value in settings.items() if name.partition(".")[0] in (*METHODS, name)}
    judged = tabulate(fit_all(train, METHODS, progress=False, **mine) | advice.fits, test)
    truth = judged.pivot_table(index="client", columns="method", values="relative_regret").add_prefix("test_")
    table = advice.table.drop(columns=WHY).set_index("client").join(truth)
    for method, fit in advice.fits.items():  # the choice of epochs has used the samples that judge it here
        table[f"seen_{method}"] = [
            fit.out_of_fold(train_client.name)["regret"].mean() / train_client.z_star_size.mean() for train_client in train
        ]
    table["saturated"] = [bool(getattr(client.set, "saturated", False)) for client in test]
    table["quick"] = quick["recommendation"]
    for name, column in (("quick_gain", "gain"), ("quick_low", "gain_low"), ("quick_high", "gain_high")):
        table[name] = quick[column]
    table["condition"] = _paper_condition(train, settings)
    table["lambda"] = judged[judged["method"] == "interp-spo"].set_index("client")["lambda"]
    numbers = table.select_dtypes("float64").columns
    return table.reset_index().astype(dict.fromkeys(numbers, "float32")).astype({"n": "int32"})


def _paper_condition(federation: Federation, settings: dict[str, Any]) -> np.ndarray:
    """Whether Delta_j < epsilon_j - epsilon_mix, at what a short search attains."""
    from dffl.theory.report import bounds

    shared = {name: value for name, value in settings.items() if "." not in name}  # the others are options of methods
    report = bounds(federation, search=SEARCH_STEPS, progress=False, **shared)
    return report.clients["paper_condition"].to_numpy()

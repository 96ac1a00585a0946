"""The price of privacy and of sites that lie, in regret: a search for clip and rounds, and the judgement on other data.

Every method has the same search, at every level and epsilon, and where nothing is hidden (rounds alone).
All fits of one epsilon spend that epsilon as a whole: a method that trains five shared models has more noise on each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from dffl.training.privacy import noise_for
from dffl_studies.leaderboard.study import in_blocks
from dffl_studies.privacy.federations import CLIENTS, DEMO, FIXED, MANY, REAL, divided
from dffl_studies.running.study import Job, Parameters, Study

NOTHING = "nothing hidden"
LEVELS: dict[str, dict[str, Any]] = {
    "client, server's noise": {"level": "client", "where": "server"},
    "client, site's noise": {"level": "client", "where": "site"},
    "sample, site's noise": {"level": "sample"},
}
LEVELS_OF = {DEMO: tuple(LEVELS)[:2], FIXED: tuple(LEVELS)[2:], MANY: tuple(LEVELS)[:1], REAL: tuple(LEVELS)[:2]}
EPSILONS = (1.0, 10.0, 100.0, 1000.0)
DELTA = 1e-5
CLIPS = (0.03, 0.1, 0.3, 1.0, 3.0)
ROUNDS = {"client": (5, 20, 50), "sample": (5, 10, 20)}
"""The candidates of the search. With fewer rounds, each has less noise; steps that protect samples are ten times as slow."""
LOCAL_EPOCHS = 5
STARTS = 3
TRAININGS = {"fedavg": 1, "finetune": 1, "crossfit": 5}
"""The methods, and the number of shared models that each trains on a client's data. `finetune` without its refit has one."""
SAMPLE_TRAININGS = TRAININGS | {"crossfit": 4}
"""A sample is in four of five folds."""
WITH_CROSSFIT = (NOTHING, "client, server's noise")
"""The levels at which `crossfit` is judged too: those that are fast enough, and only with 20 clients."""
OPTIONS: dict[str, dict[str, Any]] = {"finetune": {"refit": False}}
NAIVE = ("mean-cost", "local", "local-tuned")
AGGREGATORS: dict[str, Any] = {
    "mean": "mean", "norm-bound": "norm-bound", "median": "median", "geometric-median": "geometric-median",
    "trimmed-mean, 0.3": {"name": "trimmed-mean", "share": 0.3}, "krum, f = 6": {"name": "krum", "f": 6},
}  # fmt: skip
LIARS = (0, 2, 6)
LIED_TO = {DEMO: ("sign flip", "large noise", "same value", "a little"), REAL: ("sign flip", "a little")}
TUNED_AMONG_LIARS = ("mean", "sign flip")
"""The aggregator and the attack with which `finetune` is judged too, to see what tuning at the client repairs."""
NO_LIES: Parameters = {"attack": "", "liars": 0, "aggregate": "mean"}
NO_PRIVACY: Parameters = {"level": NOTHING, "epsilon": None, "clip": None, "rounds": 20}


def data_sets(zones: Path | None) -> list[str]:
    """The data that there are: the real ones only where their folder is known."""
    return [DEMO, FIXED, MANY, *([REAL] if zones else [])]


def methods_at(level: str, data: str) -> list[str]:
    """The methods for a level on these data."""
    return [name for name in TRAININGS if name != "crossfit" or (level in WITH_CROSSFIT and data not in CLIENTS)]


def search_study(zones: Path | None) -> Study:
    """Every method at every level and epsilon with every clip and number of rounds; with nothing hidden every number."""
    jobs = []
    for data in data_sets(zones):
        plain = [
            _parameters(data, method, rounds=rounds) for method in methods_at(NOTHING, data) for rounds in ROUNDS["client"]
        ]
        private = [
            _parameters(data, method, level=level, epsilon=epsilon, clip=clip, rounds=rounds)
            for level in LEVELS_OF[data]
            for method in methods_at(level, data)
            for epsilon in EPSILONS
            for rounds in ROUNDS[LEVELS[level]["level"]]
            for clip in CLIPS
        ]
        jobs += [Job(parameters) for parameters in (*plain, *private)]
    return Study("privacy-search", judge_one, jobs, {"search": True}, weight, _places(zones))


Choice = dict[tuple[str, str, float | None, str], tuple[float | None, int]]
"""For data, level, epsilon and method the clip and the rounds."""


def choose(rows: pd.DataFrame) -> Choice:
    """The clip and the rounds with the lowest mean regret in the search."""
    choice: Choice = {}
    for (data, level, epsilon, method), part in rows.groupby(["data", "level", "epsilon", "method"], dropna=False):
        means = part.groupby(["clip", "rounds"], dropna=False)["relative_regret"].mean()
        best: Any = means.idxmin()
        choice[str(data), str(level), _known(epsilon), str(method)] = (_known(best[0]), int(best[1]))
    return choice


def _known(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def judging_study(chosen: Choice, zones: Path | None) -> Study:
    """Every method at every level and epsilon, and among liars, from three starts, with naive rows beside them."""
    wanted: list[Parameters] = []
    for data in data_sets(zones):
        wanted += [_parameters(data, method) for method in NAIVE]
        for (known, level, epsilon, method), (clip, rounds) in chosen.items():
            if known == data:
                wanted.append(_parameters(data, method, level=level, epsilon=epsilon, clip=clip, rounds=rounds))
        for attack in LIED_TO.get(data, ()):
            for aggregate in AGGREGATORS:
                for method in ["fedavg", *(["finetune"] if (aggregate, attack) == TUNED_AMONG_LIARS else [])]:
                    calm = {"aggregate": aggregate, "rounds": chosen[data, NOTHING, None, method][1]}
                    lies = [{"attack": attack if liars else "", "liars": liars} for liars in LIARS]
                    wanted += [_parameters(data, method, **calm, **parameters) for parameters in lies]
    unlike = {Job(parameters).key: parameters for parameters in wanted}  # without liars, all attacks are the same
    jobs = [Job({**parameters, "start": start}) for start in range(STARTS) for parameters in unlike.values()]
    return Study("privacy", judge_one, jobs, {"search": False}, weight, _places(zones))


def _parameters(data: str, method: str, **settings: Any) -> Parameters:
    return {"data": data, "method": method, **NO_PRIVACY, **NO_LIES, **settings} | {"start": 0}


def weight(job: Parameters) -> float:
    """Seconds on one core, roughly."""
    factors = {"mean-cost": 0.3, "fedavg": 1.5, "local": 3.0, "finetune": 5.0, "crossfit": 10.0, "local-tuned": 15.0}
    slow = 5.0 if job["level"].startswith("sample") else 1.0
    return slow * factors[job["method"]] * (0.5 if job["data"] == REAL else CLIENTS.get(job["data"], 20) / 20)


def privacy_of(method: str, level: str, epsilon: float, clip: float, rounds: int) -> dict[str, Any]:
    """The setting with which this method uses this epsilon in total."""
    table = LEVELS[level]
    uses = rounds * (SAMPLE_TRAININGS[method] * LOCAL_EPOCHS if table["level"] == "sample" else TRAININGS[method])
    return {**table, "clip": clip, "noise": noise_for(epsilon, {**table, "clip": clip}, uses, DELTA)}


def judge_one(
    *, search: bool, data: str, method: str, level: str, epsilon: float | None, clip: float | None, rounds: int, attack: str,
    liars: int, aggregate: str, start: int, zones: str | None = None,
) -> pd.DataFrame:  # fmt: skip
    """One row per client: its regret in the mean and in blocks of test samples, and whether it lied."""
    import dffl
    from dffl.randomness import start_seeds
    from dffl_studies.privacy.lies import Lying, drawn_liars

    parts = divided(data, search, zones)
    seed = start_seeds(0, start + 1)[start]
    settings: dict[str, Any] = {**parts.settings, "rounds": rounds, "local_epochs": LOCAL_EPOCHS, "seed": seed}
    lying = drawn_liars(parts.train.names, liars, seed)
    settings["aggregate"] = Lying(AGGREGATORS[aggregate], attack, lying, seed) if liars else AGGREGATORS[aggregate]
    noise = None
    if epsilon is not None:
        assert clip is not None, "a level of privacy has a clip"
        settings["privacy"] = privacy_of(method, level, epsilon, clip, rounds)
        noise = float(settings["privacy"]["noise"])
    fit = dffl.fit(parts.train, (method, OPTIONS.get(method, {})), progress=False, **settings)
    spent = fit.spending().epsilon(DELTA) if epsilon is not None else None
    if spent is not None and epsilon is not None and method in TRAININGS and abs(spent / epsilon - 1) > 1e-6:
        raise ValueError(f"{method}: epsilon must be {epsilon}, found {spent}")  # as planned
    table = in_blocks(fit, parts)
    return table.assign(lies=table["client"].isin(lying), noise=noise).astype({"noise": "float64"})


def _places(zones: Path | None) -> Parameters:
    return {} if zones is None else {"zones": str(zones.resolve())}

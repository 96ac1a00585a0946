"""The paper's synthetic study: 2,560 configurations of 20 clients, with every method.

A job is one configuration. The protocol holds what the paper leaves open; `dffl_studies.paper.variants` shows how.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from dffl.training import Settings
from dffl.training.methods import options_of, requests
from dffl.training.methods.crossfit import LOCAL_EPOCHS
from dffl.training.trainers.crossfit import FOLDS
from dffl.training.trainers.tuning import EPOCHS, checked_epochs
from dffl_studies.paper.published import CORE_HOURS
from dffl_studies.running.result import StudyRows
from dffl_studies.running.study import Parameters, Study, grid

if TYPE_CHECKING:
    from dffl.federation import Federation

PROBLEMS = ("knapsack", "portfolio")
ETAS = (0.0, 0.25, 0.5, 1.0)
DEGREES = (2, 4, 6, 8)
NOISES = (0.0, 1.0)
SEEDS = (0, 1, 2, 3, 4)
KNOWN_MEAN = "known-mean"
"""Not a method: the decisions of a client that knows the conditional-mean costs. No rule has a lower expected regret."""
METHODS = (
    "mean-cost", "local", "fedavg", "interp-mse", "interp-spo", "oracle-interp-mse", "oracle-interp-spo", "finetune",
    KNOWN_MEAN,
)  # fmt: skip
"""The paper's six methods and their references in all configurations. Others can be added with --methods."""

PROTOCOL: Parameters = {
    "methods": list(METHODS),
    "test_samples": 1000,
    "validation_samples": 2000,
    "turned": 1.0,
    "settings": {"rounds": 50, "local_epochs": 10, "batch_size": 64, "client_fraction": 0.2, "scale_costs": True},
    "federation": {"knapsack": {"constraint_seed": 0}},
}
"""What the paper does not state, as chosen by the rule of `dffl_studies.paper.variants`: ten local epochs, budgets drawn once.
"""
AUTHORS: Parameters = PROTOCOL | {"settings": PROTOCOL["settings"] | {"local_epochs": 5}, "federation": {}}
"""The same by the authors' code of their later method: five local epochs, budgets drawn by each seed."""


def study(settings: dict[str, Any] | None = None, protocol: Parameters = PROTOCOL) -> Study:
    """All 2,560 configurations: those without noise first, seed by seed, so that partial tables have a meaning."""
    jobs = grid(
        noise=NOISES, seed=SEEDS, imbalanced=(False, True), degree=DEGREES, eta_obj=ETAS, eta_constr=ETAS, problem=PROBLEMS
    )
    protocol = protocol | {"settings": protocol["settings"] | (settings or {})}
    axis, before = ("methods", "method"), {"turned": 1.0, "federation": {}}  # folders of earlier versions do not have them
    return Study("paper", fit_configuration, jobs, protocol, weight, inner_axis=axis, defaults=before)


def quick() -> Study:
    """A faithful small version: one seed, without noise, 32 configurations that cover every axis evenly."""
    full = study()
    jobs = [
        job for job in full.jobs if job.parameters["seed"] == 0 and not job.parameters["noise"] and in_fraction(job.parameters)
    ]
    return replace(full, name="paper-quick", jobs=jobs)


def in_fraction(job: Parameters) -> bool:
    """Whether a configuration is in the eighth of the grid where every two axes meet equally often.

    Each pair of heterogeneities has one degree and one balance, by two orthogonal Latin squares over the field of four.
    """
    i, j = ETAS.index(job["eta_obj"]), ETAS.index(job["eta_constr"])
    return bool(DEGREES[i ^ j] == job["degree"] and (i ^ (0, 2, 3, 1)[j]) // 2 == job["imbalanced"])


def checked_methods(names: list[str]) -> list[str]:
    """Names of methods, each once; unknown ones are refused."""
    trained = [name for name in names if name != KNOWN_MEAN]
    known = [request.method.name for request in requests(trained, {})[0]] if trained else []
    return [*known, *([KNOWN_MEAN] if KNOWN_MEAN in names else [])]


def fit_configuration(
    *,
    problem: str,
    seed: int,
    eta_obj: float,
    eta_constr: float,
    degree: int,
    noise: float,
    imbalanced: bool,
    methods: list[str],
    test_samples: int,
    validation_samples: int,
    settings: dict[str, Any],
    turned: float = 1.0,
    federation: dict[str, Any] | None = None,
) -> pd.DataFrame:
    """The rows of one configuration, one row per client and method; rotations turn ``turned`` times as far as eta_obj says.

    ``relative_regret`` is the sum of a client's regrets over the sum of |z*|, ``mean_ratio`` the mean over its samples of
    regret over |z*|, both at the realised costs; the columns that start with ``expected`` are the same at the
    conditional-mean costs, which noise makes different.
    """
    from dffl import synthetic
    from dffl.comparing import fit_all, tabulate

    make = {"knapsack": synthetic.knapsack, "portfolio": synthetic.portfolio}[problem]
    common: dict[str, Any] = {
        "seed": seed, "eta_obj": turned * eta_obj, "eta_constr": eta_constr, "degree": degree, "noise": noise,
        "imbalanced": imbalanced,
    } | (federation or {}).get(problem, {})  # fmt: skip
    test = make(split="test", samples=test_samples, **common)
    tables = []
    if trained := [name for name in methods if name != KNOWN_MEAN]:
        oracle = any(name.startswith("oracle") for name in trained)
        validation = make(split="validation", samples=validation_samples, **common) if oracle else None
        # Options of methods that are not asked for would be refused.
        asked = {name: value for name, value in settings.items() if name.partition(".")[0] in (*trained, name)}
        rows = tabulate(fit_all(make(**common), trained, validation=validation, progress=False, seed=seed, **asked), test)
        tables.append(rows[rows["method"].isin(trained)])
    if KNOWN_MEAN in methods:
        tables.append(known_mean(test, [client.n for client in make(**common)]))
    rows = pd.concat(tables, ignore_index=True)
    saturated = {client.name: bool(getattr(client.set, "saturated", False)) for client in test}
    rows = rows.assign(saturated=rows["client"].map(saturated), client=rows["client"].str.removeprefix("client-"))
    if not noise:  # the expected costs are the realised ones: a copy of the numbers would only take space
        rows = rows.drop(columns=list(rows.filter(like="expected_")))
    numbers = ("relative_regret", "mean_ratio", "expected_relative_regret", "expected_mean_ratio", "lambda", "epochs")
    kinds = {"client": "int8", "n": "int16"} | dict.fromkeys(numbers, "float32")
    return rows.reindex(columns=["method", "client", "n", "saturated", *numbers]).astype(kinds).reset_index(drop=True)


def known_mean(test: Federation, trained_on: list[int]) -> pd.DataFrame:
    """The loss at realised costs of decisions by the conditional-mean costs: for each client, under both readings."""
    import dffl

    rows = []
    for client, n in zip(test, trained_on, strict=True):
        assert client.c_mean is not None, "synthetic clients know their mean costs"
        arguments = (client.c_mean, client.c, client.set, client.maximize)
        losses = {"relative_regret": dffl.relative_regret(*arguments), "mean_ratio": dffl.mean_of_regret_ratios(*arguments)}
        rows.append(
            {"method": KNOWN_MEAN, "client": client.name, "n": n} | {name: float(lost) for name, lost in losses.items()}
        )
    return pd.DataFrame(rows).assign(expected_relative_regret=0.0, expected_mean_ratio=0.0)


# The speed of a run: training samples for each second and core.


def samples_trained(rows: pd.DataFrame, settings: dict[str, Any]) -> float:
    """The number of samples in the gradient steps of these fits, each as often as it was used."""
    tuning, rest = options_of("finetune", settings)
    used, longest = Settings.of(**rest), checked_epochs(tuning.get("epochs", EPOCHS))[-1]
    share, epochs = 1 - used.validation_fraction, used.rounds * used.local_epochs
    # Local and federated models, each on all the data and on the part that the split keeps; then fine-tuning, on that part
    # with every candidate number of epochs, on all the data with the number that the client chose.
    passes = epochs * (1 + used.client_fraction) * (1 + share) + share * longest
    # In each fold on the others: a shared model and its tuning, and a model of the client alone.
    folded = {"crossfit": epochs * used.client_fraction + EPOCHS[-1], "local-tuned": LOCAL_EPOCHS[-1]}
    passes += (FOLDS - 1) * sum(folded[name] for name in rows["method"].unique() if name in folded)
    clients = rows[rows["method"] == "finetune"]
    return float((clients["n"].astype(float) * (passes + clients["epochs"])).sum())


def speed_line(finished: StudyRows) -> str:
    """Training samples for each second and core, and the cost of the paper's own run."""
    seconds = max(3600 * finished.core_hours, 1e-9)
    speed = samples_trained(finished.rows, finished.study.protocol["settings"]) / seconds
    return f", {speed:,.0f} training samples per second and core (the paper's 2,560: {CORE_HOURS:.0f} core-hours)"


def weight(job: Parameters) -> float:
    """Seconds on one core, roughly."""
    return (1.0 if job["problem"] == "knapsack" else 1.5) * (2.1 if job["imbalanced"] else 1.0) * (1.1 if job["noise"] else 1.0)

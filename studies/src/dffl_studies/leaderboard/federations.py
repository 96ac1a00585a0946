"""The data for judging: a balanced part of the paper's grid, the same with shortest paths, and the real zones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from dffl.federation import Federation
from dffl_studies.paper.study import DEGREES, ETAS, in_fraction
from dffl_studies.paper.study import PROBLEMS as PAPER_PROBLEMS
from dffl_studies.running.study import Parameters, grid

SEEDS = (0, 1, 2, 3, 4)
"""The paper's seeds, for judging."""
PROBLEMS = (*PAPER_PROBLEMS, "shortest-path")
"""The synthetic problems. Shortest paths are not the paper's: they have PyEPO's costs with its noise, on the paper's axes."""
PART = 16 * len(PROBLEMS)
"""The configurations of one seed in the balanced part of the grid."""
SEARCH_SEED = 101
"""The search uses no federation for judging."""
TEST_SAMPLES = 1000
ZONES = ("zones, weather", "zones, past prices")
NO_AXES: Parameters = {"imbalanced": None, "degree": None, "eta_obj": None, "eta_constr": None}
SYNTHETIC = {"rounds": 50, "local_epochs": 5, "batch_size": 64, "client_fraction": 0.2}
"""The settings of the paper's study."""


class Divided(NamedTuple):
    """The training part and the judging part, and their settings."""

    train: Federation
    test: Federation
    settings: dict[str, Any]


def synthetic_part(seeds: Sequence[int], full: bool = False) -> list[Parameters]:
    """For each seed and problem 16 configurations that cover every axis evenly, or all 128."""
    axes = {"imbalanced": (False, True), "degree": DEGREES, "eta_obj": ETAS, "eta_constr": ETAS}
    jobs = [job.parameters for job in grid(seed=seeds, problem=PROBLEMS, **axes)]
    return sorted((job for job in jobs if full or in_fraction(job)), key=_turn)


def _turn(job: Parameters) -> tuple[int, ...]:
    """The place in the order: every four configurations of a problem and seed contain every heterogeneity and degree once."""
    i, j = ETAS.index(job["eta_obj"]), ETAS.index(job["eta_constr"])
    return (
        job["seed"],
        i ^ (0, 3, 1, 2)[j],
        i,
        PROBLEMS.index(job["problem"]),
        DEGREES.index(job["degree"]),
        int(job["imbalanced"]),
    )


def search_part() -> list[Parameters]:
    """Four configurations of each problem: every degree and every heterogeneity once, one of them with unequal sizes."""
    parts = []
    for problem in PROBLEMS:
        for i, j in ((0, 0), (1, 3), (2, 1), (3, 2)):
            axes = {"imbalanced": i == 2, "degree": DEGREES[i ^ j], "eta_obj": ETAS[i], "eta_constr": ETAS[j]}
            parts.append({"seed": SEARCH_SEED, "problem": problem, **axes})
    return parts


def zones_part() -> list[Parameters]:
    """The real zones, with weather and with past prices as features."""
    return [{"seed": 0, "problem": name, **NO_AXES} for name in ZONES]


@lru_cache(maxsize=2)  # consecutive jobs of a worker have the same federation
def divided(search: bool, folder: str | None, **configuration: Any) -> Divided:
    """The federation of a configuration."""
    if configuration["problem"] in ZONES:
        return _zones(search, folder, configuration["problem"])
    from dffl import synthetic

    arguments = {name: value for name, value in configuration.items() if name != "problem"}
    makers: dict[str, Callable[..., Federation]] = {
        "knapsack": synthetic.knapsack, "portfolio": synthetic.portfolio, "shortest-path": synthetic.shortest_path,
    }  # fmt: skip
    make = makers[configuration["problem"]]
    return Divided(make(**arguments), make(split="test", samples=TEST_SAMPLES, **arguments), SYNTHETIC)


def _zones(search: bool, folder: str | None, problem: str) -> Divided:
    from dffl_studies.energy.setup import Setup, halves

    if folder is None:
        raise ValueError(f"{problem}: pass the folder of the zones' tables with --zones")
    setup = Setup(lags=problem == ZONES[1], without=("NE_INTERNAL_HUB",))
    parts = halves(setup.open(folder), setup)
    settings = {name: value for name, value in setup.training(seed=0).items() if name != "seed"}
    if not search:
        return Divided(parts.train, parts.test, settings)
    # The search uses only the training half: its last quarter judges.
    cuts = [3 * client.n // 4 for client in parts.train]
    first = Federation([client.rows(slice(None, cut)) for client, cut in zip(parts.train, cuts, strict=True)])
    last = Federation([client.rows(slice(cut, None)) for client, cut in zip(parts.train, cuts, strict=True)])
    return Divided(first, last, settings)

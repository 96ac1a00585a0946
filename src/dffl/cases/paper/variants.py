"""Which settings did the paper use? The choices that its silence allows, on a balanced part of the grid with five seeds.

The rule, fixed before the runs:

1. A variant's distance to the paper is the mean of |log(ours / paper's)| over the 76 cells of its Tables 2 and 7 (60) and 8 (16
   means), under each of the two readings of relative regret. Settings and reading are chosen together.
2. Costs (each client's divided by their mean size, or raw), rotations (as the authors' later code has them, or 1.41 or 1.78
   times as far) and budgets (drawn anew by each seed, or once for all) are combined in all twelve ways and run with the two
   seeds of `FIRST`. The three nearest, and the settings of the authors' later code, are run with all five.
3. With the nearest of these, C = 1 and two other numbers of local epochs are run with five seeds.
4. The nearest wins. Variants within `MARGIN` of it count as equally near, and of those the one wins that differs least from the
   authors' later code (scaled costs, their rotations, budgets by seed, C = .2, E = 5, regret in total).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from dffl.cases.paper import study as paper
from dffl.cases.paper.nearness import NOTE, measured, nearness_row
from dffl.cases.paper.tables import READINGS
from dffl.studies.study import Job, Parameters, Study
from dffl.studies.tables import Table

FIRST = (0, 3)
"""The seeds that all combinations are run with: the one whose knapsacks lose least, and the one whose lose most."""
MARGIN = 2.0
"""In per cent. The part of the grid is 4 % from the whole one in the mean of the cells, for the same settings."""
ONE_SEED = 0
"""The seed of the budgets that are drawn once for all seeds."""
VALIDATION = 500
"""Validation samples of the oracle's methods: a quarter of the paper's, which decide nothing here."""
PAPER_SIX = ("local", "fedavg", "interp-mse", "interp-spo", "oracle-interp-mse", "oracle-interp-spo")


class Variant(NamedTuple):
    """Settings that the paper does not state. The defaults are those of the authors' later code."""

    scale_costs: bool = True
    turned: float = 1.0
    """How many times as far rotations turn: with 1.41 the norm of the angles is eta_obj, with 1.78 the largest angle, about."""
    budgets: str = "by seed"
    client_fraction: float = 0.2
    local_epochs: int = 5

    def words(self) -> str:
        """The variant in a few words."""
        costs, turned = ("scaled" if self.scale_costs else "raw"), f"{self.turned:g} x"
        return (
            f"{costs} costs, rotations {turned}, budgets {self.budgets}, C = {self.client_fraction:g}, E = {self.local_epochs}"
        )


COMBINED = tuple(
    Variant(scaled, turned, budgets)
    for budgets in ("by seed", "once")
    for turned in (1.0, 1.41, 1.78)
    for scaled in (True, False)
)
FINALISTS: tuple[Variant, ...] = (Variant(),)
"""Those of the combinations that are run with all five seeds."""
AROUND: tuple[Variant, ...] = ()
"""The nearest, with other C and E."""


def study() -> Study:
    """Every variant on its seeds; those of the first seeds come first."""
    asked: list[tuple[Variant, tuple[int, ...]]] = [(variant, FIRST) for variant in COMBINED]
    asked += [(variant, paper.SEEDS) for variant in (*FINALISTS, *AROUND)]
    jobs: dict[str, Job] = {}
    for variant, seeds in asked:
        for job in paper.study().jobs:
            place = {name: value for name, value in job.parameters.items() if name != "noise"}
            if job.parameters["noise"] or job.parameters["seed"] not in seeds or not in_part(place):
                continue
            job_of = Job(place | _deciding(variant, place)._asdict())
            jobs.setdefault(job_of.key, job_of)
    kept = {name: paper.PROTOCOL["settings"][name] for name in ("rounds", "batch_size")}
    fixed = {"test_samples": 1000, "validation_samples": VALIDATION, "methods": list(PAPER_SIX), "settings": kept}
    weight = lambda job: paper.weight(job | {"noise": 0.0})  # noqa: E731
    return Study("paper-variants", fit_variant, list(jobs.values()), fixed, weight, inner_axis=("methods", "method"))


def _deciding(variant: Variant, place: Parameters) -> Variant:
    """The variant without what makes no difference here (budgets of portfolios, rotations by 0): equal fits run once."""
    variant = variant if place["problem"] == "knapsack" else variant._replace(budgets="by seed")
    return variant if place["eta_obj"] else variant._replace(turned=1.0)


def in_part(job: Parameters) -> bool:
    """Whether a configuration is in the eighth of the grid that variants are run on.

    In each seed four pairs of heterogeneities, in which every level of either occurs once, with all degrees; two of the pairs
    are imbalanced. Over four seeds all 16 pairs occur, and every level is balanced and imbalanced equally often.
    """
    i, j, turn = paper.ETAS.index(job["eta_obj"]), paper.ETAS.index(job["eta_constr"]), job["seed"] % 4
    imbalanced = ((i >= 2) == (turn % 2 == 1)) != (job["seed"] >= 4)
    return bool(i ^ turn == j and imbalanced == job["imbalanced"])


def fit_variant(
    *, scale_costs: bool, turned: float, budgets: str, client_fraction: float, local_epochs: int, eta_obj: float,
    settings: dict[str, Any], **job: Any,
) -> pd.DataFrame:  # fmt: skip
    """The rows of one configuration under one variant."""
    changed = {"scale_costs": scale_costs, "client_fraction": client_fraction, "local_epochs": local_epochs}
    once = {"constraint_seed": ONE_SEED} if budgets == "once" else {}
    return paper.fit_configuration(
        **job, eta_obj=turned * eta_obj, noise=0.0, settings=settings | changed, federation={"knapsack": once}
    )


def rows_of(variant: Variant, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a variant, with those that it shares with others."""
    mask = (rows["turned"] == variant.turned) | (rows["eta_obj"] == 0)
    mask &= (rows["budgets"] == variant.budgets) | (rows["problem"] != "knapsack")
    for name in ("scale_costs", "client_fraction", "local_epochs"):
        mask &= rows[name] == getattr(variant, name)
    return rows[mask]


def tables(rows: pd.DataFrame, study: Study) -> list[Table]:
    """How near every finished variant is under both readings: with the first seeds, and those that are run with all."""
    several = (*FINALISTS, *AROUND)
    both = [
        _nearness_table("variants", "with five seeds", several, paper.SEEDS, rows, study),
        _nearness_table("variants-first", "with the first two seeds", COMBINED, FIRST, rows, study),
    ]
    return [table for table in both if table.cells]


def _nearness_table(
    name: str, words: str, variants: tuple[Variant, ...], seeds: tuple[int, ...], rows: pd.DataFrame, study: Study
) -> Table:
    grid = pd.DataFrame([job.parameters for job in study.jobs])
    lines = []
    for variant in variants:
        part = rows_of(variant, rows[rows["seed"].isin(seeds)])
        if part["job"].nunique() < len(rows_of(variant, grid[grid["seed"].isin(seeds)])):
            continue  # half a variant is another design, and would mislead
        for reading, label in READINGS.items():
            lines.append(nearness_row((variant.words(), label), measured(part, reading, pooled=True)))
    lines.sort(key=lambda line: line[0].ours.mean)
    title = f"How near each variant is to the paper, {words}"
    return Table(name, title, ("variant", "regret"), [cell for line in lines for cell in line], NOTE)

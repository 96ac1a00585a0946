"""Which settings did the paper use? The choices that its silence allows, on a balanced part of the grid with five seeds.

The rule, fixed before the runs:

1. A variant's distance to the paper is the mean of |log(ours / paper's)| over the 76 cells of its Tables 2 and 7 (60) and 8 (16
   means), under each of the two readings of relative regret. Settings and reading are chosen together.
2. Costs (each client's divided by their mean size, or raw), rotations (as the authors' later code has them, or 1.41 or 1.78
   times as far) and budgets (drawn anew by each seed, or once for all) are combined in all twelve ways and run with the two
   seeds of `FIRST`. The three nearest, and the settings of the authors' later code, are run with all five.
3. With the nearest of these, C = 1 and the local epochs of `OTHER_EPOCHS` are run with five seeds.
4. The nearest wins. Variants within `MARGIN` of it count as equally near, and of those the one wins that differs least from the
   authors' later code (scaled costs, their rotations, budgets by seed, C = .2, E = 5, regret in total).

The rule is code: `next_variants` reads it off the finished rows, and one command runs all three stages.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from dffl_studies.paper import study as paper
from dffl_studies.paper.nearness import NOTE, measured, nearness, nearness_row
from dffl_studies.paper.tables import AUTHORS_READING, READINGS
from dffl_studies.running.result import RunOptions, StudyRows, finished_rows
from dffl_studies.running.study import Job, Parameters, Study
from dffl_studies.running.tables import Table

FIRST = (0, 3)
"""The seeds with which all combinations are run: the one whose knapsacks lose least, and the one whose lose most."""
NEAREST = 3
"""The number of combinations that are run with all seeds."""
OTHER_FRACTION, OTHER_EPOCHS = 1.0, (2, 10)
"""The client fraction and the local epochs that are tried with the best combination."""
MARGIN = 2.0
"""In per cent. For equal settings, this part of the grid differs from the full grid by 4 % in the mean of the cells."""
ONE_SEED = 0
"""The seed of the budgets that are drawn once for all seeds."""
VALIDATION = 500
"""Validation samples of the oracle methods: a quarter of the paper's; they decide nothing here."""
PAPER_SIX = ("local", "fedavg", "interp-mse", "interp-spo", "oracle-interp-mse", "oracle-interp-spo")


class Variant(NamedTuple):
    """Settings that the paper does not state. The defaults are those of the authors' later code."""

    scale_costs: bool = True
    turned: float = 1.0
    """The factor on the angles of rotations: with 1.41 the norm of the angles is eta_obj, with 1.78 about the largest angle."""
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


class Distance(NamedTuple):
    """The distance of a variant from the paper under one reading of relative regret."""

    distance: float
    """In per cent."""
    variant: Variant
    reading: str

    @property
    def changes(self) -> int:
        """The number of settings that differ from the authors' later code; the reading is one of them."""
        return sum(a != b for a, b in zip(self.variant, Variant(), strict=True)) + (self.reading != AUTHORS_READING)


def study(several: Iterable[Variant] = (Variant(),)) -> Study:
    """The combinations on the first seeds, then ``several`` variants on all seeds."""
    asked = [(variant, FIRST) for variant in COMBINED] + [(variant, paper.SEEDS) for variant in several]
    jobs = dict(item for variant, seeds in asked for item in _jobs(variant, seeds).items())  # equal fits run once
    common = {name: paper.PROTOCOL["settings"][name] for name in ("rounds", "batch_size")}
    fixed = {"test_samples": 1000, "validation_samples": VALIDATION, "methods": list(PAPER_SIX), "settings": common}
    weight = lambda job: paper.weight(job | {"noise": 0.0})  # noqa: E731
    return Study("paper-variants", fit_variant, list(jobs.values()), fixed, weight, inner_axis=("methods", "method"))


@cache
def _part() -> list[Parameters]:
    """The configurations for variants."""
    grid = [job.parameters for job in paper.study().jobs if not job.parameters["noise"] and in_part(job.parameters)]
    return [{name: value for name, value in job.items() if name != "noise"} for job in grid]


@cache
def _jobs(variant: Variant, seeds: tuple[int, ...]) -> dict[str, Job]:
    """The part of the grid with one variant's settings, by key."""
    jobs = [Job(place | _deciding(variant, place)._asdict()) for place in _part() if place["seed"] in seeds]
    return {job.key: job for job in jobs}


def run_stages(options: RunOptions) -> StudyRows:
    """Run the three stages, each after the rows of the one before are complete; or show the results so far."""
    several: list[Variant] = [Variant()]
    while True:
        finished = finished_rows(study(several), options)
        if not (more := [variant for variant in next_variants(finished.rows) if variant not in several]):
            return finished
        several += more


def next_variants(rows: pd.DataFrame) -> list[Variant]:
    """The variants that the rule runs with all seeds, as far as the rows determine it."""
    first = distances(COMBINED, FIRST, rows)
    if len(first) < len(COMBINED) * len(READINGS):
        return [Variant()]
    nearest = list(dict.fromkeys(judged_variant.variant for judged_variant in first))[:NEAREST]
    several = list(dict.fromkeys([*nearest, Variant()]))
    judged = distances(several, paper.SEEDS, rows)
    if len(judged) < len(several) * len(READINGS):
        return several
    best = judged[0].variant
    others = [best._replace(client_fraction=OTHER_FRACTION), *(best._replace(local_epochs=epochs) for epochs in OTHER_EPOCHS)]
    return [*several, *others]


def chosen(rows: pd.DataFrame) -> Distance | None:
    """The choice of the rule; None until everything that it compares is complete."""
    several = next_variants(rows)
    judged = distances(several, paper.SEEDS, rows)
    if len(several) == 1 or len(judged) < len(several) * len(READINGS):
        return None
    near = [variant for variant in judged if variant.distance <= judged[0].distance + MARGIN]
    return min(near, key=lambda variant: (variant.changes, variant.distance))


def distances(variants: Iterable[Variant], seeds: tuple[int, ...], rows: pd.DataFrame) -> list[Distance]:
    """The distances of the complete variants under both readings, nearest first; an incomplete variant is not comparable."""
    done, judged = set(rows["job"]), []
    for variant in variants:
        if (keys := _jobs(variant, seeds).keys()) <= done:
            part = rows[rows["job"].isin(keys)]
            judged += [
                Distance(nearness(measured(part, reading, pooled=True)).distance, variant, reading) for reading in READINGS
            ]
    return sorted(judged, key=lambda entry: entry.distance)


def _deciding(variant: Variant, place: Parameters) -> Variant:
    """The variant without settings that have no effect here (budgets of portfolios, rotations by 0): equal fits run once."""
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
    *, scale_costs: bool, budgets: str, client_fraction: float, local_epochs: int, settings: dict[str, Any], **job: Any
) -> pd.DataFrame:  # fmt: skip
    """The rows of one configuration with one variant."""
    changed = {"scale_costs": scale_costs, "client_fraction": client_fraction, "local_epochs": local_epochs}
    once = {"constraint_seed": ONE_SEED} if budgets == "once" else {}
    return paper.fit_configuration(**job, noise=0.0, settings=settings | changed, federation={"knapsack": once})


def tables(rows: pd.DataFrame) -> list[Table]:
    """The distance of every complete variant under both readings: those with all seeds, and those with the first ones."""
    by_rule = chosen(rows)
    words = f" By the rule: {by_rule.variant.words()}, regret {READINGS[by_rule.reading]}." if by_rule else ""
    both = [
        _nearness_table("variants", "with five seeds", next_variants(rows), paper.SEEDS, rows, NOTE + words),
        _nearness_table("variants-first", "with the first two seeds", COMBINED, FIRST, rows, NOTE),
    ]
    return [table for table in both if table.cells]


def _nearness_table(
    name: str, words: str, variants: Iterable[Variant], seeds: tuple[int, ...], rows: pd.DataFrame, note: str
) -> Table:
    cells = []
    for variant in distances(variants, seeds, rows):
        part = rows[rows["job"].isin(_jobs(variant.variant, seeds).keys())]
        cells += nearness_row(
            (variant.variant.words(), READINGS[variant.reading]), measured(part, variant.reading, pooled=True)
        )
    return Table(name, f"How near each variant is to the paper, {words}", ("variant", "regret"), cells, note)

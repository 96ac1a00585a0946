"""Which settings did the paper use? Every choice that its silence allows, run on one eighth of the grid.

Each variant changes one thing of the protocol (`dffl.cases.paper.study.PROTOCOL`). How the numbers are read off, the kind of
relative regret, costs no training: both readings of each variant are in the same rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dffl.cases.paper import study as paper
from dffl.cases.paper.published import AGGREGATE, BY_SIZE
from dffl.cases.paper.tables import PAPER_FOUR, READINGS, client_group, name_of
from dffl.studies.study import Job, Study
from dffl.studies.tables import Cell, Table, Value


@dataclass(frozen=True)
class Variant:
    """What a variant changes, in words and in arguments."""

    words: str
    settings: dict[str, Any] = field(default_factory=dict)
    federation: dict[str, dict[str, Any]] = field(default_factory=dict)
    noise: float = 0.0
    turned: float = 1.0
    """How many times as far the clients' rotations turn."""
    reads: str = ""
    """The variant whose fits this one reads at the conditional-mean costs, instead of fits of its own."""

    def arguments(self) -> dict[str, Any]:
        """What decides its numbers: part of the protocol, so that rows of a variant that has changed are not taken for it."""
        return {"settings": self.settings, "federation": self.federation, "noise": self.noise, "turned": self.turned}


VARIANTS = {
    "chosen": Variant("the protocol of this study"),
    "all-clients": Variant("C = 1: all clients in every round", {"client_fraction": 1.0}),
    "two-fifths": Variant("C = .4: two fifths of them in a round", {"client_fraction": 0.4}),
    "raw-costs": Variant("costs not divided by a client's mean", {"scale_costs": False}),
    "fewer-epochs": Variant("E = 2, local models 100 epochs", {"local_epochs": 2}),
    "more-epochs": Variant("E = 10, local models 500 epochs", {"local_epochs": 10}),
    "ten-rounds": Variant("T = 10, local models 50 epochs", {"rounds": 10}),
    "small-batches": Variant("batches of 16", {"batch_size": 16}),
    "minimise": Variant("portfolios minimise the polynomial", federation={"portfolio": {"maximize": False}}),
    # The norm of a rotation's angles is then eta_obj; with 1.78 its largest angle is, about.
    "angles": Variant("rotations 1.41 times as far", turned=1.41),
    "largest-angle": Variant("rotations 1.78 times as far", turned=1.78),
    "noise": Variant("noise, judged at realised costs", noise=1.0),
    "noise-expected": Variant("noise, judged at mean costs", noise=1.0, reads="noise"),
}


def study() -> Study:
    """Every variant on the eighth of the grid that `dffl paper --quick` runs."""
    fraction = [job.parameters for job in paper.quick().jobs]
    # A variant that only reads the same fits differently needs no jobs of its own.
    trained = [name for name, variant in VARIANTS.items() if not variant.reads]
    jobs = [Job({"variant": name} | {k: v for k, v in one.items() if k != "noise"}) for name in trained for one in fraction]
    variants = {name: VARIANTS[name].arguments() for name in trained}
    fixed = {"test_samples": 1000, "settings": dict(paper.PROTOCOL["settings"]), "variants": variants}
    return Study("paper-variants", fit_variant, jobs, fixed, lambda job: paper.weight(job | {"noise": 0.0}), keyed=["variants"])


def fit_variant(
    *, variant: str, variants: dict[str, Any], test_samples: int, settings: dict[str, Any], eta_obj: float, **job: Any
) -> pd.DataFrame:
    """The rows of one configuration under one variant; the paper's four methods and ours."""
    changed = variants[variant]
    return paper.fit_configuration(
        **job,
        eta_obj=changed["turned"] * eta_obj,
        noise=changed["noise"],
        methods=[*PAPER_FOUR, "finetune"],
        test_samples=test_samples,
        validation_samples=0,
        settings=settings | changed["settings"],
        federation=changed["federation"],
    )


def tables(rows: pd.DataFrame, study: Study) -> list[Table]:
    """The means of every variant that is finished under both readings, and how far each is from the paper."""
    found = _finished(rows, study)
    return [_distances(found), *(_means(found, reading) for reading in READINGS)]


def _finished(rows: pd.DataFrame, study: Study) -> dict[str, pd.DataFrame]:
    """The rows of each variant that has all its jobs. Half a variant is another design, and would mislead."""
    expected = Counter(job.parameters["variant"] for job in study.jobs)
    found = {}
    for name, variant in VARIANTS.items():
        trained = variant.reads or name
        part = rows[rows["variant"] == trained]
        if 0 < part["job"].nunique() == expected[trained]:
            found[name] = part
    return found


def _distances(found: dict[str, pd.DataFrame]) -> Table:
    cells = []
    for name, part in found.items():
        for reading in READINGS:
            gaps = {
                key: abs(float(np.log(value / published_mean(*key).mean)))
                for key, value in _cell_means(part, reading, VARIANTS[name]).items()
            }
            label = (name, VARIANTS[name].words, READINGS[reading])
            for column in ("all cells", *sorted({problem for problem, _, _ in gaps})):
                chosen = [gap for key, gap in gaps.items() if column in ("all cells", key[0])]
                cells.append(Cell(label, column, Value(100 * float(np.mean(chosen)), np.nan), None))
    total = {cell.row: cell.ours.mean for cell in cells if cell.column == "all cells"}
    cells.sort(key=lambda cell: total[cell.row])
    note = (
        "The mean of |log(ours / paper's)|, in percent, over 24 cells: mean regret of the paper's four methods in balanced "
        "configurations and, in imbalanced ones, for data-rich and data-poor clients. Closest first."
    )
    return Table("distances", "How far each variant is from the paper", ("variant", "what it changes", "regret"), cells, note)


def _means(found: dict[str, pd.DataFrame], reading: str) -> Table:
    cells = []
    for name, part in found.items():
        for (problem, group, method), ours in _cell_means(part, reading, VARIANTS[name]).items():
            cells.append(
                Cell((name, problem, group), name_of(method), Value(ours, np.nan), published_mean(problem, group, method))
            )
    note = "Mean relative regret in percent on the eighth of the grid, one seed; the paper's are over its whole grid."
    name, title = f"means-{READINGS[reading].replace(' ', '-')}", f"Means of each variant, relative regret {READINGS[reading]}"
    return Table(name, title, ("variant", "problem", "clients"), cells, note)


def _cell_means(rows: pd.DataFrame, reading: str, variant: Variant) -> dict[tuple[str, str, str], float]:
    """Mean regret in percent by problem, group and method."""
    rows = rows[rows["method"].isin(PAPER_FOUR)]
    values = 100.0 * rows[("expected_" if variant.reads else "") + reading].astype(float)
    keyed = pd.DataFrame({"problem": rows["problem"], "group": client_group(rows), "method": rows["method"], "value": values})
    means = keyed.groupby(["problem", "group", "method"], sort=False, as_index=False)["value"].mean()
    return {(row.problem, row.group, row.method): float(row.value) for row in means.itertuples()}


def published_mean(problem: str, group: str, method: str) -> Value:
    """The paper's mean regret of a group. Of balanced clients it follows from the mean of all and of the imbalanced ones."""
    if group != "balanced":
        return BY_SIZE[problem, group, method]["mean"]
    rich, poor = (BY_SIZE[problem, size, method]["mean"].mean for size in ("data-rich", "data-poor"))
    return Value(2 * AGGREGATE[problem, method]["mean"].mean - (rich + poor) / 2, float("nan"))

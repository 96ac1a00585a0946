"""Which settings did the paper use? Every choice that its silence allows, run on one eighth of the grid.

Each variant changes one thing of the protocol (`dffl.studies.paper.PROTOCOL`). How the numbers are read off, the kind of
relative regret, costs no training: both readings of each variant are in the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dffl.studies import paper
from dffl.studies.published import AGGREGATE, BY_SIZE, Value
from dffl.studies.study import Job, Study
from dffl.studies.tables import NAMES, PAPER_FOUR, READINGS, Cell, Table


@dataclass(frozen=True)
class Variant:
    """What a variant changes, in words and in arguments."""

    words: str
    settings: dict[str, Any] = field(default_factory=dict)
    federation: dict[str, dict[str, Any]] = field(default_factory=dict)
    noise: float = 0.0
    turned: float = 1.0
    """How many times as far the clients' rotations turn."""
    judged_by: str = ""
    """``expected_`` where noise is in the training costs but regrets are at the conditional-mean costs."""


VARIANTS = {
    "chosen": Variant("the protocol of this study"),
    "all-clients": Variant("all clients in every round, C = 1", {"client_fraction": 1.0}),
    "two-fifths": Variant("two fifths of the clients in a round, C = .4", {"client_fraction": 0.4}),
    "raw-costs": Variant("costs as they are, not divided by a client's mean", {"scale_costs": False}),
    "fewer-epochs": Variant("E = 2 local epochs in a round, local models 100 epochs", {"local_epochs": 2}),
    "more-epochs": Variant("E = 10 local epochs in a round, local models 500 epochs", {"local_epochs": 10}),
    "ten-rounds": Variant("T = 10 rounds, local models 50 epochs as in the authors' later code", {"rounds": 10}),
    "small-batches": Variant("batches of 16", {"batch_size": 16}),
    "minimise": Variant("portfolios that minimise the generating polynomial", federation={"portfolio": {"maximize": False}}),
    "angles": Variant("rotations 1.41 times as far: the norm of a rotation's angles is eta_obj", turned=1.41),
    "largest-angle": Variant("rotations 1.78 times as far: a rotation's largest angle is about eta_obj", turned=1.78),
    "angles-small-batches": Variant("both: rotations 1.41 times as far, batches of 16", {"batch_size": 16}, turned=1.41),
    "noise": Variant("noise as worded, judged at realised costs", noise=1.0),
    "noise-expected": Variant("noise as worded, judged at conditional-mean costs", noise=1.0, judged_by="expected_"),
}


def study() -> Study:
    """Every variant on the eighth of the grid that `dffl paper --quick` runs."""
    fraction = [job.parameters for job in paper.quick().jobs]
    # A variant that only reads the same fits differently needs no jobs of its own.
    trained = [name for name, variant in VARIANTS.items() if not variant.judged_by]
    jobs = [Job({"variant": name} | {k: v for k, v in one.items() if k != "noise"}) for name in trained for one in fraction]
    fixed = {"test_samples": 1000, "settings": dict(paper.PROTOCOL["settings"])}
    return Study("paper-protocol", fit_variant, jobs, fixed, lambda job: paper.weight(job | {"noise": 0.0}))


def fit_variant(*, variant: str, test_samples: int, settings: dict[str, Any], **job: Any) -> pd.DataFrame:
    """The rows of one configuration under one variant; the paper's four methods and ours."""
    changed = VARIANTS[variant]
    return paper.fit_configuration(
        **(job | {"eta_obj": changed.turned * job["eta_obj"]}),
        noise=changed.noise,
        methods=[*PAPER_FOUR, "finetune"],
        test_samples=test_samples,
        validation_samples=0,
        settings=settings | changed.settings,
        federation=changed.federation,
    )


def tables(rows: pd.DataFrame) -> list[Table]:
    """The means of every variant under both readings, and how far each is from the paper."""
    return [_distances(rows), *(_means(rows, reading) for reading in READINGS)]


def _distances(rows: pd.DataFrame) -> Table:
    cells = []
    for name, reading, part in _readings(rows):
        label = (name, VARIANTS[name].words, READINGS[reading])
        gaps = _gaps(part, reading, VARIANTS[name].judged_by)
        for column, chosen in (
            ("all cells", gaps),
            *((p, {k: v for k, v in gaps.items() if k[0] == p}) for p in paper.PROBLEMS),
        ):
            cells.append(Cell(label, column, Value(100 * float(np.mean(list(chosen.values()))), float("nan")), None))
    best = sorted({cell.row for cell in cells}, key=lambda row: _find(cells, row, "all cells"))
    cells = [cell for row in best for cell in cells if cell.row == row]
    note = (
        "The mean of |log(ours / paper's)|, in percent, over 24 cells: mean regret of the paper's four methods in balanced "
        "configurations and, in imbalanced ones, for data-rich and data-poor clients. Closest first."
    )
    return Table("distances", "How far each variant is from the paper", ("variant", "what it changes", "regret"), cells, note)


def _means(rows: pd.DataFrame, reading: str) -> Table:
    cells = []
    for name, kind, part in _readings(rows):
        if kind != reading:
            continue
        for (problem, group, method), ours in _cell_means(part, reading, VARIANTS[name].judged_by).items():
            published = published_mean(problem, group, method)
            cells.append(Cell((name, problem, group), NAMES[method], Value(ours, float("nan")), published))
    note = "Mean relative regret in percent on the eighth of the grid, one seed; the paper's are over its whole grid."
    name, title = f"means-{READINGS[reading].replace(' ', '-')}", f"Means of each variant, relative regret {READINGS[reading]}"
    return Table(name, title, ("variant", "problem", "clients"), cells, note)


def _readings(rows: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Each variant that is finished, under both readings. Half a variant is another design, and would mislead."""
    found, whole = [], rows.groupby("variant")["job"].nunique().max()
    for name, variant in VARIANTS.items():
        trained = name.removesuffix("-expected") if variant.judged_by else name
        part = rows[rows["variant"] == trained]
        found += [(name, reading, part) for reading in READINGS if part["job"].nunique() == whole]
    return found


def _cell_means(rows: pd.DataFrame, reading: str, judged_by: str) -> dict[tuple[str, str, str], float]:
    group = np.where(~rows["imbalanced"], "balanced", np.where(rows["n"] > 100, "data-rich", "data-poor"))
    values = 100.0 * rows[judged_by + reading].astype(float)
    means = values.groupby([rows["problem"], pd.Series(group, rows.index, name="group"), rows["method"]], sort=False).mean()
    return {key: float(value) for key, value in means.items() if key[2] in PAPER_FOUR}  # type: ignore[index, misc]


def _gaps(rows: pd.DataFrame, reading: str, judged_by: str) -> dict[tuple[str, str, str], float]:
    ours = _cell_means(rows, reading, judged_by)
    return {key: abs(float(np.log(value / published_mean(*key).mean))) for key, value in ours.items()}


def published_mean(problem: str, group: str, method: str) -> Value:
    """The paper's mean regret of a group. Of balanced clients it follows from the mean of all and of the imbalanced ones."""
    if group != "balanced":
        return BY_SIZE[problem, group, method]["mean"]
    rich, poor = (BY_SIZE[problem, size, method]["mean"].mean for size in ("data-rich", "data-poor"))
    return Value(2 * AGGREGATE[problem, method]["mean"].mean - (rich + poor) / 2, float("nan"))


def _find(cells: list[Cell], row: tuple[str, ...], column: str) -> float:
    return next(cell.ours.mean for cell in cells if cell.row == row and cell.column == column)

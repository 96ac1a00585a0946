"""The distance of measured rows from the paper: the 76 cells that it prints, in per cent and in its own standard deviations.

These are the 60 statistics of its Table 7 (40 of them are its Table 2) and the 16 means by client size of its Table 8.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl_studies.paper.published import AGGREGATE, BY_SIZE, STATISTICS
from dffl_studies.paper.tables import COLUMN_VALUES, PAPER_FOUR, READINGS, client_group, over_degrees, percent, with_both_levels
from dffl_studies.running.tables import Cell, Count, Table, Value

ALL = "all clients"


class Place(NamedTuple):
    """A cell of the paper's tables."""

    problem: str
    clients: str
    """`ALL`, data-rich or data-poor."""
    method: str
    statistic: str


PUBLISHED: dict[Place, Value] = {
    Place(problem, ALL, method, name): values[name] for (problem, method), values in AGGREGATE.items() for name in STATISTICS
} | {Place(*key, "mean"): values["mean"] for key, values in BY_SIZE.items()}


def measured(rows: pd.DataFrame, reading: str, pooled: bool = False) -> dict[Place, float]:
    """The same cells from a study's rows, in per cent.

    Statistics of Table 7 are taken in each seed and averaged, as the paper does. With ``pooled`` they are taken over the
    clients of all seeds: for a part of the grid, one seed of which has too few clients for a maximum. Means by size are
    averaged over the levels of eta_obj, which a part may hold unequally often.
    """
    clients = over_degrees(percent(rows, reading))
    cells = {}
    for (problem, method), part in clients.groupby(["problem", "method"], sort=False):
        seeds = [part] if pooled else [seed for _, seed in part.groupby("seed")]
        for name in STATISTICS:
            cells[Place(str(problem), ALL, str(method), name)] = float(np.mean([COLUMN_VALUES[name](seed) for seed in seeds]))
    sized = clients[clients["imbalanced"]]
    sized = sized.assign(group=client_group(sized))
    for (problem, group, method), part in sized.groupby(["problem", "group", "method"], sort=False):
        cells[Place(str(problem), str(group), str(method), "mean")] = float(part.groupby("eta_obj")["regret"].mean().mean())
    return {place: cells[place] for place in PUBLISHED if place in cells}


class Nearness(NamedTuple):
    """The distance of measured cells from the paper's."""

    distance: float
    """The mean of |log(ours / paper's)| over the cells, in per cent."""
    deviations: float
    """The mean of |ours - paper's| over the cells, in the paper's inter-seed standard deviations."""
    means: int
    """How many of the 12 means of all clients are within 20 %."""
    means_by_size: int
    """How many of the 16 means by size are within 30 %."""
    ordered: int
    """In how many of the two problems the means of the four methods are in the paper's order."""
    cells: int


def nearness(cells: Mapping[Place, float]) -> Nearness:
    """The distance of these cells; those that are not measured do not count."""
    gaps = {place: ours / PUBLISHED[place].mean - 1 for place, ours in cells.items()}
    logs = [abs(math.log(max(1 + gap, 1e-12))) for gap in gaps.values()]
    deviations = [abs(cells[place] - PUBLISHED[place].mean) / PUBLISHED[place].sd for place in gaps]
    means = sum(abs(gap) <= 0.2 for place, gap in gaps.items() if place.clients == ALL and place.statistic == "mean")
    by_size = sum(abs(gap) <= 0.3 for place, gap in gaps.items() if place.clients != ALL)
    ordered = sum(_in_order(cells, problem) for problem in sorted({place.problem for place in cells}))
    return Nearness(100 * float(np.mean(logs)), float(np.mean(deviations)), means, by_size, ordered, len(gaps))


NOTE = (
    "Distance: the mean of |log(ours / paper's)| over the 76 cells of the paper's Tables 2, 7 and 8, in per cent. In sd: the "
    "mean of |ours - paper's| in the paper's standard deviations. Then: how many of the 12 means are within 20 %, how many of "
    "the 16 means by size within 30 %, and in how many of the two problems the four methods have the paper's order."
)


def nearness_row(row: tuple[str, ...], cells: Mapping[Place, float]) -> list[Cell]:
    """A row of a table with the distance of cells."""
    near = nearness(cells)
    numbers: dict[str, Value] = {"distance, %": Value(near.distance)}
    for problem in sorted({place.problem for place in cells}):
        part = {place: value for place, value in cells.items() if place.problem == problem}
        numbers[f"{problem}, %"] = Value(nearness(part).distance)
    numbers["in sd"] = Value(near.deviations)
    numbers["means within 20 %"] = Count(near.means)
    numbers["by size within 30 %"] = Count(near.means_by_size)
    numbers["in order"] = Count(near.ordered)
    return [Cell(row, column, value) for column, value in numbers.items()]


def nearness_table(rows: pd.DataFrame) -> Table:
    """The distance of a study's rows, without noise and over both levels of it, under both readings."""
    cells = []
    for words, part in (("without noise", rows[rows["noise"] == 0]), ("both levels averaged", with_both_levels(rows))):
        count = part["job"].nunique()
        for reading, label in READINGS.items() if count else ():
            cells += nearness_row((f"{words} ({count:,})", label), measured(part, reading))
    return Table("nearness", "How near all configurations are to the paper", ("configurations", "regret"), cells, NOTE)


def _in_order(cells: Mapping[Place, float], problem: str) -> bool:
    places = [Place(problem, ALL, method, "mean") for method in PAPER_FOUR]
    return all(place in cells for place in places) and _ranks(cells[p] for p in places) == _ranks(
        PUBLISHED[p].mean for p in places
    )


def _ranks(values: Iterable[float]) -> list[int]:
    return [int(rank) for rank in np.argsort(np.argsort(list(values)))]

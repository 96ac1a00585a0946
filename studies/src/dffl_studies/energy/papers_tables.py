"""The paper's Tables 4 and 5 with our numbers, and next to them the paper's where `Comparison` allows it."""

from __future__ import annotations

import pandas as pd

from dffl.time.bases import NAIVE
from dffl_studies.energy import published
from dffl_studies.energy.compared import Comparison
from dffl_studies.energy.summary import PAPERS, STATISTICS, by_seed
from dffl_studies.energy.tables import HEADINGS, LAMBDA, name_of, over_seeds, trained
from dffl_studies.running.tables import Cell, Table, Value

COLUMNS = {"local": "local", "fedavg": "federated", "interp-spo": "interpolated"}
"""The columns of Table 5, by method."""


def papers_tables(rows: pd.DataFrame, comparison: Comparison) -> list[Table]:
    """Tables 4 and 5, if they are wanted."""
    return [table_4(rows, comparison), table_5(rows, comparison)] if comparison.wanted else []


def table_4(rows: pd.DataFrame, comparison: Comparison) -> Table:
    """The change of the zones' regrets against `local`: the paper's two methods, then ours and the naive rules."""
    parts = dict(iter(by_seed(rows, PAPERS).groupby("method", sort=False)))
    rules = [rule for rule in NAIVE if rule in parts]
    others = [method for method in trained(rows) if method not in (PAPERS, *published.CHANGES)]
    cells = []
    for method in dict.fromkeys([*published.CHANGES, *others, *rules]):
        paper = published.CHANGES.get(method) if comparison.zones else None
        for place, (name, heading) in enumerate(zip(STATISTICS, HEADINGS, strict=True)):
            cells.append(Cell((name_of(method),), heading, over_seeds(parts[method][name]), paper and paper[place]))
    note = _note(
        "Change of a zone's regret against its local model of T x E epochs, in percent; negative is a gain. Statistics over "
        "zones in each seed, then mean +- sd over seeds. Worst harm: the largest change. Worst-20 % harm: the mean harm, gains "
        "counted as zero, of the worst fifth of the zones.",
        comparison,
    )
    title = "The paper's Table 4: change of regret against local"
    return Table("table-4", title, ("method",), cells, note, differences=comparison.same_year)


def table_5(rows: pd.DataFrame, comparison: Comparison) -> Table:
    """Each zone's regret and interpolation weight, in the paper's order; zones that the paper does not have come last."""
    groups = dict(iter(rows.groupby(["zone", "method"], sort=False)))
    there = set(rows["zone"])
    order = [*(zone for zone in published.ZONES if zone in there), *sorted(there - set(published.ZONES))]
    cells = []
    for zone in order:
        row = (zone, f"{groups[zone, PAPERS]['demand'].iloc[0]:g}")
        paper: dict[str, Value] = published.ZONES[zone] if zone in comparison.zones else {}
        cells += [
            Cell(row, name, over_seeds(groups[zone, method]["regret"]), paper.get(method)) for method, name in COLUMNS.items()
        ]
        cells.append(Cell(row, LAMBDA, over_seeds(groups[zone, "interp-spo"][LAMBDA]), paper.get(LAMBDA)))
    note = _note(
        "Regret of a test day in US$ for each MW, mean +- sd over seeds. lambda is the weight of the shared model that the "
        "interpolation chose (0: local, 1: federated).",
        comparison,
    )
    title = "The paper's Table 5: regret and interpolation weight of each zone"
    return Table("table-5", title, ("zone", "hours"), cells, note, differences=comparison.same_year)


def _note(text: str, comparison: Comparison) -> str:
    """How to read a table, and what differs from the paper where its numbers are shown."""
    return " ".join([text, *(comparison.sentences if comparison.zones else ())])

"""The paper's Tables 4 and 5 with our numbers, and next to them the paper's where `Comparison` allows it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dffl.time.bases import NAIVE
from dffl.training.methods import label_of
from dffl_studies.energy import published
from dffl_studies.energy.published import Comparison
from dffl_studies.energy.setup import EVERY_METHOD
from dffl_studies.energy.summary import FAIR, PAPERS, STATISTICS, by_seed, harmed_zones
from dffl_studies.running.tables import Cell, Table, Value

RULE_LABELS = {
    "forecast": "Steady moving average",
    "mean-7": "Mean of the last 7 days",
    "mean-14": "Mean of the last 14 days",
    "mean-28": "Mean of the last 28 days",
    "steady": "Steady moving average",
    "chosen": "the chosen rules",
}
"""What the tables and figures call naive rules; methods have their usual label."""
HEADINGS = ("mean change %", "median change %", "worst harm %", "worst-20 % harm")
LAMBDA = "lambda"
HARM = (
    "Over 1 %: zones with over 1 % more regret, in a seed. Harmed: zones with over 1 % more regret in the mean of the seeds, "
    "where the 95 % interval over weeks and seeds lies above 0 too. Two seeds do not tell."
)


def name_of(method: str) -> str:
    """What this study's tables and figures call a method or a rule."""
    return RULE_LABELS.get(method) or label_of(method)


def trained(rows: pd.DataFrame) -> list[str]:
    """The methods of these rows that are trained, in the order of the tables."""
    there = set(rows["method"])
    return [method for method in EVERY_METHOD if method in there]


def all_tables(rows: pd.DataFrame, comparison: Comparison) -> list[Table]:
    """The paper's Tables 4 and 5, and the change against a zone's own model that is made with as much care."""
    return [table_4(rows, comparison), table_5(rows, comparison), changes(rows, FAIR)]


def changes(rows: pd.DataFrame, against: str) -> Table:
    """How each method changes the zones' regrets, against one of their own models."""
    harmed, zones, cells = harmed_zones(rows, against), rows["zone"].nunique(), []
    for method, part in by_seed(rows, against).groupby("method", sort=False):
        if method == against:
            continue
        row = (name_of(str(method)),)
        for name, heading in zip(STATISTICS, HEADINGS, strict=True):
            cells.append(Cell(row, heading, over_seeds(part[name])))
        cells.append(Cell(row, f"over 1 % of {zones}", over_seeds(part["harmed"])))
        cells.append(Cell(row, f"harmed of {zones}", Value(float(harmed.get(method, np.nan)))))
    note = (
        f"Change of a zone's regret against its own model ({against}), in percent; negative is a gain. Statistics over zones "
        "in each seed, then mean +- sd over seeds. Worst harm: the largest change, even if it is a gain. Worst-20 % harm: the "
        f"mean harm, gains counted as zero, of the worst fifth of the zones. {HARM}"
    )
    return Table(f"changes-{against}", f"Change of regret against {against}", ("method",), cells, note)


def over_seeds(values: pd.Series) -> Value:
    """The mean over seeds and its standard deviation; no deviation if the values are equal."""
    value = Value.over_seeds(values)
    return value if value.sd > 1e-9 else Value(value.mean)


COLUMNS = {"local": "local", "fedavg": "federated", "interp-spo": "interpolated"}
"""The columns of Table 5, by method."""


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

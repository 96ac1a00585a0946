"""The tables of the paper's energy study that the paper does not have: changes against both own models, and in total."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dffl.time.bases import STEADY
from dffl.training.methods import label_of
from dffl_studies.energy.harm import Change, harmed_zones, total_change
from dffl_studies.energy.setup import EVERY_METHOD
from dffl_studies.energy.summary import REFERENCES, STATISTICS, by_seed
from dffl_studies.running.tables import Cell, Table, Value, plain_cells

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


def all_tables(rows: pd.DataFrame) -> list[Table]:
    """Every table of these rows, except for the paper's (see `papers_tables`)."""
    return [totals(rows), *(changes(rows, against) for against in REFERENCES)]


def totals(rows: pd.DataFrame) -> Table:
    """The change of the mean regret over zones against both own models and the steady average, with its interval."""
    cells = []
    for against in (*REFERENCES, STEADY):
        for method in (name for name in trained(rows) if name != against):
            if found := total_change(rows, method, against):
                cells += plain_cells((against, name_of(method)), _interval(found))
    note = (
        "Change of the mean regret over zones, in percent, and its 95 % interval over the weeks of the test half and over the "
        "seeds; negative is a gain. Zones that lose much count more here than in the mean of the zones' changes."
    )
    return Table("totals", "Change of the total regret", ("against", "method"), cells, note)


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


def _interval(found: Change) -> dict[str, float]:
    """A change and its ends by their headings; ends that are unknown are left empty."""
    return {f"{name} %": value if np.isfinite(value) else np.nan for name, value in found._asdict().items()}


def over_seeds(values: pd.Series) -> Value:
    """The mean over seeds and its standard deviation; no deviation if the values are equal."""
    found = Value.over_seeds(values)
    return found if found.sd > 1e-9 else Value(found.mean)

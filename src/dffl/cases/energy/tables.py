"""The tables of the energy study: changes against local, zone by zone, and money."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dffl.cases.energy import published
from dffl.cases.energy.setup import METHODS
from dffl.cases.energy.summary import STATISTICS, by_seed, with_changes, zone_order
from dffl.studies.tables import Cell, Table, Value
from dffl.training.methods import label_of

RULE_LABELS = {
    "forecast": "Steady moving average",
    "mean-cost": "Historical mean price",
    "yesterday": "Yesterday's prices",
    "moving-average": "Moving average",
    "steady-average": "Steady moving average",
    "perfect-foresight": "Perfect foresight",
}
"""What the tables and figures call naive rules; methods have their usual label."""
DAYS = 365
HEADINGS = ("mean change %", "median change %", "worst harm %", "worst-20 % harm")
IN_ZONES = ("local", "fedavg", "interp-spo", "finetune", "finetune-mix", "moving-average")
LAMBDA = "lambda"


def name_of(method: str) -> str:
    """What this study's tables and figures call a method or a rule."""
    return RULE_LABELS.get(method) or label_of(method)


def all_tables(rows: pd.DataFrame) -> list[Table]:
    """Every table of these rows; with the paper's numbers beside ours if the zones are the paper's."""
    papers = set(rows["zone"]) == set(published.ZONES)
    return [changes(rows, papers), zones(rows, papers), money(rows), worst(rows)]


def changes(rows: pd.DataFrame, papers: bool) -> Table:
    """How each method changes the zones' regrets, against their local models."""
    seeds, cells = by_seed(rows), []
    for method, part in seeds.groupby("method", sort=False):
        if method in ("local", "perfect-foresight"):
            continue
        paper = dict(zip(STATISTICS, published.CHANGES.get(str(method), ()), strict=False)) if papers else {}
        for name, heading in zip(STATISTICS, HEADINGS, strict=True):
            cells.append(Cell((name_of(str(method)),), heading, _over_seeds(part[name]), paper.get(name)))
        cells.append(Cell((name_of(str(method)),), f"harmed of {rows['zone'].nunique()}", _over_seeds(part["harmed"]), None))
    note = (
        "Change of a zone's regret against its own local model, in percent; negative is a gain. Statistics over zones in each "
        "seed, then mean +- sd over seeds. Worst harm: the largest change, even if it is a gain. Worst-20 % harm: the mean "
        "harm, gains counted as zero, of the worst fifth of the zones. Harmed: zones with more than 1 % more regret than their "
        "local model."
    )
    return Table("changes", "Change of regret against local", ("method",), cells, note)


def zones(rows: pd.DataFrame, papers: bool) -> Table:
    """Each zone's regret under the main methods and naive rules, and the weight that interpolation chose."""
    wide = {(zone, method): part for (zone, method), part in rows.groupby(["zone", "method"], sort=False)}
    cells = []
    for zone in zone_order(rows):
        row = (zone, f"{wide[zone, 'local']['demand'].iloc[0]:g}")
        paper = published.ZONES.get(zone, {}) if papers else {}
        cells += [
            Cell(row, method, _over_seeds(wide[zone, method]["regret"]), paper.get(method))
            for method in IN_ZONES
            if (zone, method) in wide
        ]
        cells.append(Cell(row, LAMBDA, _over_seeds(wide[zone, "interp-spo"]["lambda"]), paper.get(LAMBDA)))
    note = (
        "Regret of a test day in US$ for each MW, mean +- sd over seeds; zones in the order of their federated change. lambda "
        "is the weight of the shared model that interp-spo chose (0: own, 1: shared)."
    )
    return Table("zones", "Each zone's regret and interpolation weight", ("zone", "hours"), cells, note)


def money(rows: pd.DataFrame) -> Table:
    """What each method loses in a year against perfect foresight, and saves against local models and the historical mean."""
    cells = [
        Cell((name_of(method),), name, _over_seeds(values), None)
        for method, columns in _money(rows).items()
        for name, values in columns.items()
    ]
    note = (
        "US$ for each MW of demand, mean over zones; a year is 365 days like the test days. Lost: against perfect "
        "foresight. Saved: a year, against the local models and against the historical mean price."
    )
    return Table("money", "What it is worth", ("method",), cells, note)


def money_as_json(rows: pd.DataFrame) -> dict[str, dict[str, float]]:
    """For programs: the same numbers, means over seeds."""
    return {
        method: {name: float(values.mean()) for name, values in columns.items()} for method, columns in _money(rows).items()
    }


def _money(rows: pd.DataFrame) -> dict[str, dict[str, pd.Series]]:
    """US$ for each MW, one number per seed."""
    means = rows.groupby(["method", "seed"], sort=False)["regret"].mean()
    best = rows.groupby(["method", "seed"], sort=False)["best"].mean()
    made = {}
    for method in rows["method"].unique():
        lost = means[method]
        made[method] = {
            "lost a day": lost,
            "lost a year": DAYS * lost,
            "saved: local": DAYS * (means["local"] - lost),
            "saved: mean price": DAYS * (means["mean-cost"] - lost),
            "paid a year": DAYS * (best[method] + lost),
        }
    return made


def worst(rows: pd.DataFrame) -> Table:
    """The zone with the largest change of each method in each seed."""
    changed, cells = with_changes(rows), []
    for seed, part in changed.groupby("seed"):
        local = part[part["method"] == "local"].set_index("zone")["regret"]
        weights = part[part["method"] == "interp-spo"].set_index("zone")["lambda"]
        for method in (name for name in METHODS if name != "local"):
            zone, change = _largest(part[part["method"] == method].set_index("zone")["change"])
            row = (str(seed), name_of(method), zone)
            numbers = {"worst harm %": change, "its local regret": local[zone], "interp-spo's lambda there": weights[zone]}
            cells += [Cell(row, name, Value(float(value), np.nan), None) for name, value in numbers.items()]
    note = "The largest change against local in each seed, the zone that has it, and the weight that interp-spo chose there."
    return Table("worst", "The worst zone of each seed", ("seed", "method", "worst zone"), cells, note)


def _largest(changes: pd.Series) -> tuple[str, float]:
    known = changes.dropna()
    return (str(known.idxmax()), float(known.max())) if len(known) else (str(changes.index[0]), np.nan)


def _over_seeds(values: pd.Series) -> Value:
    """The mean over seeds and its standard deviation; no deviation if the values are equal."""
    found = Value.over_seeds(values)
    return found if found.sd > 1e-9 else Value(found.mean)

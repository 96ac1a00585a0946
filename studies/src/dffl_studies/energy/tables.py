"""The tables of the energy study: a summary, changes against both own models, harm, zone by zone, rules and money."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dffl.training.methods import label_of
from dffl_studies.energy.chosen import Rules
from dffl_studies.energy.harm import Change, excesses, harmed_zones, total_change
from dffl_studies.energy.naive import FORESIGHT, RULES
from dffl_studies.energy.setup import EVERY_METHOD
from dffl_studies.energy.summary import FAIR, PAPERS, REFERENCES, STATISTICS, by_seed, zone_order
from dffl_studies.running.tables import Cell, Table, Value, plain_cells

RULE_LABELS = {
    "forecast": "Steady moving average",
    "mean-cost": "Historical mean price",
    "yesterday": "Yesterday's prices",
    "last-7-days": "Mean of the last 7 days",
    "last-14-days": "Mean of the last 14 days",
    "last-28-days": "Mean of the last 28 days",
    "moving-average": "Moving average",
    "steady-average": "Steady moving average",
    FORESIGHT: "Perfect foresight",
}
"""What the tables and figures call naive rules; methods have their usual label."""
DAYS = 365
HEADINGS = ("mean change %", "median change %", "worst harm %", "worst-20 % harm")
IN_ZONES = ("local", "local-tuned", "fedavg", "interp-spo", "finetune-mix", "crossfit")
LAMBDA = "lambda"
CHOSEN = (
    "Chosen: the naive rule that loses least on the training days. Hindsight: the one that loses least on the test days, which "
    "nobody could have known."
)
HARM = (
    "Over 1 %: zones with over 1 % more regret, in a seed. Harmed: zones with over 1 % more regret in the mean of the seeds, "
    "where the 95 % interval over weeks and seeds lies above 0 too: more than luck explains. Two seeds do not tell."
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
    changed = [changes(rows, against) for against in REFERENCES]
    return [summary(rows), totals(rows), *changed, harm(rows), zones(rows), rules(rows), money(rows)]


def summary(rows: pd.DataFrame) -> Table:
    """Each method and rule in one line: its regret, and what it changes against both own models."""
    fair, papers = (by_seed(rows, against).groupby("method", sort=False) for against in REFERENCES)
    harmed = harmed_zones(rows, FAIR)
    zones, picked, cells = rows["zone"].nunique(), Rules.of(rows), []
    for method in (*trained(rows), *_shown_rules(rows)):
        row, own = (remarked(method, picked),), fair.get_group(method)
        cells.append(Cell(row, "US$ a day", over_seeds(own["regret"])))
        if method != FAIR:
            cells.append(Cell(row, f"against {FAIR} %", over_seeds(own["mean_change"])))
            cells.append(Cell(row, "worst zone %", over_seeds(own["worst_harm"])))
            cells.append(Cell(row, f"over 1 % of {zones}", over_seeds(own["harmed"])))
            cells.append(Cell(row, f"harmed of {zones}", Value(float(harmed.get(method, np.nan)))))
        if method != PAPERS:
            cells.append(Cell(row, f"against {PAPERS} %", over_seeds(papers.get_group(method)["mean_change"])))
    note = (
        "Regret of a test day in US$ for each MW, mean over zones; mean change of a zone's regret against its own model, made "
        f"with the same care ({FAIR}) or as in the paper ({PAPERS}), in percent; negative is a gain. Mean +- sd over seeds. "
        f"Worst zone, over 1 % and harmed are against {FAIR}. {HARM} {CHOSEN}"
    )
    return Table("summary", "The result in short", ("method",), cells, note)


def totals(rows: pd.DataFrame) -> Table:
    """The change of the mean regret over zones against both own models and the chosen rule, and whether luck explains it."""
    cells = []
    for against in (*REFERENCES, Rules.of(rows).chosen):
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
        if method in (against, FORESIGHT):
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


def harm(rows: pd.DataFrame) -> Table:
    """Every zone that a shared model makes over 1 % worse, and whether luck explains it."""
    cells = []
    for against in REFERENCES:
        found = excesses(rows, against)
        for method in (name for name in trained(rows) if name not in REFERENCES):
            own = found[(found["method"] == method) & found["over"]]
            for _, one in own.sort_values("change", ascending=False, kind="stable").iterrows():
                row = (against, name_of(method), str(one["zone"]), "harmed" if one["harmed"] == 1 else "perhaps luck")
                cells.append(Cell(row, "its own regret", Value(float(one["reference"]))))
                cells += plain_cells(row, _interval(Change(*one[list(Change._fields)])))
    note = (
        "Zones with over 1 % more regret than their own model, in the mean of the seeds, and the 95 % interval of the change, "
        "over the weeks of the test half and over the seeds."
    )
    return Table("harm", "Who is harmed", ("against", "method", "zone", ""), cells, note)


def zones(rows: pd.DataFrame) -> Table:
    """Each zone's regret under the main methods and the chosen rule, and the weight that interpolation chose."""
    wide = {(zone, method): part for (zone, method), part in rows.groupby(["zone", "method"], sort=False)}
    shown, cells = (*IN_ZONES, Rules.of(rows).chosen), []
    for zone in zone_order(rows):
        row = (zone, f"{wide[zone, PAPERS]['demand'].iloc[0]:g}")
        cells += [Cell(row, method, over_seeds(wide[zone, method]["regret"])) for method in shown]
        cells.append(Cell(row, LAMBDA, over_seeds(wide[zone, "interp-spo"][LAMBDA])))
    note = (
        "Regret of a test day in US$ for each MW, mean +- sd over seeds; zones in the order of their federated change. The "
        "last regret is of the naive rule that the training days choose. lambda is the weight of the shared model that "
        "interp-spo chose (0: own, 1: shared)."
    )
    return Table("zones", "Each zone's regret and interpolation weight", ("zone", "hours"), cells, note)


def rules(rows: pd.DataFrame) -> Table:
    """What each naive rule loses on the training days, by which one is chosen, and on the test days."""
    means, picked, cells = rows.groupby("method")[["training_regret", "regret"]].mean(), Rules.of(rows), []
    for rule in _shown_rules(rows):
        numbers = {"training days": means["training_regret"][rule], "test days": means["regret"][rule]}
        cells += plain_cells((remarked(rule, picked),), numbers)
    note = f"Regret of a day in US$ for each MW, mean over zones. {CHOSEN}"
    return Table("rules", "Naive rules", ("rule",), cells, note)


def money(rows: pd.DataFrame) -> Table:
    """What each method loses in a year against perfect foresight, and saves against both own models and the chosen rule."""
    cells = [
        Cell((name_of(method),), name, over_seeds(values), None)
        for method, columns in _money(rows).items()
        for name, values in columns.items()
    ]
    note = (
        "US$ for each MW of demand, mean over zones; a year is 365 days like the test days. Lost: against perfect foresight. "
        "Saved: a year, against the zones' own models and against the naive rule that the training days choose "
        f"({name_of(Rules.of(rows).chosen).lower()})."
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
    made, rule = {}, Rules.of(rows).chosen
    for method in rows["method"].unique():
        lost = means[method]
        made[method] = {
            "lost a day": lost,
            "lost a year": DAYS * lost,
            **{f"saved: {against}": DAYS * (means[against] - lost) for against in REFERENCES},
            "saved: rule": DAYS * (means[rule] - lost),
            "paid a year": DAYS * (best[method] + lost),
        }
    return made


def _interval(found: Change) -> dict[str, float]:
    """A change and its ends by their headings; ends that are unknown are left empty."""
    return {f"{name} %": value if np.isfinite(value) else np.nan for name, value in found._asdict().items()}


def _shown_rules(rows: pd.DataFrame) -> list[str]:
    there = set(rows["method"])
    return [rule for rule in RULES if rule in there and rule != FORESIGHT]


def remarked(method: str, picked: Rules) -> str:
    """The name; of a naive rule also whether it was chosen, and whether it turned out to be the best."""
    remarks = [name for name in Rules._fields if getattr(picked, name) == method]
    return name_of(method) + (f" ({', '.join(remarks)})" if remarks else "")


def over_seeds(values: pd.Series) -> Value:
    """The mean over seeds and its standard deviation; no deviation if the values are equal."""
    found = Value.over_seeds(values)
    return found if found.sd > 1e-9 else Value(found.mean)

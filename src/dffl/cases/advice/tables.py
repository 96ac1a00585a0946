"""The tables of the advice study: who got the right direction, whether intervals hold, and what each rule loses."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from dffl.harm import HARM_TOLERANCE, above_tolerance
from dffl.studies.tables import Table, plain_cells

LARGE_CHANGE = 0.1
"""A gain or loss that matters: more than this share of the client's local regret."""
AXES = ("problem", "prices", "sizes", "noise", "degree")


def all_tables(rows: pd.DataFrame) -> list[Table]:
    """The tables of the study, from its rows."""
    judged = clients(rows)
    return [directions(judged), rules(judged), recommendations(judged)]


def clients(rows: pd.DataFrame) -> pd.DataFrame:
    """The clients that can gain or lose something, with their true ``change``: the share of local regret that federating saved.

    Saturated clients and those whose own model loses nothing are left out.
    """
    kept = rows[~rows["saturated"] & (rows["test_local"] > 1e-9)]
    return kept.assign(change=1 - kept["test_fedavg"] / kept["test_local"])


def directions(judged: pd.DataFrame) -> Table:
    """Right, wrong and neither, of the clients for which it matters; and how often intervals hold the truth."""
    cells = []
    for label, part in _parts(judged):
        large = part[part["change"].abs() > LARGE_CHANGE]
        inside = part["change"].between(part["gain_low"], part["gain_high"])
        numbers = {
            "clients": len(part), "large change": len(large), "right": _percent(right(large, "recommendation")),
            "wrong": _percent(wrong(large, "recommendation")), "interval holds": _percent(inside),
            "quick: right": _percent(right(large, "quick")), "quick: wrong": _percent(wrong(large, "quick")),
        }  # fmt: skip
        cells += plain_cells(label, numbers)
    note = (
        f"In %, except the two counts. A change is large if it exceeds {LARGE_CHANGE:.0%} of the client's local test regret; "
        "right and wrong are among those. Personalise and cannot tell are neither. Intervals claim 90 %. Quick: "
        "nothing was trained."
    )
    return Table("directions", "Was the advice right?", ("of", ""), cells, note)


def rules(judged: pd.DataFrame) -> Table:
    """The mean test regret after following each rule, and how many it leaves above their own model."""
    cells = []
    groups = list(judged.groupby("problem")) if "problem" in judged else []
    for name, regret in followed(judged).items():
        columns = {"all": 100 * regret.mean()}
        columns |= {str(problem): 100 * regret.loc[part.index].mean() for problem, part in groups}
        local = judged["test_local"]
        columns |= {
            f"{tolerance:.0%} above local".replace("%", " %"): _percent(above_tolerance(regret, local, tolerance))
            for tolerance in (HARM_TOLERANCE, LARGE_CHANGE)
        }
        cells += plain_cells((name,), columns)
    note = (
        "Mean relative test regret in %, over clients. 1 % and 10 % above local: the share of clients left with over so much "
        "more regret than their own model, in one run from one start; some of it is luck. The last two rows know the test "
        "samples."
    )
    return Table("rules", "What following each rule loses", ("rule",), cells, note)


def recommendations(judged: pd.DataFrame) -> Table:
    """What happened to the clients with each recommendation."""
    cells = []
    for name, part in judged.groupby("recommendation"):
        finer = 1 - part["test_finetune"] / part["test_local"]
        numbers = {
            "clients": len(part), "expected gain": 100 * part["gain"].median(), "true gain": 100 * part["change"].median(),
            "gained": _percent(part["change"] > 0), "true gain if tuned": 100 * finer.median(),
        }  # fmt: skip
        cells += plain_cells((str(name),), numbers)
    note = "Medians over clients, in % of their local regret; gained: the share of them whose regret fell by federating."
    return Table("recommendations", "What happened after each recommendation", ("recommendation",), cells, note)


def followed(judged: pd.DataFrame) -> dict[str, pd.Series]:
    """Each client's test regret under each rule."""
    regret = {name: judged[f"test_{name}"] for name in ("mean-cost", "local", "fedavg", "interp-spo", "finetune")}

    def either(federate: pd.Series) -> pd.Series:
        return regret["fedavg"].where(federate, regret["local"])

    advised, use = judged["recommendation"], judged["use"]
    literal = regret["finetune"].where(~advised.isin(["federate", "stay local"]), either(advised == "federate"))
    deployed = sum((regret[name].where(use == name, 0.0) for name in ("mean-cost", "local", "fedavg", "finetune")), start=0.0)
    return {
        "the mean of past costs": regret["mean-cost"],
        "always local": regret["local"],
        "always federate": regret["fedavg"],
        "the paper's condition": either(judged["condition"].astype(bool)),
        "interpolation weight at least 1/2": either(judged["lambda"] >= 0.5),
        "always interpolate (interp-spo)": regret["interp-spo"],
        "the recommendation": literal,
        "always fine-tune": regret["finetune"],
        "the advice's choice of method": pd.Series(deployed, index=judged.index),
        "best of local and federated": pd.concat([regret["local"], regret["fedavg"]], axis=1).min(axis=1),
        "best of all": pd.concat([regret[name] for name in ("local", "fedavg", "finetune")], axis=1).min(axis=1),
    }


def right(part: pd.DataFrame, column: str) -> pd.Series:
    """Whose recommended direction was the right one."""
    return ((part[column] == "federate") & (part["change"] > 0)) | ((part[column] == "stay local") & (part["change"] < 0))


def wrong(part: pd.DataFrame, column: str) -> pd.Series:
    """Whose recommended direction was the wrong one."""
    return ((part[column] == "federate") & (part["change"] < 0)) | ((part[column] == "stay local") & (part["change"] > 0))


def _parts(judged: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    yield ("all", ""), judged
    for axis in AXES:
        if axis in judged and len(judged[axis].unique()) > 1:
            for value, part in judged.groupby(axis, sort=False):
                yield (axis, f"{value:g}" if isinstance(value, float) else str(value)), part
    sizes = pd.cut(judged["n"], [0, 50, 100, 200, math.inf], labels=["up to 50", "51 to 100", "101 to 200", "over 200"])
    for value, part in judged.groupby(sizes, observed=True):
        yield ("samples", str(value)), part


def _percent(holds: pd.Series) -> float:
    return 100 * float(holds.mean()) if len(holds) else math.nan

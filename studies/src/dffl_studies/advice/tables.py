"""The tables of the advice study: how often the direction is right, whether intervals hold, and the loss of each rule."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from dffl.advice.advising import REGRETS
from dffl.advice.evidence import FITTED
from dffl.harm import HARM_TOLERANCE, above_tolerance
from dffl_studies.running.tables import Table, plain_cells

LARGE_CHANGE = 0.1
"""A gain or loss that matters: more than this share of the regret of the client's `local-tuned`."""
AXES = ("problem", "prices", "sizes", "noise", "degree")
REFERENCE = "test_local-tuned"
INTERVALS = {"shared": ("change", "gain_low", "gain_high"), "crossfit": ("crossfit_change", "crossfit_low", "crossfit_high")}
"""The true change that each interval is about, and the interval's ends."""


def all_tables(rows: pd.DataFrame) -> list[Table]:
    """The tables of the study, from its rows."""
    judged = clients(rows)
    return [directions(judged), rules(judged), recommendations(judged), estimates(judged)]


def shared_tables(rows: pd.DataFrame) -> list[Table]:
    """The tables of the federations in which others' rows teach little."""
    changed = _changed(rows[~rows["nothing"] & (rows[REFERENCE] > 1e-9)])
    judged = changed.assign(**{name: _held(changed, name) for name in INTERVALS})
    return [holding(judged), verdicts(judged)]


def holding(judged: pd.DataFrame) -> Table:
    """How often intervals hold the truth, by kind of federation: over clients, and over federations."""
    cells = []
    for label, part in [("all", judged), *((str(kind), part) for kind, part in judged.groupby("kind"))]:
        numbers: dict[str, float] = {"federations": part["job"].nunique(), "clients": len(part)}
        for name, (_, low, high) in INTERVALS.items():
            mean = part.groupby("job")[name].mean()
            numbers[f"{name}: holds"] = _percent(part[name])
            numbers[f"{name}: error"] = 100 * float(mean.std() / math.sqrt(len(mean)))  # one federation has none
            numbers[f"{name}: for most"] = _percent(mean > 0.5)
            numbers[f"{name}: width"] = 100 * (part[high] - part[low]).median()
        cells += plain_cells((label,), numbers)
    note = (
        "In %, except the two counts. Holds: the share of clients whose true gain is in the interval (claimed: 90 %). Error: "
        "its standard error over federations, as clients of one federation are alike. For most: the share of federations in "
        "which it holds for more than half of the clients. Width: the median of the upper minus the lower end. Gains of the "
        "shared model (fedavg) and of crossfit over local-tuned, on 3,000 test rows of each client."
    )
    return Table("holding", "Do intervals hold where others' rows teach little?", ("kind",), cells, note)


def verdicts(judged: pd.DataFrame) -> Table:
    """For each recommendation its expectation and the result, by kind of federation."""
    cells = []
    for (kind, name), part in judged.groupby(["kind", "recommendation"]):
        deployed = {"mean cost deployed": _percent(part["deploy"] == "mean-cost")}
        cells += plain_cells((str(kind), str(name)), _gains(part) | deployed)
    note = "Median gains in % of the regret of local-tuned. Gained: the share of clients whose regret is below local-tuned's."
    return Table("verdicts", "What was recommended, and what happened", ("kind", "recommendation"), cells, note)


def clients(rows: pd.DataFrame) -> pd.DataFrame:
    """The clients that can gain or lose something, with the true changes: the share of the reference's regret that is saved.

    ``change`` is what the shared model saved, ``crossfit_change`` what `crossfit` did. Saturated clients and those whose own
    model loses nothing are left out.
    """
    return _changed(rows[~rows["saturated"] & (rows[REFERENCE] > 1e-9)])


def _changed(rows: pd.DataFrame) -> pd.DataFrame:
    saved = {"change": "test_fedavg", "crossfit_change": "test_crossfit"}
    return rows.assign(**{name: 1 - rows[test] / rows[REFERENCE] for name, test in saved.items()})


def _held(part: pd.DataFrame, name: str) -> pd.Series:
    """Whether the interval contains the true change."""
    change, low, high = INTERVALS[name]
    return part[change].between(part[low], part[high])


def at_stake(part: pd.DataFrame, column: str) -> pd.Series:
    """The change that decides whether a recommendation was right: of the shared model, of `crossfit`, or of the better of them.

    A quick answer is about the shared model alone.
    """
    if column == "quick":
        return part["change"]
    best = part[["change", "crossfit_change"]].max(axis=1)
    named = best.mask(part[column] == "federate", part["change"])
    return named.mask(part[column] == "personalise", part["crossfit_change"])


def right(part: pd.DataFrame, column: str) -> pd.Series:
    """Whether the recommended direction was right."""
    return _directed(part, column, at_stake(part, column))


def wrong(part: pd.DataFrame, column: str) -> pd.Series:
    """Whether the recommended direction was wrong."""
    return _directed(part, column, -at_stake(part, column))


def _directed(part: pd.DataFrame, column: str, change: pd.Series) -> pd.Series:
    joins, stays = part[column].isin(["federate", "personalise"]), part[column] == "stay local"
    return (joins & (change > 0)) | (stays & (change < 0))


def directions(judged: pd.DataFrame) -> Table:
    """Right, wrong and neither, of the clients for which it matters; and how often intervals hold the truth."""
    cells = []
    for label, part in _parts(judged):
        large, shaken = (part[at_stake(part, column).abs() > LARGE_CHANGE] for column in ("recommendation", "quick"))
        shared, personal = (_held(part, name) for name in INTERVALS)
        numbers = {
            "clients": len(part), "large change": len(large), "right": _percent(right(large, "recommendation")),
            "wrong": _percent(wrong(large, "recommendation")), "interval holds: shared": _percent(shared),
            "interval holds: crossfit": _percent(personal), "quick: right": _percent(right(shaken, "quick")),
            "quick: wrong": _percent(wrong(shaken, "quick")),
        }  # fmt: skip
        cells += plain_cells(label, numbers)
    note = (
        "In %, except the two counts. Changes are shares of the test regret of local-tuned. Federate is judged by what the "
        "shared model saved, personalise by what crossfit saved, stay local and cannot tell by the better of both. A change is "
        f"large if it exceeds {LARGE_CHANGE:.0%}, and right and wrong are among those. Cannot tell is neither. Intervals claim "
        "90 %. Quick: nothing was trained, and only the shared model is judged."
    )
    return Table("directions", "Was the advice right?", ("of", ""), cells, note)


def rules(judged: pd.DataFrame) -> Table:
    """The mean test regret after following each rule, and how many it leaves above the best that they do alone."""
    cells = []
    groups = list(judged.groupby("problem")) if "problem" in judged else []
    for name, regret in followed(judged).items():
        columns = {"all": 100 * regret.mean()}
        columns |= {str(problem): 100 * regret.loc[part.index].mean() for problem, part in groups}
        columns |= {
            f"{tolerance:.0%} above local-tuned".replace("%", " %"): _percent(
                above_tolerance(regret, judged[REFERENCE], tolerance)
            )
            for tolerance in (HARM_TOLERANCE, LARGE_CHANGE)
        }
        cells += plain_cells((name,), columns)
    note = (
        "Mean relative test regret in %, over clients. 1 % and 10 % above local-tuned: the share of clients left with over so "
        "much more regret than with local-tuned, in one run from one start; some of it is noise. The recommendation: fedavg, "
        "crossfit or local-tuned; crossfit for those who cannot tell. The last two rows know the test samples."
    )
    return Table("rules", "What following each rule loses", ("rule",), cells, note)


def recommendations(judged: pd.DataFrame) -> Table:
    """The results of the clients with each recommendation."""
    cells = []
    for name, part in judged.groupby("recommendation"):
        cells += plain_cells((str(name),), _gains(part))
    note = (
        "Median gains over clients, in % of the regret of local-tuned, of the shared model as it is and of crossfit. Gained: "
        "the share of clients whose regret is below that of local-tuned."
    )
    return Table("recommendations", "What happened after each recommendation", ("recommendation",), cells, note)


def estimates(judged: pd.DataFrame) -> Table:
    """Held-out regrets against test regrets, by method."""
    cells = []
    held_out = {method: judged[column] for column, method in REGRETS.items()}
    held_out |= {f"{method}, as its fit keeps it": judged[f"seen_{method}"] for method in FITTED}
    for name, regret in held_out.items():
        test = judged[f"test_{name.partition(',')[0]}"]
        numbers = {
            "held out": 100 * regret.mean(),
            "test": 100 * test.mean(),
            "above test": 100 * (regret.mean() / test.mean() - 1),
        }
        cells += plain_cells((name,), numbers)
    note = (
        "Mean relative regrets in %, over clients. Held out: by the models of the folds, before any correction; the epochs are "
        "chosen on other folds, except in the last two rows. Above test: in % of the test regret. What decides in the end is "
        "trained on all the data, or is the mean of the models of all folds."
    )
    return Table("estimates", "What held-out samples say, and what happened", ("method",), cells, note)


def followed(judged: pd.DataFrame) -> dict[str, pd.Series]:
    """Each client's test regret under each rule."""
    regret = {name: judged[f"test_{name}"] for name in (*REGRETS.values(), "interp-spo")}

    def either(federate: pd.Series) -> pd.Series:
        return regret["fedavg"].where(federate, regret["local"])

    def least(*names: str) -> pd.Series:
        return pd.concat([regret[name] for name in names], axis=1).min(axis=1)

    advised, deploy = judged["recommendation"], judged["deploy"]
    literal = (
        regret["crossfit"].mask(advised == "federate", regret["fedavg"]).mask(advised == "stay local", regret["local-tuned"])
    )
    deployed = sum((regret[name].where(deploy == name, 0.0) for name in REGRETS.values()), start=0.0)
    return {
        "the mean of past costs": regret["mean-cost"],
        "always local": regret["local"],
        "always local-tuned": regret["local-tuned"],
        "always federate": regret["fedavg"],
        "the paper's condition": either(judged["condition"].astype(bool)),
        "interpolation weight at least 1/2": either(judged["lambda"] >= 0.5),
        "always interpolate (interp-spo)": regret["interp-spo"],
        "always fine-tune": regret["finetune"],
        "always crossfit": regret["crossfit"],
        "the recommendation": literal,
        "the advice's choice of method": pd.Series(deployed, index=judged.index),
        "best of local-tuned and federated": least("local-tuned", "fedavg"),
        "best of all": least("local", "local-tuned", "fedavg", "finetune", "crossfit"),
    }


def _parts(judged: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    yield ("all", ""), judged
    for axis in AXES:
        if axis in judged and len(judged[axis].unique()) > 1:
            for value, part in judged.groupby(axis, sort=False):
                yield (axis, f"{value:g}" if isinstance(value, float) else str(value)), part
    sizes = pd.cut(judged["n"], [0, 50, 100, 200, math.inf], labels=["up to 50", "51 to 100", "101 to 200", "over 200"])
    for value, part in judged.groupby(sizes, observed=True):
        yield ("samples", str(value)), part


def _gains(part: pd.DataFrame) -> dict[str, float]:
    """Expectations and results."""
    return {
        "clients": len(part), "shared: expected": 100 * part["gain"].median(),
        "shared: true": 100 * part["change"].median(), "shared: gained": _percent(part["change"] > 0),
        "crossfit: expected": 100 * part["crossfit_gain"].median(),
        "crossfit: true": 100 * part["crossfit_change"].median(), "crossfit: gained": _percent(part["crossfit_change"] > 0),
    }  # fmt: skip


def _percent(holds: pd.Series) -> float:
    return 100 * float(holds.mean()) if len(holds) else math.nan

"""The advice in words: one or two sentences with what to do."""

from __future__ import annotations

import math
from typing import Any

from dffl.advice.causes import NOT_EXAMINED
from dffl.time.bases import MEANS

METHODS = {
    "mean-cost": "the mean of past costs",
    "local": "your own model",
    "local-tuned": "your own model",
    "fedavg": "the shared model as it is",
    "finetune": "the shared model, trained further on your samples",
    "crossfit": "the shared model, trained further on your samples",
    "forecast": "the forecast that you have already",
    **{rule: f"the mean of your last {count} rows" for rule, count in MEANS.items()},
}
"""The models that a client can use, in words."""
FEW = 0.75
"""A client has few samples if it has less than this share of the fleet's median."""
MUCH = 1.5
"""And many if it has more than this."""
NOTABLE = 0.05
"""Smaller changes of regret, relative to that of the client's own model, are not mentioned."""
FAR, FARTHER = 0.1, 1.5
"""A constraint is unusual if its decisions are farther from the others' than this, and than this many times the median."""
UNSEEN = "and what that costs, a quick answer cannot tell: closed-form models know no constraint"
COMMON = 0.1
"""The reason mentions shared rows if others have at least this share of the client's rows."""
PRICED = 0.25
"""Prices explain the extra loss of a shared model if their cost is at least this share of it."""


def reason(row: dict[str, Any], median: float, steep: float, distance: float) -> str:
    """Why the client gets its recommendation.

    ``median`` is the fleet's median number of samples, ``distance`` that of its decision distances, and ``steep`` how much more
    regret the fleet has with half the data.
    """
    if row["nothing"] and row["mean_cost"] <= _own(row):
        return "the mean of past costs already loses nothing: there is nothing to gain"
    if row["nothing"]:
        return "your own model already loses nothing: there is nothing to gain"
    if row["deploy"] in ("forecast", *MEANS):
        lost = row["forecast" if row["deploy"] == "forecast" else "naive"]
        return f"{METHODS[row['deploy']]} loses {lost:.2%}, less than any model is expected to: keep to it"
    if row["unknown"]:
        return "a closed-form model predicts your costs so well that it says nothing about networks: ask without quick"
    unlike = row["decision_distance"] > max(FAR, FARTHER * distance)
    if row["recommendation"] == "federate":
        words = _federate(row, median, steep)
    elif row["recommendation"] == "stay local":
        words = _stay(row, median, unlike)
    else:
        words = _personalise(row, unlike) if row["recommendation"] == "personalise" else _unclear(row, median, unlike)
    return words + _common(row) + _deployment(row)


def shared_model(row: dict[str, Any]) -> str:
    """The expected loss of the unchanged shared model, compared with the client's own one."""
    if math.isnan(row["federated"]):
        return f"the shared model as it is was not judged; your own would lose {_own(row):.2%}"
    told = f"the shared model as it is would lose {row['federated']:.2%}, your own {_own(row):.2%}"
    return told if math.isnan(row["crossfit"]) else f"{told} (crossfit: {row['crossfit']:.2%})"


def _own(row: dict[str, Any]) -> float:
    """The regret of the client's own model: `local-tuned`, or the closed-form model of a quick answer."""
    return float(row["local"] if math.isnan(row["local_tuned"]) else row["local_tuned"])


def _federate(row: dict[str, Any], median: float, steep: float) -> str:
    causes = []
    if row["n"] < FEW * median:
        causes.append(f"you have few samples ({row['n']}; the median is {median:.0f}), and the others' samples help you")
    elif steep > NOTABLE:
        causes.append(f"more data help: with half of them the clients' own models lose {steep:.0%} more on average")
    if row["cost_p_value"] > 0.05:
        causes.append("your prices move like the others'")
    else:
        causes.append("your prices move somewhat differently from the others', but that costs less than their data save")
    if row["decision_distance"] > FAR:
        costs = UNSEEN if _quick(row) else "but that costs less than their data save"
        causes.append(f"your constraint differs, {costs}")
    return "; ".join(causes)


def _cause(row: dict[str, Any], unlike: bool) -> list[str]:
    """Why the shared model loses more than the client's own one, if it does."""
    if row["cause"] == NOT_EXAMINED:
        return [*_unsuited(row, unlike), "whether your constraint or your prices are the cause was not examined"]
    share = row["constraint_share"]
    rest = 1 - share
    share_words = "of the extra loss of the shared model"
    told = {
        "constraint": f"main cause: your constraint ({share:.0%} {share_words}), not your prices ({rest:.0%})",
        "prices": f"main cause: your prices ({rest:.0%} {share_words}), not your constraint ({share:.0%})",
        "both": f"causes: your constraint ({share:.0%} {share_words}) and your prices ({rest:.0%})",
        "neither": "it is not your constraint or your prices alone: the shared model suits the others no better",
        "unclear": "your samples do not show whether your constraint or your prices are the cause",
    }
    causes = [told[row["cause"]]] if row["cause"] in told else []
    if row["cause"] in ("neither", "unclear"):
        causes += [f"what can be seen is that {reason}" for reason in _unsuited(row, unlike)[:1]]
    if unlike and _quick(row):
        causes.append(f"your constraint asks for decisions unlike the others', {UNSEEN}")
    return causes


def _quick(row: dict[str, Any]) -> bool:
    return math.isnan(row["local_tuned"])


def _unsuited(row: dict[str, Any], unlike: bool) -> list[str]:
    """The signals about the client's constraint and prices, if the exchange of them has shown no cause."""
    causes = []
    if unlike:
        causes.append("your constraint asks for decisions unlike the others', for which a shared model is mostly trained")
    # Every difference of prices is significant with enough samples; beside another cause it must also be large.
    priced = not row["pooled_cost_regret"] < PRICED * (row["federated"] - _own(row))
    if row["cost_p_value"] <= 0.05 and (priced or not unlike):
        causes.append("your prices move differently from the others'")
    return causes


def _stay(row: dict[str, Any], median: float, unlike: bool) -> str:
    causes = _cause(row, unlike)
    if row["n"] > MUCH * median:
        causes.append(f"you have enough samples of your own ({row['n']}; the median is {median:.0f})")
    others = {"the shared model": row["federated"], "crossfit": row["crossfit"]}
    known = {name: regret for name, regret in others.items() if not math.isnan(regret)}
    better = [name for name, regret in known.items() if regret < _own(row)]
    if better:
        won = f"on your held-out samples {' and '.join(better)} did better"
        causes.append(f"{won}, but what you would deploy of your own is expected to do better still")
    elif not causes:
        causes.append(f"on your held-out samples {' and '.join(known)} did no better than your own")
    return "; ".join(causes)


def _personalise(row: dict[str, Any], unlike: bool) -> str:
    saved = f"crossfit, trained with the others and then on your samples, is expected to lose {row['crossfit_gain']:.0%} less"
    saved += " than the best that you do alone (local-tuned)"
    if math.isnan(row["probability"]) or row["probability"] > 0.5:
        return saved
    causes = _cause(row, unlike)
    alone = "the shared model as it is does not beat your own" + (f": {'; '.join(causes)}" if causes else "")
    return f"{alone}; but {saved}"


def _common(row: dict[str, Any]) -> str:
    """That others have the client's rows, if they do."""
    if row["shared_rows"] < COMMON * row["n"] or not row["shared_rows"]:
        return ""
    return f"; others hold {row['shared_rows']} of your {row['n']} rows too, so that their rows teach little that is new"


def _unclear(row: dict[str, Any], median: float, unlike: bool) -> str:
    if row["deploy"] == "mean-cost":
        return (
            "your features say too little about your costs, or models are not trained enough, to tell what joining would gain"
        )
    if row["tuning"]:
        beaten = ["neither the shared model as it is nor crossfit is likely to beat your own", *_cause(row, unlike)]
        lost = row[{"fedavg": "federated", "finetune": "finetuned"}.get(row["deploy"], row["deploy"])]
        measured = f"it lost {lost:.2%} on your held-out samples, your own {_own(row):.2%}"
        return "; ".join([*beaten, f"but {row['deploy']} may: {measured}; nothing tells how sure that is"])
    trained = not math.isnan(row["crossfit_gain"])  # a quick answer is uncertain for other reasons
    low, high = ("crossfit_low", "crossfit_high") if trained else ("gain_low", "gain_high")
    wide = f"the interval from {row[low]:+z.0%} to {row[high]:+z.0%} allows both"
    if trained and row["n"] <= median:
        wide += f"; {row['n']} samples are too few to tell"
    return "; ".join([wide, *_cause(row, unlike)]) if row["probability"] <= 0.5 else wide


def _deployment(row: dict[str, Any]) -> str:
    """Why the deployed method is not the one of the verdict."""
    if row["deploy"] == "mean-cost":
        joiner = "" if row["recommendation"] == "cannot tell" else "but "
        return f"; {joiner}no model beats the mean of past costs yet"
    tuned = {"finetune": row["finetuned"], "crossfit": row["crossfit"]}
    if row["recommendation"] != "federate" or row["deploy"] not in tuned or not row["federated"] > 0:
        return ""
    saved = 1 - tuned[row["deploy"]] / row["federated"]
    if saved < NOTABLE:
        return ""
    return f"; training the shared model further ({row['deploy']}) loses {saved:.0%} less on your held-out samples"

"""The advice in plain words: one or two sentences that a client can act on."""

from __future__ import annotations

import math
from typing import Any

FEW = 0.75
"""A client has few samples if it has less than this share of the fleet's median."""
MUCH = 1.5
"""And many with more than this."""
NOTABLE = 0.05
"""A change of regret, as a share of the own model's, that is worth mentioning."""
FAR, FARTHER = 0.1, 1.5
"""A constraint is unlike the others' if its decisions are farther from theirs than this, and this many times the median."""
PRICED = 0.25
"""Prices explain what a shared model loses more than the own one if they cost at least this share of it."""


def reason(row: dict[str, Any], median: float, steep: float, distance: float) -> str:
    """Why the client gets its recommendation.

    ``median`` is the fleet's median number of samples, ``distance`` that of its decision distances, and ``steep`` how much more
    regret the fleet has with half the data.
    """
    if row["nothing"] and row["mean_cost"] <= _own(row):
        return "the mean of past costs already loses nothing: there is nothing to gain"
    if row["nothing"]:
        return "your own model already loses nothing: there is nothing to gain"
    if row["unknown"]:
        return "a closed-form model predicts your costs so well that it is no evidence about networks: ask without quick"
    unlike = row["decision_distance"] > max(FAR, FARTHER * distance)
    if row["recommendation"] == "federate":
        return _federate(row, median, steep) + _deployment(row)
    if row["recommendation"] == "stay local":
        return _stay(row, median, unlike) + _deployment(row)
    return (_personalise(row, unlike) if row["recommendation"] == "personalise" else _unclear(row, median)) + _deployment(row)


def _own(row: dict[str, Any]) -> float:
    """The regret of the own model: of `local-tuned`, or of the closed-form one of a quick answer."""
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
    if row["decision_distance"] > FAR and row["pooled_cost_regret"] < 0.25 * _own(row):
        causes.append("your constraint differs, but costs you nothing")
    return "; ".join(causes)


def _unsuited(row: dict[str, Any], unlike: bool) -> list[str]:
    """Why the shared model as it is does not suit the client: its constraint, its prices, or both."""
    causes = []
    if unlike:
        causes.append("your constraint asks for decisions unlike the others', for which a shared model is mostly trained")
    # Every difference of prices is significant with enough samples; beside another cause it must also be large.
    priced = not row["pooled_cost_regret"] < PRICED * (row["federated"] - _own(row))
    if row["cost_p_value"] <= 0.05 and (priced or not unlike):
        causes.append("your prices move differently from the others'")
    return causes


def _stay(row: dict[str, Any], median: float, unlike: bool) -> str:
    causes = _unsuited(row, unlike)
    if row["n"] > MUCH * median:
        causes.append(f"you have enough samples of your own ({row['n']}; the median is {median:.0f})")
    others = {"the shared model": row["federated"], "crossfit": row["crossfit"]}
    known = {name: regret for name, regret in others.items() if not math.isnan(regret)}
    told = ", ".join(f"{name} loses {regret:.2%}" for name, regret in known.items())
    held_out = f"on your held-out samples {told}, your own {_own(row):.2%}"
    if min(known.values()) < _own(row):
        held_out += ", but what you would deploy of your own is expected to do better"
    return "; ".join([*causes, held_out])


def _personalise(row: dict[str, Any], unlike: bool) -> str:
    saved = f"crossfit, trained with the others and then on your samples, is expected to lose {row['crossfit_gain']:.0%} less"
    saved += " than the best that you do alone (local-tuned)"
    if math.isnan(row["probability"]) or row["probability"] > 0.5:
        return saved
    causes = _unsuited(row, unlike)
    alone = "the shared model as it is does not beat your own" + (f": {' and '.join(causes)}" if causes else "")
    return f"{alone}; but {saved}"


def _unclear(row: dict[str, Any], median: float) -> str:
    trained = not math.isnan(row["crossfit_gain"])  # a quick answer is uncertain for other reasons
    low, high = ("crossfit_low", "crossfit_high") if trained else ("gain_low", "gain_high")
    wide = f"the interval from {row[low]:+.0%} to {row[high]:+.0%} allows both"
    return f"{wide}; {row['n']} samples are too few to tell" if trained and row["n"] <= median else wide


def _deployment(row: dict[str, Any]) -> str:
    """What to deploy, where it differs from the recommendation."""
    if row["use"] == "mean-cost":
        return ". But the mean of past costs decides better than any model yet: use mean-cost"
    tuned = {"finetune": row["finetuned"], "crossfit": row["crossfit"]}
    if row["recommendation"] != "federate" or row["use"] not in tuned or not row["federated"] > 0:
        return ""
    saved = 1 - tuned[row["use"]] / row["federated"]
    if saved < NOTABLE:
        return ""
    return f". Then train it further ({row['use']}): on your held-out samples that loses {saved:.0%} less than the shared one"

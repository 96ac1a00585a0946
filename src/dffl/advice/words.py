"""The advice in plain words: one or two sentences that a client can act on."""

from __future__ import annotations

from typing import Any

FEW = 0.75
"""A client has few samples if it has less than this share of the fleet's median."""
MUCH = 1.5
"""And many with more than this."""
NOTABLE = 0.05
"""A change of regret, as a share of the own model's, that is worth mentioning."""


def reason(row: dict[str, Any], median: float, steep: float) -> str:
    """Why the client gets its recommendation. ``steep`` is how much more regret the fleet has with half the data."""
    explained = {"federate": _federate, "stay local": _stay, "personalise": _personalise, "cannot tell": _unclear}
    if row["nothing"] and row["mean_cost"] <= row["local"]:
        return "the mean of past costs already loses nothing: there is nothing to gain"
    if row["nothing"]:
        return "your own model already loses nothing: there is nothing to gain"
    if row["unknown"]:
        return "a closed-form model predicts your costs so well that it is no evidence about networks: ask without quick"
    return explained[row["recommendation"]](row, median, steep) + _deployment(row)


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
    if row["decision_distance"] > 0.1 and row["pooled_cost_regret"] < 0.25 * row["local"]:
        causes.append("your constraint differs, but costs you nothing")
    return "; ".join(causes)


def _stay(row: dict[str, Any], median: float, steep: float) -> str:
    causes = []
    if row["cost_p_value"] <= 0.05:
        causes.append("your prices move differently from the others'")
    if row["n"] > MUCH * median:
        causes.append(f"you have enough samples of your own ({row['n']}; the median is {median:.0f})")
    held_out = f"on your held-out samples the shared model loses {row['federated']:.2%}, your own {row['local']:.2%}"
    if row["federated"] < row["local"]:
        held_out += ", but with all your data your own is expected to do better"
    return "; ".join([*causes, held_out])


def _personalise(row: dict[str, Any], median: float, steep: float) -> str:
    return "the shared model and your own are about equally good; tuned on your samples the shared one beats your own"


def _unclear(row: dict[str, Any], median: float, steep: float) -> str:
    wide = f"the interval from {row['gain_low']:+.0%} to {row['gain_high']:+.0%} allows both"
    trained = row["finetuned"] == row["finetuned"]  # a quick answer is uncertain for other reasons
    return f"{wide}; {row['n']} samples are too few to tell" if trained and row["n"] <= median else wide


def _deployment(row: dict[str, Any]) -> str:
    """What to deploy, where it differs from the recommendation."""
    if row["use"] == "mean-cost":
        return ". But the mean of past costs decides better than any model yet: use mean-cost"
    if row["use"] != "finetune" or row["recommendation"] == "personalise":
        return ""
    against = row["federated"] if row["recommendation"] == "federate" else row["local"]
    saved = 1 - row["finetuned"] / against if against > 0 else 0.0
    if saved < NOTABLE:
        return ""
    if row["recommendation"] == "federate":
        return f". Then tune it: on your samples the tuned model loses {saved:.0%} less than the shared one"
    return f". If you can, federate nevertheless, and tune: the tuned model loses {saved:.0%} less than your own"

"""The advice in plain words: one or two sentences that a client can act on."""

from __future__ import annotations

from typing import Any

FEW = 0.75
"""A client has few samples if it has less than this share of the fleet's median."""
MUCH = 1.5
"""And many with more than this."""
NOTABLE = 0.05
"""A change of regret, as a share of the own model's, that is worth a word."""


def reason(row: dict[str, Any], median: float, steep: float) -> str:
    """Why the client is told what it is told. ``steep`` is how much more regret the fleet has with half the data."""
    told = {"federate": _federate, "stay local": _stay, "personalise": _personalise, "cannot tell": _unclear}
    if row["nothing"] and row["mean_cost"] <= row["local"]:
        return "the mean of past costs already loses nothing: there is nothing to gain"
    if row["nothing"]:
        return "your own model already loses nothing: there is nothing to gain"
    if row["unknown"]:
        return "a closed-form model predicts your costs so well that it says nothing about networks: ask without quick"
    sentence = told[row["recommendation"]](row, median, steep)
    return sentence + _then(row)


def _federate(row: dict[str, Any], median: float, steep: float) -> str:
    causes = []
    if row["n"] < FEW * median:
        causes.append(f"you have few samples ({row['n']}; the median is {median:.0f}), and the others' make up for it")
    elif steep > NOTABLE:
        causes.append(f"more data help: with half of them the clients' own models lose {steep:.0%} more on average")
    if row["unlike"] > 0.05:
        causes.append("your prices move like the others'")
    else:
        causes.append("your prices move somewhat unlike the others', but that costs you less than their data bring you")
    if row["apart"] > 0.1 and row["floor"] < 0.25 * row["local"]:
        causes.append("your constraint differs, but costs you nothing")
    return "; ".join(causes)


def _stay(row: dict[str, Any], median: float, steep: float) -> str:
    causes = []
    if row["unlike"] <= 0.05:
        causes.append("your prices move unlike the others'")
    if row["n"] > MUCH * median:
        causes.append(f"you have samples enough of your own ({row['n']}; the median is {median:.0f})")
    held_out = f"on your held-out samples the shared model loses {row['federated']:.2%}, your own {row['local']:.2%}"
    if row["federated"] < row["local"]:
        held_out += ", but with all your data your own is expected to do better"
    return "; ".join([*causes, held_out])


def _personalise(row: dict[str, Any], median: float, steep: float) -> str:
    return "the shared model and your own are about equally good; tuned on your samples the shared one beats your own"


def _unclear(row: dict[str, Any], median: float, steep: float) -> str:
    wide = f"the interval from {row['gain_low']:+.0%} to {row['gain_high']:+.0%} leaves both open"
    trained = row["finetuned"] == row["finetuned"]  # a quick answer is open for other reasons
    return f"{wide}; {row['n']} samples are too few to tell" if trained and row["n"] <= median else wide


def _then(row: dict[str, Any]) -> str:
    """What to deploy, where it is not what the recommendation says."""
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
    return f". If you can, federate all the same, and tune: the tuned model loses {saved:.0%} less than your own"

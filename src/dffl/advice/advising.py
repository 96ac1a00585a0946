"""`dffl.advise`: what a client should do, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd

from dffl.advice.evidence import Evidence, gather
from dffl.advice.gains import Gains, estimate
from dffl.advice.signals import Signals, signals
from dffl.advice.words import reason
from dffl.checks import require_whole
from dffl.federation import Federation
from dffl.fitting import require_federation
from dffl.jsonable import jsonable
from dffl.training import Settings
from dffl.training.keywords import SettingsKeywords
from dffl.training.methods import options_of
from dffl.training.trainers.tuning import EPOCHS

LIKELY, UNLIKELY = 0.8, 0.2
"""Federating is recommended from the first probability of a gain on, and staying local up to the second: odds of 4 to 1."""
RECOMMENDATIONS = ("federate", "personalise", "stay local", "cannot tell")


@dataclass(frozen=True, eq=False)
class Advice:
    """What `dffl.advise` found: ``table`` has one row per client.

    ``recommendation`` answers whether the shared model, as it is, will lose less than the client's own: federate, stay
    local, or neither clearly, and then personalise if tuning the shared model beats the own one, else cannot tell. ``gain``
    is the share of the own model's regret that the shared model is expected to save, with ``gain_low`` and ``gain_high``
    the ends of the ``confidence`` interval and ``probability`` the probability that it is positive. ``mean_cost`` (the
    naive choice, the mean of past costs), ``local``, ``federated`` and ``finetuned`` are held-out relative regrets, ``use``
    the method with the lowest expected one (if ``quick``, what the recommendation says). ``pooled_cost_regret``,
    ``cost_p_value`` and ``decision_distance`` are the signals behind ``reason``. ``nothing`` is true where there is nothing
    to gain.
    """

    table: pd.DataFrame
    confidence: float
    folds: int
    blocks: bool
    quick: bool

    def __getitem__(self, client: str) -> dict[str, Any]:
        """One client's row."""
        for row in self.rows():
            if row["client"] == client:
                return row
        names = self.table["client"].tolist()
        known = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise ValueError(f"no client {client!r} in this advice; it has {known}")

    def __str__(self) -> str:
        return "\n".join(f"{row['client']}: {row['recommendation']}; {row['reason']}" for row in self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per client."""
        return [{str(key): value for key, value in row.items()} for row in self.table.to_dict("records")]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        how = {"confidence": self.confidence, "folds": self.folds, "blocks": self.blocks, "quick": self.quick}
        return {**how, "clients": jsonable(self.rows())}


def advise(
    federation: Federation,
    *,
    folds: int = 5,
    blocks: bool = False,
    quick: bool = False,
    confidence: float = 0.9,
    progress: bool | None = None,
    **settings: Unpack[SettingsKeywords],
) -> Advice:
    """Whether each client should federate: the expected gain against staying local, with an interval, and the reason.

    Each client's samples are held out in ``folds``; the local, the shared and the tuned models of the other folds are
    compared on them. ``blocks`` holds out stretches of consecutive samples, as time series need. ``quick`` trains nothing:
    closed-form models of the costs replace the networks; the answer takes some seconds and is rougher. ``settings`` are
    those of `dffl.Settings`; ``finetune.epochs`` holds the numbers of epochs that tuning chooses from.
    """
    require_federation("federation", federation)
    if len(federation) < 2:
        raise ValueError("advise: a federation of one client has nobody to federate with; at least 2 clients are needed")
    require_whole("folds", folds, least=3)  # the learning curve compares the folds with halves, which are two folds
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), found {confidence!r}")
    tuning, rest = options_of("finetune", settings)
    made = Settings.of(**rest)
    evidence = gather(federation, made, folds, blocks, quick, progress, tuning.get("epochs", EPOCHS))
    gains = estimate(evidence, blocks, made.seed, quick, folds)
    table = _table(evidence, gains, signals(federation, made, blocks), confidence, quick)
    return Advice(table, confidence, folds, blocks, quick)


def recommend(probability: float, tuned_better: bool, nothing: bool) -> str:
    """The recommendation, from the probability that the shared model beats the own one."""
    if nothing or probability <= UNLIKELY:
        return "stay local"
    if probability >= LIKELY:
        return "federate"
    return "personalise" if tuned_better else "cannot tell"


def _table(evidence: list[Evidence], gains: Gains, why: Signals, confidence: float, quick: bool) -> pd.DataFrame:
    low, high = gains.interval(confidence)
    median = float(np.median([one.n for one in evidence]))
    steep = math.expm1(gains.curve.own)
    rows = []
    for place, one in enumerate(evidence):
        means = {
            "mean_cost": one.mean_cost.mean(),
            "local": one.local.mean(),
            "federated": one.federated.mean(),
            "finetuned": math.nan if quick else one.tuned.mean(),
        }
        row: dict[str, Any] = {
            "client": one.name,
            "n": one.n,
            "recommendation": recommend(gains.probability[place], not quick and _better(one), bool(gains.nothing[place])),
            "gain": gains.gain[place],
            "gain_low": low[place],
            "gain_high": high[place],
            "probability": gains.probability[place],
            **means,
            "nothing": bool(gains.nothing[place]),
            "pooled_cost_regret": why.pooled_cost_regret[place],
            "cost_p_value": why.cost_p_value[place],
            "decision_distance": why.decision_distance[place],
        }
        row["use"] = _best(means, gains, place) if not quick else "fedavg" if row["recommendation"] == "federate" else "local"
        rows.append(row | {"reason": reason(row | {"unknown": bool(gains.unknown[place])}, median, steep)})
    return pd.DataFrame(rows)


def _better(one: Evidence) -> bool:
    """Whether tuning changed anything, and the tuned model then beats the own one on held-out samples at the same odds."""
    from scipy.special import ndtr

    if np.array_equal(one.tuned, one.federated):
        return False
    saved = one.local - one.tuned
    error = float(saved.std(ddof=1)) / math.sqrt(one.n)
    return bool(saved.mean() > 0 if error == 0 else ndtr(saved.mean() / error) >= LIKELY)


def _best(means: dict[str, float], gains: Gains, place: int) -> str:
    """The method with the lowest expected regret, in units of what the own model of all the data is expected to lose."""
    if gains.nothing[place]:
        return "local" if means["local"] <= means["mean_cost"] else "mean-cost"
    own = max(means["local"] * math.exp(-gains.fall.own * gains.curve.own), 1e-9)
    expected = {"local": 1.0, "fedavg": math.exp(gains.ratio[place]), "mean-cost": means["mean_cost"] / own}
    if means["federated"] > 0:
        # Tuning is compared with the shared model, from which it starts; the ratio of own and shared has been shrunk.
        expected["finetune"] = expected["fedavg"] * means["finetuned"] / means["federated"]
    return min(expected, key=lambda name: expected[name])

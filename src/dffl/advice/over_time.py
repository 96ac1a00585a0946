"""Advice where rows have an order: federate, stay local, keep your forecast, or use a moving average.

It rests on a backtest of each client's later rows. What a client saves in the rows to come differs from what it has saved, as
both are means of few rows that are like their neighbours: intervals are for the next `HORIZON` rows, and count these as fewer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dffl.advice.record import ALONE, TOGETHER, Record, records
from dffl.federation import Federation
from dffl.jsonable import jsonable
from dffl.serial import sureness
from dffl.time.bases import FORECAST, NAIVE
from dffl.time.outcome import SAME
from dffl.time.words import rule_in_words

FEDERATE, STAY, KEEP, AVERAGE, UNSURE = ANSWERS = (
    "federate", "stay local", "keep your forecast", "use the moving average", "cannot tell",
)  # fmt: skip
HORIZON = 90
"""The rows to come for which intervals are given."""
OTHER_SEASON = 1.3
"""How much wider an interval is than past rows alone would have it: other rows come from another season.
Measured on markets: the table `advice` of `dffl time-study`."""
LIKELY, UNLIKELY = 0.8, 0.2


class Expected(NamedTuple):
    """The share of a rule's regret that another one is expected to save, its interval, and the probability of any."""

    value: float
    low: float
    high: float
    probability: float

    @property
    def same(self) -> bool:
        """Whether the two are known to lose about the same."""
        return abs(self.low) <= SAME and abs(self.high) <= SAME


def expected(mine: np.ndarray, theirs: np.ndarray, confidence: float = 0.9, rows: int = 1) -> Expected:
    """What a rule saves in the rows to come, from the regrets of both in the past, in order.

    ``rows`` is the number of rows that each number is the sum of. It is not a number where the past says too little.
    """
    if not theirs.sum() > 0:
        nothing = 0.0 if not mine.sum() > 0 else math.nan
        return Expected(nothing, nothing, nothing, 0.5)
    value = float(1 - mine.sum() / theirs.sum())
    sure = sureness((1 - value) * theirs - mine, confidence)
    if sure.too_few:
        return Expected(value, math.nan, math.nan, math.nan)
    count = len(mine)
    half = sure.half / float(theirs.mean()) * math.sqrt(1 + max(count * rows / HORIZON, 1.0)) * OTHER_SEASON
    spread = half / float(ndtri((1 + confidence) / 2))
    probability = float(ndtr(value / spread)) if spread > 0 else float(value > 0)
    return Expected(value, value - half, min(value + half, 1.0), probability)


@dataclass(frozen=True, eq=False)
class AdviceOverTime:
    """The result of `dffl.advise` where rows have an order: ``table`` has one row per client.

    ``recommendation`` is the answer, at least 80 % likely; *cannot tell* says that the rows do not decide. ``deploy`` is what
    to use until they do: the rule of ``dffl fit`` together or alone, the forecast, or a moving average. ``gain`` is the share
    of the regret of ``now``, what the client has without a model, that the better model is expected to save in the next 90
    rows, with ``gain_low`` and ``gain_high`` the ends of the ``confidence`` interval and ``probability`` that of any gain;
    ``joining_gain``, ``joining_low``, ``joining_high`` and ``joining_probability`` say the same of the models that are trained
    with the others, compared with those of the client alone. ``together``, ``alone``, ``forecast`` and ``naive`` are relative
    regrets in the ``n`` judged rows.
    """

    table: pd.DataFrame
    confidence: float

    def __getitem__(self, client: str) -> dict[str, Any]:
        """One client's row."""
        for row in self.rows():
            if row["client"] == client:
                return row
        raise ValueError(f"no client {client!r} in this advice; it has {', '.join(self.table['client'][:5])}")

    def __str__(self) -> str:
        return "\n".join(f"{row['client']}: {row['recommendation']}; {row['reason']}" for row in self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per client."""
        return [{str(key): value for key, value in row.items()} for row in self.table.to_dict("records")]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {"confidence": self.confidence, "horizon": HORIZON, "clients": jsonable(self.rows())}


def advise_over_time(
    federation: Federation, *, confidence: float = 0.9, progress: bool | None = None, **keywords: Any
) -> AdviceOverTime:
    """Advice by a backtest of the later half of the rows; ``keywords`` are those of `dffl.backtest`."""
    return AdviceOverTime(pd.DataFrame(_rows(records(federation, progress=progress, **keywords), confidence)), confidence)


def _rows(found: Sequence[Record], confidence: float) -> list[dict[str, Any]]:
    made = []
    for one in found:
        size = one.best.sum()
        regrets = {name: float(lost.sum() / size) if size > 0 else math.nan for name, lost in one.lost.items()}
        naive = min((name for name in NAIVE if name in regrets), key=lambda name: one.lost[name].sum())
        now = FORECAST if FORECAST in regrets else naive
        joining = expected(one.lost[TOGETHER], one.lost[ALONE], confidence)
        model = TOGETHER if one.lost[TOGETHER].sum() < one.lost[ALONE].sum() else ALONE
        gain = expected(one.lost[model], one.lost[now], confidence)
        answer, deploy = settle(gain, joining, model, now)
        row: dict[str, Any] = {"client": one.client, "n": len(one.best), "recommendation": answer}
        row |= {"deploy": one.rules[deploy] if deploy in (TOGETHER, ALONE) else deploy, "now": now}
        row |= dict(zip(("gain", "gain_low", "gain_high", "probability"), gain, strict=True))
        row |= dict(zip(("joining_gain", "joining_low", "joining_high", "joining_probability"), joining, strict=True))
        row |= {"together": regrets[TOGETHER], "alone": regrets[ALONE], "forecast": regrets.get(FORECAST, math.nan)}
        row |= {"naive": regrets[naive], "naive_rule": naive}
        made.append(row | {"reason": _reason(row, gain, joining, model)})
    return made


def settle(gain: Expected, joining: Expected, model: str, now: str) -> tuple[str, str]:
    """The answer, and what to use: from what the better ``model`` saves against ``now``, and what joining saves."""
    keep = KEEP if now == FORECAST else AVERAGE
    if gain.same or gain.probability <= UNLIKELY or gain.value <= 0:
        return keep, now
    if not gain.probability >= LIKELY:
        return UNSURE, now
    if joining.probability >= LIKELY:
        return FEDERATE, TOGETHER
    if joining.same or joining.probability <= UNLIKELY or joining.value <= 0:
        return STAY, ALONE
    return UNSURE, model


def _reason(row: dict[str, Any], gain: Expected, joining: Expected, model: str) -> str:
    """Why, in numbers that a reader can check."""
    now, who = rule_in_words(row["now"]), "the models trained together" if model == TOGETHER else "models of your own"
    had = row["forecast"] if row["now"] == FORECAST else row["naive"]
    lost = f"{who} lost {100 * row[model]:.2f} % in {row['n']} rows, {now} {100 * had:.2f} %"
    if row["recommendation"] in (KEEP, AVERAGE):
        return f"{lost}: {'nothing better is known' if gain.value <= 0 else 'the difference is too small to count on'}"
    if math.isnan(gain.low):
        return f"{lost}; these rows are too few, or too alike, to say more: keep to {now} until there are more"
    if row["deploy"] == row["now"]:
        return f"{lost}; in the next {HORIZON} rows {_range(gain)} less is possible: keep to {now} until more rows tell"
    with_others = f"together {100 * row['together']:.2f} %, alone {100 * row['alone']:.2f} %"
    if row["recommendation"] == UNSURE:
        return f"{lost}; whether the others help, the rows do not tell ({with_others})"
    helps = "the others' rows help" if row["recommendation"] == FEDERATE else "the others' rows do not help"
    return f"{lost}; {helps} ({with_others})"


def _range(gain: Expected) -> str:
    return f"{gain.low:.0%} to {gain.high:.0%}"

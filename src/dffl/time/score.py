"""The score of a rule on the rows that came after its model was made, and whether it should be refitted.

A refit is due in each of three cases, which the score names: another rule of the model has lost less, its ranges contain
less than they state, or columns have drifted. Each requires more than noise, because the question is asked every day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dffl.federation import Client
from dffl.judging import judged, regrets_at
from dffl.time.ahead import TimedRows
from dffl.time.bases import FORECAST, NAIVE
from dffl.time.drift import LATEST, drifted
from dffl.time.gains import Gain, saved
from dffl.time.ranges import inside

SURE = 0.999
"""The confidence at which another rule counts as better: the question is asked again with every row, of many rules."""
FEWEST_BETTER = 28
"""Rows below which nothing is said of whether another rule is better."""
FEWEST_RANGES = 30
"""With fewer rows, ranges are not judged."""
DEVIATIONS = 4.0
"""Ranges are called wrong if they contain less than stated by this many standard errors."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Rows that came after a model, and its decisions for them."""

    client: Client
    """The rows with their realised costs."""
    rule: str
    expected: Mapping[str, np.ndarray]
    """The costs that each rule predicted, including the rule in use."""
    cost: np.ndarray
    """The costs of the decisions."""
    ends: np.ndarray
    """The low and high end of the range that was stated for each row."""
    share: float
    """The share of costs that ranges state."""
    known: TimedRows | None
    """The rows that the model holds."""


@dataclass(frozen=True)
class Score:
    """The score of a rule."""

    rule: str
    rows: int
    regret: float
    """The mean regret of a row, in the unit of the costs."""
    relative: Mapping[str, float]
    """The relative regret of every rule of the model."""
    reference: str | None
    """The alternative without dffl: the forecast, or the moving average that lost least on these rows."""
    gain: Gain
    """The saving of the rule compared with the reference."""
    best: str
    """The rule that lost least."""
    better: Gain
    """Its saving compared with the rule in use; the interval is the strict one that decides whether it replaces it."""
    inside: float
    ranged: int
    """The number of rows with a range."""
    share: float
    drifted: Sequence[str] | None
    """Columns that have drifted; None if the model has no rows, or too few came after it."""

    @property
    def beaten(self) -> bool:
        """Whether another rule lost less, by more than noise."""
        return self.rows >= FEWEST_BETTER and bool(self.better.low > 0)

    @property
    def ranges_wrong(self) -> bool:
        """Whether ranges hold less than they state, by more than noise."""
        slack = DEVIATIONS * np.sqrt(self.share * (1 - self.share) / max(self.ranged, 1))
        return self.ranged >= FEWEST_RANGES and self.inside < self.share - slack

    @property
    def refit(self) -> bool:
        """Whether the rule should be refitted."""
        return self.beaten or self.ranges_wrong or bool(self.drifted)


def score(replay: Replay, columns: Sequence[str], skip: Sequence[bool]) -> Score:
    """Judge a replay. ``columns`` are the names of its features and costs; those in ``skip`` always drift."""
    client, rule = replay.client, replay.rule
    lost = {name: regrets_at(client, costs) for name, costs in replay.expected.items()}
    best_cost = client.z_star_size[None]
    relative = {name: judged(values, client)["relative_regret"] for name, values in lost.items()}
    naive = [name for name in NAIVE if name in lost]
    reference = FORECAST if FORECAST in lost else min(naive, key=lambda name: relative[name], default=None)
    best = min(lost, key=lambda name: (relative[name], name != rule))
    unknown = Gain(float("nan"), float("nan"), float("nan"))
    ranged = np.isfinite(replay.ends).all(axis=1)
    return Score(
        rule=rule,
        rows=client.n,
        regret=float(lost[rule].mean()),
        relative=relative,
        reference=reference,
        gain=unknown if reference is None else saved(lost[rule][None], lost[reference][None], best_cost),
        best=best,
        better=unknown if best == rule else saved(lost[best][None], lost[rule][None], best_cost, SURE),
        inside=inside(replay.cost, replay.ends),
        ranged=int(ranged.sum()),
        share=replay.share,
        drifted=columns_drifted(replay, columns, skip),
    )


def columns_drifted(replay: Replay, columns: Sequence[str], skip: Sequence[bool]) -> list[str] | None:
    """The columns whose latest rows are unlike those of the model; None where too little is known."""
    if replay.known is None or replay.client.n < LATEST:
        return None
    before = np.hstack([replay.known.x, replay.known.c])
    latest = np.hstack([replay.client.x, replay.client.c])[-LATEST:]
    moved = drifted(before, latest)
    return [name for name, drift, left in zip(columns, moved, skip, strict=True) if drift and not left]


def plain(score: Score) -> dict[str, Any]:
    """A score as plain values."""
    return {
        "rule": score.rule, "rows": score.rows, "regret": score.regret, "regret_in_all": score.regret * score.rows,
        "relative_regret": score.relative[score.rule], "rules": dict(score.relative), "reference": score.reference,
        "gain": list(score.gain), "best": score.best, "better": list(score.better), "inside": score.inside,
        "share": score.share, "ranged": score.ranged, "drifted": None if score.drifted is None else list(score.drifted),
        "refit": score.refit, "reasons": [
            *(["another rule is better"] if score.beaten else []),
            *(["ranges do not hold"] if score.ranges_wrong else []),
            *(["columns have drifted"] if score.drifted else []),
        ],
    }  # fmt: skip

"""How a rule has done on the rows that came after its model was made, and whether it should be refitted.

It should be in each of three cases, which a score names: another rule that the model can follow has lost less, its ranges hold
less than they state, or columns have drifted. All three ask for much more than noise, as they are asked every day for years:
`python -m benchmarks.alarms` measures how often they are wrong.
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
"""Rows below which nothing is said of whether ranges hold."""
DEVIATIONS = 4.0
"""Standard errors by which ranges must hold less than they state to be called wrong."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Rows that came after a model, as it decided them."""

    client: Client
    """The rows with their real costs."""
    rule: str
    expected: Mapping[str, np.ndarray]
    """The costs that each rule expected, the rule in use among them."""
    cost: np.ndarray
    """What the decisions have cost."""
    ends: np.ndarray
    """Low and high end of the range that was stated for each row."""
    share: float
    """The share of costs that ranges state."""
    known: TimedRows | None
    """The rows that the model holds."""


@dataclass(frozen=True)
class Score:
    """How a rule has done."""

    rule: str
    rows: int
    regret: float
    """The mean of a row, in the unit of the costs."""
    relative: Mapping[str, float]
    """The relative regret of every rule that the model can follow."""
    reference: str | None
    """What the user has without dffl: the forecast, or the moving average that lost least on these rows."""
    gain: Gain
    """What the rule saves against the reference."""
    best: str
    """The rule that lost least."""
    better: Gain
    """What it saves against the rule in use; the interval is the strict one by which it replaces it."""
    inside: float
    ranged: int
    """Rows for which a range was stated."""
    share: float
    drifted: Sequence[str] | None
    """Columns that have drifted; None where the model holds no rows, or too few came after it."""

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
    """Judge a replay. ``columns`` are the names of its features and costs, and ``skip`` those that drift by nature."""
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
    there = drifted(before, latest)
    return [name for name, moved, left in zip(columns, there, skip, strict=True) if moved and not left]


def plain(found: Score) -> dict[str, Any]:
    """A score as plain values."""
    return {
        "rule": found.rule, "rows": found.rows, "regret": found.regret, "regret_in_all": found.regret * found.rows,
        "relative_regret": found.relative[found.rule], "rules": dict(found.relative), "reference": found.reference,
        "gain": list(found.gain), "best": found.best, "better": list(found.better), "inside": found.inside,
        "share": found.share, "ranged": found.ranged, "drifted": None if found.drifted is None else list(found.drifted),
        "refit": found.refit, "reasons": [
            *(["another rule is better"] if found.beaten else []),
            *(["ranges do not hold"] if found.ranges_wrong else []),
            *(["columns have drifted"] if found.drifted else []),
        ],
    }  # fmt: skip

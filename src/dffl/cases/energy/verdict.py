"""The conclusion of a run: the best trained model compared with the best naive rule."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dffl.cases.energy.naive import RULES
from dffl.cases.energy.setup import METHODS
from dffl.cases.energy.summary import by_seed
from dffl.cases.energy.tables import name_of


@dataclass(frozen=True)
class Verdict:
    """The best trained model compared with the best naive rule."""

    means: pd.DataFrame
    zones: int
    best: str
    rule: str

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Verdict:
        """The verdict of these rows."""
        means = by_seed(rows).groupby("method", sort=False)[["regret", "worst_harm", "harmed"]].mean()
        regret = means["regret"]
        rules = [name for name in RULES if name != "perfect-foresight"]
        return cls(means, rows["zone"].nunique(), str(regret[list(METHODS)].idxmin()), str(regret[rules].idxmin()))

    def beats(self, method: str) -> bool:
        """Whether a method loses less than the best naive rule."""
        return bool(self.means["regret"][method] < self.means["regret"][self.rule])

    def in_words(self) -> str:
        """For people."""
        regret, best, rule = self.means["regret"], self.best, self.rule
        if min(regret["local"], regret[rule]) <= 0:
            return "a rule without any regret leaves nothing to gain."
        against = 100 * (regret[best] / regret[rule] - 1)
        return (
            f"of the trained models, {name_of(best).lower()} loses least: {regret[best]:.2f} US$ a day for each MW, in total "
            f"{100 * (regret[best] / regret['local'] - 1):+.1f} % against local. The best naive rule, {name_of(rule).lower()}, "
            f"loses {regret[rule]:.2f}: the model is {abs(against):.1f} % {'better' if self.beats(best) else 'worse'}. "
            f"{name_of('fedavg')} harms {self._harm('fedavg')}, {name_of(best).lower()} {self._harm(best)}."
        )

    def _harm(self, method: str) -> str:
        row = self.means.loc[method]
        return f"{row['harmed']:.1f} of {counted(self.zones, 'zone')} in a seed (the worst: {row['worst_harm']:+.0f} %)"


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

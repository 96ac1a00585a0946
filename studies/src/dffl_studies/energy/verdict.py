"""The conclusion of a run: the model for tomorrow, compared with the zones' own models and with a naive rule.

Model and rule are not chosen by what they lose on the test days; what these would have chosen is said apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dffl_studies.energy.chosen import Rules
from dffl_studies.energy.harm import Change, harmed_zones, total_change
from dffl_studies.energy.model import METHOD
from dffl_studies.energy.summary import FAIR, PAPERS, REFERENCES, by_seed
from dffl_studies.energy.tables import name_of, trained


@dataclass(frozen=True)
class Verdict:
    """The model for tomorrow, compared with own models and with the naive rule that the training days choose."""

    regret: pd.Series
    """The mean over zones and seeds, of each method and rule."""
    rules: Rules
    best: str
    """The trained method that loses least on the test days."""
    changes: dict[str, Change | None]
    """The total change of the model against both own models and against the chosen rule; None where they lose nothing."""
    harm: str
    """How many zones the model harms, against the fair own model."""

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Verdict:
        """The verdict of these rows."""
        regret, rules = rows.groupby("method")["regret"].mean(), Rules.of(rows)
        changes = {against: total_change(rows, METHOD, against) for against in (*REFERENCES, rules.chosen)}
        return cls(regret, rules, str(regret[trained(rows)].idxmin()), changes, _harm(rows))

    @property
    def beaten(self) -> bool:
        """Whether the model for tomorrow loses more than the chosen rule."""
        return bool(self.regret[METHOD] > self.regret[self.rules.chosen])

    def in_words(self) -> str:
        """For people."""
        regret, rule = self.regret, self.rules.chosen
        fair, papers, naive = self.changes.values()
        if fair is None or papers is None or naive is None:
            return "a rule without any regret leaves nothing to gain."
        return (
            f"{_small(METHOD)} loses {regret[METHOD]:.2f} US$ a day for each MW, where own models with the same care ({FAIR}) "
            f"lose {regret[FAIR]:.2f}: {_in_words(fair)}. {self.harm} Against own models as in the paper ({PAPERS}: "
            f"{regret[PAPERS]:.2f}) it would be {papers.change:+z.1f} %. The naive rule that the training days choose, "
            f"{_small(rule)}, loses {regret[rule]:.2f}; against it the model has {_in_words(naive)}.{self._hindsight()}"
        )

    def _hindsight(self) -> str:
        """What the test days would have chosen, where that is something else."""
        told = []
        for what, best, used in (("model", self.best, METHOD), ("rule", self.rules.hindsight, self.rules.chosen)):
            if best != used:
                told.append(f"the best {what} is {_small(best)} ({self.regret[best]:.2f})")
        return f" In hindsight, which nobody could have known, {' and '.join(told)}." if told else ""


def _in_words(found: Change) -> str:
    """A change with its interval: negative is a gain."""
    known = (
        f"95 % interval: {found.low:+z.1f} to {found.high:+z.1f} %" if np.isfinite(found.low) else "no interval: too few seeds"
    )
    return f"{found.change:+z.1f} % ({known})"


def _harm(rows: pd.DataFrame) -> str:
    harmed, zones = harmed_zones(rows, FAIR).get(METHOD, np.nan), counted(rows["zone"].nunique(), "zone")
    seeds = by_seed(rows).groupby("method")[["harmed", "worst_harm"]].mean().loc[METHOD]
    told = f"It harms {harmed:.0f} of {zones} beyond luck" if np.isfinite(harmed) else f"Whom it harms of {zones} is unknown"
    return f"{told}; {seeds['harmed']:.1f} are over 1 % worse in a seed, the worst by {seeds['worst_harm']:+z.0f} %."


def _small(method: str) -> str:
    return name_of(method)[:1].lower() + name_of(method)[1:]


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

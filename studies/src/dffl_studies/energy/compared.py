"""Whether the paper's numbers may be shown next to those of a run, and what differs between the two.

Names of zones alone say nothing: anybody can give made-up prices the names of PJM's zones. So the user says that the prices are
PJM's (--market pjm), and the days say whether the year is the paper's. Where it is another year, a sentence says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dffl.named import listed
from dffl_studies.energy import published
from dffl_studies.energy.data import Panel
from dffl_studies.energy.data.columns import PAPERS
from dffl_studies.energy.setup import Setup

MARKET = "pjm"
YEAR = 2025
AUTHORS = (
    "The paper's own panel (PJM, 2025): dffl energy fetch authors -o pjm.csv, then dffl energy run pjm.csv --as-published "
    "--market pjm"
)


class Comparison(NamedTuple):
    """The zones that are next to the paper's, and sentences on what differs."""

    zones: tuple[str, ...] = ()
    """Those whose numbers in the paper may be shown; empty: none may."""
    same_year: bool = False
    sentences: tuple[str, ...] = ()
    """What differs from the paper, or why its numbers are not shown."""
    source: str = ""
    """How to get the paper's own panel, where this is another one."""
    wanted: bool = False
    """Whether the paper's tables are shown: its protocol, or its market, was asked for."""

    @classmethod
    def of(cls, panel: Panel, setup: Setup, market: str | None) -> Comparison:
        """The comparison of a run; ``market`` is what the user says (see `checked_market`)."""
        there = tuple(zone for zone in published.ZONES if zone in panel.names)
        wanted = setup.published or market is not None
        if not there:
            none = f"None of these zones is one of the paper's {len(published.ZONES)}: its numbers are not shown."
            return cls(sentences=(none,), source=AUTHORS, wanted=True) if wanted else NOTHING
        if market is None:
            names = f"{len(there)} of these zones have names of the paper's {len(published.ZONES)}"
            ask = f"{names}; its numbers are shown next to PJM's day-ahead prices only: add --market {MARKET} if these are."
            return cls(sentences=(ask,), source=AUTHORS if wanted else "", wanted=wanted)
        years = {int(str(day)[:4]) for day in (panel.days[0], panel.days[-1])}
        same = years == {YEAR}
        sentences = [*([] if same else [_other_days(panel, years)]), *_differences(panel, setup, there)]
        return cls(there, same, tuple(sentences), "" if same else AUTHORS, wanted)

    def lines(self) -> list[str]:
        """What is printed below the tables: what their notes do not say."""
        return [line for line in (*(() if self.zones else self.sentences), self.source) if line]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {"zones": list(self.zones), "same_year": self.same_year, "sentences": list(self.sentences)}


NOTHING = Comparison()


def checked_market(name: str | None) -> str | None:
    """The market that the user names: the paper's, or none."""
    if name is not None and name.lower() != MARKET:
        raise ValueError(f"--market must be {MARKET}, the market of the paper, found {name!r}; leave it out for another market")
    return name and name.lower()


def _other_days(panel: Panel, years: set[int]) -> str:
    other = "another year" if min(years) > YEAR or max(years) < YEAR else "other days"
    return (
        f"The same zones and market, {other}: the paper's numbers are of {YEAR}, ours of {panel.days[0]} to {panel.days[-1]}. "
        "They need not agree."
    )


def _differences(panel: Panel, setup: Setup, there: tuple[str, ...]) -> list[str]:
    """What differs from the paper's study, as far as it is known, one sentence each."""
    sentences = []
    if not setup.published:
        sentences.append("The protocol is not the paper's: add --as-published.")
    missing, more = [zone for zone in published.ZONES if zone not in there], len(panel.names) - len(there)
    if missing or more:
        others = f" and {more} more" if more else ""
        absent = f" (without {listed(missing)})" if missing else ""
        sentences.append(
            f"The paper's Table 4 is of {len(published.ZONES)} zones, ours of {len(there)} of them{absent}{others}."
        )
    if absent_names := [names[0] for names in PAPERS if not set(names) & set(panel.covariate_names)]:
        sentences.append(f"The paper also has the covariates {', '.join(absent_names)}.")
    demands = np.array([published.DEMANDS.get(zone, np.nan) for zone in panel.names])
    known = ~np.isnan(demands)
    if not panel.demand_known:
        sentences.append("Demands are random; those of the authors' later code are other ones.")
    elif other := [zone for zone, differs in zip(panel.names, known & (panel.demands != demands), strict=True) if differs]:
        sentences.append(f"Demands are not those of the authors' later code at {listed(other)}.")
    else:
        sentences.append("Demands are those of the authors' later code.")
    if setup.cost == "total":
        sentences.append("The authors' later code counts the own part of a price twice (--cost total+own).")
    return sentences

"""What the paper reports of PJM's zones in 2025: changes in percent, regrets in US$ a day, each with its sd over five seeds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dffl.named import listed
from dffl_studies.energy.data import Panel
from dffl_studies.energy.data.columns import PAPERS
from dffl_studies.energy.setup import Setup
from dffl_studies.running.tables import Value

CHANGES = {
    "fedavg": (Value(-8.23, 0.59), Value(-10.45, 2.09), Value(21.23, 4.96), Value(8.78, 3.12)),
    "interp-spo": (Value(-9.98, 0.82), Value(-10.79, 1.86), Value(5.83, 4.20), Value(2.44, 1.49)),
}
"""Mean and median change, worst harm and worst-20 % harm."""

DEMANDS = {
    "AECO": 6, "AEP": 6, "APS": 12, "ATSI": 4, "BGE": 12, "COMED": 4, "DAY": 4, "DEOK": 6, "DOM": 10, "DPL": 10, "DUQ": 6,
    "JCPL": 8, "METED": 12, "PECO": 6, "PENELEC": 6, "PEPCO": 10, "PPL": 10, "PSEG": 8, "RECO": 8,
}  # fmt: skip
"""The hours that each zone buys in the authors' later public code; the paper has them in a figure only."""

_ZONES = """
DUQ 21.55 0.62 16.52 0.79 16.03 1.16 1.00 0.00
JCPL 46.77 0.62 37.11 0.46 37.35 0.92 1.00 0.00
RECO 43.84 0.69 35.83 2.01 36.23 1.41 1.00 0.00
AECO 35.58 0.97 29.20 1.33 29.07 1.49 1.00 0.00
PENELEC 35.14 1.10 29.28 0.69 28.86 0.64 1.00 0.00
DPL 57.56 0.99 48.82 2.14 49.64 1.42 1.00 0.00
PECO 36.48 1.58 31.31 1.56 30.52 0.98 1.00 0.00
PSEG 44.90 2.31 38.87 1.04 38.69 1.28 1.00 0.00
PEPCO 66.99 2.41 59.27 2.60 64.69 1.93 0.00 0.00
PPL 46.99 1.57 41.89 1.19 43.95 4.50 0.74 0.38
ATSI 13.84 0.58 12.53 0.43 12.99 0.80 0.38 0.28
BGE 66.45 1.82 62.60 3.77 64.33 1.66 0.00 0.00
AEP 22.63 0.47 21.38 0.80 20.27 0.73 1.00 0.00
DOM 63.63 1.72 60.87 2.84 61.97 1.27 0.00 0.00
DEOK 23.64 0.34 23.39 0.66 20.91 1.46 0.88 0.17
METED 43.93 1.20 43.85 0.65 44.74 0.75 0.01 0.02
DAY 13.54 0.36 13.92 0.78 12.68 0.40 0.57 0.40
APS 48.40 2.14 53.66 4.94 48.45 1.37 0.00 0.00
COMED 14.51 0.33 17.00 0.79 14.60 0.49 0.54 0.10
"""

ZONES: dict[str, dict[str, Value]] = {}
"""Each zone's regret under local, fedavg and interp-spo, and lambda."""
for _line in _ZONES.strip().splitlines():
    _zone, *_numbers = _line.split()
    _values = [float(number) for number in _numbers]
    _pairs = [Value(*_values[place : place + 2]) for place in range(0, len(_values), 2)]
    ZONES[_zone] = dict(zip(("local", "fedavg", "interp-spo", "lambda"), _pairs, strict=True))


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

    @classmethod
    def of(cls, panel: Panel, setup: Setup, market: str | None) -> Comparison:
        """The comparison of a run; ``market`` is what the user says (see `checked_market`)."""
        there = tuple(zone for zone in ZONES if zone in panel.names)
        if not there:
            none = f"None of these zones is one of the paper's {len(ZONES)}: its numbers are not shown."
            return cls(sentences=(none,), source=AUTHORS)
        if market is None:
            names = f"{len(there)} of these zones have names of the paper's {len(ZONES)}"
            ask = f"{names}; its numbers are shown next to PJM's day-ahead prices only: add --market {MARKET} if these are."
            return cls(sentences=(ask,), source=AUTHORS)
        years = {int(str(day)[:4]) for day in (panel.days[0], panel.days[-1])}
        same = years == {YEAR}
        sentences = [*([] if same else [_other_days(panel, years)]), *_differences(panel, setup, there)]
        return cls(there, same, tuple(sentences), "" if same else AUTHORS)

    def lines(self) -> list[str]:
        """What is printed below the tables: what their notes do not say."""
        return [line for line in (*(() if self.zones else self.sentences), self.source) if line]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {"zones": list(self.zones), "same_year": self.same_year, "sentences": list(self.sentences)}


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
    missing, more = [zone for zone in ZONES if zone not in there], len(panel.names) - len(there)
    if missing or more:
        others = f" and {more} more" if more else ""
        absent = f" (without {listed(missing)})" if missing else ""
        sentences.append(f"The paper's Table 4 is of {len(ZONES)} zones, ours of {len(there)} of them{absent}{others}.")
    if absent_names := [names[0] for names in PAPERS if not set(names) & set(panel.covariate_names)]:
        sentences.append(f"The paper also has the covariates {', '.join(absent_names)}.")
    demands = np.array([DEMANDS.get(zone, np.nan) for zone in panel.names])
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

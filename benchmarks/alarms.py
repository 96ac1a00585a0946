"""How often `dffl score` asks for a refit in a year of daily calls in which nothing changes, and how soon it sees a change.

    python -m benchmarks.alarms --years 200 --json alarms.json

Each of its three reasons is simulated by itself, for rows that forget fast and rows that forget slowly: what a row keeps of its
distance from the mean is ``keeps``. The functions and limits are those of `dffl.time.score` and `dffl.time.drift`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from scipy.stats import norm

from dffl.time.drift import LATEST, drifted
from dffl.time.gains import saved
from dffl.time.score import DEVIATIONS, FEWEST_BETTER, FEWEST_RANGES, SURE

YEAR, KNOWN, EVERY, SHARE = 365, 400, 7, 0.8
"""Rows of a year and of a model, rows between calls that are simulated, and the share that ranges state."""
RULES, COLUMNS = 25, 30
KEEPS = (0.0, 0.5, 0.8, 0.9, 0.95)

Alarm = Callable[[np.random.Generator, float, float], int | None]
"""The row at which a year's first alarm comes, for what rows keep, and the size of a change at the beginning of the year."""


def lasting(rng: np.random.Generator, keeps: float, rows: int, columns: int) -> np.ndarray:
    """Rows of variance 1 that keep this share from row to row."""
    steps = rng.normal(size=(rows + 200, columns))
    return np.asarray(lfilter([np.sqrt(1 - keeps**2)], [1, -keeps], steps, axis=0)[200:])


def another_rule(rng: np.random.Generator, keeps: float, change: float) -> int | None:
    """Rules whose regrets differ from that of the one in use, by nothing on average, or by ``change`` of it."""
    shared, apart = lasting(rng, keeps, YEAR, 1), lasting(rng, keeps, YEAR, RULES)
    mine = np.exp(0.5 * shared[:, 0])
    others = mine[:, None] * (1 + rng.uniform(0.05, 0.3, RULES) * (0.7 * apart + 0.7 * apart[:, :1])) - change * mine[:, None]
    sums, best = np.cumsum(others, axis=0), np.ones((1, YEAR))
    for row in range(FEWEST_BETTER, YEAR + 1, EVERY):
        least = int(sums[row - 1].argmin())
        more = mine[:row] - others[:row, least]
        if more.mean() < 3 * more.std() / np.sqrt(row):
            continue  # no interval is so narrow
        if saved(others[None, :row, least], mine[None, :row], best[:, :row], SURE).low > 0:
            return row
    return None


def ranges(rng: np.random.Generator, keeps: float, change: float) -> int | None:
    """Ranges that hold their share, or ``change`` less, and whose misses come together as much as ``keeps`` says."""
    inside = lasting(rng, keeps, YEAR, 1)[:, 0] < norm.ppf(SHARE - change)
    count = np.arange(1, YEAR + 1)
    low = np.cumsum(inside) / count < SHARE - DEVIATIONS * np.sqrt(SHARE * (1 - SHARE) / count)
    return _first(low & (count >= FEWEST_RANGES))


def columns(rng: np.random.Generator, keeps: float, change: float) -> int | None:
    """Columns without a change, or with one column whose mean moves by ``change`` standard deviations."""
    rows = lasting(rng, keeps, KNOWN + YEAR, COLUMNS)
    rows[KNOWN:, 0] += change
    calls = range(LATEST, YEAR + 1, EVERY)
    found = [drifted(rows[:KNOWN], rows[KNOWN + row - LATEST : KNOWN + row]).any() for row in calls]
    first = _first(np.array(found))
    return None if first is None else calls[first - 1]


def _first(found: np.ndarray) -> int | None:
    return int(found.argmax()) + 1 if found.any() else None


CASES: dict[str, tuple[Alarm, tuple[float, ...]]] = {
    "another rule is better": (another_rule, (0.0, 0.1, 0.2)),
    "ranges do not hold": (ranges, (0.0, 0.1, 0.2)),
    "columns have drifted": (columns, (0.0, 2.0, 4.0)),
}


def main() -> None:
    """Print a table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=200)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    for reason, (alarm, changes) in CASES.items():
        for change in changes:
            for keeps in KEEPS:
                rng = np.random.default_rng(0)
                found = [alarm(rng, keeps, change) for _ in range(given.years)]
                seen = [row for row in found if row is not None]
                row = {"reason": reason, "change": change, "keeps": keeps, "years": given.years, "alarms": len(seen)}
                rows.append(row | {"median_row": float(np.median(seen)) if seen else None})
                print(" ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

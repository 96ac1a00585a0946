"""Tables of the study: the chosen rules against what users have already, and every rule against the steady average."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dffl.time.bases import FORECAST, MEANS, STEADY
from dffl.time.outcome import CHOSEN
from dffl_studies.running.tables import Cell, Table, Value, plain_cells
from dffl_studies.time.advice import advice_holds

DRAWS, BLOCK, SEED = 2000, 4, 0
"""Number of draws of an interval, and the weeks of each block."""
PARTS = {"second half": (0.0, 1.0), "third quarter": (0.0, 0.5), "last quarter": (0.5, 1.0)}
"""Parts of the second half of the days."""


def relative(rows: pd.DataFrame) -> pd.Series:
    """Each rule's relative regret: the mean over clients of a ratio of sums."""
    sums = rows.groupby(["rule", "client"])[["regret", "best"]].sum()
    return (sums["regret"] / sums["best"]).groupby("rule").mean()


def change(rows: pd.DataFrame, rule: str, other: str) -> tuple[float, float, float]:
    """The extra loss of a rule compared with another, in percent, and its 95 % interval over blocks of weeks."""
    both = rows[rows["rule"].isin([rule, other])]
    sums = both.pivot_table(index="week", columns=["rule", "client"], values=["regret", "best"], aggfunc="sum").fillna(0.0)
    lost = [sums["regret"][name].to_numpy() for name in (rule, other)]
    best = sums["best"][rule].to_numpy()

    def ratio(weeks: np.ndarray) -> float:
        totals = [(rule_lost[weeks].sum(axis=0) / best[weeks].sum(axis=0)).mean() for rule_lost in lost]
        return float(100 * (totals[0] / totals[1] - 1))

    count, rng = len(sums), np.random.default_rng(SEED)
    starts = rng.integers(0, count, (DRAWS, -(-count // BLOCK)))
    draws = [ratio(((some[:, None] + np.arange(BLOCK)) % count).reshape(-1)[:count]) for some in starts]
    low, high = np.quantile(draws, (0.025, 0.975))
    return ratio(np.arange(count)), float(low), float(high)


def all_tables(rows: pd.DataFrame) -> list[Table]:
    """The main table, every rule, and whether the intervals of advice hold."""
    return [_chosen(rows), _every_rule(rows), advice_holds(rows)]


def _chosen(rows: pd.DataFrame) -> Table:
    cells: list[Cell] = []
    for fleet, fleet_rows in rows.groupby("fleet", sort=False):
        for part, (since, until) in PARTS.items():
            weeks = fleet_rows["week"].max() + 1
            some = fleet_rows[(fleet_rows["week"] >= since * weeks) & (fleet_rows["week"] < until * weeks)]
            losses = relative(some)
            numbers = {"chosen, %": 100 * losses[CHOSEN]}
            means = losses[list(MEANS)]
            for words, other in (("steady", STEADY), ("best mean", str(means.idxmin())), ("forecast", FORECAST)):
                change_of = change(some, CHOSEN, other) if other in losses else (np.nan,) * 3
                numbers |= dict(zip((f"against {words}", f"{words} from", f"{words} to"), change_of, strict=True))
            numbers |= _held(some[some["rule"] == CHOSEN]) | {"seconds": float(fleet_rows["seconds"].iloc[0])}
            cells += plain_cells((str(fleet), part), numbers)
    note = (
        "Relative regret of the chosen rules, and by how many % they lose more (-: less) than the steady average, than the "
        "best plain mean of 7, 14 and 28 days in hindsight, and than deciding by the forecast that is brought; 95 % intervals "
        "over blocks of four weeks. Held: share of decisions whose cost was inside the range of 80 %."
    )
    return Table("chosen", "The chosen rules over time", ("fleet", "part"), cells, note)


def _held(rows: pd.DataFrame) -> dict[str, float]:
    by = rows.groupby("client")[["held", "ranged"]].sum()
    shares = 100 * by["held"] / by["ranged"]
    return {"held, %": float(shares.mean()), "worst client": float(shares.min())}


def _every_rule(rows: pd.DataFrame) -> Table:
    cells: list[Cell] = []
    for fleet, some in rows.groupby("fleet", sort=False):
        losses = relative(some)
        cells += [
            Cell((rule,), str(fleet), Value(100 * (losses[rule] / losses[STEADY] - 1))) for rule in _order(list(losses.index))
        ]
        cells.append(Cell(("regret of the steady average",), str(fleet), Value(100 * losses[STEADY])))
    cells.sort(key=lambda cell: cell.row[0] != "regret of the steady average")
    return Table("rules", "Every rule against the steady average, %", ("rule",), cells, "Test: the second half of the days.")


def _order(rules: Sequence[str]) -> list[str]:
    return [*(rule for rule in rules if rule not in (STEADY, CHOSEN)), CHOSEN]

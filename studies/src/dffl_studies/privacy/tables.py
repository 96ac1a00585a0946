"""The tables of the privacy study: regret against epsilon, and against the number of sites that lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dffl.harm import Judgement, judge_harm
from dffl_studies.leaderboard.study import BLOCK_COLUMNS
from dffl_studies.privacy.federations import DEMO, FIXED, MANY, REAL
from dffl_studies.privacy.study import AGGREGATORS, DELTA, LEVELS, LIED_TO, NAIVE, NOTHING, STARTS, TRAININGS
from dffl_studies.running.tables import Cell, Count, Table, Value

REFERENCE = "local-tuned"
"""The own model that a client could have instead."""


def all_tables(rows: pd.DataFrame) -> list[Table]:
    """Two tables for each data set, of what is finished."""
    tables = []
    for data, part in in_order(rows).groupby("data", sort=False):
        hidden = part[(part["liars"] == 0) & (part["aggregate"] == "mean")]
        tables.append(epsilon_table(hidden, str(data)))
        lied_to = part[(part["level"] == NOTHING) & ~part["method"].isin(NAIVE)]
        if lied_to["liars"].any():
            tables.append(liars_table(lied_to, str(data)))
    return tables


ORDER: dict[str, Sequence[str]] = {
    "data": (DEMO, FIXED, MANY, REAL),
    "level": (NOTHING, *LEVELS),
    "method": (*NAIVE, *TRAININGS),
    "aggregate": tuple(AGGREGATORS),
    "attack": ("", *LIED_TO[DEMO]),
}
"""In which tables have their rows."""


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows in the order of the study, whichever was finished first."""
    places = {name: {value: place for place, value in enumerate(values)} for name, values in ORDER.items()}
    return rows.sort_values(list(ORDER), key=lambda column: column.map(places[str(column.name)]), kind="stable")


def epsilon_table(rows: pd.DataFrame, data: str) -> Table:
    """One row per level, method and epsilon; the rows where nothing is hidden, and the naive ones, first."""
    reference = _by_client(rows[rows["method"] == REFERENCE])
    cells = []
    for level, of_level in rows.groupby("level", sort=False):
        for method, of_method in of_level.groupby("method", sort=False):
            for epsilon, part in of_method.groupby("epsilon", sort=True, dropna=False):
                shown = "-" if pd.isna(epsilon) else f"{float(str(epsilon)):g}"
                row = (str(level), str(method), shown)
                cells += [Cell(row, column, value) for column, value in _numbers(part, reference).items()]
    note = (
        f"Relative regret in %, means over {STARTS} starts, of {rows['client'].nunique()} clients. Epsilon is that of the "
        f"whole fit at delta = {DELTA:g}, without any amplification. Noise: its standard deviation, in clips. Harmed: clients "
        "with over 1 % more regret than their own tuned model (local-tuned), distinguished from noise. Clip and rounds "
        "were searched for each row, on other data."
    )
    return Table(f"epsilon-{_slug(data)}", f"Regret against epsilon: {data}", ("hidden", "method", "epsilon"), cells, note)


def liars_table(rows: pd.DataFrame, data: str) -> Table:
    """One row per method, aggregator and attack, one column per number of liars: the mean regret of the honest clients."""
    honest = rows[~rows["lies"]]
    regrets = 100 * honest.groupby(["method", "aggregate", "attack", "liars"])["relative_regret"].mean()
    cells = []
    for method, aggregate in honest[["method", "aggregate"]].drop_duplicates().itertuples(index=False):
        reference = regrets[method, aggregate]
        there = set(reference.index.get_level_values("attack"))
        attacks = [name for name in honest["attack"].unique() if name and name in there]
        calm = float(reference.get(("", 0), np.nan))
        for attack in attacks:
            row = (str(method), str(aggregate), str(attack))
            counts = {liars: float(value) for (_, liars), value in reference[[attack]].items()}
            values = {"0 liars": calm} | {f"{liars} liars": counts[liars] for liars in sorted(counts)}
            cells += [Cell(row, column, Value(value)) for column, value in values.items()]
    note = (
        f"Relative regret in % of the clients that do not lie, means over {STARTS} starts; of "
        f"{rows['client'].nunique()} clients so many lie in every round. Liars are drawn anew in every start."
    )
    labels = ("method", "aggregator", "attack")
    return Table(f"liars-{_slug(data)}", f"Regret against sites that lie: {data}", labels, cells, note)


def _numbers(part: pd.DataFrame, reference: dict[str, pd.DataFrame]) -> dict[str, Value]:
    clients = 100 * part.groupby("client")["relative_regret"].mean()
    numbers: dict[str, Value] = {}
    if part["noise"].notna().all():
        numbers = {"noise": Value(float(part["noise"].iloc[0])), "clip": Value(float(part["clip"].iloc[0]))}
    if part["method"].iloc[0] in TRAININGS:
        numbers["rounds"] = Count(float(part["rounds"].iloc[0]))
    numbers |= {"mean": Value(float(clients.mean())), "worst": Value(float(clients.max()))}
    if part["method"].iloc[0] != REFERENCE:
        judged = [_judged(lost, reference[name]) for name, lost in _by_client(part).items() if name in reference]
        if judged and all(judgement.harmed is not None for judgement in judged):
            numbers["harmed"] = Count(float(sum(bool(judgement.harmed) for judgement in judged)))
    return numbers


def _by_client(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """For each client its regrets, a row for each start and a column for each block."""
    columns = [name for name in BLOCK_COLUMNS if name in rows]
    return {str(name): client_rows.set_index("start")[columns] for name, client_rows in rows.groupby("client", sort=False)}


def _judged(lost: pd.DataFrame, reference: pd.DataFrame) -> Judgement:
    """A method against the own model, from the starts that both have: a study may be half done."""
    both = lost.index.intersection(reference.index).sort_values()
    return judge_harm(lost.loc[both].to_numpy(float), reference.loc[both].to_numpy(float))


def _slug(text: str) -> str:
    return text.replace(" ", "-")

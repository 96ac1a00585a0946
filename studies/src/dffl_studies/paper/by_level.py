"""The numbers that the figures show, by level of heterogeneity, and the tables that list them. Regrets are in percent.

Figures and tables call the same functions. Every number is computed in each seed first; its mean and its standard deviation
are over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dffl_studies.paper.tables import (
    GROUPS,
    ORACLES,
    ORDER,
    PAPER_FOUR,
    READING,
    client_group,
    methods_in,
    name_of,
    over_degrees,
    percent,
)
from dffl_studies.running.tables import Cell, Table, Value

AXES = ("eta_obj", "eta_constr")
COMPARED = ("local", "fedavg")
REFERENCE = "interp-spo"
"""The paper's own method, the reference of all others."""
OURS = tuple(method for method in ORDER if method not in ("mean-cost", *PAPER_FOUR, *ORACLES))
TIE = 1e-7
"""Regrets, in percent, that differ by less are equal."""
ALL_GROUPS = ("balanced", *GROUPS)


# The numbers


def level_name(level: float) -> str:
    """A level in the short form of axes: .25 and not 0.25, which saves the width that small panels lack."""
    return f"{level:g}".removeprefix("0") or "0"


def levels_in(rows: pd.DataFrame, axis: str) -> list[float]:
    """The heterogeneity levels that have rows, lowest first."""
    return sorted(float(level) for level in rows[axis].unique())


def paired(clients: pd.DataFrame) -> pd.DataFrame:
    """One row per client and seed with its local and its federated regret, from rows of `over_degrees`."""
    keys = ["problem", "seed", "imbalanced", "eta_obj", "eta_constr", "client", "n"]
    wide = clients[clients["method"].isin(COMPARED)].pivot_table(index=keys, columns="method", values="regret", observed=True)
    return wide.reindex(columns=list(COMPARED)).dropna().reset_index()


def federated_share(pairs: pd.DataFrame) -> Value:
    """Percent of the `paired` clients whose regret is lower with the federated model. A tie does not count as lower."""
    lower = pairs["fedavg"] < pairs["local"] - TIE
    return Value.over_seeds(100 * lower.groupby(pairs["seed"]).mean().to_numpy(float))


def mean_by_level(clients: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The mean and the inter-seed sd (nan for one seed) of each method at each level: indexed by method and level."""
    seeds = clients.groupby(["method", axis, "seed"], observed=True)["regret"].mean()
    return seeds.groupby(["method", axis], observed=True).agg(["mean", "std"])


def differences(rows: pd.DataFrame, reference: str = REFERENCE) -> pd.DataFrame:
    """Clients over degrees whose ``regret`` is the difference to the reference, for the same client and configuration.

    Pairing within a configuration removes what a seed does to all methods alike. Clients without the reference are left out.
    """
    keys = ["job", "client"]
    others = rows[rows["method"] != reference]
    base = rows[rows["method"] == reference].set_index(keys)["regret"]
    reference_values = base.reindex(pd.MultiIndex.from_frame(others[keys])).to_numpy()
    change = others.assign(regret=others["regret"] - reference_values)
    return over_degrees(change[change["regret"].notna()])


def mean_weights(clients: pd.DataFrame) -> pd.DataFrame:
    """The mean and the inter-seed sd of lambda at each pair of levels, indexed by eta_obj and eta_constr."""
    seeds = clients.groupby([*AXES, "seed"], observed=True)["lambda"].mean()
    return seeds.groupby(list(AXES), observed=True).agg(["mean", "std"])


def contests(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Which methods compete: the paper's four, and these with ours. One of ours that lacks clients of theirs is left out."""
    four = methods_in(rows, PAPER_FOUR)
    clients = {method: set(zip(part["job"], part["client"], strict=True)) for method, part in rows.groupby("method")}
    wanted = set.union(set(), *(clients[method] for method in four))
    ours = [method for method in methods_in(rows, OURS) if wanted <= clients[method]]
    contests_by_title = {"the paper's four methods": four, "with our methods": [*four, *ours]}
    return {title: methods for title, methods in contests_by_title.items() if len(four) > 1 and (ours or methods is four)}


def winner_shares(rows: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """The share of the win that each method has at each client of each configuration; methods that tie share it equally.

    Clients that lack one of the methods are left out. Rows are indexed by problem, seed, eta_obj, eta_constr, job and client.
    """
    keys = ["problem", "seed", "eta_obj", "eta_constr", "job", "client"]
    part = rows[rows["method"].isin(methods)]
    regret = part.pivot_table(index=keys, columns="method", values="regret", observed=True)
    regret = regret.reindex(columns=list(methods)).dropna()
    wins = regret.le(regret.min(axis=1) + TIE, axis=0).astype(float)
    return wins.div(wins.sum(axis=1), axis=0)


def shares_by_level(shares: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Winner shares of one problem in percent (rows: levels, columns: methods), each seed with the same weight."""
    return 100 * shares.groupby([axis, "seed"]).mean().groupby(axis).mean()


# Their tables


def level_tables(rows: pd.DataFrame, noise: float = 0.0, reading: str = READING) -> list[Table]:
    """The numbers of the figures, for the rows with this noise; no rows, no tables."""
    rows = rows if rows.empty else rows[rows["noise"] == noise]
    if rows.empty:
        return []
    rows = percent(rows, reading)
    clients = over_degrees(rows)
    tables = [
        _by_level(clients, "levels", "Mean relative regret (%) by level of heterogeneity", "Mean relative regret in percent."),
        _by_level(
            differences(rows), "differences", f"Differences to {name_of(REFERENCE)} by level of heterogeneity", DIFFERENCE
        ),
        federated_lower(clients),
        weights(clients),
        winners(rows),
    ]
    return [table for table in tables if table.cells]


DIFFERENCE = (
    f"Regret minus that of {name_of(REFERENCE)} at the same client and configuration, in percentage points. "
    "Negative: the method has the lower regret."
)


def _by_level(clients: pd.DataFrame, name: str, title: str, note: str) -> Table:
    cells = []
    for problem, part in clients.groupby("problem", sort=False):
        for axis in AXES:
            means = mean_by_level(part, axis)
            for method in methods_in(part):
                for level, value in means.loc[method].iterrows():
                    cells.append(
                        Cell((str(problem), name_of(method)), f"{axis} = {level:g}", Value(value["mean"], value["std"]))
                    )
    note = f"{note} Over clients, degrees, balances and the other heterogeneity; mean over seeds +- inter-seed sd."
    return Table(name, title, ("problem", "method"), cells, note)


def federated_lower(clients: pd.DataFrame) -> Table:
    """The percentages of the boxplots and slopes."""
    pairs, cells = paired(clients), []
    pairs = pairs.assign(group=client_group(pairs))
    parts = [(words, pairs[pairs["imbalanced"] == kind]) for words, kind in (("balanced", False), ("imbalanced", True))]
    parts += [(f"imbalanced, {group}", pairs[pairs["group"] == group]) for group in GROUPS]
    for problem in pairs["problem"].unique():
        for words, part in parts:
            for (obj, constr), cell in part[part["problem"] == problem].groupby(list(AXES)):
                row = (str(problem), words, f"eta_obj = {obj:g}")
                cells.append(Cell(row, f"eta_constr = {constr:g}", federated_share(cell)))
    note = "Percent of the clients with lower regret when federated; mean over seeds +- inter-seed sd. A tie is not lower."
    labels = ("problem", "clients", "objectives")
    return Table("federated-lower", "Clients that have lower regret when federated (%)", labels, cells, note)


def weights(clients: pd.DataFrame) -> Table:
    """The mean weight of the shared model in Interp-DFFL(SPO+)."""
    clients = clients[(clients["method"] == REFERENCE) & clients["lambda"].notna()]
    clients, cells = clients.assign(group=client_group(clients)), []
    for problem in clients["problem"].unique():
        for group in ALL_GROUPS:
            part = clients[(clients["problem"] == problem) & (clients["group"] == group)]
            for obj, constr, mean, sd in mean_weights(part).reset_index().itertuples(index=False):
                row = (str(problem), group, f"eta_obj = {obj:g}")
                cells.append(Cell(row, f"eta_constr = {constr:g}", Value(mean, sd)))
    note = "Mean lambda over clients and degrees; mean over seeds +- inter-seed sd. lambda = 1 is the federated model."
    title = f"The weight of the shared model in {name_of(REFERENCE)}"
    return Table("weights", title, ("problem", "clients", "objectives"), cells, note)


def winners(rows: pd.DataFrame) -> Table:
    """How often each method is a client's best one."""
    cells = []
    for title, methods in contests(rows).items():
        shares = winner_shares(rows, methods)
        for problem, cell in shares.groupby(level="problem", sort=False):
            for axis in AXES:
                for level, line in shares_by_level(cell, axis).iterrows():
                    cells += [
                        Cell((str(problem), title, name_of(str(method))), f"{axis} = {level:g}", Value(float(share)))
                        for method, share in line.items()
                    ]
    note = f"Percent of clients and configurations. Methods whose regrets differ by less than {TIE:g} percentage points tie: "
    labels = ("problem", "contest", "method")
    return Table("winners", "Which method is best (%)", labels, cells, note + "they share the win equally.")


def ties(shares: pd.DataFrame) -> np.ndarray:
    """Whether the win of each client and configuration is shared by two methods or more."""
    return shares.max(axis=1).to_numpy() < 1

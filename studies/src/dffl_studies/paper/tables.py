"""The paper's tables from a study's rows, next to the paper's numbers. Regrets are in percent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from dffl.harm import above_tolerance
from dffl.training.methods import label_of
from dffl_studies.paper.published import AGGREGATE, BY_SIZE, STATISTICS
from dffl_studies.running.tables import Cell, Table, Value

PAPER_NAMES = {
    "interp-mse": "Interp-DFFL(MSE)",
    "interp-spo": "Interp-DFFL(SPO+)",
    "oracle-interp-mse": "Oracle Interp-DFFL(MSE)",
    "oracle-interp-spo": "Oracle Interp-DFFL(SPO+)",
    "finetune": "Fine-tuned (ours)",
    "finetune-mix": "Fine-tuned, mixed (ours)",
    "local-tuned": "Local, tuned (ours)",
    "crossfit": "Cross-fitted (ours)",
    "known-mean": "Best possible (mean costs known)",
}
"""The paper's names of its methods, and our names of the methods that it does not have. The others have their usual label."""
ORDER = (
    "mean-cost", "local", "fedavg", "interp-mse", "interp-spo", "oracle-interp-mse", "oracle-interp-spo", "finetune",
    "finetune-mix", "local-tuned", "crossfit",
)  # fmt: skip
"""The order of methods in tables; others follow."""

PAPER_FOUR = ("local", "fedavg", "interp-mse", "interp-spo")
ORACLES = ("oracle-interp-mse", "oracle-interp-spo")
BEYOND = ("local-tuned", "finetune", "crossfit", "mean-cost")
FLOOR = ("known-mean",)
"""The regret that no rule can avoid: 0 without noise."""
GROUPS = ("data-rich", "data-poor")
BALANCED_SAMPLES = 100
"""The training samples of a client of a balanced configuration; in an imbalanced one there are 500 or 50."""


READINGS = {"relative_regret": "in total", "mean_ratio": "per sample"}
"""The two possible meanings of a client's relative regret: the sum of its regrets over the sum of |z*|, or the mean over its
samples of regret / |z*|. The paper does not say; both are in the rows.
"""
READING = "mean_ratio"
"""The meaning in tables and figures: `dffl_studies.paper.variants` chooses it together with the settings."""
AUTHORS_READING = "relative_regret"
"""The meaning in the authors' later code."""
ABOVE = "1 % above local"
ABOVE_NOTE = (
    f"{ABOVE}: the share of clients and configurations whose regret is over 1 % above that of their local model, in one run. "
    "Each configuration has one start, so harm is not distinguished from noise."
)


def percent(rows: pd.DataFrame, column: str = READING) -> pd.DataFrame:
    """The rows with ``regret`` in percent, and ``above``: over 1 % above local in one run, which may be noise."""
    keys = ["job", "client"]
    out = rows.assign(regret=100.0 * rows[column].astype(float))
    local = out.loc[out["method"] == "local"].set_index(keys)["regret"]
    local_regret = local.reindex(pd.MultiIndex.from_frame(out[keys])).to_numpy()
    above = pd.Series(above_tolerance(out["regret"].to_numpy(), local_regret, margin=1e-9).astype(float), out.index)
    return out.assign(above=above.where(~np.isnan(local_regret)))  # unknown without a local model


def name_of(method: str) -> str:
    """The name of a method in this study's tables and figures."""
    return PAPER_NAMES.get(method) or label_of(method)


def methods_in(rows: pd.DataFrame, wanted: Iterable[str] | None = None) -> list[str]:
    """The wanted methods that have rows; by default all methods that have."""
    methods = [str(method) for method in rows["method"].unique()]
    every = (method for method in dict.fromkeys((*ORDER, *methods)) if method not in FLOOR)
    return [method for method in (every if wanted is None else wanted) if method in methods]


def client_group(rows: pd.DataFrame) -> pd.Series:
    """Each row's group: balanced, or in an imbalanced configuration data-rich or data-poor."""
    rich = rows["n"] > BALANCED_SAMPLES
    names = np.where(~rows["imbalanced"].to_numpy(bool), "balanced", np.where(rich, *GROUPS))
    return pd.Series(names, rows.index, name="group")


CONFIGURATION = ["problem", "seed", "imbalanced", "eta_obj", "eta_constr"]


def over_degrees(rows: pd.DataFrame) -> pd.DataFrame:
    """Each client's mean over the degrees, the basis of the paper's narrow quantiles (see the protocol's page)."""
    keys = ["method", *CONFIGURATION, "client", "n", "saturated"]
    return rows.groupby(keys, sort=False, observed=True, as_index=False)[["regret", "lambda", "above"]].mean()


# The tables


def all_tables(rows: pd.DataFrame, reading: str = READING) -> list[Table]:
    """Every table that these rows allow."""
    plain = rows[rows["noise"] == 0]
    if plain.empty:
        return [with_noise(rows, reading)]
    quiet = percent(plain, reading)
    tables = [readings(plain), aggregate(quiet, oracles=False), aggregate(quiet, oracles=True), averaging(quiet)]
    tables.append(by_seed(quiet))
    if quiet["imbalanced"].any():
        tables += [interpolation(quiet), *(by_size(plain, each) for each in READINGS)]
    if (quiet["problem"] == "knapsack").any():
        tables += [saturation(quiet), without_saturated(quiet)]
    noisy = rows[rows["noise"] > 0]
    if len(noisy):
        tables += [with_noise(noisy, reading), both_levels(rows, reading)]
    return tables


def readings(rows: pd.DataFrame) -> Table:
    """The means of every method and the paper's, under both readings of a client's relative regret."""
    cells = []
    for reading, words in READINGS.items():
        values = _aggregate_cells(percent(rows, reading), [*PAPER_FOUR, *ORACLES, *BEYOND], AGGREGATE)
        cells += [cell._replace(column=f"mean, {words}") for cell in values if cell.column == "mean"]
        cells += [cell._replace(column=f"{ABOVE}, {words}") for cell in values if cell.column == ABOVE]
    note = (
        "Mean relative regret in percent over clients and configurations without noise (+- inter-seed sd). "
        f"{ABOVE_NOTE} The paper does not say what a client's relative regret is: in total, the sum of its regrets over the "
        "sum of its best values; per sample, the mean of regret over best value."
    )
    return Table("readings", "Does it reproduce the paper? Mean relative regret (%)", ("problem", "method"), cells, note)


def averaging(rows: pd.DataFrame) -> Table:
    """Quantiles over clients whose regrets were averaged over the degrees first, and over all clients and degrees."""
    cells = []
    for words, part in (("degrees averaged", over_degrees(rows)), ("each degree separately", rows)):
        values = _aggregate_cells(part, PAPER_FOUR, AGGREGATE)
        cells += [cell._replace(row=(*cell.row, words)) for cell in values if cell.column in STATISTICS[1:]]
    order = list(dict.fromkeys(cell.row[:2] for cell in cells))
    cells.sort(key=lambda cell: order.index(cell.row[:2]))
    note = "The paper's quantiles are too narrow for single configurations; averaged over the degrees they come closer."
    return Table("averaging", "What the quantiles are taken of", ("problem", "method", "quantiles of"), cells, note)


def aggregate(rows: pd.DataFrame, oracles: bool) -> Table:
    """Table 2, or Table 7 of the appendix with the oracle rows."""
    methods = [*PAPER_FOUR, *(ORACLES if oracles else ()), *BEYOND]
    name = "table7" if oracles else "table2"
    title = "Relative regret (%) by experiment and method" + (", with the oracle rows" if oracles else "")
    note = (
        "Each client's regret is averaged over the degrees first; mean, median, quantiles and maximum are over clients and "
        f"heterogeneities in a seed, then averaged over seeds (+- inter-seed sd). {ABOVE_NOTE}"
    )
    return Table(name, title, ("problem", "method"), _aggregate_cells(over_degrees(rows), methods, AGGREGATE), note)


def without_saturated(rows: pd.DataFrame) -> Table:
    """The knapsack part of Table 7 for the clients whose budget binds."""
    rows = _where(rows, problem="knapsack", saturated=False)
    methods = [*PAPER_FOUR, *ORACLES, *BEYOND]
    note = "As Table 7, without the clients whose budget covers every item: any positive prediction decides perfectly there."
    cells = _aggregate_cells(over_degrees(rows), methods, {})
    return Table("table7-binding-budgets", "Knapsack clients whose budget binds", ("problem", "method"), cells, note)


def interpolation(rows: pd.DataFrame) -> Table:
    """The summary of Interp-DFFL(SPO+) for data-rich and data-poor clients."""
    rows, cells = _sized(rows), []
    for problem in rows["problem"].unique():
        for group in GROUPS:
            part = _where(rows, problem=problem, group=group, method="interp-spo")
            cells += _cells((problem, group), part, ("mean", "mean lambda"), BY_SIZE[problem, group, "interp-spo"])
    note = "Imbalanced configurations: 500 training samples (data-rich) or 50 (data-poor). lambda = 1 is the federated model."
    return Table("table3", "Interp-DFFL(SPO+) under imbalance", ("problem", "clients"), cells, note)


def by_seed(rows: pd.DataFrame) -> Table:
    """The mean of each method in each seed."""
    cells = []
    for problem in rows["problem"].unique():
        for method in methods_in(rows, (*PAPER_FOUR, *BEYOND)):
            for seed, part in _where(rows, problem=problem, method=method).groupby("seed"):
                cells += [
                    cell._replace(column=f"seed {seed}") for cell in _cells((problem, name_of(method)), part, ("mean",), {})
                ]
    note = "Mean relative regret in percent. A seed draws all clients again, budgets included: a few tiny ones decide a mean."
    return Table("by-seed", "The means of each seed", ("problem", "method"), cells, note)


def by_size(rows: pd.DataFrame, reading: str) -> Table:
    """Data-rich and data-scarce clients under every method."""
    rows, cells = _sized(percent(rows, reading)), []
    for problem in rows["problem"].unique():
        for group in GROUPS:
            for method in methods_in(rows, (*PAPER_FOUR, *ORACLES, *BEYOND)):
                part = _where(rows, problem=problem, group=group, method=method)
                weights = ("mean lambda", "median lambda") if part["lambda"].notna().any() else ()
                paper = BY_SIZE.get((problem, group, method), {})
                cells += _cells((problem, group, name_of(method)), part, ("mean", "median", ABOVE, *weights), paper)
    note = f"Imbalanced configurations; each client averaged over the degrees. Everything but lambda in percent. {ABOVE_NOTE}"
    name = f"table8-{READINGS[reading].replace(' ', '-')}"
    title = f"Data-rich and data-poor clients, relative regret {READINGS[reading]}"
    return Table(name, title, ("problem", "clients", "method"), cells, note)


def saturation(rows: pd.DataFrame) -> Table:
    """The number of knapsack clients whose budget covers all items, by constraint heterogeneity, and their loss."""
    local, cells = _where(rows, problem="knapsack", method="local"), []
    for eta in sorted(local["eta_constr"].unique()):
        part, label = _where(local, eta_constr=eta), (f"eta_constr = {eta:g}",)
        cells += _cells(label, part, ("saturated",), {})
        for column, some in (("local regret of these", part[part["saturated"]]), ("of the others", part[~part["saturated"]])):
            cells += [cell._replace(column=column) for cell in _cells(label, some, ("mean",), {})]
    note = "Share of the knapsack clients whose budget is at least the weight of all items, and mean local regrets, in percent."
    return Table("saturated", "Saturated knapsack clients", ("heterogeneity",), cells, note)


def with_noise(rows: pd.DataFrame, reading: str = READING) -> Table:
    """The configurations with the noise as the paper words it, against realised and against conditional-mean costs."""
    cells = []
    for kind, column in (("realised costs", reading), ("conditional-mean costs", f"expected_{reading}")):
        values = _aggregate_cells(over_degrees(percent(rows, column)), [*PAPER_FOUR, *ORACLES, *BEYOND, *FLOOR], {})
        cells += [cell._replace(row=(cell.row[0], kind, cell.row[1])) for cell in values]
    note = (
        "Every cost has its own Uniform(0, 2) factor: at realised costs no rule can avoid the regret that it brings. The best "
        "possible decisions are those of a client that knows the mean costs given its features."
    )
    return Table("noise", "With the noise as worded", ("problem", "judged by", "method"), cells, note)


def with_both_levels(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the configurations that are finished with and without noise."""
    levels = rows.groupby([*CONFIGURATION, "degree"], observed=True)["noise"].transform("nunique")
    return rows[levels == 2]


def both_levels(rows: pd.DataFrame, reading: str = READING) -> Table:
    """Table 7 as the paper's grid has it: each client averaged over the degrees and over both levels of the noise."""
    both = with_both_levels(rows)
    count = both["job"].nunique()
    methods = [*PAPER_FOUR, *ORACLES, *BEYOND, *FLOOR]
    note = (
        f"{count:,} configurations: those that are finished with and without noise. Each client's regret at realised costs is "
        f"averaged over the degrees and both levels of the noise first; then as Table 7. {ABOVE_NOTE}"
    )
    cells = _aggregate_cells(over_degrees(percent(both, reading)), methods, AGGREGATE)
    title = "Relative regret (%) by experiment and method, both levels of the noise averaged"
    return Table("table7-both-noise-levels", title, ("problem", "method"), cells, note)


# Parts of tables

COLUMN_VALUES: dict[str, Callable[[pd.DataFrame], float]] = {
    "mean": lambda one: one["regret"].mean(),
    "median": lambda one: one["regret"].median(),
    "p75": lambda one: float(one["regret"].quantile(0.75)),
    "p90": lambda one: float(one["regret"].quantile(0.9)),
    "max": lambda one: one["regret"].max(),
    ABOVE: lambda one: 100 * one["above"].mean(),
    "saturated": lambda one: 100 * one["saturated"].mean(),
    "mean lambda": lambda one: one["lambda"].mean(),
    "median lambda": lambda one: one["lambda"].median(),
}
"""A column of a table: a number of one seed's rows."""


def _cells(row: tuple[str, ...], rows: pd.DataFrame, columns: Sequence[str], paper: dict[str, Value]) -> list[Cell]:
    """A row of a table: each column's mean and standard deviation over seeds; nan where there are too few seeds for it."""
    seeds = [seed_rows for _, seed_rows in rows.groupby("seed")]
    cells = []
    for column in columns:
        value = Value.over_seeds([COLUMN_VALUES[column](seed_rows) for seed_rows in seeds])
        cells.append(Cell(row, column, value, paper.get(column)))
    return cells


def _aggregate_cells(
    rows: pd.DataFrame, methods: Sequence[str], published: dict[tuple[str, str], dict[str, Value]]
) -> list[Cell]:
    cells = []
    for problem in rows["problem"].unique():
        for method in methods_in(rows, methods):
            part, paper = _where(rows, problem=problem, method=method), published.get((problem, method), {})
            cells += _cells((problem, name_of(method)), part, (*STATISTICS, ABOVE), paper)
    return cells


def _where(rows: pd.DataFrame, **values: object) -> pd.DataFrame:
    """The rows with these values."""
    mask = np.ones(len(rows), bool)
    for column, value in values.items():
        mask &= (rows[column] == value).to_numpy()
    return rows[mask]


def _sized(rows: pd.DataFrame) -> pd.DataFrame:
    """Each client of the imbalanced configurations with its group."""
    rows = over_degrees(rows[rows["imbalanced"]])
    return rows.assign(group=client_group(rows))

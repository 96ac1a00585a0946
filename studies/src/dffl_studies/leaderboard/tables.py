"""The tables of the leaderboard: one for each problem, what the search chose, and what could not run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dffl.harm import judge_harm
from dffl_studies.leaderboard.entries import ENTRIES, Entry, in_words
from dffl_studies.leaderboard.ranking import standings
from dffl_studies.leaderboard.study import BLOCK_COLUMNS
from dffl_studies.running.tables import Cell, Count, Table, Value

DEFAULT = "crossfit"
"""The reference of all others."""
UNIT = ["seed", "eta_obj", "eta_constr", "degree", "imbalanced"]
"""The columns that distinguish the federations of a problem."""
REFERENCES = {"local-tuned": "harmed", "local": "harmed (local)"}
"""The own models that a client could have instead, and the columns that count whom an entry harms significant against them."""


COLUMNS = (
    "mean", "p90", "worst", f"against {DEFAULT}", "rank from", "rank to", *REFERENCES.values(), "in one run", "passes",
    "core-seconds", "kB",
)  # fmt: skip


def all_tables(rows: pd.DataFrame) -> list[Table]:
    """The standings on each problem, methods and losses apart; every table has the federations that all its entries have.

    Where some methods were judged on more federations than others, they have a table of their own, with all of these.
    """
    tables = []
    for problem, part in rows.groupby("problem", sort=False):
        losses = part["entry"].map(lambda name: ENTRIES[name].kind == "loss")
        methods, name = part[~losses], _slug(str(problem))
        if len(methods):
            tables.append(standing_table(methods, f"methods-{name}", f"All methods, trained on SPO+: {problem}"))
            wide = _judged_most(methods)
            if wide["entry"].nunique() < methods["entry"].nunique():
                tables.append(
                    standing_table(wide, f"more-{name}", f"The methods that were judged on more federations: {problem}")
                )
        if losses.any():
            tables.append(standing_table(part[losses], f"losses-{name}", f"Losses, each with two methods: {problem}"))
    return tables


def _judged_most(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the entries that were judged on the most federations."""
    counts = _with_units(rows).groupby("entry")["unit"].nunique()
    return rows[rows["entry"].isin(counts.index[counts == counts.max()])]


def _with_units(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the number of their federation."""
    return rows.assign(unit=rows.groupby(UNIT, dropna=False, sort=False).ngroup())


def shared_federations(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the federations that every entry which can run has been judged on."""
    ran = _with_units(rows[rows["refused"] == ""])
    entries = ran["entry"].nunique()
    counts = ran.groupby("unit")["entry"].nunique()
    return ran[ran["unit"].isin(counts.index[counts == entries])]


def standing_table(rows: pd.DataFrame, name: str, title: str) -> Table:
    """One row per entry, the lowest mean regret first."""
    judged = shared_federations(rows)
    summaries = summary(judged)
    cells = []
    for entry, row in summaries.sort_values("mean").iterrows():
        numbers = {column: Value(float(row[column])) for column in summaries.columns}
        numbers |= {column: Count(float(row[column])) for column in ("rank from", "rank to") if column in summaries}
        numbers[f"against {DEFAULT}"] = Value(float(row["difference"]), float(row["half"]))
        cells += [Cell((str(entry),), column, numbers[column]) for column in COLUMNS if column in numbers]
    zones = bool(rows["problem"].iloc[0].startswith("zones"))
    units = f"{judged['client'].nunique()} zones" if zones else f"{judged['unit'].nunique()} federations"
    note = (
        f"Relative regret in %, over the clients of {units}. Entries with three starts: means over them. Against {DEFAULT}: "
        f"the mean paired difference and half the width of its 95 % interval over {units}. "
        "Rank from, to: entries whose ranges overlap cannot be distinguished (Wilcoxon, Holm, 5 %). "
        "Harmed: % of clients with over 1 % more regret than their own tuned (or the paper's local) model, distinguished "
        "from noise, of those with three starts; in one run: % over 1 % above the tuned own model in the first start, noise "
        "included. Passes over all samples, median core-seconds of a fit, kB sent and received by a client."
    )
    return Table(name, title, ("entry",), cells, note)


def summary(ran: pd.DataFrame, harm: bool = True) -> pd.DataFrame:
    """One row per entry, from the rows of `shared_federations`: regrets, standing, harm and cost."""
    zones = bool(len(ran)) and ran["problem"].iloc[0].startswith("zones")
    unit = ["client"] if zones else UNIT
    clients = ran.groupby(["entry", *UNIT, "client"], sort=False, dropna=False)["relative_regret"].mean()
    by_unit = ran.pivot_table(
        index=[name for name in unit if ran[name].notna().all()], columns="entry", values="relative_regret"
    )
    common = by_unit.dropna()
    reference = DEFAULT if DEFAULT in common else f"{DEFAULT}, spo+"
    place = standings(100 * common, reference) if reference in common and len(common) else {}
    rows = {}
    for entry, part in ran.groupby("entry", sort=False):
        regrets = 100 * clients[entry]
        row = {"mean": regrets.mean(), "p90": regrets.quantile(0.9), "worst": regrets.max()}
        standing = place.get(str(entry))
        row |= (
            {"difference": np.nan, "half": np.nan}
            if standing is None
            else {"difference": standing.difference, "half": standing.half}
        )
        row |= {} if standing is None else {"rank from": standing.best, "rank to": standing.worst}
        row |= _harm_shares(ran, str(entry)) if harm else {}
        fits = part.drop_duplicates([*UNIT, "start"])
        row |= {"passes": fits["passes"].mean(), "core-seconds": fits["fit_seconds"].median()}
        rows[str(entry)] = row | {"kB": (fits["sent"] + fits["answered"]).mean() / 1000}
    return pd.DataFrame.from_dict(rows, orient="index")


def _harm_shares(rows: pd.DataFrame, entry: str) -> dict[str, float]:
    """The % of clients that an entry harms against each own model, and those above the tolerance in the first start."""
    shares: dict[str, float] = {}
    for reference, column in REFERENCES.items():
        if entry == reference:
            shares[column] = np.nan
            continue
        judged = [judge_harm(*pair) for pair in _pairs(rows, entry, reference)]
        known = [judgement.harmed for judgement in judged if judgement.harmed is not None]
        shares[column] = 100 * float(np.mean(known)) if known else np.nan
        if reference == "local-tuned":
            shares["in one run"] = (
                100 * float(np.mean([judgement.above_tolerance for judgement in judged])) if judged else np.nan
            )
    return shares


def _pairs(rows: pd.DataFrame, entry: str, reference: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each client the regrets (starts, blocks) under an entry and under the own model, from the starts that both have.

    A naive model has no start: its one fit stands for all.
    """
    columns = [name for name in BLOCK_COLUMNS if name in rows]
    key = [*UNIT, "client"]
    mine, theirs = (rows[rows["entry"] == name].set_index([*key, "start"])[columns] for name in (entry, reference))
    if ENTRIES[entry].kind == "naive":
        mine = theirs[[]].join(mine.droplevel("start"), on=key)
    both = mine.join(theirs.add_suffix("_own"), how="inner").dropna(how="all", subset=columns)
    for _, part in both.groupby(level=list(range(len(key))), sort=False, dropna=False):
        values = part.sort_index(level="start").to_numpy(float)
        values = values[:, ~np.isnan(values).any(axis=0)]
        half = values.shape[1] // 2
        yield values[:, :half], values[:, half:]


def chosen_text(chosen: dict[str, dict[str, str]], searched: set[tuple[str, str]] | None = None) -> str:
    """What the search chose, as a Markdown table. ``searched``: problems and entries; the others have their first candidate."""

    def cell(problem: str, entry: Entry) -> str:
        had_none = searched is not None and (problem, entry.searched_as or entry.name) not in searched
        return in_words(chosen[problem][entry.name]) + (" (not searched)" if had_none and len(entry.candidates) > 1 else "")

    problems = list(chosen)
    lines = [f"| entry | candidates | {' | '.join(problems)} |", "|" + "---|" * (2 + len(problems))]
    for entry in next(iter(chosen.values())):
        cells = [cell(problem, ENTRIES[entry]) for problem in problems]
        lines.append(f"| {entry} | {len(ENTRIES[entry].candidates)} | {' | '.join(cells)} |")
    return "\n".join(["**What the search chose**", "", *lines, ""])


def refused_text(rows: pd.DataFrame) -> str:
    """The entries that could not run, and why; empty if all could."""
    refused = rows[rows["refused"] != ""].drop_duplicates(["problem", "entry"])
    return "".join(f"{row['entry']} cannot run on {row['problem']}: {row['refused']}\n" for _, row in refused.iterrows())


def _slug(text: str) -> str:
    return text.replace(", ", "-").replace(" ", "-")

"""Decisions for new rows: with their names, checked against the constraints, with the range of their costs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from dffl.cells import composed, safe_cell, safe_csv
from dffl.files import write_whole
from dffl.fitting import Member
from dffl.sets import FeasibleSet
from dffl.sets.program_set import ProgramSet
from dffl.tables.cost_range import CostRange, known
from dffl.tables.encoding import Encoding
from dffl.tables.frames import Columns
from dffl.tables.in_words import in_words
from dffl.tables.model import OwnModel
from dffl.tables.money import unit_of_sums
from dffl.tables.sources import Table, open_source, require_columns
from dffl.tables.winner import advised_against
from dffl.terminal import printable
from dffl.time.chosen import Chosen
from dffl.time.observed import Observed
from dffl.time.words import rule_in_words

SHOWN, MOST_COLUMNS, FEWEST_COLUMNS = 10, 12, 4
"""The most rows, and columns, of the table that are printed; the file has all of it."""
FEASIBLE = 1e-6
"""The largest violation of the constraints by a decision, relative to their size."""


DECISION = "decision_"
"""Precedes the name of a decision that has no other name than its cost column: the column holds no cost."""
EXPECTED = ("expected_low", "expected_median", "expected_high")
"""The columns after the decisions: what each will cost, or earn."""


@dataclass(frozen=True)
class Decided:
    """The decisions of one client, one row per row of the table."""

    client: str
    decisions: pd.DataFrame
    ranges: np.ndarray
    """(n, 3): low end, median and high end of what each decision will cost, or earn."""
    expected: CostRange
    """The held-out rows behind these ranges."""
    unit: str | None
    maximize: bool
    ordered: bool = False
    path: Path | None = None
    keys: pd.DataFrame | None = None
    """Columns of the table that identify a row, such as its date."""
    named_by_costs: bool = False
    """Whether the decisions have the names of the costs, because they have no names of their own."""
    rule: str | None = None
    """The rule that decides, for a model of `chosen` over time."""
    todo: Sequence[str | None] = ()
    """For each decision, what it takes, in words; None if it has no words."""
    advice: str | None = None
    """What `dffl fit` recommended instead of this model, if it did."""

    @property
    def table(self) -> pd.DataFrame:
        """The keys, the decisions and the ends of their ranges. A variable may have the same name as one of these columns."""
        rounded = np.vectorize(lambda value: float(f"{value:.6g}"), otypes=[float])(self.ranges)  # more digits have no meaning
        decisions = self.decisions.add_prefix(DECISION) if self.named_by_costs else self.decisions
        ranges = pd.DataFrame(rounded, columns=[f"_{name}" if name in decisions else name for name in EXPECTED])
        keys = self.keys if self.keys is not None else decisions[[]]
        return pd.concat([keys.rename(columns={name: f"_{name}" for name in {*decisions, *ranges}}), decisions, ranges], axis=1)

    def show(self, console: Console) -> None:
        """Print the first decisions, in words and as a table, the ranges, and where all of them are."""
        for line in self.to_do:
            console.print(printable(line), soft_wrap=True)
        console.print(printable(_fitting(self.table.head(SHOWN), console.width)), soft_wrap=True)  # keys may hold anything
        if len(self.decisions) > SHOWN:
            console.print(f"... {len(self.decisions)} rows in all")
        console.print(f"\n{self.words}")
        if self.advice is not None:
            console.print(printable(self.advice), style="yellow", soft_wrap=True)
        if self.path is not None:
            console.print(f"Decisions: {self.path}", soft_wrap=True)

    @property
    def to_do(self) -> list[str]:
        """What the first decisions take, each with the key of its row or its number. Decisions without words are left out."""
        keys = None if self.keys is None or self.keys.empty else self.keys.iloc[:, 0]
        lines = []
        for row, line in enumerate(self.todo[:SHOWN]):
            name = f"row {row + 1}" if keys is None or pd.isna(keys.iloc[row]) else str(keys.iloc[row])
            lines += [] if line is None else [f"{name}: {line}"]
        return [*lines, ""] if lines else []

    @property
    def words(self) -> str:
        """The expected cost, in words."""
        unit, cost = f" {unit_of_sums(self.unit)}" if self.unit else "", self.expected
        verb, past = ("earn", "earned") if self.maximize else ("cost", "cost")
        if self.rule is not None:
            return self._over_time(verb)
        if cost.guide is not None:
            what = (
                f"Expect each decision to {verb} between its expected_low and expected_high: about {100 * cost.share:.0f} % "
                f"do, by {cost.rows} held-out rows, whose decisions {past} {cost.low:.4g} to {cost.high:.4g}{unit}."
            )
        else:
            what = (
                f"Expect each decision to {verb} {cost.low:.4g} to {cost.high:.4g}{unit} (median {cost.median:.4g}{unit}): "
                f"about {100 * cost.share:.0f} % do, by {cost.rows} held-out rows. It is one range for all rows, as {cost.why}."
            )
        drift = " If the level of costs has moved since, fewer do." if self.ordered else ""
        return f"{what}{drift}"

    def _over_time(self, verb: str) -> str:
        """The expected cost of a rule over time, in words."""
        by = f"Decided by {rule_in_words(str(self.rule))}."
        if not np.isfinite(self.ranges).all():
            return f"{by} Too few rows were decided so far to say what a decision will {verb}."
        basis = f"the latest {self.expected.rows} rows, and by what happened since where the table says it"
        expect = f"Expect each decision to {verb} between its expected_low and expected_high"
        return f"{by} {expect}: {self.expected.share:.0%} do, by {basis}."

    def as_json(self) -> dict[str, Any]:
        expected = {name: getattr(self.expected, name) for name in ("rows", "low", "median", "high", "share")}
        return {
            "client": self.client, "unit": self.unit, "unit_of_sums": unit_of_sums(self.unit),
            "file": None if self.path is None else str(self.path),
            "expected": expected | {"follows_features": self.expected.guide is not None, "why_not": self.expected.why or None},
            **({} if self.rule is None else {"rule": self.rule}),
            "ranges": [dict(zip(("low", "median", "high"), row, strict=True)) for row in self.ranges.tolist()],
            "keys": [] if self.keys is None else _plain(self.keys),
            "decisions": self.decisions.to_dict("records"), "in_words": list(self.todo), "advice": self.advice,
        }  # fmt: skip


def _fitting(table: pd.DataFrame, width: int) -> str:
    """The first and the last columns, as many as fit a screen of this width."""
    for columns in range(MOST_COLUMNS, FEWEST_COLUMNS - 1, -1):
        text = str(table.to_string(max_cols=columns, float_format="{:.4g}".format))
        if max(map(len, text.splitlines())) <= width:
            break
    return text


def decide(
    model: OwnModel, client: str, table: str | PathLike[str], out: Path | None = None, keep: Sequence[str] = (),
    state: Path | None = None,
) -> Decided:  # fmt: skip
    """Decide for a client at each row of a table. The result is written to ``out`` completely or not at all.

    A model of `chosen` also uses the rows in a ``state`` of `dffl score` as known rows, if this file exists. The columns
    ``keep`` of the table precede the decisions in the result, and so does the column that orders the rows.
    """
    fit, about = model.fit, model.about
    client = client if client in fit.members else composed(client)
    member = model.member(client)
    if isinstance(fit, Chosen):
        seen = Observed.load(state) if state is not None and state.exists() else None
        return _written(replace(_over_time(fit, about, client, table, out, keep, seen), advice=advised_against(model, client)))
    if state is not None:
        raise ValueError("--state is for models of chosen: this one decides each row by its features alone; leave it out")
    assert isinstance(member, Member), "a fit has members"
    if client not in about["ranges"]:
        raise ValueError(f"client {client!r}: this model has no held-out rows of it, so nothing can be said of its costs")
    expected = CostRange.from_json(about["ranges"][client])
    rows = model.encoding.table(table, list(map(composed, about["costs"])))
    order = about["order"] and composed(about["order"])
    keys = _keys(rows, [*([order] if order in rows.source.columns else []), *map(composed, keep)])
    x = model.encoding.features(rows, client)
    predicted = fit.predict(client, x)
    decisions = fit.decide_at(client, predicted)
    require_feasible(client, member.set, decisions)
    frame = pd.DataFrame(decisions, columns=list(member.set.variables or about["costs"]))
    ranges = expected.at(known(x, predicted, decisions))
    todo = in_words(member.set, [str(name) for name in frame], member.maximize, decisions)
    decided = Decided(
        client, frame, ranges, expected, about["units"].get(client), member.maximize, order is not None, out, keys,
        member.set.variables is None, todo=todo, advice=advised_against(model, client),
    )  # fmt: skip
    return _written(decided)


def _written(decided: Decided) -> Decided:
    if decided.path is not None:
        write_whole(decided.path, lambda path: safe_csv(decided.table).to_csv(path, index=False))
    return decided


def _over_time(
    fit: Chosen, about: dict[str, Any], client: str, path: str | PathLike[str], out: Path | None, keep: Sequence[str],
    seen: Observed | None,
) -> Decided:  # fmt: skip
    """The decisions of a model of `chosen` over time, for the rows of a table whose costs are not known yet."""
    columns = Columns(Encoding.from_json(about["encoding"]).composed(), about["order"], about["costs"], fit.dates)
    source = open_source(Path(path))
    table = columns.table(source)
    rows = columns.rows(table, client)
    order = np.argsort(rows.times, kind="stable")
    open_rows = order[~rows.filled[order]]
    if not len(open_rows):
        raise ValueError(f"{source.name}: has no row to decide: the costs of all its rows are known; leave those cells empty")
    ahead = fit.ahead(client, rows, seen)
    member, state = fit.member(client), fit.ranges[client]
    require_feasible(client, member.set, ahead.decisions)
    frame = pd.DataFrame(ahead.decisions, columns=list(member.set.variables or about["costs"]))
    low, middle, high = (float(np.median(ahead.ranges[:, column])) for column in range(3))
    expected = CostRange(len(state.errors), low, middle, high, fit.share)
    keys = _keys(table.take(open_rows), [composed(about["order"]), *map(composed, keep)])
    todo = in_words(member.set, [str(name) for name in frame], member.maximize, ahead.decisions)
    return Decided(
        client, frame, ahead.ranges, expected, about["units"].get(client), member.maximize, True, out, keys,
        member.set.variables is None, fit.rules[client], todo,
    )  # fmt: skip


def are_decisions(path: Path, model: OwnModel, table: str | PathLike[str]) -> bool:
    """Whether a file is a table that `decide` may have written for such rows, by the columns in its first line.

    A file with one more column, such as a user's remarks, is not. All columns of ``table`` may have been kept.
    """
    with path.open("rb") as file:
        first = file.readline(1 << 20).decode(errors="replace")
    names = next(csv.reader([first]), [])
    others, ends, decided = names[: -len(EXPECTED)], names[-len(EXPECTED) :], set[str]()
    for member in model.fit.members.values():
        decided |= set(member.set.variables or (f"{DECISION}{name}" for name in model.about["costs"]))
    known = {*decided, *open_source(Path(table)).columns}
    written = {safe_cell(name) for name in {*known, *(f"_{name}" for name in known)}}
    are_ends = len(ends) == len(EXPECTED) and all(name in (end, f"_{end}") for name, end in zip(ends, EXPECTED, strict=True))
    return are_ends and bool(others) and written.issuperset(others)


def _plain(keys: pd.DataFrame) -> list[dict[str, str | None]]:
    """Cells as texts; None where one is empty."""
    return [{str(name): None if pd.isna(cell) else str(cell) for name, cell in row.items()} for row in keys.to_dict("records")]


def _keys(rows: Table, names: Sequence[str]) -> pd.DataFrame:
    """Some columns of the rows, as they are written."""
    require_columns(rows.source, names)
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return pd.DataFrame(index=range(len(rows)))
    return rows.source.load(wanted, wanted).iloc[rows.rows].reset_index(drop=True)


def require_feasible(client: str, s: FeasibleSet, decisions: np.ndarray) -> None:
    """Check decisions against the constraints themselves, without the solver that made them."""
    if not len(decisions):
        return
    program = s.program if isinstance(s, ProgramSet) else None
    if program is not None and decisions.shape[1] == program.lower.size:
        values = np.empty_like(decisions)
        values[:, program.shown] = decisions
        extent = max(1.0, float(np.abs(decisions).max()))
        excess = program.excess(values, extent)
    else:
        inside = np.asarray(s.contains(decisions[:, : s.dim], FEASIBLE))
        excess = np.where(inside, 0.0, np.inf)
    if (excess > FEASIBLE).any():
        row = int(np.argmax(excess > FEASIBLE))
        raise RuntimeError(f"client {client!r}: the decision for row {row} violates its constraints; please report this")

"""Decisions for new rows: with their names, checked, and with what such decisions have cost on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from dffl.files import write_whole
from dffl.own.model import OwnModel
from dffl.sets import FeasibleSet
from dffl.sets.program_set import ProgramSet

FEASIBLE = 1e-6
"""How far a decision may be outside of its constraints, relative to their size."""


@dataclass(frozen=True)
class Decided:
    """The decisions of one client, one row per row of the table."""

    client: str
    decisions: pd.DataFrame
    expected: dict[str, Any]
    """What decisions of this model cost, or earned, on held-out rows."""
    unit: str | None
    maximize: bool
    path: Path | None = None

    def show(self, console: Console) -> None:
        """Print the first decisions, the range, and where all of them are."""
        console.print(self.decisions.head(10).to_string(max_cols=12, float_format="{:.4g}".format))
        if len(self.decisions) > 10:
            console.print(f"... {len(self.decisions)} rows in all")
        console.print(f"\n{self.words}")
        if self.path is not None:
            console.print(f"Decisions: {self.path}", soft_wrap=True)

    @property
    def words(self) -> str:
        """What to expect, in words."""
        unit, one = f" {self.unit}" if self.unit else "", self.expected
        verb = "earned" if self.maximize else "cost"
        return (
            f"On {one['rows']} held-out rows the decisions of this model {verb} {one['low']:.4g} to {one['high']:.4g}{unit} "
            f"each (the middle 80 %; median {one['median']:.4g}{unit}). Predicted costs are no forecast: they are trained for "
            "decisions, so they are not shown."
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "client": self.client, "expected": self.expected, "unit": self.unit,
            "file": None if self.path is None else str(self.path), "decisions": self.decisions.to_dict("records"),
        }  # fmt: skip


def decide(model: OwnModel, client: str, table: str | PathLike[str], out: Path | None = None) -> Decided:
    """What a client decides at each row of a table; written to ``out``, completely or not at all."""
    member = model.fit._member(client)
    rows = model.encoding.table(table)
    x = model.encoding.features(rows, client)
    decisions = np.atleast_2d(model.fit.decide(client, x)) if len(x) else np.zeros((0, model.fit.dim))
    require_feasible(client, member.set, decisions)
    names = list(member.set.variables or model.about["costs"])
    frame = pd.DataFrame(decisions, columns=names)
    if out is not None:
        write_whole(out, lambda whole: frame.to_csv(whole, index=False))
    expected = model.about["ranges"].get(client)
    if expected is None:
        raise ValueError(f"client {client!r}: this model has no held-out rows of it, so nothing can be said of its costs")
    return Decided(client, frame, expected, model.about["units"].get(client), member.maximize, out)


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

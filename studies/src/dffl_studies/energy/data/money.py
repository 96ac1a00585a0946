"""The currency and the unit of prices: from the file or an option; several currencies become one by a table of rates."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.checks import first_true
from dffl.named import listed
from dffl_studies.energy.data.columns import MONEY
from dffl_studies.energy.data.panel import UNIT
from dffl_studies.energy.input_table import InputTable


class Money(NamedTuple):
    """What the user says of prices; what is left out is taken from the file."""

    currency: str | None = None
    """The currency of all prices; with ``rates``, the one that they are converted to."""
    unit: str | None = None
    rates: Path | None = None
    """A table with the columns currency and rate: what one unit of each currency is worth in ``currency``."""

    def of(self, rows: InputTable, notes: list[str]) -> tuple[np.ndarray | float, str, str]:
        """By what each price is multiplied, and the currency and unit that all prices have then."""
        written, units = (_texts(rows, name) for name in MONEY)
        unit = self._only(rows, units, self.unit, "unit", "write all prices for one unit") or UNIT
        if self.rates is None:
            fix = "give a table of rates (--rates FILE with the columns currency and rate, and --currency)"
            return 1.0, self._only(rows, written, self.currency, "currency", fix), unit
        if self.currency is None:
            raise ValueError("--rates requires --currency, the currency that prices are converted to")
        if written is None:
            raise ValueError(f"{rows.path}: must have a column 'currency' to convert by --rates, found none")
        known = _rates(self.rates) | {self.currency: 1.0}
        if (row := first_true(~pd.Series(written).isin(known).to_numpy())) is not None:
            raise ValueError(f"{rows.at(row)}: {self.rates} has no rate of {written[row]}; it has {listed(sorted(known))}")
        if converted := sorted(set(written) - {self.currency}):
            rates = ", ".join(f"1 {name} = {known[name]:g} {self.currency}" for name in converted)
            notes.append(f"{rows.path}: prices were converted ({rates})")
        return np.array([known[name] for name in written]), self.currency, unit

    @staticmethod
    def _only(rows: InputTable, written: np.ndarray | None, asked: str | None, name: str, fix: str) -> str:
        """The one text that all rows have, which must be the one that was asked for."""
        if written is None:
            return asked or ""
        first = asked or str(written[0])
        if (row := first_true(written != first)) is not None:
            before = f"--{name} is {first}" if asked else f"{rows.line(0)} has {first}"
            raise ValueError(f"{rows.at(row)}: {name} is {written[row]}, and {before}; {fix}")
        return first


AS_IN_FILE = Money()
"""The currency and unit that the file has."""


def _texts(rows: InputTable, name: str) -> np.ndarray | None:
    """The texts of a column; None where the table has no such column, or an empty one."""
    if name not in rows.table or rows.table[name].isna().all():
        return None
    values = rows.table[name]
    if (row := first_true(values.isna())) is not None:
        raise ValueError(f"{rows.at(row)}: {name} is missing, and other rows have it; write it in every row")
    texts = values.astype(str).str.strip()
    return (texts.str.upper() if name == MONEY[0] else texts).to_numpy(object)


def _rates(path: Path) -> dict[str, float]:
    rows = InputTable.read(path, ("currency",))
    rows.refuse_repeats()
    rates = rows.complete("rate")
    if (row := first_true(~(rates > 0))) is not None:
        raise ValueError(f"{rows.at(row)}: rate must be above 0, found {rates[row]:g}")
    return dict(zip(map(str, rows.keys), rates.tolist(), strict=True))

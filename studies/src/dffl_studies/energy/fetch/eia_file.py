"""One of EIA's price files: titles, a header, then one line per hour with one column per zone and component."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.checks import first_true
from dffl_studies.energy.fetch.fetched import Fetched, to_days
from dffl_studies.energy.fetch.places import PJM_CODES
from dffl_studies.energy.input_table import numbers_in

UTC = "UTC Timestamp"
LOCAL = "Local Timestamp"
TOTAL, CONGESTION, LOSS = " LMP", " (Congestion)", " (Loss)"
"""How the columns of prices end, after the zone's name."""
HOUR = pd.Timedelta(hours=1)


def parse_eia(path: Path) -> Fetched:
    """The prices in one of EIA's files, in the market's standard time all year, so that every day has 24 hours.

    The total is energy + congestion + loss, also for markets that subtract congestion. PJM's zones get PJM's short names, the
    others keep EIA's. An hour without a price has no row.
    """
    raw = _Raw.read(path)
    begin = raw.begin()
    date, hour = to_days(begin, _standard_offset(raw, begin))
    prices, notes = _prices(raw)
    zones = prices["total"].columns
    columns = {
        "zone": np.repeat([PJM_CODES.get(zone, zone) for zone in zones], len(begin)),
        "date": np.tile(date, len(zones)),
        "hour": np.tile(hour, len(zones)),
        **{name: sheet.to_numpy().ravel(order="F") for name, sheet in prices.items()},
    }
    return Fetched(pd.DataFrame(columns).dropna(subset="total").reset_index(drop=True), notes)


def _prices(raw: _Raw) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The total and, where they are known, its components: one row per hour, one column per zone."""
    total, congestion, loss = (raw.sheet(ending) for ending in (TOTAL, CONGESTION, LOSS))
    notes = []
    if sums := [name for name in total if str(name).endswith(" Total")]:
        notes.append(f"{raw.path.name}: {sums[0]} is the whole market and not a zone; left out")
        total = total.drop(columns=sums)
    if congestion.empty or loss.empty:
        notes.append(f"{raw.path.name}: has no components of the prices")
        return {"total": total}, notes
    congestion, loss = congestion.reindex(columns=total.columns), loss.reindex(columns=total.columns)
    # The price of energy is the same for all zones: the sign with the smaller differences between zones is the right one.
    if _spread(total - loss + congestion) < _spread(total - loss - congestion):
        notes.append(f"{raw.path.name}: the market subtracts congestion; its sign was changed, so that the components add up")
        congestion = 0.0 - congestion
    energy = (total - congestion - loss).round(6)
    return {"total": total, "energy": energy, "congestion": congestion, "loss": loss}, notes


def _spread(energy: pd.DataFrame) -> float:
    return float(energy.std(axis=1).sum())


def _standard_offset(raw: _Raw, begin: pd.Series) -> int:
    """Hours from UTC to the market's standard time: the smaller of the differences that its clock shows over the year."""
    ahead = (raw.times(LOCAL, "Beginning") - begin).dt.total_seconds() / 3600
    share = ahead.round().value_counts(normalize=True)
    return int(share.index[share >= 0.01].min())  # errors in one or two lines do not count


def _text(path: Path) -> str:
    """A file's text. Whether it is compressed is seen from its content, whatever its name is."""
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).decode("utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ValueError(f"{path}: the compressed file is cut short or damaged; download it again") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not a text file (byte {error.start}); download it again") from None


class _Raw(NamedTuple):
    """The cells of a file, under its header; the index is the line in the file."""

    path: Path
    cells: pd.DataFrame

    @classmethod
    def read(cls, path: Path) -> _Raw:
        """The file as text, each line as long as the header."""
        lines = csv.reader(io.StringIO(_text(path), newline=""))
        header = next(([name.strip() for name in row] for row in lines if row and row[0].startswith(UTC)), None)
        if header is None or not any(name.endswith(TOTAL) for name in header):
            raise ValueError(
                f"{path}: is not one of EIA's price files (no header with {UTC!r} and '<zone>{TOTAL}'); "
                "take it from www.eia.gov/electricity/wholesalemarkets"
            )
        if len(set(header)) < len(header):
            raise ValueError(f"{path}, line {lines.line_num}: two columns have the same name; download the file again")
        numbers, rows = [], []
        for row in filter(any, lines):
            if len(row) != len(header):
                raise ValueError(
                    f"{path}, line {lines.line_num}: must have {len(header)} cells, found {len(row)}; download the file again"
                )
            numbers.append(lines.line_num)
            rows.append([cell.strip() for cell in row])
        if not rows:
            raise ValueError(f"{path}: has no line under its header; download the file again")
        return cls(path, pd.DataFrame(rows, columns=header, index=numbers, dtype=object))

    def begin(self) -> pd.Series:
        """When each line's hour begins, UTC."""
        ending = self.times(UTC, "Ending")
        if (at := first_true(ending != ending.dt.floor("h"))) is not None:
            raise ValueError(f"{self._line(at)}: {ending.iloc[at]} is not on the hour; take the market's hourly file")
        if (at := first_true(ending.duplicated())) is not None:
            before = ending.index[ending == ending.iloc[at]][0]
            raise ValueError(
                f"{self._line(at)}: every zone has the hour that ends at {ending.iloc[at]} UTC already, in line {before}; "
                "remove one of the two lines"
            )
        return ending - HOUR

    def times(self, begins: str, contains: str) -> pd.Series:
        """The times in the first column of such a name."""
        name = next((str(name) for name in self.cells if str(name).startswith(begins) and contains in str(name)), None)
        if name is None:
            raise ValueError(f"{self.path}: must have a column '{begins} ... ({contains})'; download the file again")
        moments = pd.to_datetime(self.cells[name], format="ISO8601", errors="coerce")
        if (at := first_true(moments.isna())) is not None:
            raise ValueError(
                f"{self._line(at)}: {name} must be a time like 2025-01-31 05:00:00, found {self.cells[name].iloc[at]!r}; "
                "correct it, or download the file again"
            )
        return moments

    def sheet(self, ending: str) -> pd.DataFrame:
        """The prices in the columns of such an ending, named by their zones. A price may be missing, but not be a text."""
        columns = {}
        for name in map(str, self.cells):
            if name.endswith(ending):
                columns[name.removesuffix(ending).strip()], at = numbers_in(self.cells[name])
                if at is not None:
                    time = self.times(LOCAL, "Beginning").iloc[at]
                    raise ValueError(
                        f"{self._line(at)}: {name} at {time} must be a number, found {self.cells[name].iloc[at]!r}; "
                        "correct it, or leave the cell empty"
                    )
        return pd.DataFrame(columns)

    def _line(self, at: int) -> str:
        return f"{self.path}, line {self.cells.index[at]}"

"""The panel: one row per zone and day, with the prices of its periods and what was known of the day beforehand.

A day has any number of periods, 24 or 96 for example: hours, or quarter hours. Every period that is bought is one unit (MWh) of
energy, so that the same demand costs as much whatever the periods are.

A price is the sum of the mean over the zones of that hour, the *market part*, and of the rest, the zone's *own part*. The
paper calls the own part congestion; a market's own congestion component is another thing, and the panel does not use it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.cells import safe_csv
from dffl.files import require_target, write_whole
from dffl.named import listed

SUNDAY, SMALL_HOURS = 6, 4
FORWARD, BACK = (3, 4, 9, 10), (4, 9, 10, 11)


def weekday(dates: np.ndarray) -> np.ndarray:
    """0 for a Monday to 6 for a Sunday."""
    return (dates.astype("datetime64[D]").astype(int) + 3) % 7  # 1970-01-01 was a Thursday


def may_change(dates: np.ndarray, months_of: tuple[int, ...]) -> np.ndarray:
    """Whether clocks may change on these days, in one of these months."""
    months = dates.astype("datetime64[M]").astype(int) % 12 + 1
    return np.asarray((weekday(dates) == SUNDAY) & np.isin(months, months_of))


def is_skipped_hour(date: np.datetime64, missing: np.ndarray) -> bool:
    """Whether these missing periods of a day (a mask) are the hour that clocks leave out."""
    places, hour = np.flatnonzero(missing), len(missing) // 24
    together = len(places) == hour > 0 and len(missing) % 24 == 0 and places[-1] - places[0] == hour - 1
    return bool(together and places[-1] < SMALL_HOURS * hour and may_change(np.array([date]), FORWARD)[0])


def filled(day: np.ndarray) -> np.ndarray:
    """A day whose missing periods are interpolated, from periods of the same day alone.

    A period of the next day is not known when yesterday's prices are used.
    """
    there = np.flatnonzero(~np.isnan(day))
    return np.interp(np.arange(len(day)), there, day[there])


HOURS = 24
"""The periods of a day of hours."""
UNIT = "MWh"
COSTS = ("total", "total+own")
"""The cost of an hour: the price, or (as in the code of the paper's authors) the price plus its own part once more."""


@dataclass(frozen=True, eq=False)
class Panel:
    """Zones and their days. Rows are in order of zone and date."""

    source: str
    """The file that it comes from, for messages."""
    names: tuple[str, ...]
    starts: np.ndarray
    """Where each zone's rows start, and where the last one's end."""
    dates: np.ndarray
    prices: np.ndarray
    covariates: np.ndarray
    covariate_names: tuple[str, ...]
    demands: np.ndarray
    """The number of periods that each zone buys per day."""
    places: np.ndarray
    """Latitude and longitude of each zone, NaN where they are unknown."""
    demand_known: bool = True
    """Whether the file has the demands; else they are random."""
    currency: str = ""
    """What prices are in, such as EUR; empty: unknown."""
    unit: str = UNIT
    """What a price is for."""
    forecast: np.ndarray | None = None
    """A forecast of the prices that was published before each day."""
    notes: tuple[str, ...] = ()
    """What was noticed and changed while the panel was read."""

    def __repr__(self) -> str:
        return f"Panel({len(self.names)} zones, {len(self.days)} days, {len(self.covariate_names)} covariates)"

    @property
    def periods(self) -> int:
        """The number of periods of a day."""
        return int(self.prices.shape[1])

    @property
    def money(self) -> str:
        """The name of an amount of money: the currency, where it is known."""
        return self.currency or "(currency not named)"

    @property
    def demand_from(self) -> str:
        """Where the demands come from."""
        return "the panel" if self.demand_known else "drawn at random by the zone's name"

    @cached_property
    def zones(self) -> dict[str, slice]:
        """The rows of each zone."""
        return {name: slice(*ends) for name, ends in zip(self.names, pairwise(self.starts.tolist()), strict=True)}

    def rows(self, zone: str) -> slice:
        """The rows of one zone."""
        if zone not in self.zones:
            raise ValueError(f"{self.source}: there is no zone {zone!r}; it has {listed(self.names)}")
        return self.zones[zone]

    @cached_property
    def days(self) -> np.ndarray:
        """All days on which any zone has prices, in order."""
        return np.unique(self.dates)

    @cached_property
    def market(self) -> np.ndarray:
        """The market part of each row's prices: the mean over the zones that have that day."""
        number = np.searchsorted(self.days, self.dates)
        sums = np.zeros((len(self.days), self.periods))
        np.add.at(sums, number, self.prices)
        return (sums / np.bincount(number, minlength=len(self.days))[:, None])[number]

    @property
    def own(self) -> np.ndarray:
        """The own part of each row's prices: what the zone pays above the mean over zones."""
        return self.prices - self.market

    def costs(self, kind: str = "total") -> np.ndarray:
        """What each hour costs: ``total``, the price; or ``total+own``, the authors' price plus own part."""
        check_cost(kind)
        return self.prices if kind == "total" else self.prices + self.own

    def noted(self, notes: Iterable[str]) -> Panel:
        """The same panel with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def frame(self) -> pd.DataFrame:
        """The panel as a table: zone, date, price_0, price_1, ..., forecasts, covariates, money, demand, lat and lon."""
        counts = np.diff(self.starts)
        columns: dict[str, np.ndarray] = {
            "zone": np.repeat(np.array(self.names, object), counts),
            "date": np.datetime_as_string(self.dates, unit="D").astype(object),
        }
        columns |= {f"price_{period}": self.prices[:, period] for period in range(self.periods)}
        if self.forecast is not None:
            columns |= {f"forecast_{period}": self.forecast[:, period] for period in range(self.periods)}
        columns |= {name: self.covariates[:, place] for place, name in enumerate(self.covariate_names)}
        if self.currency:
            columns |= {"currency": np.full(len(self.dates), self.currency, object)}
            columns |= {"unit": np.full(len(self.dates), self.unit, object)}
        if self.demand_known:
            columns["demand"] = np.repeat(self.demands, counts)
        if np.isfinite(self.places).any():
            columns |= {name: np.repeat(self.places[:, place], counts) for place, name in enumerate(("lat", "lon"))}
        return pd.DataFrame(columns)

    def write(self, path: str | Path) -> None:
        """Write the panel as CSV (also .gz) or Parquet, whole or not at all."""
        path = Path(path)
        check_target(path, name="the path of a panel")
        frame = self.frame()
        if path.suffix == ".parquet":
            write_whole(path, lambda where: frame.to_parquet(where, index=False))
        else:
            write_whole(path, lambda where: _write_csv(frame, where, packed=path.suffix == ".gz"))


def check_cost(kind: str) -> None:
    """Refuse an unknown kind of cost."""
    if kind not in COSTS:
        raise ValueError(f"cost must be one of {', '.join(COSTS)}, found {kind!r}")


def _write_csv(frame: pd.DataFrame, path: Path, packed: bool) -> None:
    # An archive holds no file name and no time, so that the same panel gives the same bytes.
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) if packed else nullcontext(file) as target:
        safe_csv(frame).to_csv(target, index=False, lineterminator="\n")


ENDINGS = (".csv", ".csv.gz", ".parquet")


def check_target(path: Path, inputs: Iterable[Path] = (), name: str = "--out") -> None:
    """Refuse, before any work, a file that a panel could not be written to, or that is read."""
    if not str(path).endswith(ENDINGS):
        raise ValueError(f"{path}: a panel must end in {', '.join(ENDINGS)}")
    require_target(path, name, inputs)

"""How columns of a table become features: texts become 0/1 columns, dates become a calendar, empty cells follow a rule.

The kind of a column at a site is the kind of more than half of its filled cells in training rows. It must be the same at all
sites, unless the column is listed under ``categories``; `dffl.tables.kinds` refuses differences.

- **number**: used as it is; true and false are 1 and 0.
- **date** (2021-01-31, with or without a time): the day of the year as a sine and a cosine, seven 0/1 columns for the
  weekday and, if some training row has a time of day, the hour as a sine and a cosine. The clock is used as it is written.
- **category**: texts; one 0/1 column for each text that occurs in training rows or is listed. A text that was not seen has
  0 in all of them, and a warning says so. Columns listed under ``categories`` are always of this kind.

Empty cells: ``refuse`` and ``drop`` leave none in training, and refuse them when a decision is asked for. ``mean`` fills a
number, or the calendar of a date, with the site's mean over its training rows, and a category with 0 in all its columns. A
column that has empty cells in training rows of some site gets one more 0/1 column for them.

The columns of a forecast of the costs are numbers and are never filled. They are last, in the order of the costs. Before
them are the columns of items: item after item, each with its features that never change.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from dffl.cells import DECIMAL_COMMA, MOMENT, NUMBER, composed, dates_of, missing_in, numbers_of, text_of, texts_of
from dffl.checks import first_true
from dffl.federation import LARGEST
from dffl.items import combined
from dffl.named import listed
from dffl.tables.kinds import MOST_SIZES, ODD, measured, odd_form, year_first
from dffl.tables.sources import UNPRINTABLE, FrameSource, Table, load, open_source, require_columns

Kind = Literal["number", "date", "category"]
Missing = Literal["refuse", "mean", "drop"]
MISSING: tuple[Missing, ...] = ("refuse", "mean", "drop")
MOST_CATEGORIES = 100
"""With more different texts than this, a column holds names or dates in another form, unless the texts are listed."""
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
YEAR_DAYS = 365.25
VERSION = 1


@dataclass(frozen=True)
class Column:
    """A column of the tables and what it becomes. It is the same at all sites."""

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    time: bool = False
    """Whether a date has a time of day."""
    flagged: bool = False
    """Whether one more 0/1 column marks empty cells."""
    forecast: bool = False
    """Whether it is a forecast of a cost: a number that is never filled."""
    item: bool = False
    """Whether it is a feature of an item: a number that is never filled. These columns are ordered item after item."""

    @property
    def feature_names(self) -> list[str]:
        """The names of the features that it becomes."""
        return [*self._own, *([f"{self.name} missing"] if self.flagged else [])]

    @property
    def _own(self) -> list[str]:
        if self.kind == "number":
            return [self.name]
        if self.kind == "category":
            return [f"{self.name}={text}" for text in self.categories]
        parts = ["year sin", "year cos", *WEEKDAYS, *(["hour sin", "hour cos"] if self.time else [])]
        return [f"{self.name} {part}" for part in parts]

    def encoded(self, cells: pd.Series) -> np.ndarray:
        """The features (n, width), without the column that marks empty cells. Empty numbers and dates are NaN."""
        if self.kind == "number":
            return np.array(numbers_of(cells))[:, None]  # a copy: fill values must not reach the table
        if self.kind == "date":
            return _calendar(dates_of(cells), self.time)
        place = {text: number for number, text in enumerate(self.categories)}
        codes = np.array([place.get(text, -1) for text in texts_of(cells)], int)
        return np.asarray(codes[:, None] == np.arange(len(self.categories)), float)

    def empty(self, cells: pd.Series) -> np.ndarray:
        """Which cells are empty."""
        return missing_in(cells, self.categories)


@dataclass(frozen=True)
class Encoding:
    """Columns, the rule for empty cells, and each site's fill values. It is saved in a model, as JSON."""

    columns: tuple[Column, ...]
    missing: Missing = "refuse"
    fills: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    """For each client and column: the values of its features if a cell is empty."""
    known: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """For each feature of items that never changes: its value for each cost. They follow the columns of each item."""

    @property
    def names(self) -> list[str]:
        """The columns that a table must have."""
        return [column.name for column in self.columns]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, in their order."""
        names = [name for column in self.columns for name in column.feature_names]
        if not self.known:
            return tuple(names)
        dim, place = len(next(iter(self.known.values()))), self._items
        inserted = np.array(names[place], dtype=object).reshape(dim, -1)
        more = np.array([[f"{name} of item {number}" for name in self.known] for number in range(dim)], dtype=object)
        return (*names[: place.start], *np.hstack([inserted, more]).ravel(), *names[place.stop :])

    def item_features(self, dim: int) -> int:
        """The number of features of each of the ``dim`` items."""
        return sum(column.item for column in self.columns) // dim + len(self.known)

    @property
    def _items(self) -> slice:
        """The positions of the columns of items among the features, without the features that never change."""
        counts = [len(column.feature_names) for column in self.columns if not column.item and not column.forecast]
        return slice(sum(counts), sum(counts) + sum(column.item for column in self.columns))

    def table(self, path: str | PathLike[str], others: Sequence[str] = ()) -> Table:
        """The rows of a CSV or Parquet file with the columns that are needed; ``others`` are read too if they are there."""
        listed_texts = [column.name for column in self.columns if column.kind == "category"]
        source = open_source(Path(path))
        require_columns(source, self.names, others)
        return load(source, self.names, listed_texts)

    def features(self, frame: Table | pd.DataFrame, client: str) -> np.ndarray:
        """The features (n, p) of a client's rows. A missing or wrong column or cell is refused with its place.

        Warns of texts that are not a known category; `unseen` counts them.
        """
        table = frame if isinstance(frame, Table) else _of_frame(frame, self.names)
        for name, counts in self.unseen(table).items():
            count, sample = sum(counts.values()), next(iter(counts))
            what = f"{count} cells hold texts that training never saw, such as {sample!r}; all their features are 0"
            warnings.warn(f"{table.source.name}, column {name!r}: {what}", stacklevel=2)
        return self.encode(table, client)

    def unseen(self, frame: Table | pd.DataFrame) -> dict[str, dict[str, int]]:
        """For each column: the texts that are not a known category, with their numbers."""
        table = frame if isinstance(frame, Table) else _of_frame(frame, self.names)
        unseen: dict[str, dict[str, int]] = {}
        for column in self.columns:
            if column.kind == "category":
                cells = table.frame[column.name]
                texts, counts = np.unique(texts_of(cells)[~column.empty(cells)].astype(str), return_counts=True)
                new = {
                    str(text): int(count) for text, count in zip(texts, counts, strict=True) if text not in column.categories
                }
                unseen |= {column.name: new} if new else {}
        return unseen

    def encode(self, table: Table, client: str) -> np.ndarray:
        """As `features`, without a warning."""
        blocks = []
        for column in self.columns:
            cells = table.frame[column.name]
            empty = column.empty(cells)
            never_filled = column.forecast or column.item
            if (self.missing != "mean" or never_filled) and (row := first_true(empty)) is not None:
                what = "the forecast is missing" if column.forecast else "is empty"
                raise ValueError(f"{table.at(row, column.name)}: {what}; fill it")
            require_kind(table, column.name, column.kind, empty)
            block = column.encoded(cells)
            if empty.any():
                block[empty] = self._fill(column, client, block.shape[1])
            blocks += [block, empty[:, None].astype(float)] if column.flagged else [block]
        x = np.concatenate(blocks, axis=1) if blocks else np.zeros((len(table), 0))
        return self._with_known(x) if self.known else x

    def _with_known(self, x: np.ndarray) -> np.ndarray:
        known, place = np.stack([np.asarray(values) for values in self.known.values()], axis=1), self._items
        items = x[:, place].reshape(len(x), len(known), -1) if place.start < place.stop else None
        features = combined("", items, known, (len(x),), len(known)).reshape(len(x), -1)
        return np.hstack([x[:, : place.start], features, x[:, place.stop :]])

    def _fill(self, column: Column, client: str, width: int) -> np.ndarray:
        if column.kind == "category":
            return np.zeros(width)
        client_fills = self.fills.get(client)
        if client_fills is None or column.name not in client_fills:
            raise ValueError(f"no fill value for column {column.name!r} of client {client!r}; it took no part in training")
        return np.asarray(client_fills[column.name], float)

    def with_fills(self, tables: Mapping[str, Table]) -> Encoding:
        """The encoding with fill values of sites, from their training rows."""
        if self.missing != "mean":
            return self
        fills = {}
        for client, table in tables.items():
            filled = [
                column for column in self.columns if column.kind != "category" and not column.forecast and not column.item
            ]
            fills[client] = {column.name: _means(column, table) for column in filled}
        return replace(self, fills={**self.fills, **fills})

    def only(self, client: str) -> Encoding:
        """The encoding with the fill values of one site only: what is sent to that site."""
        return replace(self, fills={client: self.fills[client]} if client in self.fills else {})

    def composed(self) -> Encoding:
        """The encoding for tables with composed Unicode characters: models of 0.2.0 keep texts as their tables had them."""
        columns = []
        for column in self.columns:
            texts = tuple(map(composed, column.categories))
            same = column.categories if len(set(texts)) < len(texts) else texts  # two names that only look equal stay two names
            columns.append(replace(column, name=composed(column.name), categories=same))
        fills = {
            client: {composed(name): values for name, values in client_fills.items()}
            for client, client_fills in self.fills.items()
        }
        return replace(self, columns=tuple(columns), fills=fills)

    def as_json(self) -> dict[str, Any]:
        """Plain values, to be saved with a fit."""
        columns = []
        for column in self.columns:
            entry: dict[str, Any] = {"name": column.name, "kind": column.kind}
            entry |= {"categories": list(column.categories)} if column.kind == "category" else {}
            entry |= {"time": column.time} if column.kind == "date" else {}
            entry |= {"forecast": True} if column.forecast else {}
            entry |= {"item": True} if column.item else {}
            columns.append(entry | {"flagged": column.flagged})
        fills = {
            client: {name: list(values) for name, values in client_fills.items()} for client, client_fills in self.fills.items()
        }
        known = {"known": {name: list(values) for name, values in self.known.items()}} if self.known else {}
        return {"version": VERSION, "missing": self.missing, "columns": columns, "fills": fills} | known

    @classmethod
    def from_json(cls, value: Any) -> Encoding:
        """The encoding that `as_json` described. Other values raise a ValueError."""
        try:
            if value["version"] != VERSION:
                raise ValueError(
                    f"encoding: version must be {VERSION}, found {value['version']!r:.40}; train again with this version"
                )
            columns = tuple(_column(entry) for entry in value["columns"])
            fills = {
                str(client): {str(name): tuple(map(float, numbers)) for name, numbers in client_fills.items()}
                for client, client_fills in value["fills"].items()
            }
            if value["missing"] not in MISSING or len({column.name for column in columns}) < len(columns):
                raise ValueError("encoding: missing must be refuse, mean or drop, and names of columns must differ")
            known = {str(name): tuple(map(float, numbers)) for name, numbers in value.get("known", {}).items()}
            items, sizes = sum(column.item for column in columns), {len(values) for values in known.values()}
            if len(sizes) > 1 or 0 in sizes or (sizes and items % max(sizes)):
                raise ValueError("encoding: features of items must have one value for each cost")
            return cls(columns, value["missing"], fills, known)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"encoding: is damaged ({error!r:.80})") from None


def _column(entry: Mapping[str, Any]) -> Column:
    kind, categories = entry["kind"], entry.get("categories", [])
    if kind not in ("number", "date", "category") or not isinstance(entry["name"], str):
        raise ValueError(f"encoding: kind must be number, date or category, found {kind!r:.40}")
    if not isinstance(categories, list) or not all(isinstance(text, str) for text in categories):
        raise ValueError(f"encoding: categories must be a list of texts, found {categories!r:.40}")
    forecast = bool(entry.get("forecast", False))
    return Column(
        entry["name"],
        kind,
        tuple(categories),
        bool(entry.get("time", False)),
        bool(entry["flagged"]),
        forecast,
        bool(entry.get("item", False)),
    )


def summary(cells: pd.Series, known: Sequence[Any] = ()) -> dict[str, Any]:
    """What a site reports of one of its columns, so that sites can agree on an encoding: counts and texts, no rows.

    ``known`` are the categories, if they are listed.
    """
    empty = missing_in(cells, [text_of(value) for value in known])
    numbers, dates = numbers_of(cells), dates_of(cells)
    is_number, is_date = ~np.isnan(numbers) & ~empty, ~np.isnat(dates) & ~empty
    is_text = ~(empty | is_number | is_date)
    counts = {"numbers": is_number, "dates": is_date, "texts": is_text, "missing": empty}
    facts: dict[str, Any] = {name: int(mask.sum()) for name, mask in counts.items()}
    facts["time"] = bool((dates[is_date] != dates[is_date].astype("datetime64[D]")).any())
    filled = len(cells) - facts["missing"]
    majority: Kind = "number" if 2 * facts["numbers"] > filled else "date" if 2 * facts["dates"] > filled else "category"
    facts["kind"] = majority if filled else None
    if facts["kind"] != "category":
        return facts | {"categories": []}
    texts = sorted(set(texts_of(cells)[~empty].tolist()))
    odd = [text for text in texts if odd_form(text)]
    plain = sum(bool(NUMBER.fullmatch(text) or MOMENT.fullmatch(text)) for text in texts)
    facts["odd"] = odd[0] if odd and 2 * (len(odd) + plain) > len(texts) else None
    return facts | {"categories": texts[: MOST_CATEGORIES + 1]}


def agreed(name: str, summaries: Iterable[Mapping[str, Any]], listed_texts: Sequence[Any] | None = None) -> Column:
    """The column that follows from the reports of all sites, and from the categories if they are listed."""
    told = list(summaries)
    flagged = any(site["missing"] for site in told)
    if listed_texts is not None:
        return Column(name, "category", tuple(text_of(value) for value in listed_texts), flagged=flagged)
    kinds = {site["kind"] for site in told} - {None}
    if not kinds:
        raise ValueError("has no filled cell in any training row; leave it out of the features")
    if len(kinds) > 1:
        raise ValueError(f"must hold one kind of cells at all sites, found {' and '.join(sorted(kinds))}")
    if kinds == {"number"}:
        return Column(name, "number", flagged=flagged)
    if kinds == {"date"}:
        return Column(name, "date", time=any(site["time"] for site in told), flagged=flagged)
    texts = sorted({text for site in told for text in site["categories"]})
    fix = "or list the texts under federation.categories"
    if odd := next((site["odd"] for site in told if site.get("odd")), None):
        form = odd_form(odd)
        raise ValueError(f"must be {form}s or texts, found {odd!r:.60}; {ODD[str(form)]}, {fix}")
    if sample := measured(texts):
        raise ValueError(
            f"has more than {MOST_SIZES} different numbers with a unit, such as {sample!r:.60}; {ODD['unit']}, {fix}"
        )
    if len(texts) > MOST_CATEGORIES:
        fix = "leave it out, write dates as 2021-01-31, or list the texts under federation.categories"
        raise ValueError(
            f"has more than {MOST_CATEGORIES} different texts, such as {texts[0]!r}, too many for categories; {fix}"
        )
    if wrong := [text for text in texts if not text.isprintable()]:
        raise ValueError(f"the text {wrong[0]!r} {UNPRINTABLE}")
    return Column(name, "category", tuple(texts), flagged=flagged)


def require_kind(table: Table, column: str, kind: Kind, empty: np.ndarray, dated: bool = False) -> None:
    """Refuse the first filled cell that is not a date, or not a finite number of usual size; the message names its line.

    ``dated`` says that a column of numbers may also hold dates, as the column of an order may.
    """
    if kind == "category":
        return
    cells = table.frame[column]
    right = np.abs(numbers_of(cells)) <= LARGEST if kind == "number" else ~np.isnat(dates_of(cells))
    wrong = np.flatnonzero(~(right | empty))
    if len(wrong):
        text = table.cell(int(wrong[0]), column)
        in_other_form = odd_form(text) == "date"
        wanted = "a finite number" if kind == "number" else "a date such as 2021-01-31 or 2021-01-31 13:00"
        if kind == "number" and np.isfinite(numbers_of(cells)[wrong[0]]):
            wanted = f"at most {LARGEST:g} in size"
        elif dated and kind == "number" and (in_other_form or len(wrong) == len(cells) - empty.sum()):
            wanted = "a date such as 2021-01-31, or a number"
        fix = "; write decimals with a point" if DECIMAL_COMMA.fullmatch(text) else ""
        fix = f"; {year_first(text)}" if in_other_form and (dated or kind == "date") else fix
        more = f" (and {len(wrong) - 1} more such cells in this column)" if len(wrong) > 1 else ""
        raise ValueError(f"{table.at(int(wrong[0]), column)}: must be {wanted}, found {text!r:.60}{fix}{more}")


def _of_frame(frame: pd.DataFrame, names: Sequence[str]) -> Table:
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"features are made of a data frame or a table, found {type(frame).__name__}")
    source = FrameSource(frame)
    lacking = [name for name in names if name not in source.columns]
    if lacking:
        raise ValueError(
            f"the data frame lacks the columns {listed(map(repr, lacking), 8)}; it has {listed(source.columns, 12)}"
        )
    return Table(source, source.load(names), np.arange(len(frame)))


def _means(column: Column, table: Table) -> tuple[float, ...]:
    cells = table.frame[column.name]
    filled = ~column.empty(cells)
    if not filled.any():
        what = f"column {column.name!r} has no filled cell in the training rows, so that it has no mean"
        raise ValueError(f"{table.source.name}: {what}; leave the column out of the features")
    return tuple(column.encoded(cells)[filled].mean(axis=0).tolist())


def _calendar(moments: np.ndarray, time: bool) -> np.ndarray:
    """The calendar features of moments; NaN for empty cells."""
    none = np.isnat(moments)
    known = np.where(none, np.datetime64(0, "s"), moments)
    days = known.astype("datetime64[D]")
    year = 2 * np.pi * (days - days.astype("datetime64[Y]")).astype(float) / YEAR_DAYS
    weekday = (days.astype(np.int64) + 3) % 7  # the first day of 1970 was a Thursday
    parts = [np.sin(year), np.cos(year), *(weekday == number for number in range(7))]
    if time:
        hour = 2 * np.pi * (known - days).astype(float) / 86400
        parts += [np.sin(hour), np.cos(hour)]
    features = np.stack(parts, axis=1).astype(float)
    features[none] = np.nan
    return features

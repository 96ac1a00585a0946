"""Which columns of the tables are used: by name or by patterns with stars, the same names in every table, in one order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from dffl.cells import texts_of
from dffl.checks import first_true
from dffl.forecasts import chosen, is_pattern, paired
from dffl.named import listed
from dffl.sets._matching import under_star
from dffl.tables.binary_sources import DuckdbSource, SqliteSource
from dffl.tables.items import ItemColumns
from dffl.tables.keys import Problems, named_at
from dffl.tables.plan import Plan
from dffl.tables.sources import UNPRINTABLE, Source, Table, load, open_source, require_columns, require_file

SIGNS = frozenset("*?[")


def has_stars(text: str) -> bool:
    """Whether a text is a pattern that may match several names."""
    return bool(SIGNS & set(text))


def matching(patterns: str | Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that patterns match: in the order of the patterns, and within one pattern in natural order of the names.

    The result does not depend on the order of the columns in a file. If a name is itself a column, it means this column,
    also if it contains a star. A name that matches nothing stays in the list, so that a later check can name it.
    """
    known, names = set(columns), []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if pattern in known or not has_stars(pattern):
            names.append(pattern)
        else:
            names += sorted((name for name in known if fnmatchcase(name, pattern)), key=natural)
    return list(dict.fromkeys(names))


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """A key for sorting in which price_2 comes before price_10."""
    parts = re.split(r"0*([0-9]+)", name)  # texts and numbers alternate; a number with more digits is larger
    return [(len(part), part) if number % 2 else (0, part) for number, part in enumerate(parts)], name


class SameColumns:
    """The names of features or of costs. The first table sets them, and all other tables must have the same."""

    def __init__(self, field: str, patterns: Sequence[str]):
        self.field, self.patterns = field, patterns
        self.names: list[str] = []
        self._like = ""

    @property
    def if_plain(self) -> list[str]:
        """The names, if they are known without reading a table."""
        return [] if any(has_stars(pattern) for pattern in self.patterns) else list(dict.fromkeys(self.patterns))

    def of(self, source: Source, taken: Sequence[str], elsewhere: Sequence[str] = ()) -> list[str]:
        """The names in this table; they must be those of the first table.

        A pattern does not match columns in ``taken``. Columns in ``elsewhere`` may match and are left out: the columns of a
        forecast may be listed as features too.
        """
        names = [name for name in matching(self.patterns, source.columns) if name in self.patterns or name not in taken]
        if not self.names:
            for pattern in self.patterns:
                if has_stars(pattern) and not set(matching([pattern], source.columns)) & set(names):
                    has = f"it has {listed(source.columns, 12)}"
                    raise ValueError(f"{source.name}: no column fits {pattern!r} of federation.{self.field}; {has}")
            require_columns(source, names)
            self.names, self._like = [name for name in names if name not in elsewhere], source.name
        other = [name for name in names if name not in self.names and name not in elsewhere]
        if lacking := [name for name in self.names if name not in source.columns]:
            instead = f", and has {shown(other)} instead" if other else ""
            what = f"lacks {shown(lacking)} of federation.{self.field}, which {self._like} has{instead}"
            raise ValueError(f"{source.name}: {what}; the names must be the same at all clients")
        if other:
            what = f"has {shown(other)} of federation.{self.field}, which {self._like} lacks"
            raise ValueError(f"{source.name}: {what}; the names must be the same at all clients")
        return self.names


def odd_costs(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Columns that a pattern takes beside those with numbers in its place: price_mean, or price_forecast_1 beside price_1."""
    if len(patterns) != 1 or patterns[0].count("*") != 1 or patterns[0] in names:
        return []
    under = [re.sub(r"\d+(?:[:.]\d+)*", "0", str(under_star(patterns[0], name))) for name in names]
    usual = min((form for form in under if "0" in form), key=lambda form: (len(form), form), default=None)
    if usual is None or 2 * under.count(usual) < len(names):
        return []
    return [name for name, form in zip(names, under, strict=True) if "0" not in form or (usual in form and form != usual)]


def shown(names: Iterable[str]) -> str:
    """Names of columns for a message."""
    return listed(map(repr, names), 8)


READERS: Mapping[str, Callable[[Path, str], Source]] = {"sqlite": SqliteSource, "duckdb": DuckdbSource}
MOST_PAIRS = 6
"""A note shows at most this number of pairs of a forecast and a cost: those of a day."""


class TableReader:
    """Opens the tables of a plan. Features, costs and forecast have the same names in all of them."""

    def __init__(self, plan: Plan, problems: Problems, notes: list[str]):
        self.plan, self.problems, self.notes = plan, problems, notes
        self.costs = SameColumns("costs", plan.costs)
        self.features = SameColumns("features", plan.features)
        self.forecast: list[str] = []
        """The columns of the forecast, in the order of the costs."""
        self.items = ItemColumns(str(plan.path), plan.item_features)

    def table(self, file: Any, where: str) -> Table | None:
        """The table with the columns that are needed. The names must be the same in all tables."""
        plan, before = self.plan, len(self.problems)
        source = self._source(file, where)
        more = [name for name in (plan.order, plan.client_column, plan.unit_column, *plan.key) if name is not None]
        more = list(dict.fromkeys(more))
        costs: list[str] = []
        features: list[str] = []
        last: list[str] = []
        forecast: list[str] = []
        items: dict[str, list[str]] = {}
        with self.problems.catching():
            require_columns(source, more)
        with self.problems.catching():
            forecast = self._forecast_of(source, more)
            items = self.items.of(source, [*more, *forecast])
            for names in items.values():
                self._refuse_costs("items.features", source, names)
        with self.problems.catching():
            others = [name for item_names in items.values() for name in item_names if name not in self.plan.costs]
            first = not self.costs.names
            costs = self.costs.of(source, [*more, *forecast, *others])
            if first and (odd := odd_costs(self.plan.costs, costs)):
                usual = next(name for name in costs if name not in odd)
                what = f"{self.plan.costs[0]!r} also takes {shown(odd)}, beside {usual!r} and others like it"
                fix = "is that a decision too? If not, rename it, or list the costs"
                self.notes.append(f"{source.name}: federation.costs: {what}; {fix}")
            forecast = self._in_cost_order(source, forecast, costs)
            last = [*self.items.in_cost_order(source, items, costs), *forecast]
        with self.problems.catching():
            features = self.features.of(source, [*more, *costs], elsewhere=last)
            if both := [name for name in features if name in costs]:
                what = f"{shown(both)} is among the costs, too; costs are not known beforehand"
                raise ValueError(f"{plan.path}: federation.features: {what}")
        if len(self.problems) > before or not costs or not (features or last or plan.known):
            return None
        texts = [name for name in (plan.client_column, plan.unit_column, *plan.categories) if name in {*features, *more}]
        return load(source, [*features, *last, *costs, *more], texts)

    def _forecast_of(self, source: Source, taken: Sequence[str]) -> list[str]:
        """The columns of the forecast. A pattern for the costs does not match them."""
        if not self.plan.forecast:
            return []
        names = chosen(self._forecast_in(source), self.plan.forecast, [name for name in source.columns if name not in taken])
        self._refuse_costs("federation.forecast", source, names)
        return names

    def _refuse_costs(self, key: str, source: Source, names: Sequence[str]) -> None:
        """Refuse cost columns among the columns that are known before the decision."""
        costs = matching(self.plan.costs, source.columns)
        both = [name for name in costs if name in names]
        if both and (len(both) == len(costs) or set(both) & set(self.plan.costs)):
            what = f"{shown(both)} is among the costs, too; costs are not known beforehand"
            raise ValueError(f"{self.plan.path}: {key}: {what}")

    def _in_cost_order(self, source: Source, matched: Sequence[str], costs: Sequence[str]) -> list[str]:
        if not matched:
            return []
        patterns = self.plan.forecast
        pattern = patterns[0] if is_pattern(patterns, matched) else None
        names = paired(self._forecast_in(source), matched, costs, len(costs), pattern)
        if self.forecast and names != self.forecast:
            other = next(pair for pair in zip(self.forecast, names, strict=True) if pair[0] != pair[1])
            what = f"has {other[1]!r} where another table has {other[0]!r}; the names must be the same at all clients"
            raise ValueError(f"{self._forecast_in(source)}: {what}")
        if not self.forecast:
            pairs = listed((f"{name} forecasts {cost}" for name, cost in zip(names, costs, strict=True)), MOST_PAIRS)
            self.notes.append(f"{self.plan.path}: federation.forecast: {pairs}")
        self.forecast = names
        return names

    def _forecast_in(self, source: Source) -> str:
        return f"{source.name}: federation.forecast"

    def _source(self, file: Any, where: str) -> Source:
        kind = next(kind for kind in file if kind != "query") if isinstance(file, Mapping) else ""
        path = self.plan.folder / (file[kind] if kind else file)
        with named_at(where):
            require_file(path)
        return READERS[kind](path, file["query"]) if kind else open_source(path)


def by_client(table: Table, column: str) -> dict[str, np.ndarray]:
    """The positions of each client's rows, in the order in which the clients appear."""
    names = texts_of(table.frame[column])
    if (row := first_true(names == "")) is not None:
        raise ValueError(f"{table.at(row, column)}: is empty; name the client, or remove the line")
    parts: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        parts.setdefault(str(name), []).append(row)
    for name, index in parts.items():
        if not name.isprintable():
            raise ValueError(f"{table.at(index[0], column)}: {name!r} {UNPRINTABLE}")
    return {name: np.array(index) for name, index in parts.items()}

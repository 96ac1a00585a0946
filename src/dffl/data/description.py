"""A federation from one file, `federation.toml`: tables, constraints and training, checked as a whole."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dffl.data.cells import texts_of
from dffl.data.encoding import Column, Encoding, agreed, require_kind, summary
from dffl.data.matching import is_pattern, matching
from dffl.data.plan import ClientPlan, Plan, read_plan
from dffl.data.problems import DescriptionError, Problems
from dffl.data.query_source import QuerySource
from dffl.data.rows import Rows, checked_rows, divided, shown, unit_of
from dffl.data.sets_by_name import make_set
from dffl.data.sources import Source, Table, load, open_source, require_columns
from dffl.data.tables import first_true
from dffl.federation import Client, Federation
from dffl.sets import FeasibleSet

__all__ = ["Description", "DescriptionError", "read"]


@dataclass(frozen=True)
class Description:
    """What a federation's file says, with its tables read."""

    path: Path
    train: Federation
    test: Federation
    method: str
    options: dict[str, Any]
    """The options of the method."""
    settings: dict[str, Any]
    """Keywords of `dffl.fit`: what the file gives, and what follows from it."""
    encoding: Encoding
    units: dict[str, str]
    """The unit of the costs of each client that has one."""
    costs: tuple[str, ...]
    """The names of the cost columns."""
    order: str | None = None
    """The column by which the rows are a time series."""
    notes: list[str] = field(default_factory=list)
    """What a user should know, such as rows that were left out; one line each."""

    @property
    def keywords(self) -> dict[str, Any]:
        """All keywords for ``dffl.fit(description.train, description.method, **description.keywords)``."""
        return {**self.settings, **self.options}


def read(path: str | PathLike[str]) -> Description:
    """Read a federation's file and its tables. All problems are raised at once, as a `DescriptionError`."""
    path = Path(path)
    problems = Problems()
    with problems.catching():
        content = parse(path)
    problems.stop()
    plan = read_plan(path, content, problems)
    made = _Reader(plan, problems).description()
    problems.stop()
    assert made is not None, "without a problem there is a description"
    return made


def parse(path: Path) -> dict[str, Any]:
    """The content of a TOML file; an error names its line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (OSError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "nested too deeply"
        raise ValueError(f"{path}: cannot be read ({reason})") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(f"{path}, line {line}: is not text in UTF-8; save it as UTF-8") from None
    except ValueError as error:
        if match := re.search(r"(.*) \(at line (\d+), column (\d+)\)", str(error)):
            raise ValueError(f"{path}, line {match[2]}, column {match[3]}: {match[1]}") from None
        raise ValueError(f"{path}: cannot be read as TOML ({error!s:.200})") from None


@dataclass
class _Site:
    """A client while its parts are found."""

    plan: ClientPlan
    rows: Rows | None = None
    train: Rows | None = None
    test: Rows | None = None
    set: FeasibleSet | None = None
    unit: str | None = None


class _Reader:
    """Reads the tables of a plan, client by client; a client with a problem does not keep the others from being read."""

    def __init__(self, plan: Plan, problems: Problems):
        self.plan, self.problems, self.notes = plan, problems, list[str]()
        self.features: list[str] | None = None
        self.costs: list[str] | None = None
        self.like = ""
        """The table whose columns the others must have."""

    def description(self) -> Description | None:
        plan, problems = self.plan, self.problems
        sites = self._sites()
        for site in sites:
            if site.train is None and site.rows is not None:
                with problems.catching():
                    site.train, site.test = divided(site.rows, site.plan.name, plan.test_fraction, plan.seed)
            if self.costs and site.plan.set is not None:
                with problems.catching():
                    site.set = make_set(site.plan.set, self.costs, plan.folder, site.plan.set_where)
        encoding = self._encoding(sites)
        if encoding is None or len(problems):
            # Still look at the cells of the sites that could be read.
            return None
        with problems.catching(str(plan.path)):
            train = [client for site in sites if (client := self._client(site, site.train, encoding)) is not None]
            test = [client for site in sites if (client := self._client(site, site.test, encoding, True)) is not None]
            if not len(problems):
                return Description(
                    path=plan.path,
                    train=Federation(train),
                    test=Federation(test),
                    method=plan.method,
                    options=plan.options,
                    settings=plan.settings,
                    encoding=encoding,
                    units={site.plan.name: site.unit for site in sites if site.unit is not None},
                    costs=tuple(self.costs or ()),
                    order=plan.order,
                    notes=self.notes,
                )
        return None

    def _sites(self) -> list[_Site]:
        if self.plan.client_column is not None:
            return self._sites_of_one_table() if self.plan.table is not None else []
        sites = []
        for client in self.plan.clients:
            site = _Site(client, unit=client.unit)
            sites.append(site)
            if client.table is not None:
                with self.problems.catching():
                    site.rows = self._rows(site, self._table(client.table, f"{client.where}.table"))
            if client.test is not None:
                with self.problems.catching():
                    site.test = self._rows(site, self._table(client.test, f"{client.where}.test"))
                    site.train = site.rows
        return sites

    def _sites_of_one_table(self) -> list[_Site]:
        """The clients of one table for all, which a column tells apart."""
        plan, problems = self.plan, self.problems
        assert plan.client_column is not None
        sites: dict[str, _Site] = {client.name: _Site(client, unit=client.unit) for client in plan.clients}
        for key in ("table", "test"):
            if getattr(plan, key) is None:
                continue
            with problems.catching():
                whole = self._table(getattr(plan, key), f"{plan.path}: federation.{key}")
                parts = _parts(whole, plan.client_column)
                if not plan.clients and key == "table":
                    sites = {name: _Site(plan.joined(name), unit=plan.unit) for name in parts}
                for name, index in parts.items():
                    if name not in sites:
                        if key == "test":
                            self.notes.append(
                                f"{whole.source.name}: rows of {name!r} are not used, as it is no client in training"
                            )
                            continue
                        if plan.set is None:
                            fix = "write a [[client]] for it, or federation.set for all that have none"
                            problems.add(
                                f"{whole.at(int(index[0]), plan.client_column)}: no [[client]] is named {name!r:.60}; {fix}"
                            )
                            continue
                        sites[name] = _Site(plan.joined(name), unit=plan.unit)
                    with problems.catching():
                        rows = self._rows(sites[name], whole.take(index))
                        if key == "table":
                            sites[name].rows = rows
                        else:
                            sites[name].train, sites[name].test = sites[name].rows, rows
                for site in sites.values():
                    if site.plan.name not in parts:
                        what = f"{whole.source.name} has no row with {site.plan.name!r} in column {plan.client_column!r}"
                        problems.add(f"{site.plan.where}.name: {what}")
        return list(sites.values())

    def _table(self, given: Any, where: str) -> Table:
        """A table with the columns that are needed, its names compared with those of the tables before."""
        plan = self.plan
        source = self._source(given, where)
        before = len(self.problems)
        more = [name for name in (plan.order, plan.client_column, plan.unit_column) if name is not None]
        with self.problems.catching():
            require_columns(source, more)
        costs = self._names(source, "costs", plan.costs, more)
        features = self._names(source, "features", plan.features, [*more, *(costs or [])])
        if costs is None or features is None or len(self.problems) > before:
            raise DescriptionError([])
        if both := [name for name in features if name in costs]:
            raise ValueError(f"{plan.path}: federation.features: {shown(both)} are costs too; costs are not known beforehand")
        texts = [name for name in (plan.client_column, plan.unit_column, *plan.categories) if name in {*features, *more}]
        return load(source, [*features, *costs, *more], texts)

    def _source(self, given: Any, where: str) -> Source:
        if isinstance(given, Mapping):
            kind = next(kind for kind in given if kind != "query")
            return QuerySource(kind, self.plan.folder / given[kind], given["query"])
        try:
            return open_source(self.plan.folder / given)
        except ValueError as error:
            raise ValueError(
                f"{where}: {error}" if "no such file" in str(error) or "a folder" in str(error) else str(error)
            ) from None

    def _names(self, source: Source, field: str, patterns: Sequence[str], taken: Sequence[str]) -> list[str] | None:
        """The columns that patterns choose in this table; they must be the same in all tables, in any order."""
        if not patterns:
            return None
        found = matching(patterns, source.columns)
        # A pattern does not choose what has another purpose; a name in plain words does.
        found = [name for name in found if name in patterns or name not in taken]
        known: list[str] | None = getattr(self, field)
        with self.problems.catching():
            if known is None:
                for pattern in patterns:
                    if is_pattern(pattern) and not [name for name in matching([pattern], source.columns) if name in found]:
                        raise ValueError(f"{source.name}: no column fits {pattern!r} of federation.{field}")
                require_columns(source, found)
                setattr(self, field, found)
                self.like = source.name
                return found
            if lacking := [name for name in known if name not in found]:
                what = f"lacks the column {shown(lacking)}" if len(lacking) == 1 else f"lacks the columns {shown(lacking)}"
                other = [name for name in found if name not in known]
                instead = f" and has {shown(other)} instead" if other else ""
                raise ValueError(f"{source.name}: {what} of federation.{field}, as {self.like} has{instead}; name them alike")
            if other := [name for name in found if name not in known]:
                raise ValueError(
                    f"{source.name}: has the columns {shown(other)} of federation.{field}, which {self.like} lacks"
                )
            return known
        return None

    def _rows(self, site: _Site, table: Table) -> Rows | None:
        plan = self.plan
        assert self.features is not None
        assert self.costs is not None
        if plan.unit_column is not None:
            with self.problems.catching():
                unit = unit_of(table, plan.unit_column)
                if site.unit not in (None, unit):
                    raise ValueError(
                        f"{table.at(0, plan.unit_column)}: must be {site.unit!r} as in training, found {unit!r:.60}"
                    )
                site.unit = unit
        rows, dropped = checked_rows(table, self.features, self.costs, plan.order, plan.missing, self.problems)
        if dropped:
            what = f"client {site.plan.name!r}: {dropped} of {len(table)} rows have empty cells and are left out"
            self.notes.append(f"{table.source.name}: {what}")
        return rows

    def _encoding(self, sites: Sequence[_Site]) -> Encoding | None:
        """What the columns are, from the training rows of all sites; and each site's own fill values."""
        plan, problems = self.plan, self.problems
        trained = {site.plan.name: site.train.table for site in sites if site.train is not None}
        if self.features is None or not trained:
            return None
        for name in plan.categories:
            if name not in self.features:
                problems.add(f"{plan.path}: federation.categories.{name}: is no feature (features: {shown(self.features)})")
        columns = []
        for name in self.features:
            listed_texts = plan.categories.get(name)
            with problems.catching(f"{plan.path}: federation.features: column {name!r}"):
                told = [summary(table.frame[name], listed_texts or ()) for table in trained.values()]
                column = agreed(name, told, listed_texts)
                for table in trained.values():
                    self._check_cells(table, column, listed_texts is not None)
                columns.append(column)
        made = Encoding(tuple(columns), plan.missing)
        if len(columns) < len(self.features):
            return None
        with problems.catching():
            return made.with_fills(trained)
        return None

    def _check_cells(self, table: Table, column: Column, listed_texts: bool) -> None:
        """Refuse cells of another kind, and texts that are not among those that are listed."""
        cells = table.frame[column.name]
        with self.problems.catching():
            empty = column.empty(cells)
            require_kind(table, column.name, column.kind, empty)
            if listed_texts:
                texts = texts_of(cells)
                wrong = ~empty & ~np.isin(texts.astype(str), column.categories)
                if (row := first_true(wrong)) is not None:
                    what = f"{texts[row]!r:.60} is not among federation.categories.{column.name}"
                    raise ValueError(f"{table.at(row, column.name)}: {what}; add it there, or correct the cell")

    def _client(self, site: _Site, rows: Rows | None, encoding: Encoding, testing: bool = False) -> Client | None:
        assert rows is not None
        assert site.set is not None
        for name, texts in encoding.unseen(rows.table).items() if testing else ():
            what = f"{sum(texts.values())} test rows hold texts that training never saw, such as {next(iter(texts))!r}"
            self.notes.append(f"{rows.table.source.name}, column {name!r}: {what}; all their features are 0")
        with self.problems.catching():
            x = encoding.encode(rows.table, site.plan.name)
            try:
                return Client(
                    site.plan.name, x, rows.costs, site.set, maximize=site.plan.sense == "max",
                    feature_names=encoding.feature_names, cost_names=tuple(self.costs or ()),
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{site.plan.where}: {str(error).removeprefix(f'client {site.plan.name!r}: ')}") from None
        return None


def _parts(table: Table, column: str) -> dict[str, np.ndarray]:
    """The positions of each client's rows, in the order in which the clients appear."""
    names = texts_of(table.frame[column])
    if (row := first_true(names == "")) is not None:
        raise ValueError(f"{table.at(row, column)}: is empty; name the client, or remove the line")
    parts: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        parts.setdefault(str(name), []).append(row)
    if wrong := [name for name in parts if not name.isprintable()]:
        raise ValueError(
            f"{table.at(parts[wrong[0]][0], column)}: {wrong[0]!r} has a character that cannot be printed; rename it"
        )
    return {name: np.array(index) for name, index in parts.items()}

"""Reads the tables of a federation's file and makes its clients; a client with a problem does not keep the others from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dffl.data.cells import dates_of, texts_of
from dffl.data.dividing import content_keys, divided, forced, named_keys, require_moments, set_period
from dffl.data.duckdb_source import DuckdbSource
from dffl.data.encoding import Column, Encoding, agreed, require_kind, summary
from dffl.data.matching import matching
from dffl.data.plan import ClientPlan, Plan
from dffl.data.problems import Problems, named_at
from dffl.data.rows import Rows, checked_rows, order_kind, unit_of
from dffl.data.same_columns import SameColumns, shown
from dffl.data.same_kinds import ALIKE, WORDS, SameKind, with_offset
from dffl.data.sets_by_name import check_set, make_set
from dffl.data.shared_rows import shared_notes
from dffl.data.sources import Source, Table, load, open_source, require_columns, require_file
from dffl.data.sqlite_source import SqliteSource
from dffl.data.tables import UNPRINTABLE, first_true, listed
from dffl.federation import Client, Federation
from dffl.forecasts import chosen, gives_away, is_pattern, paired
from dffl.sets import FeasibleSet
from dffl.splitting import DRAW

READERS: Mapping[str, Callable[[Path, str], Source]] = {"sqlite": SqliteSource, "duckdb": DuckdbSource}
IN_FILES = {
    "make the client with maximize=True": 'write sense = "max" for the client',
    "make the client with maximize=False": 'write sense = "min" for the client',
    "ModelFile(sense=...)": "sense in its set",
    ", or hand in arrays in the order of the file": ", or list predicted in the order of the costs",
}
"""What messages for Python say, in the words of a federation's file."""
MOST_PAIRS = 24
"""Pairs of a forecast and a cost in a note: those of a day."""


class Parts(NamedTuple):
    """What the tables of a file give."""

    train: Federation
    test: Federation
    encoding: Encoding
    units: dict[str, str]
    notes: list[str]
    dates: bool = False
    """Whether the order is of dates, as seconds since 1970."""


@dataclass
class Site:
    """A client while its parts are found."""

    plan: ClientPlan
    rows: Rows | None = None
    """All rows of its table."""
    train: Rows | None = None
    test: Rows | None = None
    set: FeasibleSet | None = None
    unit: str | None = None


class Assembly:
    """The clients of a plan. What is wrong is added to the problems, and reading goes on."""

    def __init__(self, plan: Plan, problems: Problems, alone: str | None = None, proposes: bool = False):
        self.plan, self.problems, self.proposes = plan, problems, proposes
        self.alone = alone
        """The only client whose table is at hand: then the file must list what cannot be seen in it."""
        self.notes: list[str] = []
        self.costs = SameColumns("costs", plan.costs)
        self.features = SameColumns("features", plan.features)
        self.forecast: list[str] = []
        """The columns of the forecast, in the order of the costs."""
        self.order = SameKind(plan.order or "", ALIKE)
        self.keys = {name: SameKind(name, ALIKE) for name in plan.key}

    def sites(self) -> list[Site]:
        """The clients with their rows, divided into training and test."""
        sites = self._sites_of_one_table() if self.plan.client_column is not None else self._sites_of_their_own()
        self._divide(sites)
        return sites

    def _divide(self, sites: Sequence[Site]) -> None:
        """Divide the rows of clients without a table of test rows."""
        if self.alone is not None and not self.proposes:
            require_moments(self.plan, self.alone, self.problems)
        whole = {site.plan.name: site.rows for site in sites if site.rows is not None and site.train is None}
        parts, cut = divided(whole, self.plan, self.problems)
        for site in sites:
            site.train, site.test = parts.get(site.plan.name, (site.train, site.test))
            rows = whole.get(site.plan.name)
            if rows is not None and site.plan.name in parts and (side := forced(rows, self.plan)):
                what = f"none of its {len(rows)} rows falls into {side} by what it holds, so the nearest one was taken"
                why = "another site may have the same row on the other side; give more rows"
                self.notes.append(f"{rows.table.source.name}: client {site.plan.name!r}: {what}; {why}")
        with self.problems.catching():
            set_period(self.plan, [site.train for site in sites if site.train is not None], cut)

    def parts(self) -> Parts | None:
        """The federations, or nothing where there are problems."""
        sites = self.sites()
        for site in sites:
            self._build_set(site)
        encoding = self._encoding(sites)
        if encoding is None or len(self.problems):
            return None
        if self.plan.split == DRAW:
            self._compare_order(sites)
        train = [client for site in sites for client in self._client(site, site.train, encoding)]
        test = [client for site in sites for client in self._client(site, site.test, encoding, testing=True)]
        units = {site.plan.name: site.unit for site in sites if site.unit is not None}
        if len(self.problems):
            return None
        self.notes += [note for client in train if (note := _known_too_early(client))]
        dates = any(site.train.dates for site in sites if site.train is not None)
        made = Parts(Federation(train), Federation(test), encoding, units, self.notes, dates)
        if self.alone is None:
            self.notes += shared_notes(made.train, made.test, self.plan)
        return made

    def _sites_of_their_own(self) -> list[Site]:
        """Clients that have a table each."""
        sites = [Site(client, unit=client.unit) for client in self.plan.clients]
        for site in sites:
            for key in ("table", "test"):
                if getattr(site.plan, key) is not None:
                    with self.problems.catching():
                        table = self._table(getattr(site.plan, key), f"{site.plan.where}.{key}")
                        self._give(site, key, table)
        return sites

    def _sites_of_one_table(self) -> list[Site]:
        """The clients of one table for all, which a column tells apart."""
        plan, column = self.plan, str(self.plan.client_column)
        sites = {client.name: Site(client, unit=client.unit) for client in plan.clients}
        for key in ("table", "test"):
            if getattr(plan, key) is not None:
                with self.problems.catching():
                    whole = self._table(getattr(plan, key), f"{plan.path}: federation.{key}")
                    if whole is not None:
                        self._share_out(whole, key, column, sites)
        return list(sites.values())

    def _share_out(self, whole: Table, key: str, column: str, sites: dict[str, Site]) -> None:
        """Give every client its rows of one table; clients that the file does not list have the federation's set."""
        parts = _by_client(whole, column)
        for name, index in parts.items():
            if name not in sites and self.alone is not None:
                continue  # the rows of others, which may or may not be there
            if name not in sites and key == "test":
                self.notes.append(f"{whole.source.name}: rows of {name!r} are not used: it is no client of training")
            elif name not in sites and self.plan.set is None:
                where, fix = whole.at(int(index[0]), column), "write one, or federation.set for all that have none"
                self.problems.add(f"{where}: there is no [[client]] with the name {name!r:.60}; {fix}")
            else:
                site = sites.setdefault(name, Site(self.plan.joined(name), unit=self.plan.unit))
                self._give(site, key, whole.take(index))
        for name, site in sites.items():
            if name not in parts:
                what = f"{whole.source.name} has no row with {name!r} in column {column!r}"
                self.problems.add(f"{site.plan.where}.name: {what}")

    def _give(self, site: Site, key: str, table: Table | None) -> None:
        """Add a table's rows to a client."""
        rows = None if table is None else self._rows(site, table)
        if key == "table":
            site.rows = rows
        else:
            site.train, site.test = site.rows, rows

    def _table(self, given: Any, where: str) -> Table | None:
        """A table with the columns that are needed, of which the names are the same in all tables."""
        plan, before = self.plan, len(self.problems)
        source = self._source(given, where)
        more = [name for name in (plan.order, plan.client_column, plan.unit_column, *plan.key) if name is not None]
        more = list(dict.fromkeys(more))
        costs: list[str] = []
        features: list[str] = []
        forecast: list[str] = []
        with self.problems.catching():
            require_columns(source, more)
        with self.problems.catching():
            forecast = self._forecast(source, more)
        with self.problems.catching():
            costs = self.costs.of(source, [*more, *forecast])
            forecast = self._in_cost_order(source, forecast, costs)
        with self.problems.catching():
            features = self.features.of(source, [*more, *costs], elsewhere=forecast)
            if both := [name for name in features if name in costs]:
                what = f"{shown(both)} stands in costs too; costs are not known beforehand"
                raise ValueError(f"{plan.path}: federation.features: {what}")
        if len(self.problems) > before or not costs or not (features or forecast):
            return None
        texts = [name for name in (plan.client_column, plan.unit_column, *plan.categories) if name in {*features, *more}]
        return load(source, [*features, *forecast, *costs, *more], texts)

    def _forecast(self, source: Source, taken: Sequence[str]) -> list[str]:
        """The columns of the forecast. A pattern of the costs does not choose them."""
        if not self.plan.forecast:
            return []
        found = chosen(self._forecast_in(source), self.plan.forecast, [name for name in source.columns if name not in taken])
        costs = matching(self.plan.costs, source.columns)
        if (both := [name for name in costs if name in found]) and (
            len(both) == len(costs) or set(both) & set(self.plan.costs)
        ):
            what = f"{shown(both)} stands in costs too; costs are not known beforehand"
            raise ValueError(f"{self.plan.path}: federation.forecast: {what}")
        return found

    def _in_cost_order(self, source: Source, found: Sequence[str], costs: Sequence[str]) -> list[str]:
        if not found:
            return []
        given = self.plan.forecast
        pattern = given[0] if is_pattern(given, found) else None
        names = paired(self._forecast_in(source), found, costs, len(costs), pattern)
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

    def _source(self, given: Any, where: str) -> Source:
        kind = next(kind for kind in given if kind != "query") if isinstance(given, Mapping) else ""
        path = self.plan.folder / (given[kind] if kind else given)
        with named_at(where):
            require_file(path)
        return READERS[kind](path, given["query"]) if kind else open_source(path)

    def _rows(self, site: Site, table: Table) -> Rows | None:
        plan = self.plan
        if plan.unit_column is not None:
            with self.problems.catching():
                unit = unit_of(table, plan.unit_column)
                if site.unit not in (None, unit):
                    what = f"must be {site.unit!r} as in training, found {unit!r:.60}"
                    raise ValueError(f"{table.at(0, plan.unit_column)}: {what}")
                site.unit = unit
        features, costs = self.features.names, self.costs.names
        keys = np.zeros(len(table), np.uint64)  # of a table with a problem, which is not divided
        with self.problems.catching():
            keys = named_keys(table, self.keys, site.plan.name) if plan.key else content_keys(table, features, costs)
        rows, dropped = checked_rows(table, features, costs, plan, self.problems, keys, self.forecast)
        if rows is not None and plan.order is not None:
            with self.problems.catching(f"{plan.path}: federation.order: column {plan.order!r}"):
                self.order.require(site.plan.name, table, order_kind(table, plan.order))
        if dropped:
            what = f"client {site.plan.name!r}: {dropped} of {len(table)} rows have empty cells and are left out"
            self.notes.append(f"{table.source.name}: {what}")
        return rows

    def _build_set(self, site: Site) -> None:
        client, costs = site.plan, self.costs.names or self.costs.if_plain
        with self.problems.catching():
            if client.set is None:
                return  # a problem that is known
            if not costs:
                check_set(client.set, client.set_where)  # without the costs, at least its keys
                return
            made = make_set(client.set, costs, self.plan.folder, client.set_where)
            with named_at(client.set_where, IN_FILES):
                made = made.matched(costs)
                made.require_sense(client.sense == "max")
            site.set = made

    def _encoding(self, sites: Sequence[Site]) -> Encoding | None:
        """What the columns are, from the training rows of all sites; and each site's own fill values."""
        plan, problems = self.plan, self.problems
        trained = [site for site in sites if site.train is not None]
        named = {f"categories.{name}:": name for name in plan.categories}
        named |= {f"{key}: {name!r}": name for key in ("times", "gaps") for name in getattr(plan, key) or ()}
        for where, name in named.items() if self.features.names or self.forecast else ():
            if name not in self.features.names:
                problems.add(f"{plan.path}: federation.{where} is no feature (features: {shown(self.features.names)})")
        if not trained:
            return None
        columns = []
        for name in self.features.names:
            with problems.catching(f"{plan.path}: federation.features: column {name!r}"):
                texts = plan.categories.get(name)
                told = [summary(_training(site).frame[name], texts or ()) for site in trained]
                if texts is None:
                    self._require_same_kind(name, trained, told)
                column = agreed(name, told, texts)
                if self.alone is not None:
                    self._require_lists(column)
                column = self._as_listed(column, trained)
                for site in trained:
                    self._check_cells(site, column, texts is not None)
                columns.append(column)
        forecast = [Column(name, "number", forecast=True) for name in self.forecast]  # last, in the order of the costs
        made = Encoding((*columns, *forecast), plan.missing)
        if len(columns) < len(self.features.names) or len(problems):
            return None
        with problems.catching(str(plan.path)):
            names = made.feature_names
            if len(set(names)) < len(names):
                twice = next(name for place, name in enumerate(names) if name in names[:place])
                raise ValueError(f"federation.features: two features would be named {twice!r}; rename a column")
        with problems.catching():
            return made.with_fills({site.plan.name: _training(site) for site in trained})
        return None

    def _require_same_kind(self, name: str, trained: Sequence[Site], told: Sequence[Mapping[str, Any]]) -> None:
        """Refuse a column that is one thing at one site and another at another, also in tables that are for tests alone."""
        same = SameKind(name)
        for site, one in zip(trained, told, strict=True):
            same.require(site.plan.name, _training(site), self._kind(_training(site), name, one["kind"]))
        for site in trained:
            if site.test is not None and site.train is site.rows:
                table = site.test.table
                same.require(site.plan.name, table, self._kind(table, name, summary(table.frame[name])["kind"]))
        known = [(site.plan.name, one["categories"]) for site, one in zip(trained, told, strict=True) if one["categories"]]
        for client, texts in known[1:]:
            if not set(texts) & set(known[0][1]):
                what = f"{known[0][0]!r} ({known[0][1][0]!r:.60}) and {client!r} ({texts[0]!r:.60}) have no text in common"
                self.notes.append(f"{self.plan.path}: column {name!r}: {what}; if they mean the same, write them alike")
                break
        else:
            self._note_spellings(name, known)

    def _note_spellings(self, name: str, known: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Note texts that differ in case alone, and texts of two sites that the other one lacks: they may mean the same."""
        spelled: dict[str, dict[str, str]] = {}
        for client, texts in known:
            for text in texts:
                spelled.setdefault(text.casefold(), {}).setdefault(text, client)
        where = f"{self.plan.path}: column {name!r}"
        for forms in spelled.values():
            if len(forms) > 1:
                what = " and ".join(f"{text!r:.60} ({client!r})" for text, client in list(forms.items())[:2])
                self.notes.append(f"{where}: {what} differ in case alone and become two columns; write them alike")
                return
        common = set.intersection(*(set(texts) for _, texts in known)) if len(known) > 1 else set()
        alone = [(client, [text for text in texts if text not in common]) for client, texts in known]
        odd = [(client, texts[0]) for client, texts in alone if texts]
        if common and len(odd) == len(known) == 2:  # of more sites, some texts are often missing at some
            what = " and ".join(f"{text!r:.60} at {client!r} alone" for client, text in odd)
            self.notes.append(f"{where}: {what}; if they mean the same, write them alike")

    def _kind(self, table: Table, name: str, kind: str | None) -> str | None:
        """The kind of a column; clocks of the column under order are compared elsewhere."""
        return kind if name == self.plan.order else with_offset(table, name, kind)

    def _require_lists(self, column: Column) -> None:
        """Refuse what a site cannot know of the others, unless the file lists it."""
        plan = self.plan
        fix = f"`dffl init {plan.path} --client {self.alone}` writes what the table of this site holds"
        if column.kind == "category" and column.name not in plan.categories:
            what = f"is missing; column {column.name!r} holds texts, and other sites may have others"
            self.problems.add(f"{plan.path}: federation.categories.{column.name}: {what}; {fix}")
        if column.kind == "date" and plan.times is None:
            what = f"is missing; column {column.name!r} holds dates, and other sites may have a time of day"
            self.problems.add(f"{plan.path}: federation.times: {what}; {fix}")
        if plan.missing == "mean" and plan.gaps is None:
            what = 'is missing; with missing = "mean", other sites may have empty cells'
            self.problems.add(f"{plan.path}: federation.gaps: {what}; {fix}")

    def _as_listed(self, column: Column, trained: Sequence[Site]) -> Column:
        """A column as the file's lists say; cells that they do not allow are refused with their place."""
        plan, name = self.plan, column.name
        if name in (plan.times or ()) and column.kind != "date":
            what = f"{WORDS[column.kind]}, and federation.times lists it as a date"
            raise ValueError(f"holds {what}; write dates as 2021-01-31 13:00, or remove it there")
        if plan.times is not None and column.kind == "date":
            if column.time and name not in plan.times:
                self._refuse_first(trained, name, _with_time, "has a time of day, and the column is not among federation.times")
            column = replace(column, time=name in plan.times)
        if plan.gaps is not None:
            if column.flagged and name not in plan.gaps:
                self._refuse_first(trained, name, column.empty, "is empty, and the column is not among federation.gaps")
            column = replace(column, flagged=name in plan.gaps)
        return column

    def _refuse_first(self, trained: Sequence[Site], column: str, wrong: Callable[[pd.Series], np.ndarray], what: str) -> None:
        for site in trained:
            table = _training(site)
            if (row := first_true(wrong(table.frame[column]))) is not None:
                self.problems.add(f"{table.at(row, column)}: {what}; add it there, or correct the cell")

    def _check_cells(self, site: Site, column: Column, listed: bool) -> None:
        """Refuse cells of another kind, also in test rows; and in training rows texts that are not among those listed."""
        for rows in (site.rows, site.test if site.test is not None and site.train is site.rows else None):
            if rows is not None:
                with self.problems.catching():
                    require_kind(rows.table, column.name, column.kind, column.empty(rows.table.frame[column.name]))
        if listed:
            table = _training(site)
            texts = texts_of(table.frame[column.name])
            wrong = ~column.empty(table.frame[column.name]) & ~np.isin(texts.astype(str), column.categories)
            if (row := first_true(wrong)) is not None:
                what = f"{texts[row]!r:.60} is not among federation.categories.{column.name}"
                self.problems.add(f"{table.at(row, column.name)}: {what}; add it there, or correct the cell")
        elif column.kind == "category":  # numbers in test rows of a site without a filled training row: 007 must stay 007
            site.train, site.test = (
                rows if rows is None else rows.with_table(rows.table.as_written(column.name))
                for rows in (site.train, site.test)
            )

    def _compare_order(self, sites: Sequence[Site]) -> None:
        """Say so where the sites' training rows are not of the same moments: held-out stretches go by position."""
        orders = [site.train.order for site in sites if site.train is not None and site.train.order is not None]
        if any(len(order) != len(orders[0]) or (order != orders[0]).any() for order in orders):
            what = f"the training rows of the sites differ in {self.plan.order!r}; stretches and tests are held out by position"
            self.notes.append(
                f"{self.plan.path}: federation.order: {what}, so one site may have trained on another's test days"
            )

    def _client(self, site: Site, rows: Rows | None, encoding: Encoding, testing: bool = False) -> list[Client]:
        assert rows is not None, "without a problem every site has rows"
        assert site.set is not None, "and a set"
        for name, texts in encoding.unseen(rows.table).items() if testing else ():
            what = f"{sum(texts.values())} test rows hold texts that training never saw, such as {next(iter(texts))!r}"
            self.notes.append(f"{rows.table.source.name}, column {name!r}: {what}; all their features are 0")
        with self.problems.catching():
            x = encoding.encode(rows.table, site.plan.name)
            with named_at(site.plan.where):
                made = Client(
                    site.plan.name, x, rows.costs, site.set, maximize=site.plan.sense == "max",
                    feature_names=encoding.feature_names, cost_names=tuple(self.costs.names), keys=rows.keys,
                    times=rows.order, forecast=self.forecast or None,
                )  # fmt: skip
                return [made]
        return []


def _known_too_early(client: Client) -> str | None:
    """That a feature, or a column of a forecast, is a cost itself: it cannot be known before the decision."""
    found = gives_away(client.x, client.c)
    if found is None:
        return None
    feature, cost = (
        (names or ())[place] for names, place in zip((client.feature_names, client.cost_names), found, strict=True)
    )
    what = f"its column {feature!r} equals the cost {cost!r} in every row, but for its unit or rounding"
    return f"client {client.name!r}: {what}; is it known before the decision? If not, leave it out: no result holds with it"


def _training(site: Site) -> Table:
    assert site.train is not None
    return site.train.table


def _with_time(cells: pd.Series) -> np.ndarray:
    moments = dates_of(cells)
    return ~np.isnat(moments) & (moments != moments.astype("datetime64[D]"))


def _by_client(table: Table, column: str) -> dict[str, np.ndarray]:
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

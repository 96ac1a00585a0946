"""Reads the tables of a federation's file and makes the clients. A problem of one client does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dffl.federation import Client, Federation
from dffl.forecasts import gives_away
from dffl.items import of_items
from dffl.splitting import DRAW
from dffl.tables.agreed_columns import AgreedColumns
from dffl.tables.columns import TableReader, by_client
from dffl.tables.dividing import content_keys, divided, forced, named_keys, require_moments, set_period, shared_notes
from dffl.tables.encoding import Encoding
from dffl.tables.keys import Problems, named_at
from dffl.tables.kinds import ALIKE, SameKind
from dffl.tables.plan import Plan
from dffl.tables.rows import CheckedRows, ClientRows, checked_rows, day_as_number, order_kind, twice, unit_of
from dffl.tables.sets_by_name import check_set, make_set
from dffl.tables.sources import Table

IN_FILES = {
    "make the client with maximize=True": 'write sense = "max" for the client',
    "make the client with maximize=False": 'write sense = "min" for the client',
    "ModelFile(sense=...)": "sense in its set",
    ", or pass arrays in the order of the file": ", or list predicted in the order of the costs",
}
"""Replaces words of messages for Python by the words of a federation's file."""


class Assembly:
    """The clients of a plan. Errors are added to the problems, and reading continues."""

    def __init__(self, plan: Plan, problems: Problems, alone: str | None = None, proposes: bool = False):
        self.plan, self.problems, self.proposes = plan, problems, proposes
        self.alone = alone
        """The only client whose table can be read, if there is one. The file must then list what this table cannot show."""
        self.encoding: Encoding
        self.units: dict[str, str] = {}
        self.dates = False
        """Whether the order consists of dates (as seconds since 1970)."""
        self.twice: dict[str, str] = {}
        """For each client that has two rows of the same moment: where these rows are."""
        self.notes: list[str] = []
        self.tables = TableReader(plan, problems, self.notes)
        self.order = SameKind(plan.order or "", ALIKE)
        self.keys = {name: SameKind(name, ALIKE) for name in plan.key}

    def sites(self) -> list[ClientRows]:
        """The clients with their rows, divided into training and test."""
        sites = self._sites_of_one_table() if self.plan.client_column is not None else self._sites_of_their_own()
        self._divide(sites)
        return sites

    def _divide(self, sites: Sequence[ClientRows]) -> None:
        """Divide the rows of clients that have no table of test rows."""
        if self.alone is not None and not self.proposes:
            require_moments(self.plan, self.alone, self.problems)
        rows_of = {site.plan.name: site.rows for site in sites if site.rows is not None and site.train is None}
        parts, cut = divided(rows_of, self.plan, self.problems)
        for site in sites:
            site.train, site.test = parts.get(site.plan.name, (site.train, site.test))
            rows = rows_of.get(site.plan.name)
            if rows is not None and site.plan.name in parts and (side := forced(rows, self.plan)):
                what = f"none of its {len(rows)} rows falls into {side} by what it holds, so the nearest one was taken"
                why = "another site may have the same row on the other side; give more rows"
                self.notes.append(f"{rows.table.source.name}: client {site.plan.name!r}: {what}; {why}")
        with self.problems.catching():
            set_period(self.plan, [site.train for site in sites if site.train is not None], cut)

    def federations(self) -> tuple[Federation, Federation]:
        """The clients with their training rows, and with their test rows; or all problems at once."""
        sites = self.sites()
        for site in sites:
            self._build_set(site)
        encoding = AgreedColumns(self.plan, self.problems, self.tables, self.alone).encoding(sites)
        self.problems.stop()
        assert encoding is not None, "without a problem there are columns"
        if self.plan.split == DRAW:
            self._compare_order(sites)
        train = [client for site in sites for client in self._client(site, site.train, encoding)]
        test = [client for site in sites for client in self._client(site, site.test, encoding, testing=True)]
        self.problems.stop()
        self.notes += [note for client in train if (note := _known_too_early(client))]
        self.encoding = encoding
        self.units = {site.plan.name: site.unit for site in sites if site.unit is not None}
        self.twice = {site.plan.name: why for site in sites if (why := self._twice(site)) is not None}
        self.dates = any(site.train.dates for site in sites if site.train is not None)
        federations = Federation(train), Federation(test)
        if self.alone is None:
            self.notes += shared_notes(*federations, self.plan)
        return federations

    def _twice(self, site: ClientRows) -> str | None:
        """The moment of which a client has two rows, if rows have an order and there is such a moment."""
        if self.plan.order is None:
            return None
        return twice([rows for rows in (site.train, site.test) if rows is not None], self.plan.order)

    def _sites_of_their_own(self) -> list[ClientRows]:
        """Clients that have a table each."""
        sites = [ClientRows(client, unit=client.unit) for client in self.plan.clients]
        for site in sites:
            for key in ("table", "test"):
                if getattr(site.plan, key) is not None:
                    with self.problems.catching():
                        table = self.tables.table(getattr(site.plan, key), f"{site.plan.where}.{key}")
                        self._give(site, key, table)
        return sites

    def _sites_of_one_table(self) -> list[ClientRows]:
        """The clients of one table, in which a column names the client of each row."""
        plan, column = self.plan, str(self.plan.client_column)
        sites = {client.name: ClientRows(client, unit=client.unit) for client in plan.clients}
        for key in ("table", "test"):
            if getattr(plan, key) is not None:
                with self.problems.catching():
                    table = self.tables.table(getattr(plan, key), f"{plan.path}: federation.{key}")
                    if table is not None:
                        self._share_out(table, key, column, sites)
        return list(sites.values())

    def _share_out(self, table: Table, key: str, column: str, sites: dict[str, ClientRows]) -> None:
        """Give every client its rows of one table. A client that the file does not list gets the set of [federation]."""
        parts = by_client(table, column)
        for name, index in parts.items():
            if name not in sites and self.alone is not None:
                continue  # rows of the other clients may be in this table or not
            if name not in sites and key == "test":
                self.notes.append(f"{table.source.name}: rows of {name!r} are not used: it is not a client of training")
            elif name not in sites and self.plan.set is None:
                where, fix = table.at(int(index[0]), column), "write one, or federation.set for all that have none"
                self.problems.add(f"{where}: there is no [[client]] with the name {name!r:.60}; {fix}")
            else:
                site = sites.setdefault(name, ClientRows(self.plan.joined(name), unit=self.plan.unit))
                self._give(site, key, table.take(index))
        for name, site in sites.items():
            if name not in parts:
                what = f"{table.source.name} has no row with {name!r} in column {column!r}"
                self.problems.add(f"{site.plan.where}.name: {what}")

    def _give(self, site: ClientRows, key: str, table: Table | None) -> None:
        """Add a table's rows to a client."""
        rows = None if table is None else self._rows(site, table)
        if key == "table":
            site.rows = rows
        else:
            site.train, site.test = site.rows, rows

    def _rows(self, site: ClientRows, table: Table) -> CheckedRows | None:
        plan = self.plan
        if plan.unit_column is not None:
            with self.problems.catching():
                unit = unit_of(table, plan.unit_column)
                if site.unit not in (None, unit):
                    what = f"must be {site.unit!r} as in training, found {unit!r:.60}"
                    raise ValueError(f"{table.at(0, plan.unit_column)}: {what}")
                site.unit = unit
        features, costs = self.tables.features.names, self.tables.costs.names
        keys = np.zeros(len(table), np.uint64)  # its table has a problem, so it was not divided
        with self.problems.catching():
            keys = named_keys(table, self.keys, site.plan.name) if plan.key else content_keys(table, features, costs)
        rows, dropped = checked_rows(
            table, features, costs, plan, self.problems, keys, self.tables.forecast, self.tables.items.names
        )
        if rows is not None and plan.order is not None:
            with self.problems.catching(f"{plan.path}: federation.order: column {plan.order!r}"):
                self.order.require(site.plan.name, table, order_kind(table, plan.order))
            if (day := day_as_number(rows)) is not None:
                why = "it has no calendar, and gaps where months or years end"
                what = f"column {plan.order!r}, such as {day}, is read as a number: {why}"
                self.notes.append(f"{table.source.name}: {what}; write dates as 2021-01-31")
        if dropped:
            what = f"client {site.plan.name!r}: {dropped} of {len(table)} rows have empty cells and are left out"
            self.notes.append(f"{table.source.name}: {what}")
        return rows

    def _build_set(self, site: ClientRows) -> None:
        client, costs = site.plan, self.tables.costs.names or self.tables.costs.if_plain
        with self.problems.catching():
            if client.set is None:
                return  # the problem was reported before
            if not costs:
                check_set(client.set, client.set_where)  # costs alone are not enough: their keys are needed
                return
            feasible_set = make_set(client.set, costs, self.plan.folder, client.set_where)
            with named_at(client.set_where, IN_FILES):
                feasible_set = feasible_set.matched(costs)
                feasible_set.require_sense(client.sense == "max")
            site.set = feasible_set

    def _compare_order(self, sites: Sequence[ClientRows]) -> None:
        """Note that the sites' training rows have different moments: stretches are then held out by position."""
        orders = [site.train.order for site in sites if site.train is not None and site.train.order is not None]
        if any(len(order) != len(orders[0]) or (order != orders[0]).any() for order in orders):
            what = f"the training rows of the sites differ in {self.plan.order!r}; stretches and tests are held out by position"
            self.notes.append(
                f"{self.plan.path}: federation.order: {what}, so one site may have trained on another's test days"
            )

    def _client(self, site: ClientRows, rows: CheckedRows | None, encoding: Encoding, testing: bool = False) -> list[Client]:
        assert rows is not None, "without a problem every site has rows"
        assert site.set is not None, "and a set"
        for name, texts in encoding.unseen(rows.table).items() if testing else ():
            what = f"{sum(texts.values())} test rows hold texts that training never saw, such as {next(iter(texts))!r}"
            self.notes.append(f"{rows.table.source.name}, column {name!r}: {what}; all their features are 0")
        with self.problems.catching():
            x = encoding.encode(rows.table, site.plan.name)
            forecast, width = self.tables.forecast or None, encoding.item_features(len(self.tables.costs.names))
            items = of_items(x, rows.costs.shape[1], width, forecast is not None) if width else None
            with named_at(site.plan.where):
                client = Client(
                    site.plan.name, x, rows.costs, site.set, maximize=site.plan.sense == "max",
                    feature_names=encoding.feature_names, cost_names=tuple(self.tables.costs.names), keys=rows.keys,
                    times=rows.order, forecast=forecast, items=items,
                )  # fmt: skip
                return [client]
        return []


def _known_too_early(client: Client) -> str | None:
    """A note on a feature, or a column of a forecast, that equals a cost: it cannot be known before the decision."""
    places = gives_away(client.x, client.c)
    if places is None:
        return None
    feature, cost = (
        (names or ())[place] for names, place in zip((client.feature_names, client.cost_names), places, strict=True)
    )
    what = f"its column {feature!r} equals the cost {cost!r} in every row, but for its unit or rounding"
    return f"client {client.name!r}: {what}; is it known before the decision? If not, leave it out: no result holds with it"

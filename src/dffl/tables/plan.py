"""The keys of a federation's file, before any table is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dffl.cells import A_MOMENT, composed_content, moment_of
from dffl.named import nearest
from dffl.splitting import COST, DRAW, ROW, TIME
from dffl.tables.encoding import MISSING, Missing
from dffl.tables.items import read_items
from dffl.tables.keys import Keys, Problems, are_categories, are_columns, are_tables, is_fraction, is_seed, is_table
from dffl.tables.money import is_per, plain_per
from dffl.tables.time_keys import read_time
from dffl.tables.training_keys import read_training

SECTIONS = ("federation", "training", "items", "time")
SENSES = ("min", "max")
TEST_FRACTION = 0.2
TABLE = 'the path of a CSV or Parquet file, or { sqlite = "file.db", query = "SELECT ..." }'


@dataclass
class ClientPlan:
    """One ``[[client]]``. Keys that it does not have are those of [federation]."""

    where: str
    name: str
    table: Any = None
    test: Any = None
    sense: str = "min"
    unit: str | None = None
    set: Any = None
    set_where: str = ""


@dataclass
class Plan:
    """The keys of a file, checked."""

    path: Path
    features: list[str] = field(default_factory=list)
    costs: list[str] = field(default_factory=list)
    forecast: list[str] = field(default_factory=list)
    """A pattern, or names in the order of the costs: the columns with a forecast of the costs."""
    sense: str = "min"
    order: str | None = None
    missing: Missing = "refuse"
    client_column: str | None = None
    table: Any = None
    test: Any = None
    unit: str | None = None
    unit_column: str | None = None
    per: str | None = None
    """What a row is: a day, an hour; `row` by default."""
    set: Any = None
    seed: int = 0
    test_fraction: float = TEST_FRACTION
    split: str = ROW
    """How rows are held out: by row or by their costs; by time if there is an order; or by a draw of each client."""
    key: list[str] = field(default_factory=list)
    """The columns that identify a row; without them, all features and costs do."""
    train_from: Any = None
    test_from: Any = None
    """The moments at which training and test begin at all clients, as in the file."""
    categories: dict[str, list[Any]] = field(default_factory=dict)
    times: list[str] | None = None
    """The dates that have a time of day at some site, if they are listed."""
    gaps: list[str] | None = None
    """The features with empty cells in training rows of some site, if they are listed."""
    clients: list[ClientPlan] = field(default_factory=list)
    method: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    named: bool = False
    """Whether the file names a method; otherwise a default is used."""
    item_features: list[str] = field(default_factory=list)
    """Patterns under [items]; each matches one column for each cost."""
    known: dict[str, Any] = field(default_factory=dict)
    """Features of items that never change, as in the file."""
    time: dict[str, Any] = field(default_factory=dict)
    """The keys under [time] that the file has, see `dffl.tables.time_keys`."""

    @property
    def folder(self) -> Path:
        """The folder to which relative paths belong."""
        return self.path.parent

    def joined(self, name: str) -> ClientPlan:
        """A client that is not in the file, but in the table of all clients."""
        return ClientPlan(f"{self.path}: client {name!r}", name, None, None, self.sense, self.unit, self.set, self._set_where)

    @property
    def _set_where(self) -> str:
        return f"{self.path}: federation.set"


def read_plan(path: Path, content: Mapping[str, Any], problems: Problems) -> Plan:
    """Read the keys of a file, and add their problems."""
    content = composed_content(content)
    top = Keys(content, f"{path}: ", problems)
    sections = {}
    for name in SECTIONS:
        sections[name] = top.take(name, f"a table: write [{name}] above its keys", lambda value: isinstance(value, Mapping), {})
    members = top.take("client", "tables: write [[client]] above the keys of each client", are_tables, [])
    for key in top.rest():
        allowed = (*SECTIONS, "client")
        near = "; it belongs under [federation]" if key in Plan.__dataclass_fields__ else nearest(key, allowed)
        problems.add(f"{path}: {key}: no such key at the top of the file{near} (allowed: {', '.join(allowed)})")
    plan = Plan(path)
    if "federation" not in content:
        problems.add(f"{path}: federation: is missing; write [federation] with features and costs")
    else:
        _read_federation(plan, Keys(sections["federation"], f"{path}: federation.", problems), "items" in content)
    if "items" in content:
        plan.item_features, plan.known = read_items(Keys(sections["items"], f"{path}: items.", problems))
    plan.method, plan.options, plan.settings = read_training(Keys(sections["training"], f"{path}: training.", problems))
    plan.named = "method" in sections["training"]
    plan.time = read_time(Keys(sections["time"], f"{path}: time.", problems), bool(plan.forecast))
    if "time" in content and plan.order is None:
        problems.add(f"{path}: time: needs federation.order, the column of dates or numbers by which rows follow each other")
    plan.settings.setdefault("seed", plan.seed)
    if plan.order is not None:
        plan.settings.setdefault("validation_blocks", True)  # neighbours in time are similar, so stretches are held out
    plan.settings["split"] = plan.split
    first, last = moment_of(plan.train_from), moment_of(plan.test_from)
    if first is not None and last is not None:
        plan.settings["period"] = (first, last)
    for number, member in enumerate(members, start=1):
        plan.clients.append(_read_client(plan, member, number, problems))
    _check_clients(plan, problems, "client" in content)
    return plan


def _read_federation(plan: Plan, keys: Keys, has_items: bool) -> None:
    enough = has_items or "forecast" in keys.table  # then other features may be left out
    for name, what in (("features", "temp_*"), ("costs", "price_*")):
        wanted = f'names of columns or patterns, such as "{what}" or ["{what}"]'
        texts, order = keys.texts(name, wanted), keys.table.get("order")
        if name == "features" and name not in keys.table and isinstance(order, str):
            texts = [] if enough else [order]  # costs alone are enough: the order becomes a calendar
        elif texts is None and name not in keys.table and not (name == "features" and enough):
            keys.refuse(name, f"is missing; give {wanted}")
        setattr(plan, name, texts or [])
    plan.forecast = keys.texts("forecast", 'a pattern such as "dnn_*", or names of columns in the order of the costs') or []
    plan.sense = keys.choice("sense", SENSES, "min")
    plan.missing = keys.choice("missing", MISSING, "refuse")
    for name in ("order", "client_column", "unit", "unit_column"):
        setattr(plan, name, keys.text(name))
    for name in ("table", "test"):
        setattr(plan, name, keys.take(name, TABLE, is_table))
    plan.set = keys.take("set", 'a table such as { type = "top-k", k = 6 }', lambda value: isinstance(value, Mapping))
    plan.seed = keys.take("seed", "a whole number from 0 to 2**63 - 1", is_seed, 0)
    plan.test_fraction = keys.take("test_fraction", "a number between 0 and 1", is_fraction, TEST_FRACTION)
    if (per := keys.take("per", 'what a row is, such as "day" or "hour"', is_per)) is not None:
        plan.per = plain_per(per)
    _read_split(plan, keys)
    wanted = 'lists of the texts of columns, such as { weather = ["dry", "wet"] }'
    plan.categories = keys.take("categories", wanted, are_categories, {})
    for name, what in (("times", "dates with a time of day"), ("gaps", "features with empty cells")):
        setattr(plan, name, keys.take(name, f"a list of columns: {what}; [] if there are none", are_columns))
    if plan.gaps is not None and plan.missing != "mean":
        keys.refuse("gaps", f'belongs to missing = "mean", found missing = "{plan.missing}"')
    keys.finish()
    for key, other in (("table", "client_column"), ("client_column", "table"), ("test", "client_column")):
        if getattr(plan, key) is not None and getattr(plan, other) is None:
            fix = (
                "a table of each client belongs under its [[client]]"
                if key in ("table", "test")
                else "give the table for all clients"
            )
            keys.refuse(key, f"requires {other}; {fix}")
    if plan.unit is not None and plan.unit_column is not None:
        keys.refuse("unit", "unit and unit_column cannot both be set; remove one")


def _read_split(plan: Plan, keys: Keys) -> None:
    """How rows are held out: by time with an order, else by row; or by a draw of each client."""
    allowed = (TIME, DRAW) if plan.order is not None else (ROW, COST, DRAW)
    if keys.table.get("split") == TIME and plan.order is None:
        keys.take("split", "", lambda _: True)
        keys.refuse("split", 'needs federation.order, the column of dates or numbers; add order = "COLUMN", or write "row"')
        plan.split = ROW
    else:
        plan.split = keys.choice("split", allowed, allowed[0])
    plan.key = keys.texts("key", 'names of columns, such as "date"') or []
    if plan.key and plan.split != ROW:
        ordered = "with an order, rows are held out by time"
        why = ordered if plan.order is not None else f'with split = "{plan.split}" it is not used'
        keys.refuse("key", f"{why}; leave it out")
    for name in ("train_from", "test_from"):
        setattr(plan, name, keys.take(name, A_MOMENT, lambda value: moment_of(value) is not None))
        if name in keys.table and plan.split != TIME:
            why = "needs an order" if plan.order is None else f'belongs to split = "time", found "{plan.split}"'
            keys.refuse(name, why)
    first, last = moment_of(plan.train_from), moment_of(plan.test_from)
    if first is not None and last is not None and first >= last:
        keys.refuse("train_from", f"must be before test_from, found {plan.train_from} and {plan.test_from}")
    if plan.test_from is not None and "test_fraction" in keys.table:
        keys.refuse("test_fraction", "cannot be combined with test_from; remove one")


def _read_client(plan: Plan, member: Mapping[str, Any], number: int, problems: Problems) -> ClientPlan:
    named = member.get("name")
    shown = f" {named!r}" if isinstance(named, str) and named.strip() and len(named) < 60 else ""
    where = f"{plan.path}: client{shown or f' number {number}'}"
    keys = Keys(member, f"{where}.", problems)
    name = keys.take(
        "name",
        "a text that can be printed",
        lambda value: isinstance(value, str) and bool(value.strip()) and value.isprintable(),
    )
    if name is None and "name" not in member:
        keys.refuse("name", "is missing; every client has a name of its own")
    client = ClientPlan(where, name or f"number {number}")
    client.table, client.test = (keys.take(key, TABLE, is_table) for key in ("table", "test"))
    client.sense = keys.choice("sense", SENSES, plan.sense)
    client.unit = keys.text("unit") or plan.unit
    if "unit" in member and plan.unit_column is not None:
        keys.refuse("unit", "unit and federation.unit_column cannot both be set; remove one")
    set_table = keys.take("set", 'a table such as { type = "top-k", k = 6 }', lambda value: isinstance(value, Mapping))
    client.set, client.set_where = (set_table, f"{where}.set") if "set" in member else (plan.set, plan._set_where)
    if "set" not in member and plan.set is None:
        keys.refuse("set", 'is missing; give its constraints, such as set = { type = "top-k", k = 6 }')
    keys.finish()
    if plan.client_column is None and "table" not in member:
        keys.refuse("table", f"is missing; give {TABLE}, or one table for all with federation.client_column")
    if plan.client_column is not None:
        for key in ("table", "test"):
            if key in member:
                keys.refuse(key, f"excludes federation.client_column; the rows of all clients are in federation.{key}")
    return client


def _check_clients(plan: Plan, problems: Problems, has_clients: bool) -> None:
    if not plan.clients and (plan.client_column is None or plan.set is None) and not has_clients:
        other = "" if plan.client_column is None else ", or federation.set for all clients"
        problems.add(f"{plan.path}: client: is missing; write a [[client]] for each site{other}")
    seen: set[str] = set()
    for client in plan.clients:
        if client.name in seen:
            problems.add(f"{client.where}.name: must be unique, found it twice")
        seen.add(client.name)

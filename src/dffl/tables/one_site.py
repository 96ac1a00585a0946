"""One client of a federation's file, from its own table alone; the tables of the other clients are not needed.

With all tables, the encoding is collected from all of them. A site alone cannot do this. The file must then list what the
others may have, and the site's features are exactly those of the whole federation, in names, order and number.

The lists are what a site tells the others: the texts of its categories, which dates have a time, which columns have gaps. No
row and no count leaves the site. The lists are in the federation's file, where `read_site` finds them.
"""

from __future__ import annotations

import codecs
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from dffl.cells import composed, missing_in, moment_value, text_of, texts_of
from dffl.files import write_text
from dffl.named import listed, nearest
from dffl.splitting import TIME
from dffl.tables.assembly import Assembly
from dffl.tables.description import Agreement, Description, described, parse, planned
from dffl.tables.encoding import agreed, summary
from dffl.tables.keys import Problems
from dffl.tables.kinds import WORDS
from dffl.tables.plan import Plan
from dffl.tables.rows import ClientRows

TableLike = str | PathLike[str] | Mapping[str, str]
"""A path, or a database and a query as in the file."""


def read_site(
    path: str | PathLike[str], client: str, *, table: TableLike | None = None, test: TableLike | None = None
) -> Description:
    """The description of one client: ``train`` and ``test`` hold only this client.

    ``table`` and ``test`` replace the tables in the file, for a site that keeps its tables elsewhere. The set, the unit, the
    encoding and the division into training and test rows are those that `dffl.tables.description.read` gives with all
    tables. Texts without a list of categories, dates without ``times``, and ``missing = "mean"`` without ``gaps`` are
    refused: another site may have more of them. Sites compare their columns by ``description.agreement.digest``.
    """
    return described_alone(Path(path), client, table, test)


def described_alone(
    path: Path, client: str, table: TableLike | None, test: TableLike | None, content: dict[str, Any] | None = None
) -> Description:
    """Like `read_site`, for a file with this ``content``, if it is given."""
    problems = Problems()
    plan = plan_of(path, client, problems, table, test, content)
    return described(Assembly(plan, problems, alone=client))


def plan_of(
    path: Path, client: str, problems: Problems, table: TableLike | None = None, test: TableLike | None = None,
    content: dict[str, Any] | None = None,
) -> Plan:  # fmt: skip
    """The plan of a file with only one client, perhaps with other tables. A client that is not in the file is refused."""
    plan = planned(path, problems, content)
    problems.stop()
    client, known = composed(client), [entry.name for entry in plan.clients]
    mine = [entry for entry in plan.clients if entry.name == client]
    if not mine and plan.client_column is not None and plan.set is not None:
        mine = [plan.joined(client)]  # the file takes the names from the table of all clients
    if not mine:
        raise ValueError(
            f"{plan.path}: client: no client has the name {client!r:.60}{nearest(client, known)}; it has {listed(known)}"
        )
    plan.clients = mine
    place: Any = mine[0] if plan.client_column is None else plan
    for key, file in (("table", table), ("test", test)):
        if file is not None:
            setattr(place, key, file if isinstance(file, Mapping) else str(Path(file).absolute()))
    return plan


HEADER = re.compile(r"\s*\[\s*federation\s*\]\s*(#.*)?")
BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class SiteLists:
    """The lists of a federation's file, with those of a site added."""

    categories: dict[str, list[str]] = field(default_factory=dict)
    times: list[str] = field(default_factory=list)
    gaps: list[str] | None = None
    """None if the rule for empty cells needs no list."""
    moments: dict[str, Any] = field(default_factory=dict)
    """The begin of training and of the test at all sites, if rows are divided by time. The first site that adds its lists sets
    it.
    """

    @property
    def keys(self) -> dict[str, Any]:
        """As keys of ``[federation]``. An empty list is information too, except for categories."""
        keys: dict[str, Any] = {"categories": self.categories} if self.categories else {}
        return keys | {"times": self.times} | ({} if self.gaps is None else {"gaps": self.gaps}) | self.moments

    @property
    def lines(self) -> list[str]:
        """As lines of the file."""
        return [f"{key} = {_toml(value)}" for key, value in self.keys.items()]


def site_lists(path: str | PathLike[str], client: str, *, table: TableLike | None = None) -> SiteLists:
    """The lists in the file, with what the training rows of a site's own table add to them."""
    problems = Problems()
    plan = plan_of(Path(path), client, problems, table)
    lists = plan.categories
    gaps: list[str] | None = [] if plan.missing == "mean" else None
    assembly = Assembly(plan, problems, alone=client, proposes=True)
    sites = assembly.sites()
    problems.stop()
    categories: dict[str, list[str]] = {name: [text_of(text) for text in texts] for name, texts in lists.items()}
    times: list[str] = []
    for name in assembly.tables.features.names:
        for cells in (site.train.table.frame[name] for site in sites if site.train is not None):
            with problems.catching(f"{plan.path}: federation.features: column {name!r}"):
                told = summary(cells, lists.get(name, ()))
                column = agreed(name, [told], lists.get(name))
                _require_kind_of_list(name, cells, told["kind"], categories.get(name, []))
                times += [name] if column.kind == "date" and column.time else []
                if gaps is not None and told["missing"]:
                    gaps.append(name)
                if column.kind == "category":
                    texts_here = sorted(set(texts_of(cells)[~missing_in(cells, categories.get(name, ()))].tolist()))
                    categories[name] = list(dict.fromkeys([*categories.get(name, []), *texts_here]))
    problems.stop()
    return SiteLists(
        categories,
        list(dict.fromkeys([*(plan.times or []), *times])),
        None if gaps is None else list(dict.fromkeys([*(plan.gaps or []), *gaps])),
        _moments(plan, sites),
    )


def _moments(plan: Plan, sites: Sequence[ClientRows]) -> dict[str, Any]:
    """The begin of training and of the test: from the file, else from the first rows of this site."""
    if plan.split != TIME:
        return {}
    [site] = sites
    moments = {}
    for key, rows in (("train_from", site.train), ("test_from", site.test)):
        assert rows is not None, "without a problem a site has rows"
        assert rows.order is not None, "and they have an order"
        value = getattr(plan, key)
        moments[key] = moment_value(float(rows.order[0]), rows.dates) if value is None else value
    return moments


def add_lists(path: str | PathLike[str], client: str, *, table: TableLike | None = None) -> tuple[SiteLists, Agreement]:
    """Write the lists of a site into a federation's file, and return its columns by that file.

    All other lines, line endings and a byte-order mark are kept. If the file cannot be changed in this way, or the site
    could not be read with the result, an error is raised and the file is not changed.
    """
    lists = site_lists(path, client, table=table)
    path = Path(path)
    text = _with_lists(path, lists)
    agreement = described_alone(path, client, table, None, tomllib.loads(text)).agreement
    mark = "\ufeff" if path.read_bytes().startswith(codecs.BOM_UTF8) else ""
    write_text(path, mark + text)
    return lists, agreement


def _with_lists(path: Path, lists: SiteLists) -> str:
    """The text of a file with the lists under ``[federation]``."""
    before = parse(path)
    text = path.read_bytes().decode("utf-8-sig")
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if HEADER.fullmatch(line.rstrip("\r"))]
    if len(starts) == 1:
        first = starts[0] + 1
        last = next((number for number in range(first, len(lines)) if lines[number].lstrip().startswith("[")), len(lines))
        while last > first and (not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")):
            last -= 1  # comments at the end belong to the next section
        others = [line for line in lines[first:last] if not _is_one_of(line, lists.keys)]
        end = "\r" if lines[first - 1].endswith("\r") else ""
        changed = [*lines[:first], *others, *(f"{line}{end}" for line in lists.lines), *lines[last:]]
        if end and last == len(lines):  # a file without a line break at its end stays without one
            place = first + len(others) - 1
            changed[place], changed[-1] = changed[place].removesuffix(end) + end, changed[-1].removesuffix(end)
        text = "\n".join(changed)
    wanted = {**before, "federation": {**before.get("federation", {}), **lists.keys}}
    if _parsed(text) != wanted:
        fix = "; ".join(lists.lines)
        raise ValueError(f"{path}: federation: its lists are written in a way that cannot be changed here; write {fix}")
    return text


def _require_kind_of_list(name: str, cells: pd.Series, kind: str | None, texts: list[str]) -> None:
    """Refuse to add numbers to a list of texts, or texts to a list of numbers: the column would have two meanings."""
    kinds = {summary(pd.Series([text]), texts)["kind"]: text for text in texts}
    if kinds and kind is not None and kind not in kinds:
        other, example = next(iter(kinds.items()))
        mine = next(text for text in texts_of(cells)[~missing_in(cells, texts)] if summary(pd.Series([text]))["kind"] == kind)
        what = f"holds {WORDS[kind]} here, such as {mine!r:.60}, and federation.categories.{name} lists {WORDS[other]}"
        fix = "write the column as the other sites do, or add its texts to the list by hand"
        raise ValueError(f"{what}, such as {example!r:.60}; {fix}")


def _is_one_of(line: str, keys: dict[str, Any]) -> bool:
    return line.partition("=")[0].strip().strip("\"'") in keys and "=" in line


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except ValueError:
        return None


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_toml(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)

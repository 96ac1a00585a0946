"""One client of a federation's file, from its own table alone: the tables of the other clients need not be there.

Where all tables are at hand, the encoding is collected from all of them. A site alone cannot do so: the file must list what
the others may have, and then the site's features are exactly those of the whole federation, in names, order and number.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from dffl.cells import composed
from dffl.named import listed, nearest
from dffl.tables.assembly import Assembly
from dffl.tables.description import Description, described, planned
from dffl.tables.plan import Plan
from dffl.tables.problems import Problems

TableLike = str | PathLike[str] | Mapping[str, str]
"""A path, or a database and a query as in the file."""


def read_site(
    path: str | PathLike[str], client: str, *, table: TableLike | None = None, test: TableLike | None = None
) -> Description:
    """The description of one client: ``train`` and ``test`` hold that client alone.

    ``table`` and ``test`` take the place of what the file says, for a site that keeps its tables elsewhere. Its set, unit,
    encoding and the division into training and test rows are those that `dffl.tables.description.read` gives with all tables.
    Texts without a list of categories, dates without ``times``, and ``missing = "mean"`` without ``gaps`` are refused: another
    site may have more of them. ``description.agreement.digest`` is for comparing the columns with other sites.
    """
    return described_alone(Path(path), client, table, test)


def described_alone(
    path: Path, client: str, table: TableLike | None, test: TableLike | None, content: dict[str, Any] | None = None
) -> Description:
    """As `read_site`, for a file with this ``content``, if it is given."""
    problems = Problems()
    plan = plan_of(path, client, problems, table, test, content)
    return described(plan, Assembly(plan, problems, alone=client).parts(), problems)


def plan_of(
    path: Path, client: str, problems: Problems, table: TableLike | None = None, test: TableLike | None = None,
    content: dict[str, Any] | None = None,
) -> Plan:  # fmt: skip
    """The plan of a file with only one client, perhaps with other tables; one that the file does not know is refused."""
    plan = planned(path, problems, content)
    problems.stop()
    client, known = composed(client), [one.name for one in plan.clients]
    mine = [one for one in plan.clients if one.name == client]
    if not mine and plan.client_column is not None and plan.set is not None:
        mine = [plan.joined(client)]  # the file leaves the names to the table for all clients
    if not mine:
        raise ValueError(
            f"{plan.path}: client: no client has the name {client!r:.60}{nearest(client, known)}; it has {listed(known)}"
        )
    plan.clients = mine
    place: Any = mine[0] if plan.client_column is None else plan
    for key, given in (("table", table), ("test", test)):
        if given is not None:
            setattr(place, key, given if isinstance(given, Mapping) else str(Path(given).absolute()))
    return plan

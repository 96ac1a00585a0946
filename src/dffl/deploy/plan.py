"""The plan of a federation, `plan.toml`: what the sites and the coordinator agree on before anything is trained.

Its keys under ``[federation]`` and ``[training]`` are those of a `federation.toml`, without tables and sets, which are each
site's own. A digest of what it says is compared at joining, so that no two sides read it differently.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dffl.data.description import parse
from dffl.data.keys import Keys
from dffl.data.plan import read_plan as read_description
from dffl.data.problems import Problems
from dffl.deploy.credentials import require_site_name
from dffl.splitting import DRAW, TIME
from dffl.training.change_limit import LEAST
from dffl.training.methods import Request, request
from dffl.training.settings import Settings

SCALARS = ("loss", "clipped", "norm")
"""What a site may say of a round."""
RESULTS = ("out_of_fold_regret",)
"""What a site may say of its own model in the end."""
STATISTICS = ("own", "pooled")
SITE_KEYS = ("table", "test", "client_column", "set", "unit_column")
"""Keys of a `federation.toml` that belong to a site's own file."""
HIGHEST_PORT = 65535
MOST_ROWS = 10**9
MOST_TIMES = 100
"""How many times the median rows of the other sites a site may claim, where the plan sets no limit."""
TIMES_LARGEST = 10
"""It may also be this many times the largest of theirs: where a few sites are far larger than the others, none is refused."""


@dataclass(frozen=True)
class Patience:
    """How long the coordinator waits for what, in seconds."""

    join: float = 600.0
    """For the sites to join before the first round."""
    round: float = 600.0
    """For the answers of one round; a site that needs longer is late."""
    dead: float = 8.0
    """For a sign of life; after that a site is dead until it joins again."""
    quorum: float = 600.0
    """For enough sites to come back, before the run ends with its state kept."""


@dataclass(frozen=True)
class Plan:
    """What all sides agree on."""

    path: Path
    text: str
    name: str
    address: str
    """Where sites find the coordinator: host:port."""
    listen: str
    """Where the coordinator listens; by default at the port of its address, on all interfaces."""
    sites: tuple[str, ...]
    inputs: int
    """The number of feature columns after texts and dates have become numbers."""
    dimension: int
    """The number of costs."""
    asked: Request
    settings: Settings
    federation: dict[str, Any]
    """The keys for a description of one site."""
    training: dict[str, Any]
    min_rows: int = 20
    max_rows: int | None = None
    """A site weighs as much as its rows: one that claims more is refused. None: see `too_many`."""
    columns: str = ""
    """The digest of the feature and cost columns; without it the first site that joins decides."""
    quorum: float = 0.5
    """The share of the selected sites whose updates a round needs."""
    patience: Patience = field(default_factory=Patience)
    scalars: tuple[str, ...] = ("loss",)
    results: tuple[str, ...] = ()
    statistics: str = "own"
    most_megabytes: int = 64
    clock_seconds: float = 300.0
    largest_parameter: float = 1e6
    digest: str = ""

    @property
    def most_bytes(self) -> int:
        """The largest message."""
        return self.most_megabytes * 2**20

    @property
    def tau(self) -> float:
        """The norm at which predictions are clipped."""
        return self.settings.clip(self.dimension)

    @property
    def most_rows(self) -> int:
        """The largest number of rows with which a site may join."""
        return MOST_ROWS if self.max_rows is None else self.max_rows

    def too_many(self, counts: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
        """The sites whose numbers of samples are refused, each with the reason, where the plan sets no limit.

        ``counts`` are the numbers of samples of each site that has been there.
        """
        largest = {name: max(own.values()) for name, own in counts.items()}
        if self.max_rows is not None or len(largest) < LEAST:
            return {}
        refused = {}
        for name, count in largest.items():
            others = [theirs for other, theirs in largest.items() if other != name]
            median = float(np.median(others))
            if count > max(MOST_TIMES * median, TIMES_LARGEST * max(others)):
                what = f"it claims {count} samples, more than {MOST_TIMES} times the median of the other sites ({median:g})"
                refused[name] = f"{what}; if that is true, set max_rows under [federation] in the plan"
        return refused

    @property
    def pools(self) -> bool:
        """Sites send their means and scales."""
        return self.statistics == "pooled"

    @property
    def hosts(self) -> list[str]:
        """The names and addresses under which sites may find the coordinator, for its certificate."""
        return list(dict.fromkeys([self.address.rpartition(":")[0], "localhost", "127.0.0.1"]))


def read_plan(path: Path) -> Plan:
    """Read and check a plan; all problems are raised at once."""
    content = parse(path)
    return plan_of(path, path.read_text(encoding="utf-8-sig"), content)


def plan_of(path: Path, text: str, content: Mapping[str, Any]) -> Plan:
    """The plan that a file's content describes."""
    problems = Problems()
    top = Keys(content, f"{path}: ", problems)
    sections: dict[str, Any] = {}
    for name in ("federation", "training", "rounds", "wire"):
        sections[name] = top.take(name, f"a table: write [{name}] above its keys", lambda value: isinstance(value, Mapping), {})
    top.finish()
    made: dict[str, Any] = {}
    keys = Keys(sections["federation"], f"{path}: federation.", problems)
    made["name"] = keys.text("name") or "federation"
    made["address"] = keys.take("address", "host:port, where sites find the coordinator", is_address)
    if "address" not in keys.table:
        keys.refuse("address", "is missing; give host:port, where sites find the coordinator")
    port = str(made["address"] or ":").rpartition(":")[2]
    made["listen"] = keys.take("listen", "host:port, where the coordinator listens", is_address, f"0.0.0.0:{port}")
    made["sites"] = tuple(keys.take("sites", "a list of two or more names of sites", _are_names, ()))
    if "sites" not in keys.table:
        keys.refuse("sites", 'is missing; list the names of the sites, such as ["north", "south"]')
    for number, name in enumerate(made["sites"]):
        with problems.catching():
            require_site_name(name, f"{path}: federation.sites")
        if name.lower() in (other.lower() for other in made["sites"][:number]):
            keys.refuse("sites", f"must differ, found {name!r} twice (upper and lower case are not told apart)")
    for key, what in (("inputs", "feature columns, with texts and dates as numbers"), ("dimension", "costs")):
        made[key] = keys.take(key, f"the number of {what}", _is_count, 1)
        if key not in keys.table:
            keys.refuse(key, f"is missing; give the number of {what} (`dffl site check` counts them)")
    made["min_rows"] = keys.take("min_rows", "a whole number from 2", lambda value: _is_count(value) and value >= 2, 20)
    made["max_rows"] = keys.take("max_rows", "a whole number from min_rows", lambda value: _is_count(value, MOST_ROWS), None)
    if made["max_rows"] is not None and made["max_rows"] < made["min_rows"]:
        keys.refuse("max_rows", f"must be at least min_rows ({made['min_rows']}), found {made['max_rows']}")
    made["columns"] = keys.take("columns", "the 64 letters and digits that `dffl site check` shows", _is_digest, "")
    made["federation"] = keys.rest()
    made["federation"].setdefault("split", DRAW)  # plans of 0.2.0 do not say: each site drew its own rows
    for key in SITE_KEYS:
        if key in made["federation"]:
            keys.refuse(key, "belongs to a site's own file, which never leaves it")
            made["federation"].pop(key)
    _read_rounds(Keys(sections["rounds"], f"{path}: rounds.", problems), made)
    _read_wire(Keys(sections["wire"], f"{path}: wire.", problems), made)
    made["training"] = dict(sections["training"])
    _read_training(path, made, problems)
    if made["federation"]["split"] == TIME:
        for key in ("train_from", "test_from"):
            if key not in made["federation"]:
                keys.refuse(key, "is missing; sites cannot see each other's days, and share the moments of the plan")
    problems.stop()
    said = json.dumps(content, sort_keys=True, default=str)
    digest = hashlib.sha256(said.encode()).hexdigest()
    return Plan(path=path, text=text, digest=digest, **made)


def _read_rounds(keys: Keys, made: dict[str, Any]) -> None:
    made["quorum"] = keys.take("quorum", "a share above 0, at most 1", lambda value: _is_number(value) and 0 < value <= 1, 0.5)
    usual = Patience()
    waits = {}
    for name in ("join", "round", "dead", "quorum"):
        waits[name] = float(keys.take(f"{name}_seconds", "seconds, above 0", _is_seconds, getattr(usual, name)))
    if waits["dead"] < 4:
        keys.refuse("dead_seconds", f"must be at least 4, as sites give a sign of life every second, found {waits['dead']:g}")
    made["patience"] = Patience(**waits)
    made["clock_seconds"] = keys.take("clock_seconds", "seconds, above 0", _is_seconds, 300.0)
    keys.finish()


def _read_wire(keys: Keys, made: dict[str, Any]) -> None:
    for name, allowed, usual in (("scalars", SCALARS, ("loss",)), ("results", RESULTS, ())):
        wanted = f"a list of some of {', '.join(allowed)}, or []"
        made[name] = tuple(keys.take(name, wanted, lambda value, allowed=allowed: _are_some(value, allowed), usual))
    made["statistics"] = keys.choice("statistics", STATISTICS, "own")
    made["most_megabytes"] = keys.take(
        "most_megabytes", "a whole number from 1 to 1000", lambda v: _is_count(v) and v <= 1000, 64
    )
    made["largest_parameter"] = float(keys.take("largest_parameter", "a number above 0", _is_seconds, 1e6))
    keys.finish()


def _read_training(path: Path, made: dict[str, Any], problems: Problems) -> None:
    """The method and its settings, read as a `federation.toml` has them, with stand-ins for what is each site's own."""
    before = len(problems)
    stand_ins = [
        {"name": str(name), "table": "table.csv", "set": {"type": "top-k", "k": 1}} for name in made["sites"] or ("a",)
    ]
    content = {"federation": made["federation"], "training": made["training"], "client": stand_ins}
    found = read_description(path, content, problems)
    if len(problems) > before:
        made["asked"], made["settings"] = None, None
        return
    if found.forecast and made["inputs"] < made["dimension"]:
        what = f"must be at least dimension ({made['dimension']}), as the forecast is among the inputs, found {made['inputs']}"
        problems.add(f"{path}: federation.inputs: {what}")
    with problems.catching(f"{path}: training"):
        made["asked"], settings = request((found.method, found.options), found.settings)
        made["settings"] = replace(Settings.of(**settings), forecast=bool(found.forecast)).at(made["dimension"])
        if made["settings"].engine == "processes":
            raise ValueError("engine must be vector or loop: a site holds one client, in one process")
        if made["settings"].hides is not None and (made["scalars"] or made["results"] or made["statistics"] != "own"):
            raise ValueError(
                "privacy hides models only: under [wire], write scalars = [], results = [] and no pooled statistics"
            )
        if made["settings"].pooled_units and made["statistics"] != "pooled":
            raise ValueError('pooled_units needs statistics = "pooled" under [wire]: every site sends its means and scales')


def is_address(value: Any) -> bool:
    """host:port."""
    if not isinstance(value, str):
        return False
    host, colon, port = value.rpartition(":")
    return bool(host and colon) and port.isdigit() and 0 < int(port) <= HIGHEST_PORT and " " not in host


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_seconds(value: Any) -> bool:
    return _is_number(value) and 0 < value < 1e9


def _is_count(value: Any, most: int = 10**6) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= 2 and all(isinstance(one, str) for one in value)


def _are_some(value: Any, allowed: tuple[str, ...]) -> bool:
    return isinstance(value, list) and all(one in allowed for one in value) and len(set(value)) == len(value)

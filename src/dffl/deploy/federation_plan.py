"""The plan of a federation, `plan.toml`: the sites and the coordinator agree on it before training.

Its keys under ``[federation]``, ``[training]``, ``[items]`` and ``[time]`` are those of a `federation.toml`, without tables
and sets, which belong to each site. When a site joins, a digest of the plan is compared, so that all sides have the same plan.
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

from dffl.deploy.credentials import require_site_name
from dffl.deploy.time_plan import read_later, recipe_of
from dffl.splitting import DRAW, TIME
from dffl.tables.description import parse
from dffl.tables.keys import Keys, Problems
from dffl.tables.plan import Plan
from dffl.tables.plan import read_plan as read_description
from dffl.time.fleet import FleetRecipe
from dffl.time.outcome import CHOSEN
from dffl.training.aggregators import Aggregator
from dffl.training.change_limit import LEAST
from dffl.training.methods import Request, request
from dffl.training.settings import Settings
from dffl.training.trainers.federated import participants

SCALARS = ("loss", "clipped", "norm")
"""What a site may report about a round."""
RESULTS = ("out_of_fold_regret",)
"""What a site may report about its final model."""
STATISTICS = ("own", "pooled")
DESCRIBED = ("federation", "training", "items", "time")
"""The sections of a `federation.toml` that a plan has too."""
SITE_KEYS = ("table", "test", "client_column", "set", "unit_column")
"""Keys of a `federation.toml` that belong to a site's own file."""
HIGHEST_PORT = 65535
MAX_ROWS = 10**9
MAX_TIMES_MEDIAN = 100
"""Without a limit in the plan, a site may report this many times the median rows of the other sites."""
MAX_TIMES_LARGEST = 10
"""Or this many times the most rows of another site, so that a few large sites are not refused."""


@dataclass(frozen=True)
class TimeOuts:
    """The time-outs of the coordinator, in seconds."""

    join: float = 600.0
    """Of the wait for sites before the first round."""
    round: float = 600.0
    """Of the answers in a round; a slower site is late."""
    dead: float = 8.0
    """Of a site's silence; a site that is silent for longer is dead until it joins again."""
    quorum: float = 600.0
    """Of the wait for a quorum in a round; then the run ends, and its state is kept."""


@dataclass(frozen=True)
class FederationPlan:
    """The checked content of a `plan.toml`."""

    path: Path
    text: str
    name: str
    address: str
    """Where sites reach the coordinator: host:port."""
    listen: str
    """Where the coordinator listens; by default on all interfaces, at the port of its address."""
    sites: tuple[str, ...]
    inputs: int
    """The number of features, after texts and dates are encoded as numbers."""
    dimension: int
    """The number of costs."""
    method_request: Request | None
    """The method; None for `chosen`, which is several trainings and a choice."""
    settings: Settings
    described: dict[str, Any]
    """The sections that describe one site: those of a `federation.toml`."""
    choice: FleetRecipe | None = None
    """With `chosen`: how sites choose."""
    min_rows: int = 20
    max_rows: int | None = None
    """A site with more rows is rejected, because rows are its weight. None: see `too_many`."""
    columns: str = ""
    """The digest of the feature and cost columns; without it, the first site that joins decides."""
    quorum: float = 0.5
    """The share of the selected sites whose updates a round needs."""
    timeouts: TimeOuts = field(default_factory=TimeOuts)
    scalars: tuple[str, ...] = ("loss",)
    results: tuple[str, ...] = ()
    statistics: str = "own"
    most_megabytes: int = 64
    clock_seconds: float = 300.0
    largest_parameter: float = 1e6
    digest: str = ""

    @property
    def method(self) -> str:
        """The name of the method."""
        return CHOSEN if self.method_request is None else self.method_request.method.name

    @property
    def one_method(self) -> Request:
        """The method of a plan that does not choose."""
        if self.method_request is None:
            raise ValueError(f"method {CHOSEN!r} is several trainings and a choice, not one method")
        return self.method_request

    @property
    def max_message_bytes(self) -> int:
        """The size limit of a message."""
        return self.most_megabytes * 2**20

    @property
    def tau(self) -> float:
        """The norm at which predictions are clipped."""
        return self.settings.clip(self.dimension)

    @property
    def row_limit(self) -> int:
        """The largest number of rows with which a site may join."""
        return MAX_ROWS if self.max_rows is None else self.max_rows

    def too_many(self, counts: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
        """Without a limit in the plan: the sites that report too many samples, each with the reason.

        ``counts`` are the numbers of samples of each site that has joined.
        """
        largest = {name: max(site_counts.values()) for name, site_counts in counts.items()}
        if self.max_rows is not None or len(largest) < LEAST:
            return {}
        refused = {}
        for name, count in largest.items():
            others = [other_count for other, other_count in largest.items() if other != name]
            median = float(np.median(others))
            if count > max(MAX_TIMES_MEDIAN * median, MAX_TIMES_LARGEST * max(others)):
                what = (
                    f"it reports {count} samples, more than {MAX_TIMES_MEDIAN} times the median of the other sites ({median:g})"
                )
                refused[name] = f"{what}; if that is true, set max_rows under [federation] in the plan"
        return refused

    @property
    def pools(self) -> bool:
        """Whether sites send their means and scales."""
        return self.statistics == "pooled"

    @property
    def hosts(self) -> list[str]:
        """The names and addresses of the coordinator, for its certificate."""
        return list(dict.fromkeys([self.address.rpartition(":")[0], "localhost", "127.0.0.1"]))


def read_plan(path: Path) -> FederationPlan:
    """Read and check a plan; one error lists all problems."""
    content = parse(path)
    return plan_of(path, path.read_text(encoding="utf-8-sig"), content)


def plan_of(path: Path, text: str, content: Mapping[str, Any]) -> FederationPlan:
    """The plan of a parsed file."""
    problems = Problems()
    top = Keys(content, f"{path}: ", problems)
    sections: dict[str, Any] = {}
    for name in (*DESCRIBED, "rounds", "wire"):
        sections[name] = top.take(name, f"a table: write [{name}] above its keys", lambda value: isinstance(value, Mapping), {})
    top.finish()
    values: dict[str, Any] = {}
    keys = Keys(sections["federation"], f"{path}: federation.", problems)
    values["name"] = keys.text("name") or "federation"
    values["address"] = keys.take("address", "host:port, where sites reach the coordinator", is_address)
    if "address" not in keys.table:
        keys.refuse("address", "is missing; give host:port, where sites reach the coordinator")
    port = str(values["address"] or ":").rpartition(":")[2]
    values["listen"] = keys.take("listen", "host:port, where the coordinator listens", is_address, f"0.0.0.0:{port}")
    values["sites"] = tuple(keys.take("sites", "a list of two or more names of sites", _are_names, ()))
    if "sites" not in keys.table:
        keys.refuse("sites", 'is missing; list the names of the sites, such as ["north", "south"]')
    for number, name in enumerate(values["sites"]):
        with problems.catching():
            require_site_name(name, f"{path}: federation.sites")
        if name.lower() in (other.lower() for other in values["sites"][:number]):
            keys.refuse("sites", f"must differ, found {name!r} twice (upper and lower case count as equal)")
    for key, what in (("inputs", "feature columns, with texts and dates as numbers"), ("dimension", "costs")):
        values[key] = keys.take(key, f"the number of {what}", _is_count, 1)
        if key not in keys.table:
            keys.refuse(key, f"is missing; give the number of {what} (`dffl site check` counts them)")
    values["min_rows"] = keys.take("min_rows", "a whole number from 2", lambda value: _is_count(value) and value >= 2, 20)
    values["max_rows"] = keys.take("max_rows", "a whole number from min_rows", lambda value: _is_count(value, MAX_ROWS), None)
    if values["max_rows"] is not None and values["max_rows"] < values["min_rows"]:
        keys.refuse("max_rows", f"must be at least min_rows ({values['min_rows']}), found {values['max_rows']}")
    values["columns"] = keys.take("columns", "the 64 letters and digits that `dffl site check` shows", _is_digest, "")
    federation = keys.rest()
    federation.setdefault("split", DRAW)  # plans of 0.2.0 have no such key: each site drew its own rows
    for key in SITE_KEYS:
        if key in federation:
            keys.refuse(key, "belongs to a site's own file, which never leaves it")
            federation.pop(key)
    _read_rounds(Keys(sections["rounds"], f"{path}: rounds.", problems), values)
    _read_wire(Keys(sections["wire"], f"{path}: wire.", problems), values)
    time = Keys(sections["time"], f"{path}: time.", problems)
    later = read_later(time)
    described = {"federation": federation, "training": dict(sections["training"])}
    described |= {name: dict(sections[name]) for name in ("items", "time") if name in content}
    values["described"] = described | ({"time": time.rest()} if "time" in content else {})
    _read_training(path, values, later, problems)
    if federation["split"] == TIME:
        for key in ("train_from", "test_from"):
            if key not in federation:
                keys.refuse(key, "is missing; sites cannot see each other's days, so the plan must set it")
    problems.stop()
    canonical = json.dumps(content, sort_keys=True, default=str)
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return FederationPlan(path=path, text=text, digest=digest, **values)


def _read_rounds(keys: Keys, values: dict[str, Any]) -> None:
    values["quorum"] = keys.take(
        "quorum", "a share above 0, at most 1", lambda value: _is_number(value) and 0 < value <= 1, 0.5
    )
    defaults = TimeOuts()
    waits = {}
    for name in ("join", "round", "dead", "quorum"):
        waits[name] = float(keys.take(f"{name}_seconds", "seconds, above 0", _is_seconds, getattr(defaults, name)))
    if waits["dead"] < 4:
        keys.refuse("dead_seconds", f"must be at least 4, as sites send a heartbeat every second, found {waits['dead']:g}")
    values["timeouts"] = TimeOuts(**waits)
    values["clock_seconds"] = keys.take("clock_seconds", "seconds, above 0", _is_seconds, 300.0)
    keys.finish()


def _read_wire(keys: Keys, values: dict[str, Any]) -> None:
    for name, allowed, default in (("scalars", SCALARS, ("loss",)), ("results", RESULTS, ())):
        wanted = f"a list of some of {', '.join(allowed)}, or []"
        values[name] = tuple(keys.take(name, wanted, lambda value, allowed=allowed: _are_some(value, allowed), default))
    values["statistics"] = keys.choice("statistics", STATISTICS, "own")
    values["most_megabytes"] = keys.take(
        "most_megabytes", "a whole number from 1 to 1000", lambda v: _is_count(v) and v <= 1000, 64
    )
    values["largest_parameter"] = float(keys.take("largest_parameter", "a number above 0", _is_seconds, 1e6))
    keys.finish()


def _read_training(path: Path, values: dict[str, Any], later: list[Any], problems: Problems) -> None:
    """Read the method and its settings as in a `federation.toml`, with placeholders for tables and sets."""
    before = len(problems)
    placeholders = [
        {"name": str(name), "table": "table.csv", "set": {"type": "top-k", "k": 1}} for name in values["sites"] or ("a",)
    ]
    description = read_description(path, values["described"] | {"client": placeholders}, problems)
    values["method_request"] = None
    if len(problems) > before:
        values["settings"] = None
        return
    _require_inputs(path, values, description, problems)
    with problems.catching(f"{path}: training"):
        settings = description.settings
        if description.method != CHOSEN:
            values["method_request"], settings = request((description.method, description.options), settings)
        told: dict[str, Any] = {"forecast": bool(description.forecast), "item_features": item_features(description)}
        values["settings"] = replace(Settings.of(**settings), **told).at(values["dimension"])
        aggregator = Aggregator.of(values["settings"].aggregate)
        if values["sites"]:
            aggregator.check(participants(len(values["sites"]), values["settings"].client_fraction))
        if values["settings"].hides is not None and (values["scalars"] or values["results"] or values["statistics"] != "own"):
            raise ValueError(
                "privacy hides models only: under [wire], write scalars = [], results = [] and no pooled statistics"
            )
        if values["settings"].pooled_units and values["statistics"] != "pooled":
            raise ValueError('pooled_units needs statistics = "pooled" under [wire]: every site sends its means and scales')
    with problems.catching(f"{path}"):
        if description.method == CHOSEN:
            values["choice"] = recipe_of(description, len(values["sites"]), later, values["statistics"], values["results"])
        elif later:
            raise ValueError(f'time.later: belongs to method = "{CHOSEN}"; leave it out')


def item_features(description: Plan) -> int:
    """How many features each item has, by the plan."""
    return len(description.item_features) + len(description.known)


def _require_inputs(path: Path, values: dict[str, Any], description: Plan, problems: Problems) -> None:
    """Refuse fewer inputs than a forecast and the features of items take; and features of items in a file."""
    parts, needed = [], 0
    for what, count in (("the forecast is", bool(description.forecast)), ("features of items are", item_features(description))):
        parts += [what] if count else []
        needed += int(count) * values["dimension"]
    if values["inputs"] < needed:
        what = f"must be at least {'dimension' if needed == values['dimension'] else 'as many as they take'} ({needed})"
        problems.add(f"{path}: federation.inputs: {what}, as {' and '.join(parts)} among the inputs, found {values['inputs']}")
    for name, value in description.known.items():
        if isinstance(value, Mapping):
            fix = "write the numbers as a list, in the order of the costs"
            problems.add(f"{path}: items.known.{name}: a plan names no files of sites; {fix}")


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
    return isinstance(value, list) and len(value) >= 2 and all(isinstance(name, str) for name in value)


def _are_some(value: Any, allowed: tuple[str, ...]) -> bool:
    return isinstance(value, list) and all(name in allowed for name in value) and len(set(value)) == len(value)

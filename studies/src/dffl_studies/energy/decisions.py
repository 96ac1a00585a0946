"""What each zone decides: k periods by its demand, or another set that a small TOML file gives it.

    [default]                       # the zones that the file does not name; without it they buy `demand` periods
    type = "top-k"
    k = 6
    [zones.NORTH]                   # a block of consecutive periods
    type = "consecutive-hours"
    run = 4
    [zones.SOUTH]                   # a load that needs 10 MWh a day, at most 2 MWh in a period
    type = "flexible-load"
    energy = 10
    limit = 2

Every set of a federation.toml is there (`battery`, `file` with an MPS, ...), and `flexible-load`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dffl.named import listed
from dffl.sets import FeasibleSet, Polytope
from dffl.tables.sets_by_name import make_set
from dffl_studies.energy.data import Panel

FLEXIBLE = "flexible-load"
PARTS = ("default", "zones")


def sets_of(path: Path, panel: Panel) -> dict[str, FeasibleSet]:
    """The set of each zone that the file, or its default, describes."""
    described = _read(path)
    zones = described.get("zones", {})
    if unknown := sorted(set(zones) - set(panel.names)):
        raise ValueError(f"{path}: zones.{unknown[0]}: is not a zone of {panel.source}; it has {listed(panel.names)}")
    if "default" in described:
        zones = dict.fromkeys(panel.names, described["default"]) | dict(zones)
    where = {zone: "default" if zone not in described.get("zones", {}) else f"zones.{zone}" for zone in zones}
    return {zone: _set(table, panel.periods, path, where[zone]) for zone, table in zones.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        described = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as TOML ({error})") from None
    for name, value in described.items():
        if name not in PARTS or not isinstance(value, dict):
            raise ValueError(f"{path}: {name}: must be one of the tables {', '.join(PARTS)}")
    return described


def _set(table: Any, periods: int, path: Path, where: str) -> FeasibleSet:
    if isinstance(table, Mapping) and table.get("type") == FLEXIBLE:
        return _flexible(table, periods, f"{path}: {where}")
    return make_set(table, [f"price_{period}" for period in range(periods)], path.parent, f"{path}: {where}")


def _flexible(table: Mapping[str, Any], periods: int, where: str) -> FeasibleSet:
    """A load that takes ``energy`` a day, in any periods, at most ``limit`` in one."""
    known = {"type", "energy", "limit"}
    for name in ("energy", "limit"):
        value = table.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
            raise ValueError(f"{where}.{name}: must be a number above 0, found {value!r:.40}")
    if unknown := sorted(set(table) - known):
        raise ValueError(f"{where}.{unknown[0]}: {FLEXIBLE} has no such parameter (parameters: energy, limit)")
    energy, limit = float(table["energy"]), float(table["limit"])
    if energy >= limit * periods:
        raise ValueError(f"{where}.energy: must be below limit x periods = {limit * periods:g}, found {energy:g}")
    return Polytope(A_eq=np.ones((1, periods)), b_eq=np.array([energy]), lower=np.zeros(periods), upper=np.full(periods, limit))

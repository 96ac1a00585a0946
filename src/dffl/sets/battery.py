"""A battery that buys and sells energy: charge, discharge, losses and a state of charge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.typing import ArrayLike
from scipy import sparse

from dffl.sets._program import CONTINUOUS, INTEGER, Program
from dffl.sets._solving import ProgramModel
from dffl.sets.base import FeasibleSet, dimension, frozen, parameter, require
from dffl.sets.parameters import FLAG, LIMITS, NUMBER, VECTOR
from dffl.sets.program_set import NODES, SECONDS, ProgramSet, checked_limits


class Battery(ProgramSet):
    """The net purchase of a site with a battery in each hour; a negative one is a sale. Predicted: the price of each hour.

    ``capacity`` is the largest state of charge, ``charge`` and ``discharge`` are the most energy that goes in and out in an
    hour, ``efficiency`` is what a unit that goes in and out again is worth (lost in equal parts on both ways). The battery
    starts at ``initial`` and ends at ``final`` at least (by default as it started). ``load`` is what the site uses in each
    hour besides. ``wear`` is a known cost of each unit that is discharged. ``least_purchase`` and ``most_purchase`` bound the
    net purchase of an hour; 0 as the least one forbids sales.

    At negative prices it would pay to charge and discharge at once, to lose energy. ``exclusive`` excludes that by a 0-1
    variable for each hour; without it the set is a polytope, its relaxation.

    Helpers: the discharge and the level (state of charge at the hour's end) of each hour, and whether it charges. What is
    charged in an hour is purchase + discharge - load.
    """

    toml_name = "battery"
    toml_parameters = {
        "capacity": NUMBER, "charge": NUMBER, "discharge": NUMBER, "efficiency": NUMBER, "initial": NUMBER, "final": NUMBER,
        "load": VECTOR, "wear": NUMBER, "least_purchase": VECTOR, "most_purchase": VECTOR, "exclusive": FLAG, **LIMITS,
    }  # fmt: skip

    def __init__(
        self,
        hours: int,
        capacity: float,
        charge: float,
        discharge: float | None = None,
        efficiency: float = 0.9,
        initial: float = 0.0,
        final: float | None = None,
        load: ArrayLike = 0.0,
        wear: float = 0.0,
        least_purchase: ArrayLike | None = None,
        most_purchase: ArrayLike | None = None,
        exclusive: bool = True,
        nodes: int = NODES,
        seconds: float = SECONDS,
    ):
        count = dimension("Battery", hours)
        parameters = {
            "capacity": capacity, "charge": charge, "discharge": charge if discharge is None else discharge,
            "efficiency": efficiency, "initial": initial, "final": initial if final is None else final, "wear": wear,
        }  # fmt: skip
        numbers = {name: _number(name, value) for name, value in parameters.items()}
        for name in ("capacity", "charge", "discharge"):
            require("Battery", name, np.asarray(numbers[name]), np.asarray(numbers[name] > 0), "> 0")
        largest = numbers["capacity"]
        require("Battery", "efficiency", np.asarray(efficiency), np.asarray(0 < numbers["efficiency"] <= 1), "in (0, 1]")
        for name in ("initial", "final"):
            require(
                "Battery", name, np.asarray(numbers[name]), np.asarray(0 <= numbers[name] <= largest), f"in [0, {largest:g}]"
            )
        require("Battery", "wear", np.asarray(wear), np.asarray(numbers["wear"] >= 0), ">= 0")
        used = _each_hour("load", load, count, 0.0)
        # Bounds that always hold, so that the purchase is bounded as it must be.
        low = np.maximum(_each_hour("least_purchase", least_purchase, count, -np.inf), used - numbers["discharge"])
        high = np.minimum(_each_hour("most_purchase", most_purchase, count, np.inf), used + numbers["charge"])
        for hour in np.flatnonzero(low > high):
            raise ValueError(f"Battery: hour {hour}: the purchase must be at least {low[hour]:g} and at most {high[hour]:g}")
        limits = checked_limits("Battery", nodes, seconds)
        spec: dict[str, Any] = {"hours": count} | numbers | {"load": used, "exclusive": bool(exclusive)} | limits
        spec |= {"least_purchase": low, "most_purchase": high}

        def build() -> ProgramModel:  # not before it is needed: a program is far larger than what describes it
            return ProgramModel(_program(count, numbers, used, low, high, bool(exclusive)), **limits)

        super().__init__(count, spec, build, known=numbers["wear"] > 0, has_integers=bool(exclusive))

    @classmethod
    def toml_sized(cls, d: int) -> dict[str, Any]:
        return {"hours": d}

    def in_words(self) -> str:
        return f"battery over {self.dim} hours"

    @classmethod
    def asked(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        hours = spec.get("hours")
        each = {"cells": 3 * hours} if isinstance(hours, int) else {}  # load, least and most purchase, also of one number
        return super().asked(spec) | {"dim": hours} | each

    @property
    def relaxed(self) -> FeasibleSet:
        return type(self)(**(self.spec() | {"exclusive": False})) if self._whole else self


def _number(name: str, value: Any) -> float:
    number = parameter("Battery", name, value, 0)
    if number.ndim:
        raise ValueError(f"Battery: {name} must be one number, found shape {number.shape}")
    return float(number)


def _each_hour(name: str, value: ArrayLike | None, hours: int, default: float) -> np.ndarray:
    array = np.full((), default) if value is None else parameter("Battery", name, value, 0)
    if array.shape not in ((), (hours,)):
        raise ValueError(f"Battery: {name} must be one number, or one for each of {hours} hours, found shape {array.shape}")
    return frozen(np.broadcast_to(array, (hours,)).copy())


def _program(hours: int, n: dict[str, float], load: np.ndarray, low: np.ndarray, high: np.ndarray, exclusive: bool) -> Program:
    # Columns: purchase p, discharge g, level s, charging b. The charge is p + g - load, without a column of its own: fewer
    # columns are solved faster.
    way, eye, none = math.sqrt(n["efficiency"]), sparse.eye(hours), sparse.csr_matrix((hours, hours))
    change = eye - sparse.eye(hours, k=-1)
    start = np.zeros(hours)
    start[0] = n["initial"]
    balance = start - way * load  # s_t - s_(t-1) = way (p + g - load) - g / way
    blocks = [[eye, eye, none, none], [-way * eye, (1 / way - way) * eye, change, none]]
    row_low, row_high = [load, balance], [load + n["charge"], balance]
    names = [[f"charge_{t}" for t in range(hours)], [f"balance_{t}" for t in range(hours)]]
    if exclusive:
        blocks += [[eye, eye, none, -n["charge"] * eye], [none, eye, none, n["discharge"] * eye]]
        row_low += [np.full(hours, -np.inf)] * 2
        row_high += [load, np.full(hours, n["discharge"])]
        names += [[f"charging_{t}" for t in range(hours)], [f"discharging_{t}" for t in range(hours)]]
    full = np.zeros(hours)
    lower, upper = [low, full, full.copy(), full], [high, full + n["discharge"], full + n["capacity"], full + 1]
    lower[2][-1] = n["final"]
    kinds = 4 if exclusive else 3
    labels = ("purchase", "discharge", "level", "charging")[:kinds]
    return Program(
        owner="Battery",
        matrix=sparse.csr_matrix(sparse.bmat([row[:kinds] for row in blocks])),
        row_lower=np.concatenate(row_low),
        row_upper=np.concatenate(row_high),
        lower=np.concatenate(lower[:kinds]),
        upper=np.concatenate(upper[:kinds]),
        kind=np.repeat([CONTINUOUS, CONTINUOUS, CONTINUOUS, INTEGER][:kinds], hours),
        predicted=np.arange(hours),
        known=np.repeat([0.0, n["wear"], 0.0, 0.0][:kinds], hours),
        columns=tuple(f"{label}_{t}" for label in labels for t in range(hours)),
        rows=tuple(name for some in names for name in some),
    )

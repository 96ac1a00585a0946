"""Plans that tests of the deployment share."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dffl.deploy.federation_plan import FederationPlan, plan_of

SITES = ("north", "south", "west")
INPUTS, DIM = 3, 5
QUICK = {"method": "fedavg", "rounds": 3, "local_epochs": 1, "hidden": 4}


def toml_of(value: Any) -> str:
    """A plain value as TOML has it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml_of(one)}" for key, one in value.items()) + " }"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def plan_text(
    sites: Sequence[str] = SITES,
    federation: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    rounds: Mapping[str, Any] | None = None,
    wire: Mapping[str, Any] | None = None,
    **more: Mapping[str, Any],
) -> str:
    """A small plan; what is given takes the place of what it has, and None takes a key out."""
    sections = {
        "federation": {
            "name": "test", "address": "localhost:8443", "listen": "127.0.0.1:8443", "sites": list(sites),
            "features": "x*", "costs": "c*", "inputs": INPUTS, "dimension": DIM, "min_rows": 4,
        } | dict(federation or {}),
        "training": QUICK | dict(training or {}),
        "rounds": dict(rounds or {}),
        "wire": dict(wire or {}),
        **more,
    }  # fmt: skip
    lines = []
    for name, values in sections.items():
        lines += [f"[{name}]", *(f"{key} = {toml_of(value)}" for key, value in values.items() if value is not None), ""]
    return "\n".join(lines)


def a_plan(*args: Any, **more: Any) -> FederationPlan:
    """The plan of `plan_text`."""
    text = plan_text(*args, **more)
    return plan_of(Path("plan.toml"), text, tomllib.loads(text))

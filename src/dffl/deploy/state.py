"""What the coordinator keeps on disk of a run, so that a run that was killed at any moment goes on to the same model."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dffl.archive import in_one_line, packed, read, unpacked, write
from dffl.files import write_text, write_whole
from dffl.predictor import Normaliser
from dffl.training.engines.processes import UNIT_FIELDS
from dffl.training.settings import TAU
from dffl.training.trainers.federated import ServerState

FORMAT = "dffl-run-1"
LARGEST_UNIT = 1e30
"""Of means and scales: their squares are added up."""
WAITING, TRAINING, FINISHED, STOPPED, LOST = "waiting", "training", "finished", "stopped", "quorum lost"


@dataclass
class RunState:
    """Where a run stands: the trainings that are over, and the state of the one under way."""

    run: str
    plan: str
    """The digest of the plan that it follows."""
    job: int = 0
    state: ServerState | None = None
    """Of the training under way; None before its first round."""
    finals: list[ServerState] = field(default_factory=list)
    columns: str = ""
    """The digest of the columns that all sites have."""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """For each site that has been there its numbers of samples: they weigh its updates, and must not change in a run."""
    units: dict[str, Normaliser] = field(default_factory=dict)
    """The units of all sites together, once they are pooled."""
    tau: float = TAU
    """The norm at which the run clips predictions. Files of version 0.2.0, which always clipped at 20, do not name it."""

    @classmethod
    def new(cls, plan: str, tau: float = TAU) -> RunState:
        return cls(uuid.uuid4().hex[:12], plan, tau=tau)

    def write(self, path: Path) -> None:
        """Write it whole or not at all."""
        about = {"format": FORMAT, "run": self.run, "plan": self.plan, "job": self.job, "columns": self.columns,
                 "counts": self.counts, "under_way": self.state is not None,
                 "finals": len(self.finals), "tau": self.tau}  # fmt: skip
        members = {"about.json": json.dumps(about).encode()}
        states = [*self.finals, *([self.state] if self.state is not None else [])]
        for place, state in enumerate(states):
            members |= {f"{place}/{name}": packed(array) for name, array in flat(state).items()}
        members |= {f"units/{name}": packed(array) for name, array in flat_units(self.units).items()}
        write_whole(path, lambda where: write(where, members), mode=0o600)

    @classmethod
    def read(cls, path: Path) -> RunState:
        """Read it back, or refuse a file that is damaged."""
        try:
            members, sealed = read(path, "about.json", "the state of a run")
            about = json.loads(members.pop("about.json"))
            if not sealed or about["format"] != FORMAT:
                raise ValueError(f"its format is {about['format']!r:.60}")
            arrays: dict[str, dict[str, np.ndarray]] = {}
            for entry, content in members.items():
                place, _, name = entry.partition("/")
                arrays.setdefault(place, {})[name] = unpacked(content)
            states = [deep(arrays[str(place)]) for place in range(about["finals"] + about["under_way"])]
            under_way = states.pop() if about["under_way"] else None
            units = {part: Normaliser(**own) for part, own in deep_units(arrays.get("units", {})).items()}
            tau = float(about.get("tau", TAU))
            return cls(
                about["run"], about["plan"], about["job"], under_way, states, about["columns"], about["counts"], units, tau
            )
        except Exception as error:  # a file that was edited can break anything that is built from it
            raise ValueError(f"{path}: cannot be read as the state of a run ({in_one_line(error)})") from None


def flat(state: ServerState) -> dict[str, np.ndarray]:
    """A server's state as named arrays."""
    plain = {"round": np.asarray(state.round), "shared": np.asarray(state.shared)}
    return plain | {f"memory/{name}": np.asarray(value) for name, value in state.memory.items()}


def deep(arrays: dict[str, np.ndarray]) -> ServerState:
    """The state that `flat` made arrays of."""
    memory = {name.removeprefix("memory/"): value for name, value in arrays.items() if name.startswith("memory/")}
    return ServerState(int(arrays["round"]), arrays["shared"], memory)


def flat_units(units: Mapping[str, Normaliser]) -> dict[str, np.ndarray]:
    """The units of each part of the samples as named arrays."""
    return {f"{part}/{key}": np.asarray(getattr(unit, key)) for part, unit in units.items() for key in UNIT_FIELDS}


def deep_units(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """For each part of the samples the arrays of its units, of which `flat_units` made one dictionary."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        part, _, key = name.rpartition("/")
        found.setdefault(part, {})[key] = array
    return found


def wrong_units(found: Mapping[str, Mapping[str, np.ndarray]], inputs: int) -> str | None:
    """Why the units of some parts cannot be used, if they cannot."""
    shapes = {"x_mean": (inputs,), "x_scale": (inputs,), "c_scale": ()}
    for own in found.values():
        if {key: array.shape for key, array in own.items()} != shapes:
            return "its units have another shape than the columns of the plan"
        scales = np.append(own["x_scale"], own["c_scale"])
        if not all(np.isfinite(array).all() for array in own.values()) or np.any(scales <= 0):
            return "its units are not finite, or a scale is not above 0"
        if np.any(np.abs([*own["x_mean"], *scales]) > LARGEST_UNIT) or np.any(scales < 1 / LARGEST_UNIT):
            return f"its units are above {LARGEST_UNIT:g}, or a scale is below {1 / LARGEST_UNIT:g}"
    return None


class Folder:
    """The coordinator's folder: the plan, secrets, kits, and one folder for each run."""

    def __init__(self, path: Path):
        self.path = path
        self.secrets, self.kits, self.runs = path / "secrets", path / "kits", path / "runs"
        self.log, self.control, self.lock = path / "log.txt", path / "control", path / "server.lock"
        self.begun, self.keys = path / "begun.json", path / "keys.json"

    def files(self) -> list[Path]:
        """What is the federation's in this folder, and must not be replaced by an export: all but models beside the plan."""
        found = (one for one in self.path.rglob("*") if one.is_file())
        return [one for one in found if one.parent != self.path or one.suffix != ".dffl"]

    def latest(self) -> Path | None:
        """The folder of the last run."""
        found = [one for one in self.runs.glob("*") if one.name.isdigit()] if self.runs.is_dir() else []
        return max(found, key=lambda one: int(one.name), default=None)

    def new_run(self) -> Path:
        latest = self.latest()
        made = self.runs / str(1 if latest is None else int(latest.name) + 1)
        made.mkdir(parents=True)
        return made


def say(folder: Path, status: str, **more: Any) -> None:
    """Write down where a run stands, for `status` and for those who wait for its end."""
    write_text(folder / "run.json", json.dumps({"status": status, **more}))


def said(folder: Path) -> dict[str, Any]:
    """What `say` wrote."""
    try:
        return dict(json.loads((folder / "run.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {"status": WAITING}

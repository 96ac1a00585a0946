"""The coordinator's state of a run on disk: a run that is killed at any moment resumes to the same model."""

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
from dffl.training.settings import TAU
from dffl.training.trainers.federated import ServerState
from dffl.training.units import UNIT_FIELDS

FORMAT = "dffl-run-1"
LARGEST_UNIT = 1e30
"""The largest mean or scale: squares of them are added up."""
WAITING, TRAINING, FINISHED, STOPPED, LOST = "waiting", "training", "finished", "stopped", "quorum lost"


@dataclass
class RunState:
    """The state of a run: the finished trainings, and the state of the current one."""

    run: str
    plan: str
    """The digest of its plan."""
    job: int = 0
    state: ServerState | None = None
    """The state of the current training; None before its first round."""
    finals: list[ServerState] = field(default_factory=list)
    columns: str = ""
    """The digest of the columns that all sites have."""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """The numbers of samples of each site that has joined: the weights of its updates, fixed during a run."""
    units: dict[str, Normaliser] = field(default_factory=dict)
    """The units of all sites together, once they are pooled."""
    tau: float = TAU
    """The norm at which the run clips predictions. Files of version 0.2.0, which always clipped at 20, do not store it."""

    @classmethod
    def new(cls, plan: str, tau: float = TAU) -> RunState:
        return cls(uuid.uuid4().hex[:12], plan, tau=tau)

    def write(self, path: Path) -> None:
        """Write the state atomically."""
        about = {"format": FORMAT, "run": self.run, "plan": self.plan, "job": self.job, "columns": self.columns,
                 "counts": self.counts, "under_way": self.state is not None,
                 "finals": len(self.finals), "tau": self.tau}  # fmt: skip
        members = {"about.json": json.dumps(about).encode()}
        states = [*self.finals, *([self.state] if self.state is not None else [])]
        for index, state in enumerate(states):
            members |= {f"{index}/{name}": packed(array) for name, array in state_arrays(state).items()}
        members |= {f"units/{name}": packed(array) for name, array in unit_arrays(self.units).items()}
        write_whole(path, lambda where: write(where, members), mode=0o600)

    @classmethod
    def read(cls, path: Path) -> RunState:
        """Read a state, and reject a damaged file."""
        try:
            members, sealed = read(path, "about.json", "the state of a run")
            about = json.loads(members.pop("about.json"))
            if not sealed or about["format"] != FORMAT:
                raise ValueError(f"its format is {about['format']!r:.60}")
            arrays: dict[str, dict[str, np.ndarray]] = {}
            for entry, content in members.items():
                index, _, name = entry.partition("/")
                arrays.setdefault(index, {})[name] = unpacked(content)
            states = [state_from_arrays(arrays[str(index)]) for index in range(about["finals"] + about["under_way"])]
            under_way = states.pop() if about["under_way"] else None
            units = {part: Normaliser(**own_arrays) for part, own_arrays in units_from_arrays(arrays.get("units", {})).items()}
            tau = float(about.get("tau", TAU))
            return cls(
                about["run"], about["plan"], about["job"], under_way, states, about["columns"], about["counts"], units, tau
            )
        except Exception as error:  # an edited file can raise any error
            raise ValueError(f"{path}: cannot be read as the state of a run ({in_one_line(error)})") from None


def state_arrays(state: ServerState) -> dict[str, np.ndarray]:
    """A server's state as named arrays."""
    plain = {"round": np.asarray(state.round), "shared": np.asarray(state.shared)}
    return plain | {f"memory/{name}": np.asarray(value) for name, value in state.memory.items()}


def state_from_arrays(arrays: dict[str, np.ndarray]) -> ServerState:
    """The inverse of `state_arrays`."""
    memory = {name.removeprefix("memory/"): value for name, value in arrays.items() if name.startswith("memory/")}
    return ServerState(int(arrays["round"]), arrays["shared"], memory)


def unit_arrays(units: Mapping[str, Normaliser]) -> dict[str, np.ndarray]:
    """The units of each part of the samples as named arrays."""
    return {f"{part}/{key}": np.asarray(getattr(unit, key)) for part, unit in units.items() for key in UNIT_FIELDS}


def units_from_arrays(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """For each part of the samples, the arrays of its units; the inverse of `unit_arrays`."""
    units: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        part, _, key = name.rpartition("/")
        units.setdefault(part, {})[key] = array
    return units


def unit_problem(units: Mapping[str, Mapping[str, np.ndarray]], inputs: int) -> str | None:
    """Why the units of some parts cannot be used, or None."""
    shapes = {"x_mean": (inputs,), "x_scale": (inputs,), "c_scale": ()}
    for arrays in units.values():
        if {key: array.shape for key, array in arrays.items()} != shapes:
            return "the shape of its units does not match the columns of the plan"
        scales = np.append(arrays["x_scale"], arrays["c_scale"])
        if not all(np.isfinite(array).all() for array in arrays.values()) or np.any(scales <= 0):
            return "its units are not finite, or a scale is not above 0"
        if np.any(np.abs([*arrays["x_mean"], *scales]) > LARGEST_UNIT) or np.any(scales < 1 / LARGEST_UNIT):
            return f"its units are above {LARGEST_UNIT:g}, or a scale is below {1 / LARGEST_UNIT:g}"
    return None


class CoordinatorFolder:
    """The coordinator's folder: the plan, secrets, kits, and one folder for each run."""

    def __init__(self, path: Path):
        self.path = path
        self.secrets, self.kits, self.runs = path / "secrets", path / "kits", path / "runs"
        self.log, self.control, self.lock = path / "log.txt", path / "control", path / "server.lock"
        self.begun, self.keys = path / "begun.json", path / "keys.json"

    def files(self) -> list[Path]:
        """The files of the federation, which an export must not replace: all but models next to the plan."""
        files = (path for path in self.path.rglob("*") if path.is_file())
        return [file for file in files if file.parent != self.path or file.suffix != ".dffl"]

    def latest(self) -> Path | None:
        """The folder of the last run."""
        runs = [path for path in self.runs.glob("*") if path.name.isdigit()] if self.runs.is_dir() else []
        return max(runs, key=lambda path: int(path.name), default=None)

    def new_run(self) -> Path:
        latest = self.latest()
        folder = self.runs / str(1 if latest is None else int(latest.name) + 1)
        folder.mkdir(parents=True)
        return folder


def write_status(folder: Path, status: str, **more: Any) -> None:
    """Write the status of a run, for `dffl federation status` and for commands that wait for its end."""
    write_text(folder / "run.json", json.dumps({"status": status, **more}))


def read_status(folder: Path) -> dict[str, Any]:
    """The status that `write_status` wrote."""
    try:
        return dict(json.loads((folder / "run.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {"status": WAITING}

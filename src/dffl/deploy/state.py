"""What the coordinator keeps on disk of a run, so that a run that was killed at any moment goes on to the same model."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dffl.archive import in_one_line, packed, read, unpacked, write
from dffl.files import write_text, write_whole
from dffl.training.trainers.federated import ServerState

FORMAT = "dffl-run-1"
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

    @classmethod
    def new(cls, plan: str) -> RunState:
        return cls(uuid.uuid4().hex[:12], plan)

    def write(self, path: Path) -> None:
        """Write it whole or not at all."""
        about = {"format": FORMAT, "run": self.run, "plan": self.plan, "job": self.job, "columns": self.columns,
                 "under_way": self.state is not None, "finals": len(self.finals)}  # fmt: skip
        members = {"about.json": json.dumps(about).encode()}
        states = [*self.finals, *([self.state] if self.state is not None else [])]
        for place, state in enumerate(states):
            members |= {f"{place}/{name}": packed(array) for name, array in flat(state).items()}
        write_whole(path, lambda where: write(where, members), mode=0o600)

    @classmethod
    def read(cls, path: Path) -> RunState:
        """Read it back, or refuse a file that is damaged."""
        try:
            members, sealed = read(path, "about.json", "the state of a run")
            about = json.loads(members.pop("about.json"))
            if not sealed or about["format"] != FORMAT:
                raise ValueError(f"its format is {about['format']!r:.60}")
            arrays: dict[int, dict[str, np.ndarray]] = {}
            for entry, content in members.items():
                place, _, name = entry.partition("/")
                arrays.setdefault(int(place), {})[name] = unpacked(content)
            states = [deep(arrays[place]) for place in range(about["finals"] + about["under_way"])]
            under_way = states.pop() if about["under_way"] else None
            return cls(about["run"], about["plan"], about["job"], under_way, states, about["columns"])
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


class Folder:
    """The coordinator's folder: the plan, secrets, kits, and one folder for each run."""

    def __init__(self, path: Path):
        self.path = path
        self.secrets, self.kits, self.runs = path / "secrets", path / "kits", path / "runs"
        self.log, self.control, self.lock = path / "log.txt", path / "control", path / "server.lock"

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

"""The state that a site keeps on its disk between rounds and after a crash; it is never sent."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dffl.archive import in_one_line, packed, read, unpacked, write
from dffl.deploy.credentials import persistent_secret
from dffl.deploy.run_state import state_arrays, state_from_arrays, unit_arrays, units_from_arrays
from dffl.files import write_text, write_whole
from dffl.predictor import Normaliser
from dffl.randomness import NoiseSource
from dffl.training.engines.base import Fields
from dffl.training.settings import TAU
from dffl.training.trainers.federated import ServerState

FORMAT = "dffl-site-1"
RUN_NAME = re.compile(r"[0-9A-Za-z]{1,40}")
UNUSED = "unused/"
"""The prefix of the numbers of unused updates, in the file of the shared models."""
Finals = dict[int, tuple[ServerState, int]]
"""For each training, the server's last state, and the last round in which the site's update was valid, or -1."""


class SiteState:
    """The files of one run at one site."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.run = ""

    def unfinished(self, plan: str, data: str = "") -> str:
        """A run of this plan and these data whose rounds are over, but from which the site has no model."""
        for folder in self.folder.glob("*") if self.folder.is_dir() else ():
            known = folder / "plan.txt"
            if (
                (folder / "finals.dffl").exists()
                and known.exists()
                and known.read_text() == plan
                and self._data_of(folder) in ("", data)
                and not self._done_marker(folder).exists()
            ):
                return folder.name
        return ""

    def run_with_model(self) -> str:
        """The run from which the site has its own model, or an empty text."""
        runs = (
            sorted(folder.name for folder in self.folder.glob("*") if self._done_marker(folder).exists())
            if self.folder.is_dir()
            else []
        )
        return runs[-1] if runs else ""

    def mark_unfinished(self) -> None:
        """The model file is gone: it will be computed again from the kept shared models."""
        for folder in self.folder.glob("*") if self.folder.is_dir() else ():
            self._done_marker(folder).unlink(missing_ok=True)

    def mark_finished(self) -> None:
        """Note that the site has its own model."""
        self._done_marker(self.folder / self.run).touch()

    @staticmethod
    def _data_of(folder: Path) -> str:
        """The digest of the site's data when it began a run; empty in folders of version 0.2.0."""
        path = folder / "data.txt"
        return path.read_text() if path.exists() else ""

    @staticmethod
    def _done_marker(folder: Path) -> Path:
        return folder / "done"

    def begin(self, run: str, plan: str, tau: float = TAU, data: str = "") -> float:
        """Start or resume a run; the state of earlier runs is removed.

        A run resumes with the ``data`` that it began with, of which this is a digest: with others its folds would differ, and
        held-out rows would be rows that have trained.

        Returns the norm at which the run clips predictions: ``tau`` for a new run. Folders of version 0.2.0, which always
        clipped at 20, do not store it.
        """
        if not RUN_NAME.fullmatch(run):  # the coordinator chose it: it must not lead to another folder
            raise ValueError(f"the coordinator sent an invalid run name, {run!r:.60}; nothing was written")
        folder = self.folder / run
        if self._data_of(folder) not in ("", data):
            fix = "bring them back, or ask the coordinator for a new run (`dffl federation train --new`)"
            raise ValueError(f"{folder}: the site's rows, set or sense are not those with which it began this run; {fix}")
        for other in self.folder.glob("*") if self.folder.is_dir() else ():
            # Only what a run has written: the user may have chosen a folder in which there is another "state" already.
            if other != folder and (other / "plan.txt").is_file() and RUN_NAME.fullmatch(other.name) and not other.is_symlink():
                shutil.rmtree(other)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        named = folder / "tau.txt"
        if not (folder / "plan.txt").exists():
            write_text(named, repr(tau))
        write_text(folder / "plan.txt", plan)
        write_text(folder / "data.txt", data)
        self.run = run
        return float(named.read_text()) if named.exists() else TAU

    def noise(self) -> NoiseSource:
        """The site's source of noise. Its secret stays here, so that nobody else can remove the noise."""
        return NoiseSource(persistent_secret(self.folder / self.run / "noise.key"))

    # The state of trainings at the client, by the round after which it is valid.

    def keep(self, job: int, round: int, last: int, fields: Fields, seen: Fields) -> None:
        """Keep the state of a training after a round, and its history.

        The state before the round is kept too, until the next order says which of the two is valid.
        """
        before = self._read(f"kept-{job}") if fields else {}
        arrays = {name: array for name, array in before.items() if name.startswith(f"{last}/")}
        arrays |= {f"{round}/{name}": array for name, array in fields.items()}
        self._write(f"kept-{job}", arrays | {f"seen/{name}": array for name, array in seen.items()})

    def is_same_order(self, job: int, round: int, order: Mapping[str, Any], rows: bytes) -> bool:
        """Record the order of a round and the rows. False if the recorded ones differ: a second answer would reveal more."""
        content = hashlib.sha256(repr((order["last"], order["rate"])).encode() + rows)
        for name, array in sorted(order["sent"].items()):
            content.update(name.encode() + array.tobytes())
        path = self.folder / self.run / "asked" / f"{job}-{round}"
        if path.exists():
            return path.read_text() == content.hexdigest()
        path.parent.mkdir(exist_ok=True)
        write_text(path, content.hexdigest())
        return True

    def seen(self, job: int) -> Fields:
        """The history of a training."""
        arrays = self._read(f"kept-{job}").items()
        return {name.removeprefix("seen/"): array for name, array in arrays if name.startswith("seen/")}

    def kept(self, job: int, round: int) -> Fields:
        """The state of a training after this round; empty for -1, and for trainings without state."""
        start = f"{round}/"
        return {name.removeprefix(start): array for name, array in self._read(f"kept-{job}").items() if name.startswith(start)}

    def is_lost(self, job: int, round: int) -> bool:
        """Whether the state after this round is missing although the site answered it, for example from another folder.

        A training without state at the site leaves a file without rounds.
        """
        if round < 0 or not self._path(f"kept-{job}").exists():
            return round >= 0
        known = {name.partition("/")[0] for name in self._read(f"kept-{job}")} - {"seen"}
        return bool(known) and str(round) not in known

    def keep_units(self, units: Mapping[str, Normaliser]) -> None:
        self._write("units", unit_arrays(units))

    def units(self) -> dict[str, Normaliser]:
        return {part: Normaliser(**arrays) for part, arrays in units_from_arrays(self._read("units")).items()}

    def keep_finals(self, finals: Finals, unused: Mapping[str, int]) -> None:
        """Keep the shared models, and the number of unused updates of each site. After this, the site needs no network."""
        arrays = {f"{job}/{name}": array for job, (state, _) in finals.items() for name, array in state_arrays(state).items()}
        arrays |= {f"{UNUSED}{site}": np.asarray(count) for site, count in unused.items()}
        self._write("finals", arrays | {f"{job}/last": np.asarray(last) for job, (_, last) in finals.items()})

    def unused(self) -> dict[str, int]:
        """The number of unused updates of each site that has some."""
        arrays = self._read("finals").items()
        return {name.removeprefix(UNUSED): int(count) for name, count in arrays if name.startswith(UNUSED)}

    def finals(self) -> Finals:
        """The shared models, if all rounds are over."""
        trainings: dict[int, dict[str, np.ndarray]] = {}
        for entry, array in self._read("finals").items():
            job, _, name = entry.partition("/")
            if entry.startswith(UNUSED):
                continue
            trainings.setdefault(int(job), {})[name] = array
        return {job: (state_from_arrays(arrays), int(arrays["last"])) for job, arrays in sorted(trainings.items())}

    def _write(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        members = {"about.json": json.dumps({"format": FORMAT}).encode()}
        members |= {entry: packed(np.asarray(array)) for entry, array in arrays.items()}
        write_whole(self._path(name), lambda where: write(where, members), mode=0o600)

    def _read(self, name: str) -> dict[str, np.ndarray]:
        path = self._path(name)
        if not path.exists():
            return {}
        try:
            members, sealed = read(path, "about.json", "the state of a site")
            about = json.loads(members.pop("about.json"))
            if not sealed or about["format"] != FORMAT:
                raise ValueError(f"its format is {about['format']!r:.60}")
            return {entry: unpacked(content) for entry, content in members.items()}
        except Exception as error:  # an edited file can raise any error
            raise ValueError(f"{path}: cannot be read as the state of a site ({in_one_line(error)})") from None

    def _path(self, name: str) -> Path:
        return self.folder / self.run / f"{name}.dffl"

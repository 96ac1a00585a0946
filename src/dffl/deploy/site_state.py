"""What a site keeps on its own disk between rounds and after a crash; nobody else ever sees it."""

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
from dffl.deploy.credentials import kept_secret
from dffl.deploy.state import deep, deep_units, flat, flat_units
from dffl.files import write_text, write_whole
from dffl.predictor import Normaliser
from dffl.randomness import NoiseSource
from dffl.training.engines.base import Fields
from dffl.training.settings import TAU
from dffl.training.trainers.federated import ServerState

FORMAT = "dffl-site-1"
RUN_NAME = re.compile(r"[0-9A-Za-z]{1,40}")
UNUSED = "unused/"
"""What the names of the numbers of unused updates begin with, among the shared models."""
Finals = dict[int, tuple[ServerState, int]]
"""For each training the server's last state, and the last round in which the site's update was taken, or -1."""


class SiteState:
    """The files of one run at one site."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.run = ""

    def unfinished(self, plan: str) -> str:
        """A run of this plan whose rounds are over, but of which the site has no model yet."""
        for mine in self.folder.glob("*") if self.folder.is_dir() else ():
            known = mine / "plan.txt"
            if (
                (mine / "finals.dffl").exists()
                and known.exists()
                and known.read_text() == plan
                and not self._done(mine).exists()
            ):
                return mine.name
        return ""

    def with_model(self) -> str:
        """The run of which the site has a model of its own, if there is one."""
        found = sorted(mine.name for mine in self.folder.glob("*") if self._done(mine).exists()) if self.folder.is_dir() else []
        return found[-1] if found else ""

    def forget_model(self) -> None:
        """The model is gone: it is made again from the shared models that the site has."""
        for mine in self.folder.glob("*") if self.folder.is_dir() else ():
            self._done(mine).unlink(missing_ok=True)

    def finished(self) -> None:
        """The site has a model of its own."""
        self._done(self.folder / self.run).touch()

    @staticmethod
    def _done(folder: Path) -> Path:
        return folder / "done"

    def begin(self, run: str, plan: str, tau: float = TAU) -> float:
        """Go on with a run; what an earlier run kept is removed.

        It returns the norm at which the run clips predictions: ``tau`` for a new run. Folders of version 0.2.0, which always
        clipped at 20, do not name it.
        """
        if not RUN_NAME.fullmatch(run):  # the coordinator's word, which must not lead to another folder
            raise ValueError(f"the coordinator named a run {run!r:.60}, as no coordinator of dffl does; nothing was written")
        mine = self.folder / run
        for other in self.folder.glob("*") if self.folder.is_dir() else ():
            if other != mine and other.is_dir():
                shutil.rmtree(other)
        mine.mkdir(mode=0o700, parents=True, exist_ok=True)
        named = mine / "tau.txt"
        if not (mine / "plan.txt").exists():
            write_text(named, repr(tau))
        write_text(mine / "plan.txt", plan)
        self.run = run
        return float(named.read_text()) if named.exists() else TAU

    def noise(self) -> NoiseSource:
        """The site's own source of noise: its secret stays here, so that nobody can take the noise away again."""
        return NoiseSource(kept_secret(self.folder / self.run / "noise.key"))

    # What the trainings keep at the client, by the round after which it holds.

    def keep(self, job: int, round: int, last: int, fields: Fields, seen: Fields) -> None:
        """Keep what a training keeps after a round, and what was seen in it so far.

        The state before the round stays until the next order says which one counts.
        """
        before = self._read(f"kept-{job}") if fields else {}
        kept = {name: array for name, array in before.items() if name.startswith(f"{last}/")}
        kept |= {f"{round}/{name}": array for name, array in fields.items()}
        self._write(f"kept-{job}", kept | {f"seen/{name}": array for name, array in seen.items()})

    def asked_once(self, job: int, round: int, order: Mapping[str, Any], rows: bytes) -> bool:
        """Note what was asked in a round, and of which rows; false if it was something else before: that would reveal more."""
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
        """What was seen in a training so far."""
        found = self._read(f"kept-{job}").items()
        return {name.removeprefix("seen/"): array for name, array in found if name.startswith("seen/")}

    def kept(self, job: int, round: int) -> Fields:
        """What a training kept after this round; nothing for -1, and for trainings that keep nothing."""
        start = f"{round}/"
        return {name.removeprefix(start): array for name, array in self._read(f"kept-{job}").items() if name.startswith(start)}

    def lost(self, job: int, round: int) -> bool:
        """Whether what was kept after this round is not here, though the site answered it: from another folder, for example.

        A training that keeps nothing at a site leaves a file without rounds.
        """
        if round < 0 or not self._path(f"kept-{job}").exists():
            return round >= 0
        known = {name.partition("/")[0] for name in self._read(f"kept-{job}")} - {"seen"}
        return bool(known) and str(round) not in known

    def keep_units(self, units: Mapping[str, Normaliser]) -> None:
        self._write("units", flat_units(units))

    def units(self) -> dict[str, Normaliser]:
        return {part: Normaliser(**own) for part, own in deep_units(self._read("units")).items()}

    def keep_finals(self, finals: Finals, unused: Mapping[str, int]) -> None:
        """Keep the shared models, and how many updates of which sites are not in them: from here on the site needs nobody."""
        arrays = {f"{job}/{name}": array for job, (state, _) in finals.items() for name, array in flat(state).items()}
        arrays |= {f"{UNUSED}{site}": np.asarray(count) for site, count in unused.items()}
        self._write("finals", arrays | {f"{job}/last": np.asarray(last) for job, (_, last) in finals.items()})

    def unused(self) -> dict[str, int]:
        """For each site with updates that were not used how many there were."""
        found = self._read("finals").items()
        return {name.removeprefix(UNUSED): int(count) for name, count in found if name.startswith(UNUSED)}

    def finals(self) -> Finals:
        """The shared models, if all rounds are over."""
        found: dict[int, dict[str, np.ndarray]] = {}
        for entry, array in self._read("finals").items():
            job, _, name = entry.partition("/")
            if entry.startswith(UNUSED):
                continue
            found.setdefault(int(job), {})[name] = array
        return {job: (deep(arrays), int(arrays["last"])) for job, arrays in sorted(found.items())}

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
        except Exception as error:  # a file that was edited can break anything that is built from it
            raise ValueError(f"{path}: cannot be read as the state of a site ({in_one_line(error)})") from None

    def _path(self, name: str) -> Path:
        return self.folder / self.run / f"{name}.dffl"

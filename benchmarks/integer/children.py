"""Runs one competitor in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def load() -> float:
    """The machine's load over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else float("nan")


class Children:
    """Starts processes in one folder, and notes those that give nothing."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.failed: list[str] = []
        paths = [str(Path.cwd()), *sys.path]
        # Compiled programs that are kept on disk would make a second run seem faster than a first one is.
        self._environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "DFFL_CACHE_DIR": "off"}

    def run(self, module: str, *arguments: str) -> dict[str, Any] | None:
        """What a module of this package prints last, as JSON; None where it fails, with a line that says so."""
        command = [sys.executable, "-m", f"benchmarks.integer.{module}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=self._environment, check=False)
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            self.failed.append(f"{module} {' '.join(arguments[:3])}: {reason}")
            self.note(f"FAILED {self.failed[-1]}")
            return None
        return dict(json.loads(lines[-1]))

    @staticmethod
    def note(line: str) -> None:
        """Say how far the run is."""
        print(line, file=sys.stderr, flush=True)

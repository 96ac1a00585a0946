"""Tasks for the runner's tests: functions of a module, as workers in other processes need them."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from dffl_studies.paper import study as paper
from dffl_studies.running import Study, grid
from dffl_studies.running.workers import BLAS_THREADS


def noisy_rows(*, scale: float, number: int, letter: str, pause: float = 0.0) -> pd.DataFrame:
    """Rows that depend on the parameters alone, after a while."""
    time.sleep(pause)
    values = scale * np.random.default_rng([number, ord(letter)]).normal(size=3)
    return pd.DataFrame({"line": range(3), "value": values})


def troubled(*, number: int) -> pd.DataFrame:
    """Job 1 fails, 2 kills its process, 3 to 6 return what cannot be kept; the others are well."""
    if number == 1:
        raise ValueError("number 1 is not to be had\nsecond line")
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 4:
        sys.exit(0)
    odd = {3: {"value": 0.0}, 5: pd.DataFrame({"value": []}), 6: pd.DataFrame({"number": [6]})}
    return odd.get(number, pd.DataFrame({"value": [float(number)]}))


def clashing(*, method: str, number: int, folder: str) -> pd.DataFrame:
    """Rows with a column that the grid has as well, as those of `dffl.compare`."""
    (Path(folder) / f"ran-{method}-{number}").touch()
    return pd.DataFrame({"method": [method], "value": [0.0]})


def healed(*, number: int) -> pd.DataFrame:
    """The same jobs, all well."""
    return pd.DataFrame({"value": [float(number)]})


def where(*, number: int) -> pd.DataFrame:
    """How the worker is set up."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    threads = {name: [os.environ.get(name)] for name in BLAS_THREADS}
    return pd.DataFrame({"cores": [cores], "flags": [os.environ.get("XLA_FLAGS")]} | threads)


FOLDER = "DFFL_TESTS_FOLDER"
"""An environment variable that only the process that starts a run has."""


def node(*, number: int, folder: Path) -> pd.DataFrame:
    """On which node of a Ray cluster a job ran, and what it saw there; slow enough that both nodes have some."""
    import ray

    time.sleep(0.5)
    note, flags = (folder / "note.txt").read_text(), os.environ.get("XLA_FLAGS")
    place = ray.get_runtime_context().get_node_id()
    return pd.DataFrame({"node": [place], "flags": [flags], "note": [note], "told": [FOLDER in os.environ]})


def noted(*, number: int, folder: Path) -> pd.DataFrame:
    """What stands in a folder that only the study knows."""
    return pd.DataFrame({"note": [(folder / "note.txt").read_text()]})


def slow_study(pause: float, count: int = 30) -> Study:
    jobs = grid(number=range(count), letter="ab")
    return Study("slow", noisy_rows, jobs, {"scale": 2.0, "pause": pause})


def fits_study() -> Study:
    """Two small configurations of the paper's, with real fits."""
    jobs = [job for job in paper.quick().jobs if job.parameters["eta_obj"] == job.parameters["eta_constr"] == 0]
    settings = {"rounds": 2, "local_epochs": 2}
    protocol = {"methods": ["local", "fedavg"], "test_samples": 30, "validation_samples": 0, "settings": settings}
    return Study("fits", paper.fit_configuration, jobs, protocol)


if __name__ == "__main__":  # a run that the tests kill, or whose cluster they kill
    from dffl_studies.running import run

    address = sys.argv[3] if len(sys.argv) > 3 else None
    run(slow_study(float(sys.argv[2])), Path(sys.argv[1]), workers=None if address else 2, ray=address, progress=False)

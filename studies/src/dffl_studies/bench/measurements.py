"""Benchmarks: what `dffl bench` measures, in one run on one machine, and the target values.

Each measurement runs in a separate process: its memory is then its own, one core can be given to it, and OR-Tools (in
`benchmarks/peers`) never shares a process with HiGHS.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from dffl.cores import core_count
from dffl.progress import Progress

BASE_IMPORTS = "import jax, equinox, optax"
HELP = "import sys; sys.argv[1:] = ['--help']; from dffl.cli import main; main()"


@dataclass(frozen=True)
class Measurement:
    """One number: how to measure it, and its target."""

    name: str
    command: tuple[str, ...]
    unit: str
    aim: float | None = None
    higher_is_better: bool = True
    key: str = "value"
    peer_of: str | None = None
    """The measurement of ours to which this peer's is compared."""
    python: Callable[[], str] = field(default=lambda: sys.executable)
    """The interpreter that measures: a peer has an environment of its own."""


@dataclass(frozen=True)
class Result:
    """A measurement and its result; ``error`` is the reason if there is none."""

    measurement: Measurement
    value: float | None
    details: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None if there is no target or no result."""
        m = self.measurement
        if m.aim is None or self.value is None:
            return None
        return self.value >= m.aim if m.higher_is_better else self.value <= m.aim


def measurements(quick: bool = False) -> list[Measurement]:
    """Everything that is measured, in order."""

    def own(*command: str, cores: int = 0) -> tuple[str, ...]:
        options = ("--seconds", "1" if quick else "5", *(("--cores", str(cores)) if cores else ()))
        return ("dffl_studies.bench.measure", *command, *options)

    aims = {"knapsack": 1_000_000, "entropy": 300_000, "polytope": 5_000}
    families = ("knapsack", "topk", "entropy", "simplex", "box", "ball", "ellipsoid", "polytope")
    measured = [Measurement(f"SPO+ {f}", own("spo", f), "instances/s", aims.get(f)) for f in families]
    measured += [
        Measurement("step knapsack, one core", own("step", "knapsack", cores=1), "ms", 1.0, False),
        Measurement("step portfolio, one core", own("step", "portfolio", cores=1), "ms", 1.6, False),
        Measurement("federated rounds", own("rounds", "20"), "rounds/s", 300),
    ]
    many, huge, zones = ("200", "1000", "100") if quick else ("2000", "10000", "1000")
    measured += [
        *_growth(own, quick, many),
        Measurement(f"peak memory {huge} clients", own("memory", huge), "GB", 4.0, False),
        Measurement(f"peak memory {zones} zones x 3 years", own("market", zones, "weather"), "GB", 4.0, False),
        Measurement(f"peak memory {zones} zones, past prices", own("market", zones, "past"), "GB", 4.0, False),
        Measurement("190 pairwise bounds, knapsack", own("bounding", "knapsack", "pairs"), "s", 2.0, False),
        Measurement("190 pairwise bounds, portfolio", own("bounding", "portfolio", "pairs"), "s", 2.0, False),
        Measurement("complexity and discrepancies, knapsack", own("bounding", "knapsack", "search"), "s", 60.0, False),
        Measurement("import JAX, Equinox, Optax", own("importing", BASE_IMPORTS), "s"),
        Measurement("import dffl", own("importing", "import dffl"), "s"),
        Measurement("import dffl, all of it", own("importing", "from dffl import *"), "s"),
        Measurement("dffl --help", own("importing", HELP), "s", 0.5, False),
    ]
    return measured


def _growth(own: Callable[..., tuple[str, ...]], quick: bool, clients: str) -> list[Measurement]:
    """How costs grow, as curves; cores are those of this machine."""
    sizes = {"clients": ["20", "200", clients], "samples": ["100", "1000"], "decisions": ["50", "400"]}
    if not quick:
        sizes = {**sizes, "samples": ["100", "300", "1000", "3000"], "decisions": ["25", "50", "100", "200", "400"]}
    found = [
        Measurement(
            f"growth {of[0]} to {of[-1]} {axis}", own("growth", axis, *of), "times", 1.3 if axis == "clients" else None, False
        )
        for axis, of in sizes.items()
    ]
    counts = sorted({1, core_count() // 2 or 1, core_count()})
    return [*found, Measurement(f"rounds on {counts[-1]} cores over 1", own("cores", *map(str, counts)), "times")]


def run(asked: list[Measurement], only: str = "", progress: bool | None = None) -> Results:
    """Run the measurements whose name contains ``only``."""
    chosen = [m for m in asked if only.lower() in m.name.lower()]
    if not chosen:
        raise ValueError(f"no measurement's name contains {only!r}")
    results = []
    with Progress(progress) as bar:
        bar.expect(len(chosen))
        for measurement in chosen:
            bar.advance(0, measurement.name)
            results.append(_measured(measurement))
            bar.advance(1, measurement.name)
    return Results(results)


def _measured(measurement: Measurement) -> Result:
    try:
        command = [measurement.python(), "-m", *measurement.command]
    except OSError as error:  # no environment for this peer
        return Result(measurement, None, error=str(error))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Result(measurement, None, error=reason)
    details = json.loads(lines[-1])
    return Result(measurement, float(details[measurement.key]), details)


@dataclass(frozen=True)
class Results:
    """All results of a run."""

    results: list[Result]

    def ratio(self, result: Result) -> float | None:
        """The factor by which ours is better than this peer's, both measured in this run."""
        for ours in self.results:
            if ours.measurement.name == result.measurement.peer_of and ours.value and result.value:
                better = ours.measurement.higher_is_better
                return ours.value / result.value if better else result.value / ours.value
        return None

    def as_json(self) -> dict[str, Any]:
        rows = []
        for result in self.results:
            m = result.measurement
            row: dict[str, Any] = {"name": m.name, "value": result.value, "unit": m.unit, "aim": m.aim, "met": result.met}
            if m.peer_of:
                row |= {"peer_of": m.peer_of, "ours_is_better_by": self.ratio(result)}
            rows.append(row | {"details": result.details, "error": result.error or None})
        return {"measurements": rows}

    def show(self, console: Console) -> None:
        table = Table(title="Measured on this machine, each in a process of its own", title_justify="left")
        columns = (("measurement", "left"), ("ratio, or aim", "left"), ("value", "right"), ("unit", "left"), ("curve", "left"))
        for heading, side in columns:
            table.add_column(heading, justify=side)  # type: ignore[arg-type]
        for result in self.results:
            m = result.measurement
            aim = "" if m.aim is None else f"{'>=' if m.higher_is_better else '<='} {m.aim:,g}"
            ratio = self.ratio(result)  # a peer has a ratio and no aim
            note = f"ours is {ratio:,.1f}x" if ratio else {True: f"{aim} reached", False: f"{aim} missed", None: ""}[result.met]
            value = "-" if result.value is None else (f"{result.value:,.0f}" if result.value >= 1000 else f"{result.value:.3g}")
            curve = ", ".join(f"{size}: {one:.2f}" for size, one in result.details.get("curve", {}).items())
            table.add_row(m.name, result.error or note, value, m.unit, curve)
        console.print(table)

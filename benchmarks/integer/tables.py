"""The tables of a run, as text and as files."""

from __future__ import annotations

import csv
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

Rows = list[dict[str, Any]]
PROBED = ("value", "gradient", "dffl to float64", "PyEPO to float64")
PACKAGES = ("jax", "numpy", "highspy", "pyepo", "torch", "ortools", "pyomo")


def machine() -> dict[str, Any]:
    """Where the run took place."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        named = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        processor = named[0].partition(":")[2].strip() if named else processor
    return {"cores": os.cpu_count(), "processor": processor, "python": platform.python_version(), "packages": found}


def summary(rows: Rows) -> Rows:
    """One row for each competitor: medians of seconds, mean and spread (standard deviation over seeds) of the regret in %."""
    found = []
    for what, name in dict.fromkeys((row["what"], row["name"]) for row in rows if "regret" in row):
        mine = [row for row in rows if (row["what"], row["name"]) == (what, name)]
        line: dict[str, Any] = {"what": what, "name": name, "seeds": len(mine), "clients measured": mine[0]["clients"]}
        timed = [row for row in mine if row.get("seconds") is not None]
        if timed:
            line["seconds"] = float(np.median([row["all"] for row in timed]))
            line["seconds, again"] = float(np.median([row["again"] or row["all"] for row in timed]))
            line["processor seconds"] = float(np.median([row["processor"] for row in timed]))
            line["processor seconds, again"] = float(np.median([row["processor_again"] or row["processor"] for row in timed]))
            line["calls a second"] = float(np.median([row["calls"] / (row["again"] or row["seconds"]) for row in timed]))
            line["load"] = float(np.median([row["load"] for row in timed]))
        for key, label in (("regret", "regret"), ("first", "regret of client 1")):
            values = 100 * np.array([row[key] for row in mine])
            line[f"{label}, %"] = float(values.mean())
            line[f"{label}, spread"] = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        found.append(line)
    return found


def checks(rows: Rows) -> Rows:
    """The largest difference of SPO+ over all seeds, for each pair."""
    found = []
    pairs = dict.fromkeys((row["what"], row["name"]) for row in rows if "gradient" in row)
    for what, name in pairs:
        mine = [row for row in rows if (row["what"], row["name"]) == (what, name)]
        found.append({"what": what, "pair": name} | {part: max(row[part] for row in mine) for part in PROBED})
    return found


def paired(rows: Rows) -> Rows:
    """Differences of the regret between two competitors with the same seeds: mean, and its standard error."""
    found = []
    regrets: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}
    for row in rows:
        if "regret" in row:
            regrets.setdefault((row["what"], row["name"]), {})[row["seed"]] = (row["regret"], row["first"])
    for what in dict.fromkeys(what for what, _ in regrets):
        first, *others = [name for place, name in regrets if place == what and name != "mean cost"]
        for name in others:
            mine, theirs = regrets[what, first], regrets[what, name]
            part = 1 if any(row["clients"] == 1 for row in rows if row.get("name") == name and row["what"] == what) else 0
            gaps = 100 * np.array([theirs[seed][part] - mine[seed][part] for seed in mine if seed in theirs])
            error = float(gaps.std(ddof=1) / len(gaps) ** 0.5) if len(gaps) > 1 else float("nan")
            note = "client 1 only" if part and what == "knapsack" else "all clients"
            line = {"what": what, "name": f"{name} minus {first}", "points": float(gaps.mean()), "standard error": error}
            found.append(line | {"over": note})
    return found


def text(rows: Rows) -> str:
    """A table in Markdown."""
    if not rows:
        return "nothing was measured\n"
    heads = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    lines += ["| " + " | ".join(_cell(row.get(head)) for head in heads) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def show(rows: Rows, calls: Rows, about: dict[str, Any]) -> None:
    """Print everything."""
    for title, table in (
        ("Training (seconds of a client or two are scaled up to all clients; see `clients measured`)", summary(rows)),
        ("Differences of regret, in percentage points", paired(rows)),
        ("SPO+ of dffl and PyEPO at the same points: the largest difference", checks(rows)),
        ("Oracles", calls),
    ):
        print(f"\n{title}\n\n{text(table)}")
    print(json.dumps(about, indent=1))


def write(folder: Path, rows: Rows, calls: Rows, about: dict[str, Any], part: str = "") -> None:
    """Write the tables, the rows they come from, and what the run was; ``part`` ends the names of a run of some parts."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"runs": rows, "training": summary(rows), "differences": paired(rows), "spo_plus": checks(rows), "oracles": calls}
    for name, table in tables.items():
        if table:
            heads = list(dict.fromkeys(key for row in table for key in row))
            with (folder / f"{name}{part}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, heads, lineterminator="\n")
                writer.writeheader()
                writer.writerows([{key: _short(value) for key, value in row.items()} for row in table])
    (folder / f"about{part}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)

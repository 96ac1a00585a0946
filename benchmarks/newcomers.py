"""What does a newcomer gain by joining? Regret against its number of samples, beside the shared model and models of its own.

    python -m benchmarks.newcomers            # about two minutes on one core; writes studies/results/newcomers

Of 20 clients of the paper's synthetic federations 16 train `crossfit` with the settings of the paper's study. The other four
come later: they have the shared model as it is, join with their first samples, or do without the others. All are judged on
1,000 test samples. Three kinds of federations: clients that are alike, clients whose costs differ strongly, and clients that
measure features and costs in units of their own.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dffl
from dffl.drawing import WIDE, blank, in_print, legend_above, note, write_figures
from dffl.training.methods import colour_of

FOLDER = Path(__file__).resolve().parent.parent / "studies" / "results" / "newcomers"
MAKE = {"knapsack": dffl.synthetic.knapsack, "portfolio": dffl.synthetic.portfolio}
KINDS: dict[str, dict[str, float]] = {
    "alike": {"eta_obj": 0.5},
    "other costs": {"eta_obj": 2.0},
    "own units": {"eta_obj": 0.5, "spread": 0.5},
}
SAMPLES = (3, 7, 14, 30, 60)
MEMBERS = 16
ALONE = ("local-tuned", "ridge", "nearest", "mean-cost")
"""What a newcomer reaches without the others."""
JOINED, SHARED = "joined", "shared as it is"
COLOURS = {JOINED: colour_of("crossfit"), SHARED: colour_of("fedavg")} | {name: colour_of(name) for name in ALONE}


def federation(problem: str, seed: int, split: Any, eta_obj: float, spread: float = 0.0) -> dffl.Federation:
    """A federation of 20 clients; with ``spread`` each one shifts its features and scales them and its costs in its own way."""
    made = MAKE[problem](seed=seed, split=split, eta_obj=eta_obj)
    if not spread:
        return made
    members = []
    for number, client in enumerate(made):
        rng = np.random.default_rng([seed, number])
        scale, shift = np.exp(spread / 2 * rng.normal(size=made.features)), spread * rng.normal(size=made.features)
        size = float(np.exp(spread * rng.normal()))
        members.append(dffl.Client(client.name, shift + scale * client.x, size * client.c, client.set, client.maximize))
    return dffl.Federation(members)


def judged(problem: str, kind: str, seed: int) -> Iterator[dict[str, Any]]:
    """One row for each newcomer, number of samples and way to decide."""
    train, test = (federation(problem, seed, split, **KINDS[kind]) for split in ("train", "test"))
    fit = dffl.fit(dffl.Federation(train[:MEMBERS]), "crossfit", client_fraction=0.2, progress=False)
    judges = dffl.Federation(test[MEMBERS:])

    def rows(n: int, way: str, found: dffl.Fit) -> Iterator[dict[str, Any]]:
        for row in found.evaluate(judges).to_dict("records"):
            about = {"problem": problem, "kind": kind, "seed": seed, "client": row["client"]}
            yield about | {"n": n, "way": way, "regret": 100 * row["relative_regret"], "epochs": row.get("epochs")}

    yield from rows(0, SHARED, fit)
    for n in SAMPLES:
        few = dffl.Federation([client.rows(slice(n)) for client in train[MEMBERS:]])
        joined = fit
        for client in few:
            joined = replace(joined, members=joined.members | fit.joined_by(client, progress=False).members)
        yield from rows(n, JOINED, joined)
        for name in ALONE:
            yield from rows(n, name, dffl.fit(few, name, progress=False))


def table(rows: pd.DataFrame) -> str:
    """The mean relative regret in percent, as Markdown."""
    mean = rows.groupby(["problem", "kind", "way", "n"])["regret"].mean()
    lines = ["| problem | clients | | " + " | ".join(f"n = {n}" for n in (0, *SAMPLES)) + " |", "|---" * 9 + "|"]
    for problem in rows["problem"].unique():
        for kind in rows["kind"].unique():
            for way in COLOURS:
                found = mean[problem, kind, way]
                cells = [f"{found[0 if way == SHARED else n]:.2f}" if way == SHARED or n else "" for n in (0, *SAMPLES)]
                lines.append(f"| {problem} | {kind} | {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def draw(rows: pd.DataFrame) -> None:
    """One panel for each problem and kind of federation."""
    problems, kinds = list(rows["problem"].unique()), list(rows["kind"].unique())
    ticks = range(len(SAMPLES))
    with in_print():
        figure = blank(WIDE, 2.1 * len(problems) + 0.8)
        panels = figure.subplots(len(problems), len(kinds), squeeze=False, sharex=True, sharey="row")
        for axes, (problem, kind) in zip(panels.flat, [(p, k) for p in problems for k in kinds], strict=True):
            part = rows[(rows["problem"] == problem) & (rows["kind"] == kind)]
            for way, colour in COLOURS.items():
                found = part[part["way"] == way].groupby("n")["regret"].mean()
                values = [found[0]] * len(ticks) if way == SHARED else found.to_numpy()
                look = {"linestyle": "--"} if way == SHARED else {"marker": "o", "linewidth": 2 if way == JOINED else 1}
                axes.plot(ticks, values, color=colour, label=way, zorder=3 if way == JOINED else 2, **look)
            axes.set_yscale("log")
            axes.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
            axes.minorticks_off()
            axes.set_title(f"{problem}, {kind}")
            axes.set_xticks(ticks, [str(n) for n in SAMPLES])
        for axes in panels[-1]:
            axes.set_xlabel("samples of the newcomer")
        for axes in panels[:, 0]:
            axes.set_ylabel("mean relative regret, %")
        legend_above(figure, *panels[0, 0].get_legend_handles_labels(), columns=len(COLOURS))
        note(figure, f"Lower is better. Mean over four newcomers, {rows['seed'].nunique()} seed(s); {MEMBERS} members.")
        write_figures([("regret", figure)], FOLDER, ("png",), 200)


def main() -> None:
    """Measure, and write the rows, the table and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--draw", action="store_true", help="write the table and the figure again, of the rows that are there")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.cores :])
    if not options.draw:
        FOLDER.mkdir(parents=True, exist_ok=True)
        found = []
        for seed, problem, kind in product(options.seeds, MAKE, KINDS):
            found += judged(problem, kind, seed)
            pd.DataFrame(found).to_parquet(FOLDER / "rows.parquet")
            print(f"{problem}, {kind}, seed {seed}", flush=True)
    rows = pd.read_parquet(FOLDER / "rows.parquet")
    (FOLDER / "table.md").write_text(table(rows), encoding="utf-8")
    draw(rows)
    print(table(rows))


if __name__ == "__main__":
    main()

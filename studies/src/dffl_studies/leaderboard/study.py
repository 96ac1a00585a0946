"""The two studies of the leaderboard: a search over each entry's candidates, then the judgement of the chosen ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dffl_studies.leaderboard.entries import ENTRIES, STARTS, Entry, read, written
from dffl_studies.leaderboard.federations import (
    PART,
    PROBLEMS,
    SEEDS,
    Divided,
    divided,
    search_part,
    synthetic_part,
    zones_part,
)
from dffl_studies.running.study import Job, Parameters, Study

if TYPE_CHECKING:
    from dffl.fitting import Fit

BLOCKS = 20
"""Regrets of test samples are stored as this many means of consecutive samples: enough for an interval, and small."""
BLOCK_COLUMNS = [f"block_{number:02d}" for number in range(BLOCKS)]


def search_study(entries: Sequence[Entry], zones: Path | None) -> Study:
    """One job for each federation of the search and each candidate of each entry, the losses last."""
    parts = [*search_part(), *(zones_part() if zones else [])]
    searched = [ENTRIES[name] for name in dict.fromkeys(entry.searched_as or entry.name for entry in entries)]
    jobs = [
        Job({**part, "entry": entry.name, "options": written(candidate), "start": 0})
        for last in (False, True)
        for part in parts
        for entry in searched
        if (entry.kind == "loss") == last and entry.runs_on(part)
        for candidate in entry.candidates
        if len(entry.candidates) > 1
    ]
    return Study("leaderboard-search", judge_entry, jobs, {"search": True}, weight, _places(zones))


def judging_study(
    chosen: dict[str, dict[str, str]],
    entries: Sequence[Entry],
    zones: Path | None,
    seeds: Sequence[int] = SEEDS,
    full: bool = False,
) -> Study:
    """One job for each federation, start and entry; ``chosen`` holds each problem's options of each entry."""
    parts = [(-1, part) for part in zones_part()] if zones else []
    parts += enumerate(synthetic_part(seeds, full))
    weighted = [
        (
            _phase(place, part, entry, start),
            {**part, "entry": entry.name, "options": chosen[part["problem"]][entry.name], "start": start},
        )
        for place, part in parts
        for start in range(STARTS)
        for entry in entries
        if start < entry.starts and entry.runs_on(part)
    ]
    jobs = [Job(parameters) for _, parameters in sorted(weighted, key=lambda pair: pair[0])]
    return Study("leaderboard", judge_entry, jobs, {"search": False}, weight, _places(zones))


def _phase(place: int, part: Parameters, entry: Entry, start: int) -> tuple[int, ...]:
    """The order of the jobs, so that the results of an interrupted run are complete for some part.

    Seed by seed: the zones; federations of equal sizes, which are fast, first with one start and half of them with all;
    those of unequal sizes; the losses; the rest.
    """
    later, loss = place % PART >= PART // 2, entry.kind == "loss"
    order = [
        place < 0 and not loss,
        not loss and start == 0 and not part["imbalanced"],
        not loss and not later and not part["imbalanced"],
        loss and not later,
        not loss and start == 0,
        True,
    ]
    return part["seed"], order.index(True)


def quick_study(chosen: dict[str, dict[str, str]], entries: Sequence[Entry]) -> Study:
    """One start on one federation of each problem, without the losses, for quick results."""
    parts: list[Parameters] = [
        {"seed": 0, "problem": problem, "imbalanced": False, "degree": 4, "eta_obj": 0.5, "eta_constr": 0.5}
        for problem in PROBLEMS
    ]
    jobs = [
        Job({**part, "entry": entry.name, "options": chosen[part["problem"]][entry.name], "start": 0})
        for part in parts
        for entry in entries
        if entry.kind != "loss"
    ]
    return Study("leaderboard-quick", judge_entry, jobs, {"search": False}, weight)


def choose(rows: pd.DataFrame, entries: Sequence[Entry]) -> dict[str, dict[str, str]]:
    """For each problem and entry the candidate with the lowest mean regret in the search; the first one without a search."""
    problems = dict.fromkeys(str(part["problem"]) for part in [*search_part(), *zones_part()])
    chosen = {problem: {entry.name: written(entry.candidates[0]) for entry in entries} for problem in problems}
    scores = rows.groupby(["problem", "entry", "options"])["relative_regret"].mean()
    for problem in problems:
        for entry in entries:
            texts = [written(candidate) for candidate in entry.candidates]
            regrets = np.array([float(scores.get((problem, entry.searched_as or entry.name, text), np.inf)) for text in texts])
            if np.isfinite(regrets).any():
                chosen[problem][entry.name] = texts[int(np.nanargmin(regrets))]
    return chosen


def searched(rows: pd.DataFrame) -> set[tuple[str, str]]:
    """The problems and entries for which the search has rows."""
    return {(str(problem), str(entry)) for problem, entry in rows[["problem", "entry"]].drop_duplicates().to_numpy()}


def first_choice(entries: Sequence[Entry]) -> dict[str, dict[str, str]]:
    """Every entry's first candidate, without a search."""
    return choose(pd.DataFrame(columns=["problem", "entry", "options", "relative_regret"]), entries)


def weight(job: Parameters) -> float:
    """How long a job takes compared with others."""
    slow = 1.7 if job["problem"] == "portfolio" else 1.0
    large = 3.5 if job["imbalanced"] else 1.0
    heavy = {"crossfit": 2.4, "crossfit-turned": 2.8, "local-tuned": 3.5, "interp-refit": 4.0}
    factor = heavy.get(ENTRIES[job["entry"]].method, 1.0) if job["entry"] in ENTRIES else 1.0
    return slow * large * factor * (4.0 if job["entry"].endswith(("dpo", "fenchel-young")) else 1.0)


def judge_entry(
    *, search: bool, entry: str, options: str, start: int, zones: str | None = None, **configuration: Any
) -> pd.DataFrame:
    """One row per client: its regret in the mean and in blocks of test samples, as shares of the mean |z*|; and what it took.

    An entry that cannot run on a problem has one row that says why.
    """
    import dffl
    from dffl.randomness import start_seeds

    parts = divided(search, zones, **configuration)
    seed = start_seeds(int(configuration["seed"]), start + 1)[start]
    used = time.process_time()
    try:
        fit = dffl.fit(parts.train, ENTRIES[entry].method, progress=False, seed=seed, **{**parts.settings, **read(options)})
    except ValueError as error:
        return pd.DataFrame([{"client": "", "refused": str(error)}])
    seconds = time.process_time() - used
    return in_blocks(fit, parts).assign(refused="", fit_seconds=np.float32(seconds), **fit.effort)


def in_blocks(fit: Fit, parts: Divided) -> pd.DataFrame:
    """One row per client: its regret in the mean and in blocks of test samples, as shares of the mean |z*|."""
    rows = []
    for client, lost in zip(parts.test, fit.regrets_of(parts.test.clients), strict=True):
        size = float(client.z_star_size.mean())
        blocks = [float(part.mean()) / size for part in np.array_split(lost, min(BLOCKS, len(lost)))]
        row = {"client": client.name, "n": parts.train[client.name].n, "relative_regret": float(lost.mean()) / size}
        rows.append(row | dict(zip(BLOCK_COLUMNS, blocks, strict=False)))
    table = pd.DataFrame(rows)
    numbers = ["relative_regret", *BLOCK_COLUMNS]
    return table.astype(dict.fromkeys([name for name in numbers if name in table], "float32")).astype({"n": "int16"})


def _places(zones: Path | None) -> Parameters:
    return {} if zones is None else {"zones": str(zones.resolve())}

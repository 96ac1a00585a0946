"""One backtest for each fleet, from the half of its days on. Rows are sums over weeks: they give quarters and intervals too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from dffl_studies.running.study import Job, Study
from dffl_studies.time.markets import FLEETS

WEEK = 7
SECONDS = {"zones": 60.0, "zones, prices only": 60.0, "pjm": 100.0}
"""The rough duration of a fleet in seconds, if it is not 30."""


def study(folders: Mapping[str, Path], refit: int = 28, window: int = 90, seed: int = 0) -> Study:
    """The fleets whose folder of data is given."""
    jobs = [Job({"fleet": fleet}) for fleet, (kind, _) in FLEETS.items() if kind in folders]
    if not jobs:
        raise ValueError("there are no data: give at least one of --energy, --pjm and --epf")
    protocol = {"refit": refit, "window": window, "seed": seed}
    places = {kind: str(folder.resolve()) for kind, folder in folders.items()}
    return Study("time", judge_one, jobs, protocol, lambda job: SECONDS.get(job["fleet"], 30.0), places)


def judge_one(*, fleet: str, refit: int, window: int, seed: int, **folders: str) -> pd.DataFrame:
    """For each rule, client and week the losses; for the chosen rules also how many ranges held, and the running time."""
    import dffl
    from dffl.time.outcome import CHOSEN
    from dffl.time.ranges import misses

    kind, read = FLEETS[fleet]
    federation = read(Path(folders[kind]))
    begun = perf_counter()
    outcome = dffl.backtest(federation, refit=refit, window=window, seed=seed, progress=False)
    seconds = perf_counter() - begun
    rows = []
    for place, client in enumerate(outcome.clients):
        later = outcome.reported(place)
        week = np.arange(client.n)[later] // WEEK
        spans = outcome.spans[place]
        ranged = np.isfinite(spans.ends).all(axis=1)[later]
        below, above = misses(spans.cost, spans.ends)
        inside = ~(below | above)[later] & ranged
        for rule in (*outcome.lost, CHOSEN):
            day = pd.DataFrame({"week": week, "regret": outcome.regrets(rule, place)[later], "best": client.z_star_size[later]})
            day = day.assign(days=1, ranged=ranged if rule == CHOSEN else False, held=inside if rule == CHOSEN else False)
            rows.append(day.groupby("week", as_index=False).sum().assign(client=client.name, rule=rule))
    table = pd.concat(rows, ignore_index=True)
    return table.assign(week=table["week"] - table["week"].min(), base=outcome.base, seconds=seconds)

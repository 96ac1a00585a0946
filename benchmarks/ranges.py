"""Do the cost ranges of `dffl decide` hold what they state, and are they better than one range for all rows?

    python benchmarks/ranges.py                # synthetic federations: a minute or two on two cores
    python benchmarks/ranges.py --panel PANEL  # also the zones of a market, a panel of `dffl energy`

`crossfit` is trained, ranges are made from its held-out rows as `dffl fit` makes them, and judged on fresh rows of each client:
the share of them inside, the width, and the interval score (width, and a fine of ten times the distance for each row outside;
lower is better). Width and score are shares of those of one range for all rows, the middle 80 % of the test rows.
Zones by day at random are exchangeable; zones in order have tests after training, and fresh rows after the tests.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import dffl
from dffl import synthetic
from dffl.federation import Client, Federation
from dffl.tables.cost_range import HIGH, LOW, cost_range, interval_score, known

SETTINGS = {"rounds": 15, "local_epochs": 3}
ORIGINS = (0.0, 0.1, 0.2, 0.3, 0.4)
"""Where a stretch of a year begins, as a share of it: 40 % train, 10 % test, and 10 % are fresh."""
EVERY = 3
"""Neighbouring zones have much the same prices: every third one is used."""


class Case(NamedTuple):
    """Training, test and fresh rows of the same clients."""

    name: str
    train: Federation
    test: Federation
    fresh: Federation
    ordered: bool


def part(federation: Sequence[Client], first: float, last: float) -> Federation:
    """A stretch of each client's rows."""
    return Federation([client.rows(np.arange(int(first * client.n), int(last * client.n))) for client in federation])


def synthetic_cases() -> Iterator[Case]:
    """Clients with few and with many rows."""
    for name, make in (("knapsack", synthetic.knapsack), ("portfolio", synthetic.portfolio)):
        for samples in (60, 200):
            whole = make(seed=1, clients=6, samples=samples)
            fresh = make(seed=1, split="test", clients=6, samples=2000)
            yield Case(f"{name}, {samples} rows", part(whole, 0, 0.8), part(whole, 0.8, 1), fresh, False)


def zone_cases(path: Path) -> Iterator[Case]:
    """Zones of a market, from weather alone and with past prices; in order, and by day at random."""
    from dffl_studies.energy import data as energy

    panel = energy.open_panel(path)
    for features, weight in (("weather", None), ("past prices", 0.2)):
        zones = list(energy.federation(panel, energy.Sampling(weight=weight)))[::EVERY]
        rng = np.random.default_rng(0)
        mixed = [zone.rows(rng.permutation(zone.n)) for zone in zones]
        yield Case(f"zones, {features}, random", part(mixed, 0, 0.48), part(mixed, 0.48, 0.6), part(mixed, 0.6, 1), False)
        for first in ORIGINS:
            cuts = [part(zones, first + start, first + end) for start, end in ((0, 0.4), (0.4, 0.5), (0.5, 0.6))]
            yield Case(f"zones, {features}, in order", *cuts, True)


def judged(case: Case) -> pd.DataFrame:
    """One row per client: the simple range of the test rows, and the range of `dffl decide`."""
    fit = dffl.fit(case.train, "crossfit", progress=False, validation_blocks=case.ordered, **SETTINGS)
    rows = []
    for client in case.fresh:
        test = case.test[client.name]
        found = cost_range(fit, test, case.train[client.name], case.ordered)
        predicted = fit.predict(client.name, client.x)
        decided = fit.decide_at(client.name, predicted)
        cost = client.best_objective + client.sense * fit.regrets(client)
        low, _, high = found.at(known(client.x, predicted, decided)).T
        plain_low, plain_high = np.quantile(test.best_objective + test.sense * fit.regrets(test), (LOW, HIGH))
        rows.append({
            "rows": found.rows,
            "follows features": found.guide is not None,
            "simple: inside": np.mean((cost >= plain_low) & (cost <= plain_high)),
            "inside": np.mean((cost >= low) & (cost <= high)),
            "width": np.mean(high - low) / (plain_high - plain_low),
            "score": interval_score(cost, low, high) / interval_score(cost, plain_low, plain_high),
        })  # fmt: skip
    return pd.DataFrame(rows).assign(case=case.name)


def main() -> None:
    """Print a table: one line for each kind of federation, means over clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panel", type=Path, help="a panel of zones: a file, or a folder")
    options = parser.parse_args()
    cases = [*synthetic_cases(), *(zone_cases(options.panel) if options.panel is not None else ())]
    found = pd.concat([judged(case) for case in cases])
    print(found.groupby("case", sort=False).mean().round(2).to_string())


if __name__ == "__main__":
    main()

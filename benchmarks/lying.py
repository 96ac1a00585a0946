"""One lying site of five: how far honest updates differ, and what a lie costs the others.

    python -m benchmarks.lying changes   # the longest honest changes, as shares of their limits, over methods and federations
    python -m benchmarks.lying regret    # what the others lose with one liar, against the run without it

The lies are put into the answers of a simulated run, behind the client's own training and before the server. ``changes`` takes
about ten minutes on two cores, ``regret`` about as long. Real zones are looked at where DFFL_ENERGY_DATA names the folder.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import dffl
from dffl import synthetic
from dffl.fitting import perform
from dffl.training import Run, Settings, change_limit
from dffl.training.change_limit import Change, ChangeLimits
from dffl.training.engines.base import ClientAnswers, Engine
from dffl.training.history import DivergenceError
from dffl.training.methods import request
from dffl.training.parts import Part
from dffl.training.trainers import federated
from dffl.training.trainers.base import Trainer

Lie = Callable[[np.ndarray, np.random.Generator], np.ndarray]
LIES: dict[str, Lie] = {
    "-20 x its vector": lambda vector, draws: -20 * vector,
    "1,000 x its vector": lambda vector, draws: 1000 * vector,
    "minus its vector": lambda vector, draws: -vector,
    "all 0": lambda vector, draws: np.zeros_like(vector),
    "all 1": lambda vector, draws: np.ones_like(vector),
    "noise of size 1": lambda vector, draws: vector + draws.normal(size=vector.shape),
    "noise of size 0.1": lambda vector, draws: vector + 0.1 * draws.normal(size=vector.shape),
}
ROWS = {"100 x the rows": 100}
"""What is still within the limit of rows."""
METHODS = ("fedavg", "crossfit", "scaffold", "clustered", "apfl", "fedrep", "ditto", "fedrspo", "interp-mse")


class LyingRun(Run):
    """A run in which one client's answers, or its number of samples, are false."""

    def __init__(self, federation: dffl.Federation, settings: Settings, liar: int, lie: Lie | None, times: int = 1):
        super().__init__(federation, settings)
        self._liar, self._lie, self._times = liar, lie, times

    def ask(
        self, trainer: Trainer, part: Part, members: np.ndarray | None = None, *, scope: str | None = None, **sent: Any
    ) -> Iterator[ClientAnswers]:
        lies = isinstance(trainer, federated.Federated) and trainer.in_round(self.settings, sent) and self._lie is not None
        for some, fields in super().ask(trainer, part, members, scope=scope, **sent):
            if lies and self._liar in some:
                row, vectors = some.tolist().index(self._liar), np.array(fields["vector"])
                assert self._lie is not None
                vectors[row] = self._lie(vectors[row], np.random.default_rng(sent["round"]))
                fields = {**fields, "vector": vectors}
            yield ClientAnswers(some, fields)

    def _laid_out(self, part: Part) -> Engine:
        engine = super()._laid_out(part)
        engine.counts = np.array(engine.counts)
        engine.counts[self._liar] *= self._times
        return engine


def longest_changes() -> None:
    """Print the longest honest changes of each federation and method, as multiples of the others' median and of the limit."""
    seen: list[tuple[float, float]] = []
    rule = change_limit.limits

    def watched(settings: Settings, rate: float, changes: Sequence[Change]) -> ChangeLimits:
        lengths, medians, allowed = made = rule(settings, rate, changes)
        with np.errstate(divide="ignore", invalid="ignore"):
            seen.append((float(np.nanmax(lengths / medians)), float(np.max(lengths / allowed))))
        return made

    change_limit.limits = watched
    print(f"{'federation':42}{'method':12}{'rounds':>7}{'x median':>10}{'x limit':>9}")
    for name, (federation, settings, methods) in federations().items():
        for method in methods:
            seen.clear()
            dffl.fit(federation, method, progress=False, **settings)
            if seen:
                times, share = (max(column) for column in zip(*seen, strict=True))
                print(f"{name:42}{method:12}{len(seen):7}{times:10.2f}{share:9.3f}", flush=True)


def federations() -> dict[str, tuple[dffl.Federation, dict[str, Any], Sequence[str]]]:
    """What is looked at: federation, settings, methods."""
    quick = {"rounds": 20}
    found: dict[str, Any] = {
        "demo": (synthetic.knapsack(0, imbalanced=True), quick, METHODS),
        "demo, sgd": (
            synthetic.knapsack(0, imbalanced=True), quick | {"optimiser": "sgd", "learning_rate": 0.05}, METHODS[:3:2]
        ),
        "five clients": (synthetic.knapsack(1, clients=5), {}, METHODS[:3]),
        "50, 50, 50, 50 and 5,000 samples": (synthetic.knapsack(0, clients=5, samples=[50] * 4 + [5000]), quick, METHODS[:1]),
        "50, 50, 50, 50 and 10,000 samples": (synthetic.knapsack(0, clients=5, samples=[50] * 4 + [10**4]), quick, METHODS[:1]),
        "shortest paths": (synthetic.shortest_path(0, imbalanced=True), quick, METHODS[:1]),
    }  # fmt: skip
    for problem in (synthetic.knapsack, synthetic.portfolio):
        for eta in (0.0, 0.25, 0.5, 1.0):
            for degree in (2, 8):
                data = problem(0, eta_obj=eta, eta_constr=eta, degree=degree, imbalanced=degree == 8)
                name = f"paper: {problem.__name__}, eta {eta}, degree {degree}"
                found[name] = (data, {"client_fraction": 0.2}, ("fedavg", "fedrspo"))
    if folder := os.environ.get("DFFL_ENERGY_DATA"):
        from dffl_studies.leaderboard.federations import NO_AXES, ZONES, divided

        for problem_name in ZONES:
            made = divided(False, folder, seed=0, problem=problem_name, **NO_AXES)
            found[problem_name] = (made.train, made.settings | quick, METHODS[:4])
    return found


def regrets() -> None:
    """Print the others' mean relative regret with one liar of five, for each lie, with and without the limit."""
    train, test = (synthetic.knapsack(1, split, clients=5) for split in ("train", "test"))
    honest = [one.name for one in train][:-1]
    alone, judged = (dffl.Federation([one for one in data if one.name in honest]) for data in (train, test))
    print(f"{'method':12}{'lie':24}{'others, %':>10}{'change, %':>11}{'left out':>10}{'without limit, %':>18}")
    for method in ("fedavg", "crossfit"):
        base = _mean(dffl.fit(alone, method, progress=False), judged)
        print(f"{method:12}{'(without the site)':24}{base:10.3f}")
        lies: list[tuple[str, Lie | None, int]] = [("(honest)", None, 1)]
        lies += [(name, lie, 1) for name, lie in LIES.items()] + [(name, None, times) for name, times in ROWS.items()]
        for name, lie, times in lies:
            limited = _lied_to(train, method, lie, times)
            found, unused = _mean(limited, judged), sum(limited.about.get("unused_updates", {}).values())
            try:
                free = f"{_mean(_lied_to(train, method, lie, times, change_limit=0), judged):.3f}"
            except DivergenceError:
                free = "diverges"
            print(f"{method:12}{name:24}{found:10.3f}{100 * (found / base - 1):11.2f}{unused:10}{free:>18}", flush=True)


def _lied_to(train: dffl.Federation, method: str, lie: Lie | None, times: int, **settings: Any) -> dffl.Fit:
    asked, given = request(method, settings)
    with warnings.catch_warnings(), LyingRun(train, Settings.of(**given), len(train) - 1, lie, times) as run:
        warnings.simplefilter("ignore")
        return perform(run, asked)


def _mean(fit: dffl.Fit, judged: dffl.Federation) -> float:
    return 100 * float(fit.evaluate(judged)["relative_regret"].mean())


if __name__ == "__main__":
    {"changes": longest_changes, "regret": regrets}[sys.argv[1]]()

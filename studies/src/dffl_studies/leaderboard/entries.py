"""What takes part: methods and losses, each with the options that its search may choose from.

The search is of one size for all methods: four candidates, fewer only where a method has fewer options. Most have two recipes
of training, times two values of what is the method's own. Losses have one recipe, and two values of their own parameter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dffl.named import plain, rebuilt
from dffl.training.methods.crossfit import FAST as FAST_SETTINGS
from dffl.training.trainers.tuning import EPOCHS
from dffl_studies.running.study import Parameters

Candidate = dict[str, Any]
"""Options and settings of a fit, as JSON values."""

PLAIN: Candidate = {"learning_rate": 1e-3, "schedule": "constant", "aggregate": "mean"}
"""The paper's recipe of training."""
FAST: Candidate = {name: plain(value) for name, value in FAST_SETTINGS.items()}
"""A higher rate that falls to zero over the rounds, and a server with momentum."""
COSINE: Candidate = {**PLAIN, "learning_rate": 2e-3, "schedule": "cosine"}
MOMENTUM: Candidate = {**PLAIN, "aggregate": FAST["aggregate"]}
STARTS = 3
"""Significant harm needs the variance between at least three seeds."""
RATES = [{"learning_rate": 1e-3}, {"learning_rate": 2e-3}]
RECIPES = [PLAIN, FAST]
JUDGES = [{"judge": "spo+"}, {"judge": "regret"}]


@dataclass(frozen=True)
class Entry:
    """One row of the leaderboard."""

    name: str
    method: str
    kind: str
    """naive (no network), alone (no other client), shared (one model for all), personal, or loss (another than SPO+)."""
    candidates: tuple[Candidate, ...]
    searched_as: str = ""
    """The entry whose search this one uses; empty: its own."""

    def runs_on(self, part: Parameters) -> bool:
        """Whether it takes part in a federation. Losses take part only in those of equal sizes: perturbed ones take ten times
        as long.
        """
        return self.kind != "loss" or not part["imbalanced"]

    @property
    def starts(self) -> int:
        """The number of random seeds of its trainings. Naive models have none, and losses are compared only by their means."""
        return 1 if self.kind in ("naive", "loss") else STARTS


def crossed(*axes: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Every combination of one candidate of each axis."""
    candidates: list[Candidate] = [{}]
    for axis in axes:
        candidates = [{**candidate, **more} for more in axis for candidate in candidates]
    return tuple(candidates)


def _methods() -> list[Entry]:
    judged = crossed(RECIPES, JUDGES)
    epochs = [{"own_epochs": 5}, {"own_epochs": 20}]
    rows: list[tuple[str, str, tuple[Candidate, ...]]] = [
        ("mean-cost", "naive", ({},)),
        ("nearest", "naive", crossed(JUDGES_OF_COSTS)),
        ("ridge", "naive", crossed(DEGREES_OF_RIDGE, JUDGES_OF_COSTS)),
        ("ridge-pooled", "naive", crossed(DEGREES_OF_RIDGE)),
        ("trees", "naive", ({},)),
        ("local", "alone", (PLAIN,)),
        ("local-tuned", "alone", crossed(RATES, JUDGES)),
        ("fedavg", "shared", (PLAIN, FAST, COSINE, MOMENTUM)),
        ("fedprox", "shared", crossed(RECIPES, [{"pull": 0.01}, {"pull": 0.1}])),
        ("scaffold", "shared", (PLAIN, FAST, COSINE, MOMENTUM)),
        ("interp-mse", "personal", (PLAIN, FAST, COSINE, MOMENTUM)),
        ("interp-spo", "personal", judged),
        ("interp-refit", "personal", judged),
        ("clustered", "personal", crossed([{"epochs": list(EPOCHS)}], RECIPES, [{"clusters": 2}, {"clusters": 4}])),
        ("fedrep", "personal", crossed(RECIPES, [{"head_epochs": 5}, {"head_epochs": 20}])),
        ("ditto", "personal", crossed([{"pull": 0.1}], RECIPES, epochs)),
        ("apfl", "personal", crossed(RECIPES, epochs)),
        ("fedrspo", "personal", FEDRSPO),
        ("finetune", "personal", judged),
        ("finetune-mix", "personal", judged),
        ("crossfit", "personal", judged),
        ("crossfit-turned", "personal", TURNED),
    ]
    as_it_is = Entry("crossfit (default)", "crossfit", "personal", ({},))
    return [*(Entry(name, name, kind, candidates) for name, kind, candidates in rows), as_it_is]


JUDGES_OF_COSTS = [{"judge": "regret"}, {"judge": "mse"}]
DEGREES_OF_RIDGE = [{"degree": 1}, {"degree": 2}]
TURNED = ({**PLAIN, "judge": "spo+"}, *({**FAST, "judge": "regret", "pooled_units": pooled} for pooled in (False, True)),
          {**FAST, "judge": "spo+", "pooled_units": True})  # fmt: skip
"""A matrix before the first layer, with each client's own units and with pooled ones."""
_SAME_BUDGET = {"warm_rounds": None, "warm_epochs": None, "warm_fraction": None, "personal_rounds": 100}
FEDRSPO: tuple[Candidate, ...] = (
    {}, _SAME_BUDGET, {**_SAME_BUDGET, "freeze_at": None}, {**_SAME_BUDGET, "personal_step": 0.003, "freeze_at": None},
)  # fmt: skip
"""As published by its authors, and with the same number of rounds and epochs as the others."""

LOSSES: dict[str, list[Candidate]] = {
    "spo+": [{}],
    "rspo+": [{"loss": {"kind": "loss", "name": "rspo+", "strength": strength}} for strength in (0.1, 1.0)],
    "fenchel-young": [{"loss": {"kind": "loss", "name": "fenchel-young", "scale": scale}} for scale in (0.1, 1.0)],
    "dpo": [{"loss": {"kind": "loss", "name": "dpo", "scale": scale}} for scale in (0.1, 1.0)],
    "mse": [{}],
    "spo+mse": [{"loss": {"kind": "loss", "name": "spo+mse", "weight": weight}} for weight in (0.1, 1.0)],
}
"""The losses, each with values of its own parameter."""
LOSS_METHODS = ("finetune", "crossfit")
"""The parameter of a loss is chosen with the first method, which is faster, for both."""


def _losses() -> list[Entry]:
    entries = []
    for loss, options in LOSSES.items():
        for method in LOSS_METHODS:
            # The training losses are compared: all have the same recipe, and candidates are judged in the same way.
            first = [{**FAST, "loss": loss, "judge": "regret"}]
            searched_as = "" if method == LOSS_METHODS[0] else f"{LOSS_METHODS[0]}, {loss}"
            entries.append(Entry(f"{method}, {loss}", method, "loss", crossed(first, options), searched_as))
    return entries


ENTRIES: dict[str, Entry] = {entry.name: entry for entry in [*_methods(), *_losses()]}


def written(candidate: Candidate) -> str:
    """A candidate as a text, which is a parameter of its jobs."""
    return json.dumps(candidate, sort_keys=True)


def read(text: str) -> dict[str, Any]:
    """The keywords of `dffl.fit` from the text of `written`."""
    return {name: rebuilt(value) for name, value in json.loads(text).items()}


def in_words(text: str) -> str:
    """A candidate in words: recipes by their names."""
    settings: dict[str, Any] = json.loads(text)
    words = []
    for name, recipe in (("fast", FAST), ("plain", PLAIN), ("cosine", COSINE), ("momentum", MOMENTUM)):
        if all(settings.get(key) == value for key, value in recipe.items()):
            words.append(name)
            settings = {key: value for key, value in settings.items() if key not in recipe}
            break
    for key, value in settings.items():
        shown = (
            ", ".join(f"{k} {v}" for k, v in value.items() if k not in ("kind", "name")) if isinstance(value, dict) else value
        )
        words.append(f"{key} {shown}")
    return ", ".join(words) or "as it is"

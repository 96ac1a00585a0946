"""Evidence by training: what `local`, `local-tuned`, `fedavg`, `finetune` and `crossfit` train, in the same folds.

The trainings are those of the methods and are shared: `local` is a stop of `local-tuned`, `finetune` starts from `fedavg`. So
the fits of `crossfit` and `local-tuned` come with the evidence. Unlike there, a number of epochs is chosen without the fold
that judges it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dffl.advice.evidence import FITTED, Candidates, Evidence, Guess, guessed, judged, mean_costs
from dffl.advice.folds import Fold, folds, half_folds
from dffl.advice.quick import closed_forms
from dffl.cache import keep_compiled_programs
from dffl.federation import Federation
from dffl.fitting import Fit, perform
from dffl.judging import predicted
from dffl.losses import Loss
from dffl.predictor import Predictor
from dffl.progress import Progress
from dffl.training import FedAvg, Local, Run, Settings, Trainer
from dffl.training.methods import Request, requests
from dffl.training.parts import FoldSamples
from dffl.training.trainers import Stops
from dffl.training.trainers.crossfit import OutOfFold
from dffl.training.trainers.tuning import checked_epochs

Models = dict[FoldSamples, list[Predictor]]
"""For each fold a model for each client."""


class EvidenceColumn(NamedTuple):
    """A column of the evidence: the settings of its models, and their trainer."""

    settings: Settings
    train: Callable[[Run], Models]


class Trained(NamedTuple):
    """The evidence, and the fits that were trained with it."""

    evidence: list[Evidence]
    fits: dict[str, Fit]


class Tuning(NamedTuple):
    """A method that chooses a number of epochs: its request, its settings, its candidates and its judging loss."""

    request: Request
    settings: Settings
    stops: Stops
    judge: Loss | str

    @classmethod
    def of(cls, request: Request, start: Trainer | None, settings: dict[str, Any]) -> Tuning:
        options = {**request.method.options, **request.options}
        tuned_settings = Settings.of(**{**request.method.settings, **settings})
        return cls(request, tuned_settings, Stops(start, checked_epochs(options["epochs"])), options["judge"])

    def column(self, parts: Sequence[FoldSamples]) -> EvidenceColumn:
        """The models at the stops that each client chooses without the fold that judges them."""
        return EvidenceColumn(self.settings, partial(_chosen, self, parts))


class TrainingPlan(NamedTuple):
    """The trainings: the settings of `local` and `fedavg`, and the methods that choose a number of epochs."""

    settings: Settings
    tunings: dict[str, Tuning]
    """By their names in `Evidence`."""

    @classmethod
    def of(cls, count: int, blocks: bool, keywords: dict[str, Any]) -> TrainingPlan:
        """From the keywords of `dffl.advise`; an option of a method is written ``finetune.epochs``."""
        names = {"crossfit": "crossfit", "local_tuned": "local-tuned", "finetuned": "finetune"}
        asked, rest = requests(names.values(), keywords)
        settings = {**rest, "validation_blocks": blocks}
        tunings = {}
        for name, asked_for in zip(names, asked, strict=True):
            folded = (
                Request(asked_for.method, {**asked_for.options, "folds": count})
                if "folds" in asked_for.method.options
                else asked_for
            )
            tunings[name] = Tuning.of(folded, None if name == "local_tuned" else FedAvg(), settings)
        return cls(Settings.of(**settings), tunings)


def trained(federation: Federation, plan: TrainingPlan, count: int, progress: bool | None = None) -> Trained:
    """Evidence for every client from ``count`` folds, and from other folds for the models of half the data."""
    how = plan.settings.splitting
    all_folds = folds(federation, count, how)
    half = half_folds(federation, all_folds, how)
    parts, halves = ([fold.part for fold in some] for some in (all_folds, half))
    columns = {name: tuning.column(parts) for name, tuning in plan.tunings.items()}
    columns["local"] = EvidenceColumn(plan.settings, partial(_local, parts, plan.tunings["local_tuned"].stops))
    columns["federated"] = EvidenceColumn(plan.settings, partial(_shared, parts))
    less = {
        "half_local": EvidenceColumn(plan.settings, partial(_alone, halves)),
        "half_federated": EvidenceColumn(plan.settings, partial(_shared, halves)),
    }
    keep_compiled_programs()
    with Progress(progress) as bar, ExitStack() as stack:
        jobs: defaultdict[Settings, list[Callable[[Run], Any]]] = defaultdict(list)
        for column in (*columns.values(), *less.values()):
            jobs[column.settings].append(column.train)
        runs = {settings: stack.enter_context(Run(federation, settings, progress=bar)) for settings in jobs}
        bar.begin_run(sum(run.rehearse(jobs[settings]).work for settings, run in runs.items()))
        full, part = ({name: column.train(runs[column.settings]) for name, column in some.items()} for some in (columns, less))
        tunings = [plan.tunings[name] for name in FITTED.values()]
        fits = {tuning.request.method.name: perform(runs[tuning.settings], tuning.request) for tuning in tunings}
    known = judged(federation, all_folds, partial(_candidates, full, naive=True))
    short = judged(federation, half, partial(_candidates, part))
    kept_guesses = guessed(federation, all_folds, partial(_compared, plan.settings, full["federated"]))
    collected = [
        Evidence(client.name, client.n, **mine, **other, guesses=seen)
        for client, mine, other, seen in zip(federation, known, short, kept_guesses, strict=True)
    ]
    return Trained(collected, fits)


def _chosen(tuning: Tuning, parts: Sequence[FoldSamples], run: Run) -> Models:
    losses = np.stack([run.trained(OutOfFold(tuning.stops, tuning.judge), part) for part in parts])
    models = {}
    for place, part in enumerate(parts):
        best = np.argmin(np.delete(losses, place, axis=0).sum(axis=0), axis=1)
        models[part] = run.personal(tuning.stops.reached(run, part)[np.arange(len(best)), best], part)
    return models


def _local(parts: Sequence[FoldSamples], stops: Stops, run: Run) -> Models:
    passes = run.settings.rounds * run.settings.local_epochs
    if passes not in stops.epochs:
        return _alone(parts, run)
    return {part: run.personal(stops.reached(run, part)[:, stops.epochs.index(passes)], part) for part in parts}


def _alone(parts: Sequence[FoldSamples], run: Run) -> Models:
    return {part: run.personal(run.trained(Local(), part), part) for part in parts}


def _shared(parts: Sequence[FoldSamples], run: Run) -> Models:
    return {part: run.common(run.trained(FedAvg(), part), part)[0] for part in parts}


def _candidates(columns: dict[str, Models], fold: Fold, naive: bool = False) -> Candidates:
    candidates: Candidates = [{"mean_cost": mean} if naive else {} for mean in mean_costs(fold)]
    for name, models in columns.items():
        for client_candidates, model in zip(candidates, models[fold.part], strict=True):
            client_candidates[name] = _guess(model)
    return candidates


def _compared(settings: Settings, shared: Models, fold: Fold) -> Candidates:
    """The shared model, and closed-form models of each client's own costs."""
    return [
        {**own, "federated": _guess(model)} for own, model in zip(closed_forms(settings, fold), shared[fold.part], strict=True)
    ]


def _guess(model: Predictor) -> Guess:
    return lambda x: predicted(model, x)

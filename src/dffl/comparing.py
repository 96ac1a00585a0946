"""`dffl.compare`: several methods on one federation, client by client, against staying local."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from dffl.checks import require_whole
from dffl.federation import Federation
from dffl.fitting import Fit, SharedRun, perform, require_federation, running, same_shape
from dffl.harm import ENOUGH_STARTS, HARM_TOLERANCE, interval, judge_harm
from dffl.progress import Progress
from dffl.randomness import start_seeds
from dffl.time.outcome import CHOSEN
from dffl.training import Settings
from dffl.training.keywords import MethodChoice, SettingsKeywords
from dffl.training.methods import Request, requests
from dffl.training.sharing import alike_rows, warn_of_seen

DEFAULT_METHODS = ("mean-cost", "local", "local-tuned", "fedavg", "interp-mse", "interp-spo", "finetune", "crossfit")
FACTS = ("client", "method", "n", "n_test", "took_part")
"""The columns of `Fit.evaluate` that are equal for all seeds. The others are averaged."""


def compare(
    federation: Federation,
    methods: Sequence[MethodChoice] = DEFAULT_METHODS,
    *,
    test: Federation,
    validation: Federation | None = None,
    starts: int = ENOUGH_STARTS,
    harm_tolerance: float = HARM_TOLERANCE,
    confidence: float = 0.95,
    progress: bool | None = None,
    **settings: Unpack[SettingsKeywords],
) -> pd.DataFrame:
    """Fit several methods and evaluate each on a test federation: one row per client and method.

    By default: mean-cost, local, local-tuned, fedavg, interp-mse, interp-spo, finetune and crossfit.

    Every method is trained with ``starts`` random seeds. The first is the given ``seed`` and gives the numbers of
    `dffl.fit`; with the others, everything random in training is drawn again. The columns of the table:

    - the columns of `Fit.evaluate` and ``lambda``, ``epochs``: means over the seeds
    - ``spread``: the standard deviation of ``relative_regret`` over the seeds
    - ``relative_regret_low``, ``relative_regret_high``: the ends of its ``confidence`` interval, over other test samples
      and other seeds
    - ``independent``: the number of independent test samples. Test samples with `times` resemble their neighbours and count
      as fewer (see `dffl.serial`). Without times, equal samples and samples of one key count once.
    - ``change``: the relative regret minus that of `local`, which is always fitted on all the data; ``change_low`` and
      ``change_high`` are the ends of its interval
    - ``verdict``: better, worse or unclear, by this interval
    - ``harmed``: the regret exceeds that of `local` by more than ``harm_tolerance`` of it, and the verdict is worse
    - ``above_tolerance``: the first of these two conditions, for the first seed. A second training of `local` often meets
      it, too.
    - ``lambda``: the weight of the shared model that an interpolation chose (0: the client's own model, 1: the shared one,
      both trained on the 80 % split)
    - ``epochs``: the number of epochs that `finetune`, `crossfit` or `local-tuned` chose

    The verdict is "not judged" and ``harmed`` is missing (NA) with fewer than three seeds, with one test sample, or if
    samples are too similar in time. The rows of `local` have the verdict "reference".
    """
    _check(harm_tolerance, confidence)
    runs = judge_starts(federation, methods, test=test, validation=validation, starts=starts, progress=progress, **settings)
    return against(runs, test, "local", harm_tolerance, confidence)


def judged(federation: Federation, test: Federation) -> None:
    """Refuse, before training, a test federation that `compare` could not use."""
    require_federation("federation", federation)
    same_shape(test, federation)
    names = set(federation.names)
    for client in test:
        if client.name not in names:
            raise ValueError(
                f"test: client {client.name!r} took no part, so it has no local model to be compared with; "
                "use dffl.fit(...).evaluate for newcomers"
            )


def fit_all(
    federation: Federation,
    methods: Sequence[MethodChoice] = DEFAULT_METHODS,
    *,
    validation: Federation | None = None,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **settings: Unpack[SettingsKeywords],
) -> dict[str, Fit]:
    """Fit several methods with one seed, `local` among them. Trainings that methods have in common are done once.

    A method is a name, or a name with options: ``("ditto", {"pull": 0.1})``. The keys of the result are the names. A method
    that is asked for several times has its options in the key: ``ditto(pull=0.1)``. A `local` with options replaces the
    usual one as the reference.
    """
    return _fit_all(federation, _asked(methods, settings), validation, progress, checkpoint)


class ConfiguredMethod(NamedTuple):
    """A method with its options, and its settings: a method may have its own defaults."""

    request: Request
    settings: Settings


def _asked(methods: Sequence[MethodChoice], settings: SettingsKeywords) -> dict[str, ConfiguredMethod]:
    """The methods by their titles, `local` among them."""
    if isinstance(methods, str):
        raise ValueError(f"methods must be a list of names, found the text {methods!r}")
    if any(method == CHOSEN or (isinstance(method, tuple) and method[:1] == (CHOSEN,)) for method in methods):
        ways = "dffl compare FILE --method chosen compares it; in Python, dffl.backtest(...) has its regret by row"
        raise ValueError(f"methods: {CHOSEN!r} is a choice among methods and is not trained as they are: {ways}")
    parsed, _ = requests(methods, {})
    # If there are several local ones, the reference is the usual one.
    alone = sum(request.method.name == "local" for request in parsed) == 1
    asked, rest = requests(parsed if alone else [*parsed, "local"], settings)
    names = [request.method.name for request in asked]
    titles = [request.method.name if names.count(request.method.name) == 1 else request.title for request in asked]
    return {title: ConfiguredMethod(request, _settings_of(request, rest)) for title, request in zip(titles, asked, strict=True)}


def _settings_of(asked: Request, rest: dict[str, Any]) -> Settings:
    return Settings.of(**{**asked.method.settings, **rest})


def _fit_all(
    federation: Federation,
    asked: dict[str, ConfiguredMethod],
    validation: Federation | None,
    progress: bool | Progress | None,
    checkpoint: str | PathLike[str] | None = None,
) -> dict[str, Fit]:
    plans = _plans(list(asked.values()))
    with running(federation, plans, validation, progress, checkpoint) as runs:
        of = {plan.settings: run for plan, run in zip(plans, runs, strict=True)}
        return {title: perform(of[request.settings], request.request) for title, request in asked.items()}


def _plans(asked: Sequence[ConfiguredMethod]) -> list[SharedRun]:
    """Group methods with the same settings: each group trains in one run."""
    runs: dict[Settings, SharedRun] = {}
    for request, settings in asked:
        runs.setdefault(settings, SharedRun(settings, [])).asked.append(request)
    return list(runs.values())


def refuse_early(federation: Federation, methods: Sequence[MethodChoice], **settings: Unpack[SettingsKeywords]) -> None:
    """Refuse everything that `fit_all` would refuse, without training."""
    asked, rest = requests(methods, settings)
    with running(
        federation, _plans([ConfiguredMethod(request, _settings_of(request, rest)) for request in asked]), progress=False
    ):
        pass


class Start(NamedTuple):
    """The losses of the methods with one seed on the test samples. The keys are the methods' titles."""

    rows: dict[str, list[dict[str, Any]]]
    """For each client, its row of `Fit.evaluate`."""
    lost: dict[str, list[np.ndarray]]
    """For each client, the regret of each of its samples."""

    @classmethod
    def of(cls, fits: dict[str, Fit], test: Federation) -> Start:
        """Judge the fits of one seed."""
        for fit in fits.values():
            fit.check(test)
        lost_by = {name: fit.judge(test.clients) for name, fit in fits.items()}
        rows = {
            name: [fit.row(client, *lost) for client, lost in zip(test, lost_by[name], strict=True)]
            for name, fit in fits.items()
        }
        return cls(rows, {name: [lost for lost, _ in clients] for name, clients in lost_by.items()})


def judge_starts(
    federation: Federation,
    methods: Sequence[MethodChoice] = DEFAULT_METHODS,
    *,
    test: Federation,
    validation: Federation | None = None,
    starts: int = ENOUGH_STARTS,
    progress: bool | None = None,
    keep: dict[str, Fit] | None = None,
    **settings: Unpack[SettingsKeywords],
) -> list[Start]:
    """Train several methods with several random seeds, one seed after the other, and judge each.

    ``keep`` is filled with the fits of the first seed, for a report or to be saved. Otherwise they are not kept.
    """
    judged(federation, test)
    warn_of_seen(test, federation)
    require_whole("starts", starts, least=1)
    asked = _asked(methods, settings)
    first = next(iter(asked.values())).settings.seed
    runs: list[Start] = []
    with Progress(progress, runs=starts) as bar:
        for seed in start_seeds(first, starts):
            there = {name: request._replace(settings=replace(request.settings, seed=seed)) for name, request in asked.items()}
            fits = _fit_all(federation, there, validation, bar)
            if keep is not None and not runs:
                keep.update(fits)
            runs.append(Start.of(fits, test))
    return runs


def tabulate(
    fits: dict[str, Fit] | Sequence[dict[str, Fit]],
    test: Federation,
    harm_tolerance: float = HARM_TOLERANCE,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """The table of `compare` for existing fits: those of one seed, or a list with those of each seed.

    One seed cannot distinguish harm from noise: ``harmed`` is then missing.
    """
    _check(harm_tolerance, confidence)
    runs = [Start.of(fit, test) for fit in ([fits] if isinstance(fits, dict) else fits)]
    return against(runs, test, "local", harm_tolerance, confidence)


def against(
    runs: Sequence[Start],
    test: Federation,
    reference: str = "local",
    harm_tolerance: float = HARM_TOLERANCE,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """The table of `compare`, with another reference method if one is named."""
    methods = list(runs[0].rows) if runs else []
    if reference not in methods or any(list(run.rows) != methods for run in runs):
        raise ValueError(f"fits must have {reference!r}, and the same methods in every start, found {methods}")
    table = pd.DataFrame(
        [_row(runs, test, name, place, reference, harm_tolerance, confidence) for name in methods for place in range(len(test))]
    )
    return table.astype({"harmed": "boolean"})  # missing is not false


def _row(
    runs: Sequence[Start], test: Federation, name: str, place: int, reference: str, tolerance: float, confidence: float
) -> dict[str, Any]:
    """One client under one method: means over the seeds, and the comparison with the reference."""
    rows = [run.rows[name][place] for run in runs]
    row = rows[0] | {key: float(np.mean([values[key] for values in rows])) for key in rows[0] if key not in FACTS}
    with np.errstate(invalid="ignore"):  # a loss relative to a best value of 0 is infinite
        spread = float(np.std([values["relative_regret"] for values in rows], ddof=1)) if len(rows) > 1 else np.nan
    lost, reference_lost = (np.stack([run.lost[title][place] for run in runs]) for title in (name, reference))
    size = float(test[place].z_star_size.mean())
    ordered, margin = test[place].times is not None, 1e-12 * size  # the reference loses nothing
    groups = test[place].times if ordered else alike_rows([test[place]])[0]
    judgement = judge_harm(lost, reference_lost, tolerance, confidence, margin, ordered, groups)
    if name == reference:
        judgement = judgement._replace(low=0.0, high=0.0, verdict="reference", harmed=False)
    unit = size if size > 0 else 1.0
    _, low, high = interval(lost, confidence, ordered, groups)
    return row | {
        "method": name,
        "spread": spread,
        "relative_regret_low": max(low, 0.0) / unit if np.isfinite(low) else np.nan,  # a regret is never below 0
        "relative_regret_high": high / unit if np.isfinite(high) else np.nan,
        "change": judgement.mean / unit,
        "change_low": judgement.low / unit,
        "change_high": judgement.high / unit,
        "verdict": judgement.verdict,
        "harmed": judgement.harmed,
        "above_tolerance": judgement.above_tolerance,
        "independent": judgement.independent,
    }


def _check(harm_tolerance: float, confidence: float) -> None:
    if not harm_tolerance >= 0:
        raise ValueError(f"harm_tolerance must be >= 0, found {harm_tolerance!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), found {confidence!r}")


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """One row per method: mean, median, p75, p90 and worst relative regret over clients, and how many clients it harms.

    - ``harmed``: the number of clients that are significantly harmed; missing if that was not judged
    - ``above_tolerance``: the number of clients above the tolerance with the first seed, noise or not
    - ``better``, ``worse``: the number of clients whose interval of change is completely below or above zero
    """
    grouped = table.groupby("method", sort=False)
    regrets = grouped["relative_regret"]
    quantiles = {"median": 0.5, "p75": 0.75, "p90": 0.9}
    columns = {"mean": regrets.mean()} | {name: regrets.quantile(q) for name, q in quantiles.items()}
    counts = {
        "harmed": grouped["harmed"].sum(min_count=1),
        "above_tolerance": grouped["above_tolerance"].sum(),
        "clients": grouped.size(),
    }
    for verdict in ("better", "worse"):
        counts[verdict] = (table["verdict"] == verdict).groupby(table["method"], sort=False).sum()
    return pd.DataFrame(columns | {"max": regrets.max()} | counts)

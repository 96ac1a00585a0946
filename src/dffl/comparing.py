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
"""The columns of `Fit.evaluate` that are the same for every start. The others are averaged."""


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

    Every method is trained from ``starts`` starts. The first has the given ``seed`` and the numbers of `dffl.fit` with it;
    the others draw everything that is random in training anew. The columns of `Fit.evaluate`, and what methods chose
    (``lambda``, ``epochs``), are means over the starts; ``spread`` is the standard deviation of ``relative_regret`` over
    them. ``relative_regret_low`` and ``relative_regret_high`` are the ends of its ``confidence`` interval, over other test
    samples and other starts. Test samples with `times` resemble their neighbours: they count as fewer, ``independent``, samples
    (see `dffl.serial`), and those of one time once. Without times, equal samples and samples of one key count once.

    ``change`` is the relative regret minus that of `local`, which is always fitted on all the data. ``change_low`` and
    ``change_high`` are the ends of its ``confidence`` interval, over other test samples and other starts; ``verdict`` is
    what the interval says: better, worse or unclear. A client is ``harmed`` by a method if its regret exceeds the local one
    by more than ``harm_tolerance`` of it, and the verdict is worse: it is significantly harmed. ``above_tolerance`` is the
    first condition alone, in the first start alone: training `local` again from another start meets it often.

    With fewer than three starts, one test sample, or samples that are too alike in time, the interval is unbounded, the verdict
    is "not judged", and ``harmed`` is missing (NA). The rows of `local` have the verdict "reference".

    ``lambda`` is the weight of the shared model that an interpolation chose (0: the own model, 1: the shared one, both of
    the 80 % split), ``epochs`` the number that `finetune`, `crossfit` or `local-tuned` chose.
    """
    _check(harm_tolerance, confidence)
    found = judge_starts(federation, methods, test=test, validation=validation, starts=starts, progress=progress, **settings)
    return against(found, test, "local", harm_tolerance, confidence)


def judged(federation: Federation, test: Federation) -> None:
    """Refuse, before anything trains, a test federation that `compare` could not judge by."""
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
    """Fits of several methods from one start, `local` among them, that share whatever training they have in common.

    A method is a name, or a name with options: ``("ditto", {"pull": 0.1})``. The keys are the methods' names; a method that
    is asked for more than once has its options in the key: ``ditto(pull=0.1)``. A `local` with options takes the place of the
    usual one that others are compared with.
    """
    return _fit_all(federation, _asked(methods, settings), validation, progress, checkpoint)


class Asked(NamedTuple):
    """A method with its options, and the settings that it trains with: a method may have defaults of its own."""

    request: Request
    settings: Settings


def _asked(methods: Sequence[MethodChoice], settings: SettingsKeywords) -> dict[str, Asked]:
    """The methods by their titles, `local` among them."""
    if isinstance(methods, str):
        raise ValueError(f"methods must be a list of names, found the text {methods!r}")
    if any(one == CHOSEN or (isinstance(one, tuple) and one[:1] == (CHOSEN,)) for one in methods):
        ways = "dffl compare FILE --method chosen compares it; in Python, dffl.backtest(...) has its regret by row"
        raise ValueError(f"methods: {CHOSEN!r} is a choice among methods and is not trained as they are: {ways}")
    given, _ = requests(methods, {})
    # Of several local ones, the usual one is what others are compared with.
    alone = sum(one.method.name == "local" for one in given) == 1
    asked, rest = requests(given if alone else [*given, "local"], settings)
    names = [one.method.name for one in asked]
    titles = [one.method.name if names.count(one.method.name) == 1 else one.title for one in asked]
    return {title: Asked(one, _settings_of(one, rest)) for title, one in zip(titles, asked, strict=True)}


def _settings_of(one: Request, given: dict[str, Any]) -> Settings:
    return Settings.of(**{**one.method.settings, **given})


def _fit_all(
    federation: Federation,
    asked: dict[str, Asked],
    validation: Federation | None,
    progress: bool | Progress | None,
    checkpoint: str | PathLike[str] | None = None,
) -> dict[str, Fit]:
    plans = _plans(list(asked.values()))
    with running(federation, plans, validation, progress, checkpoint) as runs:
        of = {plan.settings: run for plan, run in zip(plans, runs, strict=True)}
        return {title: perform(of[one.settings], one.request) for title, one in asked.items()}


def _plans(asked: Sequence[Asked]) -> list[SharedRun]:
    """Methods with the same settings train in one run, and share what they have in common."""
    made: dict[Settings, SharedRun] = {}
    for request, settings in asked:
        made.setdefault(settings, SharedRun(settings, [])).asked.append(request)
    return list(made.values())


def refuse_early(federation: Federation, methods: Sequence[MethodChoice], **settings: Unpack[SettingsKeywords]) -> None:
    """Refuse everything that `fit_all` would refuse, and train nothing."""
    asked, rest = requests(methods, settings)
    with running(federation, _plans([Asked(one, _settings_of(one, rest)) for one in asked]), progress=False):
        pass


class Start(NamedTuple):
    """What the methods of one start lose on the test samples: all that is kept of it. The keys are the methods' titles."""

    rows: dict[str, list[dict[str, Any]]]
    """For each client, its row of `Fit.evaluate`."""
    lost: dict[str, list[np.ndarray]]
    """For each client, the regret of each of its samples."""

    @classmethod
    def of(cls, fits: dict[str, Fit], test: Federation) -> Start:
        """Judge the fits of one start."""
        for one in fits.values():
            one.check(test)
        found = {name: one.judge(test.clients) for name, one in fits.items()}
        rows = {
            name: [one.row(client, *lost) for client, lost in zip(test, found[name], strict=True)] for name, one in fits.items()
        }
        return cls(rows, {name: [lost for lost, _ in clients] for name, clients in found.items()})


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

    ``keep`` is filled with the fits of the first start, which are otherwise forgotten, for a report or to be saved.
    """
    judged(federation, test)
    warn_of_seen(test, federation)
    require_whole("starts", starts, least=1)
    asked = _asked(methods, settings)
    first = next(iter(asked.values())).settings.seed
    found: list[Start] = []
    with Progress(progress, runs=starts) as bar:
        for seed in start_seeds(first, starts):
            there = {name: one._replace(settings=replace(one.settings, seed=seed)) for name, one in asked.items()}
            fits = _fit_all(federation, there, validation, bar)
            if keep is not None and not found:
                keep.update(fits)
            found.append(Start.of(fits, test))
    return found


def tabulate(
    fits: dict[str, Fit] | Sequence[dict[str, Fit]],
    test: Federation,
    harm_tolerance: float = HARM_TOLERANCE,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """The table of `compare` for fits that are already there: those of one start, or a list with those of each start.

    One start cannot distinguish harm from noise: ``harmed`` is then missing.
    """
    _check(harm_tolerance, confidence)
    found = [Start.of(one, test) for one in ([fits] if isinstance(fits, dict) else fits)]
    return against(found, test, "local", harm_tolerance, confidence)


def against(
    found: Sequence[Start],
    test: Federation,
    reference: str = "local",
    harm_tolerance: float = HARM_TOLERANCE,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """The table of `compare`, with another method as the reference if one is named."""
    methods = list(found[0].rows) if found else []
    if reference not in methods or any(list(one.rows) != methods for one in found):
        raise ValueError(f"fits must have {reference!r}, and the same methods in every start, found {methods}")
    table = pd.DataFrame(
        [
            _row(found, test, name, place, reference, harm_tolerance, confidence)
            for name in methods
            for place in range(len(test))
        ]
    )
    return table.astype({"harmed": "boolean"})  # a missing one is not false


def _row(
    found: Sequence[Start], test: Federation, name: str, place: int, reference: str, tolerance: float, confidence: float
) -> dict[str, Any]:
    """One client under one method: means over the starts, and how they compare with the reference."""
    rows = [one.rows[name][place] for one in found]
    row = rows[0] | {key: float(np.mean([one[key] for one in rows])) for key in rows[0] if key not in FACTS}
    with np.errstate(invalid="ignore"):  # something lost where the best is nothing is infinite
        spread = float(np.std([one["relative_regret"] for one in rows], ddof=1)) if len(rows) > 1 else np.nan
    lost, own = (np.stack([one.lost[title][place] for one in found]) for title in (name, reference))
    size = float(test[place].z_star_size.mean())
    ordered, margin = test[place].times is not None, 1e-12 * size  # where the own model loses nothing
    groups = test[place].times if ordered else alike_rows([test[place]])[0]
    judgement = judge_harm(lost, own, tolerance, confidence, margin, ordered, groups)
    if name == reference:
        judgement = judgement._replace(low=0.0, high=0.0, verdict="reference", harmed=False)
    unit = size if size > 0 else 1.0
    _, low, high = interval(lost, confidence, ordered, groups)
    return row | {
        "method": name,
        "spread": spread,
        "relative_regret_low": max(low, 0.0) / unit if np.isfinite(low) else np.nan,  # nobody loses less than nothing
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

    ``harmed`` counts the clients that are significantly harmed, and is missing where that was not judged; ``above_tolerance``
    those above the tolerance in the first start, noise or not. ``better`` and ``worse`` count the clients whose interval
    of change lies wholly below or above zero.
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

"""`dffl.compare`: several methods on one federation, client by client, against staying local."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Unpack

import numpy as np
import pandas as pd

from dffl.federation import Federation
from dffl.fitting import Fit, perform, require_federation, running, same_shape
from dffl.training import Settings
from dffl.training.keywords import MethodChoice, SettingsKeywords
from dffl.training.methods import requests

HARM_TOLERANCE = 0.01
"""A client is harmed by a method if its regret exceeds its local one by more than this share of it."""
CHANGES = ("change", "change_low", "change_high")
DEFAULT_METHODS = ("mean-cost", "local", "local-tuned", "fedavg", "interp-mse", "interp-spo", "finetune", "crossfit")


def compare(
    federation: Federation,
    methods: Sequence[MethodChoice] = DEFAULT_METHODS,
    *,
    test: Federation,
    validation: Federation | None = None,
    harm_tolerance: float = HARM_TOLERANCE,
    confidence: float = 0.95,
    progress: bool | None = None,
    **settings: Unpack[SettingsKeywords],
) -> pd.DataFrame:
    """Fit several methods and evaluate each on a test federation: one row per client and method.

    By default: mean-cost, local, local-tuned, fedavg, interp-mse, interp-spo, finetune and crossfit.

    ``change`` is the relative regret minus that of `local`, which is always fitted on all the data, with a paired
    ``confidence`` interval over the test samples (``change_low``, ``change_high``); ``verdict`` is what the interval says:
    better, worse or unclear. A client is ``harmed`` by a method if its regret exceeds the local one by more than
    ``harm_tolerance`` of it, even if the verdict is unclear. ``lambda`` is the weight of the shared model that an
    interpolation chose (0: the own model, 1: the shared one, both of the 80 % split), ``epochs`` the number that `finetune`,
    `crossfit` or `local-tuned` chose. The other columns are those of `Fit.evaluate`.
    """
    judged(federation, test)
    fits = fit_all(federation, methods, validation=validation, progress=progress, **settings)
    return tabulate(fits, test, harm_tolerance, confidence)


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
    """Fits of several methods, `local` among them, that share whatever training they have in common.

    A method is a name, or a name with options: ``("ditto", {"pull": 0.1})``. The keys are the methods' names; a method that
    is asked for more than once has its options in the key: ``ditto(pull=0.1)``. A `local` with options takes the place of the
    usual one that others are compared with.
    """
    if isinstance(methods, str):
        raise ValueError(f"methods must be a list of names, found the text {methods!r}")
    given, _ = requests(methods, {})
    # Of several local ones, the usual one is what others are compared with.
    alone = sum(one.method.name == "local" for one in given) == 1
    asked, rest = requests(given if alone else [*given, "local"], settings)
    names = [one.method.name for one in asked]
    with running(federation, asked, Settings.of(**rest), validation, progress, checkpoint) as run:
        titles = [one.method.name if names.count(one.method.name) == 1 else one.title for one in asked]
        return {title: perform(run, one) for title, one in zip(titles, asked, strict=True)}


def refuse_early(federation: Federation, methods: Sequence[MethodChoice], **settings: Unpack[SettingsKeywords]) -> None:
    """Refuse everything that `fit_all` would refuse, and train nothing."""
    asked, rest = requests(methods, settings)
    with running(federation, asked, Settings.of(**rest), progress=False):
        pass


def tabulate(
    fits: dict[str, Fit], test: Federation, harm_tolerance: float = HARM_TOLERANCE, confidence: float = 0.95
) -> pd.DataFrame:
    """The table of `compare` for fits that are already there."""
    if not harm_tolerance >= 0:
        raise ValueError(f"harm_tolerance must be >= 0, found {harm_tolerance!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), found {confidence!r}")
    for one in fits.values():
        one.check(test)
    found = {name: one.judge(test.clients) for name, one in fits.items()}
    rows = []
    for place, client in enumerate(test):
        lost = {name: judged[place][0] for name, judged in found.items()}
        size = float(client.z_star_size.mean())
        own, margin = lost["local"].mean(), 1e-12 * size  # for rounding, where the own model loses nothing
        for name, one in fits.items():
            middle, half = _paired(lost[name] - lost["local"], confidence)
            change = np.array([middle, middle - half, middle + half]) / (size if size > 0 else 1.0)
            row = one.row(client, *found[name][place]) | {"method": name} | dict(zip(CHANGES, change.tolist(), strict=True))
            rows.append(
                row | {"verdict": _verdict(change), "harmed": bool(harms(lost[name].mean(), own, harm_tolerance, margin))}
            )
    order = {name: place for place, name in enumerate(fits)}
    return pd.DataFrame(rows).sort_values("method", key=lambda names: names.map(order), kind="stable", ignore_index=True)


def harms(regret: Any, local: Any, tolerance: float = HARM_TOLERANCE, margin: float = 0.0) -> Any:
    """Whether these regrets exceed those of the clients' local models by more than a share of them (and a margin)."""
    return regret > (1 + tolerance) * local + margin


def _verdict(change: np.ndarray) -> str:
    """What the interval says."""
    return "better" if change[2] < 0 else "worse" if change[1] > 0 else "unclear"


def _paired(differences: np.ndarray, confidence: float) -> tuple[float, float]:
    """The mean and half the width of its Student interval; unbounded for a single sample."""
    n = len(differences)
    if n < 2:
        return float(differences.mean()), np.inf
    from scipy.special import stdtrit  # slow to import, and needed here alone

    quantile = float(stdtrit(n - 1, 0.5 + confidence / 2))
    return float(differences.mean()), quantile * float(differences.std(ddof=1)) / np.sqrt(n)


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """One row per method: mean, median, p75, p90 and worst relative regret over clients, and how many clients it harms.

    ``better`` and ``worse`` count the clients whose interval of change lies wholly below or above zero.
    """
    grouped = table.groupby("method", sort=False)
    regrets = grouped["relative_regret"]
    quantiles = {"median": 0.5, "p75": 0.75, "p90": 0.9}
    columns = {"mean": regrets.mean()} | {name: regrets.quantile(q) for name, q in quantiles.items()}
    counts = {"harmed": grouped["harmed"].sum(), "clients": grouped.size()}
    for verdict in ("better", "worse"):
        counts[verdict] = (table["verdict"] == verdict).groupby(table["method"], sort=False).sum()
    return pd.DataFrame(columns | {"max": regrets.max()} | counts)

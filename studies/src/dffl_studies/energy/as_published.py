"""The protocol of the paper's energy study (`dffl energy run --as-published`): its settings, days, and what contradicts them.

The paper says: "The training parameters are otherwise identical to the ones used for synthetic data", one year, whose first six
months train. The held-out samples are drawn at random, as in the synthetic study.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dffl.training import Settings
from dffl_studies.energy.data.days import Days
from dffl_studies.energy.data.panel import Panel
from dffl_studies.paper.study import AUTHORS

OPTION = "--as-published"
METHODS = ("local", "fedavg", "interp-mse", "interp-spo")
"""The paper's methods: their options are the paper's. Those of other methods may be chosen."""
FREE = ("engine", "chunk_size")
"""Settings that change no number."""


def published_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The synthetic study's settings, as in the authors' later code, and what is ``given`` (--set) unless that contradicts."""
    papers: dict[str, Any] = AUTHORS["settings"]
    for name, value in given.items():
        method, dot, _ = name.partition(".")
        if dot and method in METHODS:
            raise ValueError(
                f"--set {name}={value} contradicts {OPTION}, which has the paper's {method}; leave one of them out"
            )
        if not dot and name in Settings.names() and name not in FREE:
            ours, theirs = getattr(Settings.of(**{name: value}), name), getattr(Settings.of(**papers), name)
            if ours != theirs:
                raise ValueError(
                    f"--set {name}={value} contradicts {OPTION}, which has {name} = {theirs}; leave one of them out"
                )
    return papers | dict(given)


def refuse_contradictions(contradictions: Mapping[str, tuple[bool, str]]) -> None:
    """Refuse the first option that contradicts the protocol: each with whether it was used, and what the protocol has."""
    for option, (used, instead) in contradictions.items():
        if used:
            raise ValueError(f"{option} contradicts {OPTION}, which {instead}; leave one of them out")


def one_year(panel: Panel, asked: str | None) -> Days:
    """The year that begins with the panel's first day, or what the panel has of it; ``asked`` is what --to says."""
    first, last = pd.Timestamp(panel.days[0]), pd.Timestamp(panel.days[-1])
    end = first + pd.DateOffset(years=1) - pd.Timedelta(days=1)
    if asked is not None and last > end:
        raise ValueError(
            f"--to {asked} contradicts {OPTION}, which has one year, {first.date()} to {end.date()}; leave one of them out"
        )
    return Days(str(first.date()), str(min(end, last).date()))


def six_months(panel: Panel) -> str:
    """The first test day: six months after the first day."""
    first, last = pd.Timestamp(panel.days[0]), pd.Timestamp(panel.days[-1])
    split = first + pd.DateOffset(months=6)
    if split > last:
        raise ValueError(
            f"{panel.source}: {OPTION} trains on six months and tests from {split.date()} on, and the last day is "
            f"{last.date()}; use a panel with more days, or leave {OPTION} out"
        )
    return str(split.date())

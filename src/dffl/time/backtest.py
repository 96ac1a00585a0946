"""`dffl.backtest`: the loss of each rule if it decides row by row with what was known before each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from dffl.checks import require_whole
from dffl.federation import Client, Federation, optima
from dffl.judging import regrets_at_each
from dffl.progress import Progress
from dffl.time.bases import FORECAST, NAIVE, STEADY
from dffl.time.choice import FLEET, choose_rules, day_scaled
from dffl.time.kept import Kept
from dffl.time.mixtures import HALF, LIGHT, MIX, mixed, mixtures
from dffl.time.network import VECTOR
from dffl.time.outcome import Backtest, Choice
from dffl.time.past import DAYS_OF_YEAR, Past
from dffl.time.ranges import SHARE
from dffl.time.refits import BOTH, OWN, PAST, Candidate, relaxed_where_slow
from dffl.time.spans import ranges_of
from dffl.time.timeline import Timeline
from dffl.time.trainings import Ground, forecasts_of
from dffl.training.keywords import MethodChoice

NETWORKS: tuple[MethodChoice, ...] = ("fedavg", ("fedavg", {"network": VECTOR}))
"""A network of single items and one of the whole row; both correct the base."""
CANDIDATES: tuple[MethodChoice, ...] = (
    *NETWORKS,
    ("ridge", {"features": OWN}),
    ("ridge", {"features": OWN, "degree": 2}),
    ("ridge", {"features": BOTH}),
    ("ridge-pooled", {"features": BOTH}),
    ("local-tuned", {"features": OWN, "once": True}),
)
"""The methods that a backtest trains by default: those networks, and models with a client's own features."""
MOST_PRODUCTS = 250
"""Ridge regression of degree 2 is a default candidate up to this number of features, squares and products."""
REFIT, WINDOW = 28, 90
RECORD = 365
"""Moments before the start from which on rules are judged where clients bring a forecast, as all of their record counts."""

Forecasts = dict[str, list[list[np.ndarray]]]
"""For each rule and each client, its predictions for the rows of each block, (rows, d)."""


def backtest(
    federation: Federation,
    candidates: Sequence[MethodChoice] | None = None,
    *,
    refit: int = REFIT,
    window: int = WINDOW,
    start: Any = None,
    base: str | None = None,
    choice: str = FLEET,
    past: Past | None = None,
    share: float = SHARE,
    clock: str | None = None,
    checkpoint: str | PathLike[str] | None = None,
    jobs: int | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Backtest:
    """Decide every row from ``start`` on by every rule, each with what was known before it, and choose among the rules.

    - ``federation``: its clients need ``times`` that differ from row to row.
    - ``candidates``: methods to train, by name or as (name, {option: value}); the naive rules, a brought forecast and averages
      (see `dffl.time.mixtures`) are always there. A method corrects the base by features of the past, or sees ``{"features":
      "own"}`` or ``"both"``; with ``{"once": True}`` it is trained before the first judged and the first reported row only.
    - ``refit``: models are trained again, and rules chosen again, after this many moments.
    - ``window``: rules are compared by their day-scaled regret in this many moments before, see `choose_rules`.
    - ``start``: a date, or a number where the order is of numbers; by default the later half of the moments.
    - ``base``: where predictions start: ``forecast`` (the default where clients bring one) or ``steady``.
    - ``choice``: ``fleet`` (one rule for all clients) or ``shrunk`` (each client's own record, shrunk towards all).
    - ``past``: lags, means and ``known_after``, the delay in rows until costs are known.
    - ``share``: the share of costs that ranges are to hold.
    - ``clock``: ``seconds``, ``nanoseconds`` (since 1970) or ``numbers``, what the times are; guessed by default.
    - ``checkpoint``: a file that keeps what is trained until the backtest is complete, so that the same call resumes there.
    - ``jobs``: how many models are trained at once; by default as many as there are cores. It changes no bit.
    - ``settings``: settings of all trainings, such as ``seed`` or ``rounds``. Where a solver decides with integer conditions,
      ``relax`` is on by default.
    """
    if not isinstance(federation, Federation):
        raise ValueError(f"federation must be a dffl.Federation, found {type(federation).__name__}")
    past, base = past or Past(), _base_of(federation, base)
    _require_settings(settings, jobs)
    settings = relaxed_where_slow(federation.clients, settings)
    trained = candidates_of(CANDIDATES if candidates is None else candidates, federation, settings)
    timeline = Timeline.of(federation.clients, refit, window, start, past, clock, RECORD if base == FORECAST else 0)
    past = _with_season(past, timeline)
    optima(federation.clients)
    ground = Ground.of(federation.clients, timeline, base, past, settings)
    recipe = (trained, base, past, refit, timeline.origins, timeline.shown(0), sorted(settings.items()))
    cached = None if checkpoint is None else Kept.of(checkpoint, federation, recipe)
    with Progress(progress) as bar, cached or nullcontext():
        forecasts = _forecasts(ground, trained, bar, cached, jobs)
    order = [base, *(rule for rule in forecasts if rule != base)]
    expected = {rule: [np.concatenate(blocks) for blocks in forecasts[rule]] for rule in order}
    clients = [_judged(client, timeline, place) for place, client in enumerate(federation)]
    lost = {rule: regrets_at_each(clients, expected[rule]) for rule in order}
    labels, own = labels_of(trained)
    chosen = choices_of(clients, lost, timeline, window, choice, base, labels, own)
    ranges = ranges_of(federation.clients, clients, expected, base, chosen, share, past.known_after)
    if cached is not None:
        cached.remove()
    return Backtest(timeline, base, tuple(clients), lost, chosen, ranges, share, labels, own)


def _with_season(past: Past, timeline: Timeline) -> Past:
    """The season is a feature where two years come before the first refit, unless the caller decided."""
    return past if past.season is not None else replace(past, season=timeline.past_days >= 2 * DAYS_OF_YEAR)


def _base_of(federation: Federation, base: str | None) -> str:
    """The base of predictions: the one that was asked for, else the clients' forecast, else the steady average."""
    base = base or (FORECAST if federation.has_forecast else STEADY)
    if base not in (STEADY, FORECAST) or (base == FORECAST and not federation.has_forecast):
        brought = " or forecast" if federation.has_forecast else ", as the clients bring no forecast"
        raise ValueError(f"base must be {STEADY}{brought}, found {base!r:.40}")
    return base


def _require_settings(settings: Mapping[str, Any], jobs: int | None) -> None:
    if isinstance(settings.get("network"), str):
        fix = 'candidates=["fedavg", ("fedavg", {"network": "vector"})]'
        raise ValueError(f"network: over time each candidate names its own network, such as {fix}")
    require_whole("seed", settings.get("seed", 0), least=0)
    if jobs is not None:
        require_whole("jobs", jobs, least=1, most=1024)


def candidates_of(
    choices: Sequence[MethodChoice], federation: Federation, settings: Mapping[str, Any] | None = None
) -> list[Candidate]:
    """The candidates. Of the default ones, products of many features are left out, and models of own features with privacy."""
    if tuple(choices) == CANDIDATES:
        features = federation[0].x.shape[1]
        if features * (features + 3) // 2 > MOST_PRODUCTS:  # they take long
            choices = [choice for choice in choices if isinstance(choice, str) or "degree" not in choice[1]]
        if (settings or {}).get("privacy") is not None:  # which no sums of rows would keep
            choices = NETWORKS
    return _candidates(choices)


def labels_of(trained: Sequence[Candidate]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The labels of candidates that correct the base, and of those with a client's own features."""
    past = tuple(candidate.label for candidate in trained if candidate.features == PAST)
    return past, tuple(candidate.label for candidate in trained if candidate.features != PAST)


def _candidates(choices: Sequence[MethodChoice]) -> list[Candidate]:
    """The candidates; equal names are refused."""
    candidates = [Candidate.of(candidate) for candidate in choices]
    for number, candidate in enumerate(candidates):
        taken = (*NAIVE, FORECAST, MIX, LIGHT, HALF, *(other.label for other in candidates[:number]))
        if candidate.label in taken:
            raise ValueError(f"candidates: {candidate.label!r} is there already; name each rule once")
    return candidates


def _forecasts(
    ground: Ground, trained: Sequence[Candidate], bar: Progress, cached: Kept | None = None, jobs: int | None = None
) -> Forecasts:
    """The predictions of each rule for each row from the first origin on."""
    timeline, base = ground.timeline, ground.base
    labels, own = labels_of(trained)
    learned = forecasts_of(ground, trained, bar, cached, jobs)
    rules = mixtures(labels, base, own)
    forecasts: Forecasts = {}
    for origin in timeline.origins:
        rows = timeline.block(origin)
        block = {
            rule: [table[some] for table, some in zip(tables, rows, strict=True)]
            for rule, tables in ground.naive(origin).items()
        }
        block |= {candidate.label: learned[origin, candidate.label] for candidate in trained}
        block |= {rule: mixed(parts, block) for rule, parts in rules.items()}
        for rule, tables in block.items():
            places = forecasts.setdefault(rule, [[] for _ in ground.clients])
            for place, table in enumerate(tables):
                places[place].append(table)
    return forecasts


def _judged(client: Client, timeline: Timeline, place: int) -> Client:
    """A client with its rows from the first origin on."""
    return client.rows(slice(timeline.block(timeline.origins[0])[place].start, client.n))


def record_of(
    clients: Sequence[Client], lost: Mapping[str, list[np.ndarray]], timeline: Timeline
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Day-scaled regrets (rules, clients, moments from the first origin on), NaN where a client has no row.

    Also the moment of each row of each client.
    """
    first = timeline.origins[0]
    record, places = np.full((len(lost), len(clients), len(timeline.moments) - first), np.nan), []
    for place, (client, when) in enumerate(zip(clients, timeline.times, strict=True)):
        places.append(np.searchsorted(timeline.moments, when[len(when) - client.n :]) - first)
        record[:, place, places[-1]] = np.stack([day_scaled(regrets[place], client.c) for regrets in lost.values()])
    return record, places


def choices_of(
    clients: Sequence[Client], lost: Mapping[str, list[np.ndarray]], timeline: Timeline, window: int, how: str,
    base: str, trained: Sequence[str], own: Sequence[str] = (),
) -> list[Choice]:  # fmt: skip
    """The rule of each client at each origin, by the day-scaled regret of the known rows before it; without any, the base."""
    rules, first = list(lost), timeline.origins[0]
    offsets = [block.start for block in timeline.block(first)]
    record, places = record_of(clients, lost, timeline)
    choices = []
    for origin in timeline.origins:
        until = record[:, :, : origin - first].copy()
        for place, (known, offset) in enumerate(zip(timeline.known(origin), offsets, strict=True)):
            late = places[place][max(known - offset, 0) :]
            until[:, place, late[late < until.shape[2]]] = np.nan  # not known yet
        picked = choose_rules(rules, until, trained, base, window, how, brought=base == FORECAST, own=own)
        choices.append(Choice(origin, tuple(picked), tuple(timeline.block(origin))))
    return [_shifted(choice, offsets) for choice in choices]


def _shifted(choice: Choice, offsets: Sequence[int]) -> Choice:
    """The choice with row numbers that start at the first origin."""
    rows = tuple(slice(some.start - first, some.stop - first) for some, first in zip(choice.rows, offsets, strict=True))
    return Choice(choice.origin, choice.rules, rows)

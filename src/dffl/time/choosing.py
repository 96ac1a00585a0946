"""The method `chosen` over time: a backtest of the past, the rule that it selects, and this rule fitted on all rows.

The choice is that of the last refit of the backtest, repeated after the last row. There is one more check: if the choices of
the backtest lost more than a rule that needs no training, this rule is used. So nobody with a good forecast is advised to
leave it. Without a forecast, the same holds for a model that a client could train alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dffl.federation import Client, Federation
from dffl.jsonable import jsonable
from dffl.time.backtest import CANDIDATES, REFIT, WINDOW, backtest, candidates_of, record_of
from dffl.time.bases import FORECAST, MEANS, NAIVE, STEADY, USUAL_WEIGHT, SteadyAverage, plain_mean
from dffl.time.choice import FLEET, choose_rules
from dffl.time.chosen import KEPT, Chosen, parts_of
from dffl.time.gains import gain, independent
from dffl.time.outcome import CHOSEN, Backtest
from dffl.time.own import Views
from dffl.time.past import DAYS_OF_YEAR, Past
from dffl.time.ranges import SHARE, AdaptiveRange
from dffl.time.refits import relaxed_where_slow
from dffl.time.timeline import FEWEST, Timeline
from dffl.training.keywords import MethodChoice

TEST_SHARE = 0.2
"""The share of the moments that is the test, if no start is given."""
APART = 1.5
"""Clients have different frequencies if their gaps between rows differ by more than this factor."""


def backtested(
    federation: Federation,
    candidates: Sequence[MethodChoice] | None = None,
    *,
    start: Any = None,
    refit: int | None = None,
    past: Past | None = None,
    clock: str | None = None,
    **keywords: Any,
) -> Backtest:
    """The backtest by which `chosen` chooses; keywords as in `dffl.backtest`. By default the last fifth is the test."""
    if keywords.get("privacy") is not None:
        raise ValueError("chosen cannot be combined with privacy: it trains again and again; name one method instead")
    require_same_frequency(federation.clients)
    timeline = Timeline.of(federation.clients, 1, 1, start, past or Past(), clock)
    if start is None:
        number = int(np.ceil((1 - TEST_SHARE) * len(timeline.moments)))
        start = timeline.shown(number) if timeline.dates else float(timeline.moments[number])
        timeline = Timeline.of(federation.clients, 1, 1, start, past or Past(), clock)
    refit = min(REFIT, len(timeline.moments) - timeline.start) if refit is None else refit
    return backtest(
        federation,
        CANDIDATES if candidates is None else candidates,
        start=start,
        refit=refit,
        past=past,
        clock=clock,
        **keywords,
    )


def enough_past(federation: Federation, keywords: Mapping[str, Any] | None = None) -> bool:
    """Whether every client has enough rows before the test for a first training, and each moment only once."""
    options = keywords or {}
    past = options.get("past") or Past()
    needed = past.longest + past.known_after + FEWEST
    try:
        timeline = Timeline.of(federation.clients, 1, 1, None, replace(past, lags=(), means=()), options.get("clock"))
    except ValueError:
        return False
    first = timeline.moments[int(np.ceil((1 - TEST_SHARE) * len(timeline.moments)))]
    return all(int(np.searchsorted(when, first)) >= needed for when in timeline.times)


def fit_chosen(
    federation: Federation, candidates: Sequence[MethodChoice] | None = None, *, jobs: int | None = None, **keywords: Any
) -> Chosen:
    """Choose by a backtest, and fit the chosen rules on all rows; keywords as in `dffl.backtest`."""
    return made_of(backtested(federation, candidates, jobs=jobs, **keywords), federation, candidates, **keywords)


def made_of(
    outcome: Backtest,
    federation: Federation,
    candidates: Sequence[MethodChoice] | None = None,
    *,
    past: Past | None = None,
    window: int = WINDOW,
    choice: str = FLEET,
    share: float = SHARE,
    start: Any = None,
    refit: int | None = None,
    base: str | None = None,
    clock: str | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Chosen:
    """The model that a backtest of this federation selects."""
    clients, timeline = federation.clients, outcome.timeline
    past = past or Past()
    if past.season is None:
        past = replace(past, season=timeline.past_days >= 2 * DAYS_OF_YEAR)  # as in the backtest
    rules, why = final_rules(outcome, window, choice)
    settings = relaxed_where_slow(clients, settings)
    used = {part for rule in rules for part in parts_of(rule, outcome.trained, outcome.base, outcome.own)} | {outcome.base}
    average, weight = None, USUAL_WEIGHT
    if STEADY in used:
        average = SteadyAverage(clients, timeline.days, past.known_after)
        weight = average.weight([client.n for client in clients])
    bases = _base(outcome.base, clients, average, weight, past)
    views, counts = Views(clients, timeline.days, bases, past, outcome.base == FORECAST), [client.n for client in clients]
    wanted = candidates_of(CANDIDATES if candidates is None else candidates, federation, settings)
    fits = {entry.label: views.of(entry.features).trained(entry, counts, settings) for entry in wanted if entry.label in used}
    rows_kept = max(KEPT, 2 * past.longest)
    return Chosen(
        rules=dict(zip(federation.names, rules, strict=True)),
        base=outcome.base,
        weight=weight,
        past=past,
        dates=timeline.dates,
        share=share,
        trained=outcome.trained,
        own=outcome.own,
        parts=fits,
        kept={entry.name: last_rows(entry, when, rows_kept) for entry, when in zip(clients, timeline.times, strict=True)},
        ranges={entry.name: learned_range(outcome, place) for place, entry in enumerate(clients)},
        evidence=evidence_of(outcome, rules, why),
    )


def _base(base: str, clients: Sequence[Client], average: SteadyAverage | None, weight: float, past: Past) -> list[np.ndarray]:
    if base == FORECAST:
        return [np.asarray(client.forecast) for client in clients]
    if base in MEANS:
        return [plain_mean(base, client.c, past.known_after) for client in clients]
    assert average is not None, "any other base is the steady average"
    return average.forecasts(weight)


def last_rows(client: Client, times: np.ndarray, count: int) -> Client:
    """A client's last rows, with times in the units of the timeline and without keys."""
    some = slice(max(client.n - count, 0), client.n)
    return client.with_rows(client.x[some], client.c[some], times[some])


def learned_range(outcome: Backtest, place: int) -> AdaptiveRange:
    """The state of a client's range after all rows."""
    state, spans = AdaptiveRange(outcome.share), outcome.spans[place]
    for row, cost in enumerate(spans.cost):
        state.observe(float(cost), float(spans.level[row]), float(spans.spread[row]), (spans.ends[row, 0], spans.ends[row, 1]))
    return state


def final_rules(outcome: Backtest, window: int, choice: str) -> tuple[list[str], str]:
    """Each client's rule after the last row, and the reason."""
    alone = () if outcome.base == FORECAST else outcome.own  # knowing the result, nobody is advised to leave a forecast
    simple = [rule for rule in outcome.lost if rule in (*NAIVE, FORECAST, *alone)]
    means = outcome.means
    best = min(simple, key=lambda rule: means[rule])
    if means[best] <= means[CHOSEN]:
        return [best] * len(outcome.clients), "simple"
    names, (record, _) = list(outcome.lost), record_of(outcome.clients, outcome.lost, outcome.timeline)
    brought = outcome.base == FORECAST
    return choose_rules(names, record, outcome.trained, outcome.base, window, choice, brought, outcome.own), "recent"


def evidence_of(outcome: Backtest, rules: Sequence[str], why: str) -> dict[str, Any]:
    """The evidence for the choice, as plain values."""
    base = FORECAST if FORECAST in outcome.lost else outcome.base
    return dict(
        jsonable(
            {
                "from": outcome.timeline.shown(outcome.timeline.start),
                "rows": int(len(outcome.timeline.moments) - outcome.timeline.start),
                "why": why,
                "rule": rules[0] if len(set(rules)) == 1 else None,
                "base": outcome.base,
                "reference": base,
                "means": [[rule, value] for rule, value in outcome.means.items()],
                "gain": list(gain(outcome, base)),
                "independent": independent(outcome, base),
                "inside": outcome.ranges,
                "share": outcome.share,
                "rules": {rule: outcome.relative(rule) for rule in (*outcome.lost, CHOSEN)},
            }
        )
    )


def reported(outcome: Backtest, rule: str) -> list[np.ndarray]:
    """The regret of each reported row of each client under a rule, or under ``chosen``."""
    return [outcome.regrets(rule, place)[outcome.reported(place)] for place in range(len(outcome.clients))]


def require_same_frequency(clients: Sequence[Client]) -> None:
    """Refuse a client whose rows are much further apart, or much closer, than those of the others."""
    gaps = [
        (client.name, float(np.median(np.diff(client.times))))
        for client in clients
        if client.times is not None and client.n > 2
    ]
    if len(gaps) < 2:
        return
    usual = sorted(gap for _, gap in gaps)[(len(gaps) - 1) // 2]
    for name, gap in gaps:
        if max(gap, usual) > APART * min(gap, usual) and min(gap, usual) > 0:
            factor = gap / usual
            how = f"{factor:.3g} times as far apart as" if factor > 1 else f"{1 / factor:.3g} times as close together as"
            fix = "bring all clients to one frequency, or leave this one out"
            raise ValueError(f"client {name!r}: its rows are {how} those of other clients; {fix}")

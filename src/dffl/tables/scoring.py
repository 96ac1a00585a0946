"""`dffl score`: judges a model's decisions on rows whose costs came later. Its state is a separate file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from dffl.batched import solve_each
from dffl.cells import composed
from dffl.federation import Client
from dffl.fitting import Fit, Member
from dffl.jsonable import jsonable
from dffl.judging import judged, regrets_at
from dffl.named import listed
from dffl.tables.cost_range import CostRange, known
from dffl.tables.frames import Columns
from dffl.tables.model import OwnModel
from dffl.tables.money import each, unit_of_sums
from dffl.tables.rows import order_of
from dffl.tables.sources import open_source, require_columns
from dffl.terminal import printable
from dffl.time.ahead import Clock, TimedRows, newer, require_decided, require_moments, require_same_as_known, require_same_unit
from dffl.time.bases import FORECAST
from dffl.time.chosen import Chosen
from dffl.time.drift import LATEST
from dffl.time.gains import CONFIDENCE, Gain
from dffl.time.observed import Observed, digest_of
from dffl.time.ranges import SHARE as RANGE_SHARE
from dffl.time.ranges import inside
from dffl.time.score import Replay, Score, plain, score
from dffl.time.words import rule_in_words

SHOWN = 5
"""The most drifted columns in a line."""


@dataclass(frozen=True)
class Scored:
    """The score of one client's rule, in words and as plain values."""

    client: str
    score: Score
    first: str
    last: str
    new: int
    """The number of rows that the state did not have before."""
    unit: str | None
    state: Path | None
    per: str | None = None
    """The name of a row, such as day."""

    @property
    def refit(self) -> bool:
        return self.score.refit

    @property
    def words(self) -> list[str]:
        """The score: one sentence for each question."""
        score, unit = self.score, f" {unit_of_sums(self.unit)}" if self.unit else ""
        rows = f"{score.rows} {'row' if score.rows == 1 else 'rows'} from {self.first} to {self.last} ({self.new} new)"
        sums = f"{score.regret:.4g}{unit} {each(self.per)}, {score.regret * score.rows:.4g}{unit} in all"
        lost = f"{100 * score.relative[score.rule]:.2f} % more than the best decisions in hindsight ({sums})"
        lines = [f"{self.client}: {rows}, decided by {rule_in_words(score.rule)}, lost {lost}."]
        return [*lines, _against(score), _held(score), _drift(score), _still_best(score), self._todo()]

    def _todo(self) -> str:
        if not self.score.refit:
            return "Nothing is to be done."
        return f"Refit: {', '.join(plain(self.score)['reasons'])}. Type: dffl update MODEL FEDERATION -o NEW"

    def show(self, console: Console) -> None:
        for line in self.words:
            console.print(printable(line), soft_wrap=True)
        if self.state is not None:
            console.print(f"State: {self.state}", soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        about = {"client": self.client, "from": self.first, "to": self.last, "new": self.new, "unit": self.unit}
        about |= {"unit_of_sums": unit_of_sums(self.unit), "per": self.per}
        state = None if self.state is None else str(self.state)
        return dict(jsonable({**about, **plain(self.score), "words": " ".join(self.words), "state": state}))


def _against(score: Score) -> str:
    """The saving of the rule compared with what the user has without it."""
    if score.reference is None:
        return "The model holds no past rows and its rows bring no forecast, so there is nothing to compare with."
    other = rule_in_words(score.reference)
    if score.reference == score.rule:
        return f"It decides by {other}: there is nothing to compare with."
    if not np.isfinite(score.gain.value):
        return f"{other} lost nothing: there is no share of it to save."
    verb = "less" if score.gain.value >= 0 else "more"
    lost = f"{100 * score.relative[score.reference]:.2f} %"
    return f"That is {abs(score.gain.value):.1%} {verb} than {other} ({lost}){_ends(score.gain)}."


def _ends(gain: Gain) -> str:
    if not np.isfinite(gain.low):
        return "; how sure this is, these few or similar rows cannot tell"
    unsure = "; it may be noise" if gain.low <= 0 <= gain.high else ""
    return f"; {CONFIDENCE:.0%} range: {gain.low:.1%} to {gain.high:.1%} less{unsure}"


def _held(score: Score) -> str:
    if not score.ranged:
        return "No range was stated for these rows."
    wrong = "; that is too few" if score.ranges_wrong else ""
    return f"Ranges of {score.share:.0%} held {score.inside:.0%} of {score.ranged} costs{wrong}."


def _drift(score: Score) -> str:
    if score.drifted is None:
        return f"Drift is judged from {LATEST} rows on, against the rows that a model over time holds."
    if not score.drifted:
        return "No column has drifted."
    which = listed(score.drifted, SHOWN)
    return f"Drifted: {which}. The last {LATEST} rows are far from the model's rows, even for values that last so long."


def _still_best(score: Score) -> str:
    if score.best == score.rule:
        return f"{score.rule} is still the best of the {len(score.relative)} rules that the model can follow."
    what = f"{rule_in_words(score.best)} would have lost {100 * score.relative[score.best]:.2f} %"
    return f"{what}, {'which is more than noise' if score.beaten else 'which may be noise'}."


def score_file(model: OwnModel, client: str, path: Path, state: Path | None = None) -> Scored:
    """Score the rows of a table. Rows that the ``state`` has already are not counted twice. The state is written again."""
    client = client if client in model.fit.members else composed(client)
    model.member(client)
    if not model.about["order"]:
        fix = 'write order = "COLUMN" under [federation] in its file and fit again'
        raise ValueError(f"the model cannot be scored: it was trained without an order; {fix}")
    seen = Observed.load(state) if state is not None and is_there(state) else None
    rows, dates = _rows(model, client, path)
    replayed = _over_time if isinstance(model.fit, Chosen) else _once
    now, replay = replayed(model, client, rows, dates, seen)
    encoded = [(name, column.kind == "date") for column in model.encoding.columns for name in column.feature_names]
    columns = [*encoded, *((name, False) for name in model.about["costs"])]  # a calendar always drifts
    result = score(replay, *zip(*columns, strict=True))
    if state is not None:
        now.save(state)
    clock = Clock.of(now.rows.times, dates)
    ends = clock.shown(now.rows.times[0]), clock.shown(now.rows.times[-1])
    new = len(now.rows) - (0 if seen is None else len(seen.rows))
    return Scored(client, result, *ends, new, model.about["units"].get(client), state, model.about.get("per"))


def is_there(state: Path) -> bool:
    """Whether a state was written already; an empty file is a new one."""
    return state.exists() and state.stat().st_size > 0


def _rows(model: OwnModel, client: str, path: Path) -> tuple[TimedRows, bool]:
    """The rows of a table in their order, up to the last row with known costs."""
    order, costs = composed(model.about["order"]), model.about["costs"]
    source = open_source(path)
    require_columns(source, [order, *map(composed, costs)])
    dates = model.fit.dates if isinstance(model.fit, Chosen) else None
    columns = Columns(model.encoding, model.about["order"], costs, bool(dates))
    table = columns.table(source)
    if dates is None:  # a model without rows does not know the kind of its order
        dates = order_of(table, order)[1]
        columns = replace(columns, dates=dates)
    rows = columns.rows(table, client)
    rows = rows.take(np.argsort(rows.times, kind="stable"))
    if not rows.filled.any():
        raise ValueError(f"{source.name}: has no row whose costs are known; fill them in, as they came")
    return rows.take(slice(0, int(np.flatnonzero(rows.filled)[-1]) + 1)), dates


def _over_time(model: OwnModel, client: str, rows: TimedRows, dates: bool, seen: Observed | None) -> tuple[Observed, Replay]:
    """The decisions of a model of `chosen` over time."""
    fit = model.fit
    assert isinstance(fit, Chosen), "others are replayed at once"
    if seen is not None:
        seen.require_of(client, fit.digest(client))
    timed = TimedRows.of(fit.member(client))
    known = timed if seen is None else TimedRows.joined([timed, seen.rows])
    clock = Clock.of(timed.times, dates)
    require_same_as_known(client, known, rows, clock)
    since = fit.since(client, rows, seen)
    if not len(since):
        raise ValueError(f"client {client!r}: no row came after {clock.shown(timed.times[-1])}, the last that the model holds")
    require_decided(client, TimedRows.joined([timed.take(slice(-1, None)), since]), clock, fit.past.known_after)
    if len(added := since.take(slice(0 if seen is None else len(seen.rows), None))):
        require_same_unit(client, known, added, clock)
    played, rule = fit.replayed(client, since), fit.rules[client]
    expected = {**fit.expected(client, since), rule: played.expected}
    now = fit.observed(client, since, played)
    return now, Replay(played.client, rule, expected, played.cost, played.ends, fit.share, timed)


def _once(model: OwnModel, client: str, rows: TimedRows, dates: bool, seen: Observed | None) -> tuple[Observed, Replay]:
    """The decisions of a model that was fitted once. It has no rows of its own, so all rows of the table count."""
    fit, member = model.fit, model.member(client)
    assert isinstance(fit, Fit), "others are replayed over time"
    assert isinstance(member, Member), "a fit has members"
    digest = digest_of(client, fit.method, member.predictor)
    since = rows
    if seen is not None:
        seen.require_of(client, digest)
        clock = Clock.of(seen.rows.times, dates)
        require_same_as_known(client, seen.rows, rows, clock)
        since = TimedRows.joined([seen.rows, newer(client, seen.rows, rows, clock, 0)])
    else:
        require_moments(client, rows, Clock.of(rows.times, dates))
    brings = any(column.forecast for column in model.encoding.columns)
    forecast = since.x[:, -since.c.shape[1] :] if brings else None
    played = Client(client, since.x, since.c, member.set, member.maximize, times=since.times, forecast=forecast)
    predicted = fit.predict(client, since.x)
    decisions = solve_each([played.oracle], [played.sense * played.completed(predicted)])[0]
    cost = np.sum(played.completed(played.c) * decisions, axis=1)
    stated = CostRange.from_json(model.about["ranges"][client]) if client in model.about["ranges"] else None
    ends = np.full((played.n, 2), np.inf)
    if stated is not None:
        ends = np.asarray(stated.at(known(since.x, predicted, fit.decide_at(client, predicted))))[:, [0, 2]]
    expected = {fit.method: predicted} | ({} if forecast is None else {FORECAST: forecast})
    lost = judged(regrets_at(played, predicted), played)["relative_regret"]
    now = Observed(client, since, lost, inside(cost, ends), digest)
    share = RANGE_SHARE if stated is None else stated.share
    return now, Replay(played, fit.method, expected, cost, ends, share, None)

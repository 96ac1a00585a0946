"""`Chosen`: the model of `chosen` for rows with an order. It contains rules, their parts, and each client's last rows.

It decides a row by what is known before it: the rows in the model, and newer ones that it is given. It never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dffl.batched import solve_each
from dffl.cache import keep_compiled_programs
from dffl.federation import Client, checked_times
from dffl.fitting import Fit
from dffl.items import block, combined, inserted
from dffl.judging import judged, regrets_at
from dffl.time.ahead import Clock, TimedRows, newer
from dffl.time.bases import FORECAST, MEANS, NAIVE, STEADY, plain_mean, steady
from dffl.time.mixtures import mixtures
from dffl.time.observed import Observed, digest_of
from dffl.time.outcome import CHOSEN
from dffl.time.own import Views
from dffl.time.past import Past
from dffl.time.ranges import AdaptiveRange, inside
from dffl.time.timeline import DAY, SURELY_NANOSECONDS
from dffl.time.units import recent

KEPT = 400
"""A model has this number of last rows of each client, or twice the longest look-back of its lags and means, if that is more.
"""

OF_ALL = ("means", "gain", "rule")
"""The keys of `Chosen.evidence` for all clients together."""


def parts_of(rule: str, trained: Sequence[str], base: str, own: Sequence[str] = ()) -> tuple[str, ...]:
    """The parts of which a rule is the mean: naive rules, the clients' forecast, and trained methods."""
    if rule in (*NAIVE, FORECAST):
        return (rule,)
    if parts := mixtures(trained, base, own).get(rule):
        return parts
    raise ValueError(f"unknown rule {rule!r:.60} (trained: {', '.join((*trained, *own)) or 'none'}; base: {base})")


def part_of(fit: Fit, client: str) -> Fit:
    """The parts of a fit that one client needs."""
    history = fit.history[fit.history["client"] == client].reset_index(drop=True)
    return replace(fit, members={client: fit.members[client]}, shared=None, history=history)


class Ahead(NamedTuple):
    """A client's decisions, and the range of what each will cost, or earn."""

    decisions: np.ndarray
    ranges: np.ndarray
    """(n, 3): low end, median and high end; the ends are infinite if too little is known for a range."""
    predicted: np.ndarray
    """The predicted costs of the rule, (n, d)."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """A fit of the method `chosen` over time. `decide`, `predict` and `observe` take rows that follow those in the model."""

    rules: Mapping[str, str]
    """The rule by which each client decides."""
    base: str
    weight: float
    """The weight of a new row in the steady average."""
    past: Past
    dates: bool
    share: float
    trained: tuple[str, ...]
    """The methods that rules may use and that correct the base."""
    parts: Mapping[str, Fit]
    """The methods that the chosen rules do use, each fitted on all rows."""
    kept: Mapping[str, Client]
    """The last rows of each client."""
    ranges: Mapping[str, AdaptiveRange]
    evidence: dict[str, Any]
    """What was compared, and on which rows: plain values."""
    about: dict[str, Any] = field(default_factory=dict)
    reads: Callable[[pd.DataFrame, str], TimedRows] | None = None
    """Reads rows from a user's data frame, if a federation's file says how."""
    own: tuple[str, ...] = ()
    """The models of a client's own features that rules may use."""

    method = CHOSEN

    def __repr__(self) -> str:
        return f"Chosen({len(self.kept)} clients, {', '.join(sorted(set(self.rules.values())))})"

    @property
    def members(self) -> Mapping[str, Client]:
        """The clients by their names."""
        return self.kept

    @property
    def dim(self) -> int:
        """The number of costs."""
        return int(next(iter(self.kept.values())).c.shape[1])

    @property
    def features(self) -> int:
        """The number of features, including the columns of a forecast."""
        return int(next(iter(self.kept.values())).x.shape[1])

    @property
    def history(self) -> pd.DataFrame:
        """The histories of the trainings of all parts."""
        frames = [fit.history.assign(part=name) for name, fit in self.parts.items()]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def member(self, client: str) -> Client:
        """A client, with its last rows."""
        if client not in self.kept:
            names = ", ".join(map(repr, list(self.kept)[:5]))
            raise ValueError(f"no client {client!r} in this model (it has {names}{', ...' if len(self.kept) > 5 else ''})")
        return self.kept[client]

    def predict(
        self, client: str, x: Any, *, times: Any = None, forecast: Any = None, seen: Observed | None = None,
        items: Any = None, known: Any = None,
    ) -> np.ndarray:  # fmt: skip
        """The costs of new rows that the client's rule predicts; see `decide`."""
        return self.ahead(client, self.rows(client, x, times, forecast, seen, items, known), seen).predicted

    def decide(
        self, client: str, x: Any, *, times: Any = None, forecast: Any = None, seen: Observed | None = None,
        items: Any = None, known: Any = None,
    ) -> np.ndarray:  # fmt: skip
        """What a client decides at new rows, which follow those that the model holds.

        - ``x``: a data frame with the columns of the federation's file, also with those of costs and order: rows whose costs
          are filled in are the past, and are not decided. Or features (n, p), as in training.
        - ``times``: of the rows, where x does not hold them; by default they follow the last known row one after the other.
        - ``forecast``: the forecast (n, d) that the client brings, where x does not hold it.
        - ``seen``: what `observe` returned.
        - ``items``, ``known``: the features of items, as `Client` takes them, where x does not hold them.
        """
        return self.ahead(client, self.rows(client, x, times, forecast, seen, items, known), seen).decisions

    def observe(self, client: str, rows: Any, seen: Observed | None = None) -> Observed:
        """Report rows with their realised costs, as a `Client` or a data frame. ``seen`` is the result of an earlier call."""
        timed = self._rows_of(rows) if isinstance(rows, Client) else self.rows(client, rows, seen=seen)
        since = self.since(client, timed, seen)
        return self.observed(client, since, self.replayed(client, since) if len(since) else None)

    def since(self, client: str, rows: TimedRows, seen: Observed | None = None) -> TimedRows:
        """All rows with costs after those of the model: those observed before, and the given ones."""
        known, clock = self._known(client, seen), self._clock(client)
        if not rows.filled.all():
            when = clock.shown(rows.times[int(np.argmin(rows.filled))])
            raise ValueError(f"client {client!r}: the row of {when} has no costs; observe takes rows whose costs are known")
        added = newer(client, known, rows, clock, self.past.known_after)
        return TimedRows.joined([*([] if seen is None else [seen.rows]), added])

    def observed(self, client: str, since: TimedRows, played: Played | None) -> Observed:
        """The state after these rows and their decisions."""
        regret = coverage = float("nan")
        if played is not None:
            regret = judged(regrets_at(played.client, played.expected), played.client)["relative_regret"]
            coverage = inside(played.cost, played.ends)
        return Observed(client, since, regret, coverage, self.digest(client))

    def evaluate(self, test: Sequence[Client]) -> pd.DataFrame:
        """One row per client: the losses of its decisions on later rows, each decided with what was known before it."""
        table_rows = []
        for client in test:
            added = newer(client.name, self._known(client.name, None), self._rows_of(client), self._clock(client.name), 0)
            played = self.replayed(client.name, added)
            lost = judged(regrets_at(played.client, played.expected), played.client)
            table_rows.append(
                {"client": client.name, "method": CHOSEN, "rule": self.rules[client.name], "n_test": len(added), **lost}
            )
        return pd.DataFrame(table_rows)

    def ahead(self, client: str, rows: TimedRows, seen: Observed | None = None) -> Ahead:
        """Decisions and ranges for the rows whose costs are not known yet."""
        keep_compiled_programs()  # so that the first decision of a new process is fast
        before, wait = self._known(client, seen), self.past.known_after
        rows = newer(client, before, rows, self._clock(client), wait)
        since = TimedRows.joined([*([] if seen is None else [seen.rows]), rows])
        played = self.replayed(client, since)
        todo = ~since.filled
        return Ahead(played.decisions[todo], played.ranges[todo], played.expected[todo])

    def rows(
        self, client: str, x: Any, times: Any = None, forecast: Any = None, seen: Observed | None = None,
        items: Any = None, known: Any = None,
    ) -> TimedRows:  # fmt: skip
        """New rows in the form of the model."""
        if self.reads is not None and hasattr(x, "columns") and times is None:
            return self.reads(x, client)
        member, apart = self.member(client), items is not None or known is not None
        dim, brings = member.c.shape[1], member.forecast is not None
        if hasattr(x, "columns") and member.feature_names is not None:
            wanted = list(member.feature_names[: -dim or None] if forecast is not None else member.feature_names)
            if apart:
                del wanted[block(member.x.shape[1], dim, member.item_features, brings)]
            if lacking := [name for name in wanted if name not in x.columns]:
                raise ValueError(f"x must have the columns of training, found none named {lacking[0]!r}")
            x = x[wanted]
        table = np.zeros((len(items), 0)) if x is None and items is not None else np.atleast_2d(np.asarray(x, np.float64))
        if forecast is not None:
            table = np.hstack([table, np.asarray(forecast, np.float64).reshape(len(table), -1)])
        if apart:
            table, _ = inserted(table, None, combined("", items, known, (len(table),), dim), brings, None)
        if table.shape[1] != member.x.shape[1] or not np.isfinite(table).all():
            raise ValueError(
                f"x must be finite numbers in {member.x.shape[1]} columns, as in training, found shape {table.shape}"
            )
        return TimedRows(self._times(client, times, len(table), seen), table, np.full((len(table), member.c.shape[1]), np.nan))

    def only(self, client: str) -> Chosen:
        """The parts that one client needs."""
        parts = {name: part_of(fit, client) for name, fit in self.parts.items()}
        known = {name: value for name, value in self.evidence.items() if name not in OF_ALL}
        if known:
            known["inside"] = {client: known["inside"][client]}
            known["rules"] = {rule: {client: by[client]} for rule, by in known["rules"].items()}
        selected: dict[str, Any] = {name: {client: getattr(self, name)[client]} for name in ("rules", "kept", "ranges")}
        needed = self._parts(client)
        return replace(self, parts={name: fit for name, fit in parts.items() if name in needed}, evidence=known, **selected)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one file, completely or not at all. `dffl.load` reads it."""
        from dffl.chosen_files import save

        save(self, path)

    def digest(self, client: str) -> str:
        """A digest of everything that a client's decisions depend on: an exported model has the same as the full one."""
        member, parts = self.member(client), self._parts(client)
        fits = [(name, self.parts[name].members[client].predictor) for name in parts if name in self.parts]
        state = asdict(self.ranges[client])
        about = (client, self.rules[client], self.base, self.weight, asdict(self.past), self.share, member.maximize)
        return digest_of(about, member.times, member.x, member.c, member.set.__class__.__name__, state, fits)

    def _parts(self, client: str) -> tuple[str, ...]:
        """The parts of which the client's rule is the mean."""
        return parts_of(self.rules[client], self.trained, self.base, self.own)

    def _times(self, client: str, times: Any, count: int, seen: Observed | None) -> np.ndarray:
        if times is None:
            known, clock = self._known(client, seen), self._clock(client)
            return np.asarray(known.times[-1] + clock.step * np.arange(1, count + 1))
        array = np.atleast_1d(checked_times(f"client {client!r}", times))
        if array.shape != (count,):
            raise ValueError(f"times must have one value for each of the {count} rows, found shape {array.shape}")
        return self._in_seconds(array)

    def _rows_of(self, client: Client) -> TimedRows:
        if client.times is None:
            raise ValueError(f"client {client.name!r}: rows that follow others need times; pass dffl.Client(..., times=...)")
        return TimedRows(self._in_seconds(client.times), client.x, client.c)

    def _in_seconds(self, times: np.ndarray) -> np.ndarray:
        """Times in the units of the model; those of a `Client` may be nanoseconds."""
        nanoseconds = self.dates and np.abs(times).min(initial=np.inf) > SURELY_NANOSECONDS
        return np.asarray(times / 1e9 if nanoseconds else times, np.float64)

    def _known(self, client: str, seen: Observed | None) -> TimedRows:
        timed = TimedRows.of(self.member(client))
        if seen is not None:
            seen.require_of(client, self.digest(client))
        return timed if seen is None else TimedRows.joined([timed, seen.rows])

    def _clock(self, client: str) -> Clock:
        return Clock.of(TimedRows.of(self.member(client)).times, self.dates)

    def replayed(self, client: str, since: TimedRows) -> Played:
        """The rows after those of the model: each is decided, with its range, from what is known before it."""
        member, wait = self.member(client), self.past.known_after
        everything, unknown = self._with(client, since)
        some = slice(member.n, everything.n)
        parts = self._parts(client)
        tables = self._expected(everything, some, {*parts, self.base})
        rule = np.mean([tables[name] for name in parts], axis=0)
        base, spread = tables[self.base], recent(everything.c, wait).spread[some, 0]
        new = everything.rows(some)
        decisions = solve_each([new.oracle], [new.sense * new.completed(rule)])[0] if new.n else rule
        level = np.sum(new.completed(base) * decisions, axis=1)
        cost = np.where(unknown[some], np.nan, np.sum(new.completed(new.c) * decisions, axis=1))
        shown = (
            member.set.decide(rule, member.maximize)
            if member.set.variables is not None
            else decisions[:, : member.set.dim] + 0.0
        )
        return Played(new, rule, shown, cost, _ranges(self.ranges[client], cost, level, spread, wait))

    def expected(self, client: str, since: TimedRows) -> dict[str, np.ndarray]:
        """The predictions of every rule that the model can use at this client, for rows after those of the model."""
        member = self.member(client)
        everything, _ = self._with(client, since)
        brought = [] if member.forecast is None else [FORECAST]
        single = [*NAIVE, *brought, *(name for name, fit in self.parts.items() if client in fit.members)]
        expected_costs = self._expected(everything, slice(member.n, everything.n), {*single, self.base})
        for rule, parts in mixtures(self.trained, self.base, self.own).items():
            if expected_costs.keys() >= set(parts):
                expected_costs[rule] = np.mean([expected_costs[name] for name in parts], axis=0)
        return expected_costs

    def _with(self, client: str, since: TimedRows) -> tuple[Client, np.ndarray]:
        """A client with the rows of the model and those after them, and which of these have no costs yet."""
        member = self.member(client)
        joined = TimedRows.joined([TimedRows.of(member), since])
        unknown = ~joined.filled
        costs = np.where(unknown[:, None], 0.0, joined.c)  # nobody uses them: features of a row depend only on earlier rows
        return member.with_rows(joined.x, costs, joined.times), unknown

    def _expected(self, client: Client, some: slice, needed: set[str]) -> dict[str, np.ndarray]:
        """The predictions of naive rules, the forecast and trained methods for some rows."""
        assert client.times is not None, "it was made with times"
        days = client.times / DAY if self.dates else None
        wait, tables = self.past.known_after, {}
        for name in needed:
            if name in MEANS:
                tables[name] = plain_mean(name, client.c, wait)
            elif name == STEADY:
                tables[name] = steady(client.c, self.weight, days, wait)
            elif name == FORECAST:
                tables[name] = np.asarray(client.forecast)
        by_rule = {name: table[some] for name, table in tables.items()}
        if needed - by_rule.keys():
            views = Views([client], [days], [tables[self.base]], self.past, self.base == FORECAST)
            for name in sorted(needed - by_rule.keys()):
                [by_rule[name]] = views.predictions(self.parts[name], [some])
        return by_rule


class Played(NamedTuple):
    """Rows after those of a model, each decided with what was known before it."""

    client: Client
    expected: np.ndarray
    decisions: np.ndarray
    cost: np.ndarray
    """What each decision has cost; NaN if that is not known yet."""
    ranges: np.ndarray

    @property
    def ends(self) -> np.ndarray:
        """Low and high end of each range."""
        return self.ranges[:, [0, 2]]


def _ranges(state: AdaptiveRange, cost: np.ndarray, level: np.ndarray, spread: np.ndarray, known_after: int) -> np.ndarray:
    """Low end, median and high end of each row, from the costs of the rows before ``t - known_after``."""
    now, ends, told = AdaptiveRange(**asdict(state)), np.empty((len(cost), 3)), 0
    for row in range(len(cost)):
        while told < row - known_after and not np.isnan(cost[told]):
            now.observe(cost[told], level[told], spread[told], (ends[told, 0], ends[told, 2]))
            told += 1
        low, high = now.ends(level[row], spread[row])
        middle = level[row] + spread[row] * float(np.median(now.errors)) if now.errors else level[row]
        ends[row] = low, min(max(middle, low), high), high
    return ends

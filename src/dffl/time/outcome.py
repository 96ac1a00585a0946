"""The result of a backtest: the regret of each rule by row, the chosen rules, the ranges, and a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dffl.federation import Client
from dffl.forecasts import gives_away
from dffl.harm import ENOUGH_STARTS, interval
from dffl.jsonable import jsonable
from dffl.judging import left_out_words
from dffl.judging import share as ratio
from dffl.serial import sureness, too_alike
from dffl.time.bases import NAIVE
from dffl.time.ranges import inside
from dffl.time.timeline import Timeline

if TYPE_CHECKING:
    from rich.console import Console

    from dffl.time.spans import Spans

CHOSEN = "chosen"
FORECAST = "forecast"
SAME = 0.005
"""Rules whose regrets differ by less than this share count as equal in the verdict."""


TOO_GOOD = 0.02
"""A forecast that loses less than this share of what moving averages lose may be made of the costs, as by rounding them."""


def too_good(means: Mapping[str, float]) -> bool:
    """Whether a forecast loses so little, compared with the rules that need no training, that one must ask where it is from."""
    naive = [means[rule] for rule in NAIVE if rule in means]
    return FORECAST in means and bool(naive) and means[FORECAST] < TOO_GOOD * min(naive)


class Choice(NamedTuple):
    """The rules of clients from one origin to the next, and the rows of each client in between."""

    origin: int
    rules: tuple[str, ...]
    rows: tuple[slice, ...]


@dataclass(frozen=True, eq=False)
class Backtest:
    """The result of `dffl.backtest`."""

    timeline: Timeline
    base: str
    """The rule from which predictions start."""
    clients: tuple[Client, ...]
    """The clients with their rows from the first origin on."""
    lost: Mapping[str, list[np.ndarray]]
    """The regret of each row under each rule, for each client."""
    choices: list[Choice]
    spans: list[Spans]
    share: float
    trained: tuple[str, ...]
    """The methods that were trained to correct the base."""
    own: tuple[str, ...] = ()
    """The models that see a client's own features."""

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row for each rule, client and row from the start on.

        Columns: ``client``, ``time``, ``rule``, ``regret``, ``best`` (the size of the best objective) and ``chosen``
        (whether the client was to use this rule then).
        """
        parts = []
        for place, client in enumerate(self.clients):
            rows, used = self.reported(place), self.used(place)
            times = self.timeline.times[place][len(self.timeline.times[place]) - client.n :][rows]
            when = pd.to_datetime(times, unit="s") if self.timeline.dates else times
            for rule, lost in self.lost.items():
                parts.append(
                    pd.DataFrame(
                        {
                            "client": client.name,
                            "time": when,
                            "rule": rule,
                            "regret": lost[place][rows],
                            "best": client.z_star_size[rows],
                            "chosen": used[rows] == rule,
                        }
                    )
                )
        return pd.concat(parts, ignore_index=True)

    def used(self, place: int) -> np.ndarray:
        """The rule that a client used in each of its rows."""
        names = np.full(self.clients[place].n, self.base, dtype=object)
        for choice in self.choices:
            names[choice.rows[place]] = choice.rules[place]
        return names

    def relative(self, rule: str) -> dict[str, float]:
        """Each client's relative regret from the start on, a ratio of sums, under a rule or under ``chosen``."""
        columns = {}
        for place, client in enumerate(self.clients):
            rows = self.reported(place)
            lost = self.regrets(rule, place)[rows]
            columns[client.name] = float(ratio(lost.sum(), client.z_star_size[rows].sum())) if len(lost) else float("nan")
        return columns

    def regrets(self, rule: str, place: int) -> np.ndarray:
        """The regret of each row of a client under a rule or under ``chosen``."""
        if rule != CHOSEN:
            return self.lost[rule][place]
        used = self.used(place)
        return np.select([used == name for name in self.lost], [lost[place] for lost in self.lost.values()])

    @property
    def ranges(self) -> dict[str, float]:
        """The share of each client's costs that were inside their stated range."""
        columns = {}
        for place, client in enumerate(self.clients):
            rows, spans = self.reported(place), self.spans[place]
            columns[client.name] = inside(spans.cost[rows], spans.ends[rows])
        return columns

    @property
    def winner(self) -> str:
        """The rule with the smallest loss, by the mean over clients of the relative regret; ``chosen`` is one of them."""
        means = self.means
        return min(means, key=lambda rule: means[rule])

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean over clients of the relative regret under each rule; clients without a finite one are left out."""
        by = {rule: np.array(list(self.relative(rule).values())) for rule in (*self.lost, CHOSEN)}
        finite = self._finite
        return {rule: float(values[finite].mean()) if finite.any() else float("nan") for rule, values in by.items()}

    @cached_property
    def _finite(self) -> np.ndarray:
        """Which clients have a finite relative regret under every rule."""
        return np.all([np.isfinite(list(self.relative(rule).values())) for rule in (*self.lost, CHOSEN)], axis=0)

    def difference(self, rule: str, other: str) -> tuple[float, float, float]:
        """The extra loss of a rule compared with another, in the unit of `means`, and the ends of its 95 % interval over time.

        Clients share their days, so each moment counts once, with the mean over clients. A loss is never below 0, so the
        lower end is limited by the whole loss of the other rule.
        """
        series = self._more(rule, other)
        mean, low, high = interval(np.tile(series, (ENOUGH_STARTS, 1)), ordered=True)  # without the variance between trainings
        return mean, low if np.isinf(low) else max(low, -self.means[other]), high

    @property
    def independent(self) -> float:
        """The number of independent moments among the reported ones, in the comparison of the choice with the base."""
        return sureness(self._more(CHOSEN, self.base)).independent

    def _more(self, rule: str, other: str) -> np.ndarray:
        """The extra loss of a rule compared with another at each moment, in the unit of `means`: the mean over clients."""
        places = np.flatnonzero(self._finite).tolist()
        size = self.best_by_moment(places).sum(axis=1, keepdims=True)  # 0 if nothing can be lost
        more = (self.by_moment(rule, places) - self.by_moment(other, places)) / np.where(size > 0, size, 1.0)
        return np.asarray(more.sum(axis=0) * more.shape[1] / max(len(places), 1))

    def by_moment(self, rule: str, places: Sequence[int]) -> np.ndarray:
        """The regret of some clients at each moment from the start on, (clients, moments); 0 if there is no row."""
        return self._laid_out([self.regrets(rule, place) for place in places], places)

    def best_by_moment(self, places: Sequence[int]) -> np.ndarray:
        """The size of the best objective, in the form of `by_moment`."""
        return self._laid_out([self.clients[place].z_star_size for place in places], places)

    def _laid_out(self, values: Sequence[np.ndarray], places: Sequence[int]) -> np.ndarray:
        table = np.zeros((len(places), len(self.timeline.moments)))
        for number, (place, each) in enumerate(zip(places, values, strict=True)):
            rows, times = self.reported(place), self.timeline.times[place]
            table[number, np.searchsorted(self.timeline.moments, times[len(times) - len(each) :][rows])] = each[rows]
        return table[:, self.timeline.start :]

    def verdict(self) -> str:
        """What to do, in words: the first sentence names the best rule."""
        left_out = [client.name for client, finite in zip(self.clients, self._finite, strict=True) if not finite]
        some = 0 < len(left_out) < len(self.clients)
        return f"{self._verdict()} {left_out_words(left_out)}" if some else self._verdict()

    def _verdict(self) -> str:
        means = self.means
        best, mine = self.winner, means[self.base]
        if not np.isfinite(mine):
            return "The best possible objective of all clients is zero: no relative regret can be given."
        hindsight = "" if best in (CHOSEN, self.base) else ", in hindsight"  # at the start, nobody could know that
        text = f"{_name(best)} loses least ({100 * means[best]:.2f} %){hindsight}."
        versus, keep = "the steady average", "Keep to the steady average."
        if self.base == FORECAST:
            versus, keep = "your own forecast", "Keep using your forecast."
            if known := [
                repr(client.name)
                for client in self.clients
                if client.forecast is not None and gives_away(client.forecast, client.c)
            ]:
                keep = f"But at {', '.join(known)} it equals the costs themselves: is it known before the decision?"
            elif too_good(means):
                keep += " It loses almost nothing: is it known before the decision?"
        change = means[CHOSEN] / mine - 1 if mine > 0 else 0.0
        if best == self.base or change > -SAME:
            return f"{text} The choice made at each refit loses {100 * means[CHOSEN]:.2f} %, {_more(change, versus)}. {keep}"
        what = f"loses {100 * means[CHOSEN]:.2f} %, " if best != CHOSEN else "is "
        text += f" The choice made at each refit {what}better than {versus} ({100 * mine:.2f} %) by {-change:.1%}"
        _, low, high = self.difference(CHOSEN, self.base)
        if not np.isfinite(high):
            return f"{text}. Whether that is more than noise, one cannot tell: {too_alike(self.independent)}. {keep}"
        if high < 0:
            return f"{text} (95 % interval {-high / mine:.1%} to {-low / mine:.1%})."
        between = f"(95 % interval {-high / mine:.1%} to {-low / mine:.1%})"
        return f"{text}, which these rows do not distinguish from noise {between}. {keep}"

    def show(self, console: Console) -> None:
        """Print the verdict, the regret of each rule, and the ranges."""
        from rich.table import Table

        console.print(self.verdict(), soft_wrap=True)
        out = Table(title=f"Relative regret from {self.timeline.shown(self.timeline.start)} on, in %", title_justify="left")
        for name, justify in (
            ("rule", "left"),
            ("mean", "right"),
            ("worst client", "right"),
            ("clients it is best for", "right"),
        ):
            out.add_column(name, justify="right" if justify == "right" else "left")
        by = {rule: self.relative(rule) for rule in (*self.lost, CHOSEN)}
        for rule in sorted(by, key=lambda name: self.means[name]):
            best = sum(by[rule][name] <= min(other[name] for other in by.values()) for name in by[rule])
            out.add_row(rule, f"{100 * self.means[rule]:.2f}", f"{100 * max(by[rule].values()):.2f}", str(best))
        console.print(out)
        shares = [value for value in self.ranges.values() if np.isfinite(value)]
        if shares:
            coverage = f"held {min(shares):.0%} to {max(shares):.0%} at each client, {np.mean(shares):.0%} on average"
            console.print(f"Ranges of {self.share:.0%} {coverage}.", soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        """As JSON values: see docs/time.md."""
        refits = [choice for choice in self.choices if choice.origin >= self.timeline.start]
        rules = {
            client.name: [[self.timeline.shown(choice.origin), choice.rules[place]] for choice in refits]
            for place, client in enumerate(self.clients)
        }
        content: dict[str, Any] = {
            "from": self.timeline.shown(self.timeline.start),
            "refits": len(refits),
            "rules": {rule: self.relative(rule) for rule in self.lost},
            "chosen": {"by_client": self.relative(CHOSEN), "rules": rules},
            "ranges": self.ranges,
            "winner": self.winner,
        }
        return dict(jsonable(content))

    def reported(self, place: int) -> slice:
        """The rows of a client from the start on."""
        client = self.clients[place]
        known = int(np.searchsorted(self.timeline.times[place], self.timeline.moments[self.timeline.start]))
        return slice(known - (len(self.timeline.times[place]) - client.n), client.n)


def _name(rule: str) -> str:
    """A rule at the beginning of a sentence."""
    names = {FORECAST: "Your own forecast", CHOSEN: "The choice made at each refit", "steady": "The steady average"}
    return names.get(rule, f"The rule {rule}")


def _more(change: float, versus: str) -> str:
    if abs(change) <= SAME:
        return f"about as much as {versus}"
    return f"{abs(change):.1%} {'more' if change > 0 else 'less'} than {versus}"

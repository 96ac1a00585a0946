"""The choice among rules: which one each client uses until the next refit, by what they lost recently.

Regrets are divided by the spread of their own row: else one stormy day would decide. The choice is made for all clients
together (``fleet``), or for each client with its own record shrunk towards that of all (``shrunk``).

The rule that was best lately was often lucky. So where models are trained, the average of all of them and of the base is the
usual rule. Another rule replaces it if it was better by more than the noise; the base does if it was better at all. A forecast
that clients bring is the usual rule itself: an average with it, or a naive rule, replaces it if it was clearly better in all
rows so far. A light correction, which risks less, replaces it if it was better by more than the noise in all of them. Finally,
one method alone replaces the rule that these steps chose, if it was better by far more than the noise in all rows.

Clients whose rows stay apart (`dffl.time.fleet`) choose by the same record, of which each sends one number per rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dffl.time.mixtures import LIGHT, mixtures, usual_rule
from dffl.time.units import day_scaled as day_scaled

FLEET, SHRUNK = WAYS = ("fleet", "shrunk")
STRENGTH = 60.0
"""In the shrunk choice, the record of all clients has the weight of this number of rows."""
NOISE = 1.0
"""A rule replaces the usual one if it is better by more than this many standard errors."""
NOISE_OF_OWN = 2.0
"""The same for a rule with a model of own features: if features explain the costs, it is better by much more."""
NOISE_OF_FORECAST = 2.0
"""The same if the usual rule is the clients' forecast: nobody is advised to leave it because of chance."""
NOISE_OF_ALONE = 4.0
"""The same for one of several methods that correct the base, against the average that would be chosen: a recent best is often
luck, but where costs follow features that one method sees, averages with the others lose much more."""
NOISE_OF_LIGHT = 1.0
"""The same for the light correction of a forecast, a quarter of what was learned: if it is wrong, it costs little."""


class _Record(NamedTuple):
    """The losses of rules, (rules, clients, rows), relative to a client's mean, so that each client has equal weight."""

    lost: np.ndarray
    counts: np.ndarray
    """The rows of each client."""
    judged: np.ndarray
    """Whether a rule was judged on all rows."""

    @classmethod
    def of(cls, scaled: np.ndarray, usual: np.ndarray | None = None) -> _Record:
        """From day-scaled regrets. ``usual`` are the rules whose mean is a client's unit, by default all."""
        present = ~np.isnan(scaled).all(axis=0)
        counts = present.sum(axis=1)
        judged = ~(np.isnan(scaled) & present).any(axis=(1, 2))
        sums = np.where(present, scaled, 0.0)[judged if usual is None else judged & usual].sum(axis=2)
        mean = sums.mean(axis=0) / np.maximum(counts, 1) if len(sums) else np.zeros(len(counts))
        level = np.where(mean > 0, mean, 1.0)[:, None]
        return cls(np.where(mean[:, None] > 0, scaled / level, np.where(present, 1.0, np.nan)), counts, judged)

    @property
    def says_nothing(self) -> bool:
        return not self.judged.any() or not self.counts.any()

    def scores(self, how: str, strength: float) -> np.ndarray:
        """The mean loss of each rule for each client, (rules, clients); infinite if a rule was not judged."""
        own_scores = np.where(np.isnan(self.lost), 0.0, self.lost).sum(axis=2) / np.maximum(self.counts, 1)
        fleet = own_scores[:, self.counts > 0].mean(axis=1)[:, None]
        shrunk = self._shrunk(own_scores, fleet, how, strength)
        return np.where(self.judged[:, None], shrunk, np.inf)

    def noise(self, usual: int, how: str, strength: float) -> np.ndarray:
        """The standard error of the difference of each rule to the usual one, (rules, clients)."""
        more = self.lost - self.lost[usual]
        there = ~np.isnan(more)
        rows = there.any(axis=(0, 1))
        more, there = more[:, :, rows], there[:, :, rows]
        fleet = np.where(there, more, 0.0).sum(axis=1, keepdims=True) / np.maximum(there.sum(axis=1, keepdims=True), 1)
        series = self._shrunk(np.where(there, more, fleet), fleet, how, strength)
        return np.asarray(series.std(axis=2) / np.sqrt(max(series.shape[2], 1)))

    def _shrunk(self, own_scores: np.ndarray, fleet: np.ndarray, how: str, strength: float) -> np.ndarray:
        counts = self.counts.reshape(1, -1, *[1] * (own_scores.ndim - 2))
        trust = np.zeros_like(counts, dtype=np.float64) if how == FLEET else counts / (counts + strength)
        return np.asarray(trust * own_scores + (1 - trust) * fleet)


def choose(scaled: np.ndarray, how: str = SHRUNK, strength: float = STRENGTH) -> np.ndarray:
    """The number of the rule of each client that lost least.

    - ``scaled`` (rules, clients, rows): day-scaled regrets of the window; NaN where a client has no such row. A rule that
      was not judged on some row of a client is not chosen by anybody.
    - ``how``: ``fleet`` or ``shrunk``.
    - ``strength``: with ``shrunk``, the number of rows as which the record of all clients counts.

    Equal rules: the first one. A client without any row follows the others; without any row at all, everybody takes rule 0.
    """
    _require_way(how)
    record = _Record.of(scaled)
    if record.says_nothing:
        return np.zeros(scaled.shape[1], int)
    return np.asarray(record.scores(how, strength).argmin(axis=0))


def choose_rules(
    rules: Sequence[str],
    scaled: np.ndarray,
    trained: Sequence[str],
    base: str,
    window: int,
    how: str = FLEET,
    brought: bool = False,
    own: Sequence[str] = (),
) -> list[str]:
    """The rule of each client.

    - ``rules``: their names; the first one is the base, which everybody takes where nothing is known.
    - ``scaled`` (rules, clients, moments): day-scaled regrets up to now; NaN where a client has no row, or none that is known.
    - ``trained``, ``base`` and ``own``: what the rules were made of, see `mixtures`.
    - ``window``: rules are compared on the last of these moments, but the base with the usual rule on all of them.
    - ``brought``: whether the base is a forecast that clients bring. Then averages with it and naive rules may replace it.
    """
    _require_way(how)
    picked = _without_any_alone(rules, scaled, trained, base, window, how, brought, own)
    return _or_alone(picked, rules, scaled, trained, how) if len(trained) > 1 else picked


def _without_any_alone(
    rules: Sequence[str], scaled: np.ndarray, trained: Sequence[str], base: str, window: int, how: str, brought: bool,
    own: Sequence[str],
) -> list[str]:  # fmt: skip
    """The rule of each client, where one of several methods that correct the base is never used alone."""
    parts, names = mixtures(trained, base, own), eligible(rules, trained, base, brought, own)
    lost = scaled[[rules.index(rule) for rule in names]]
    sees_own = np.array([bool(set(parts.get(rule, ())) & set(own)) for rule in names])
    # Models of own features lose much where these say little: they must not change how much each client counts.
    all_rows, recent = (_Record.of(some, ~sees_own) for some in (lost, lost[:, :, max(lost.shape[2] - window, 0) :]))
    if recent.says_nothing:
        return [base] * scaled.shape[1]
    scores, start = recent.scores(how, STRENGTH), names.index(base)
    if brought:
        scores = all_rows.scores(how, STRENGTH)
        clear = scores + _noise_beside_forecast(names) * all_rows.noise(start, how, STRENGTH) < scores[start]
        return [names[number] for number in np.where(clear.any(axis=0), np.where(clear, scores, np.inf).argmin(axis=0), start)]
    if not parts:
        return [names[number] for number in scores.argmin(axis=0)]
    usual = names.index(usual_rule(trained, base, brought))
    errors = np.where(sees_own, NOISE_OF_OWN, NOISE)[:, None]
    better = scores + errors * recent.noise(usual, how, STRENGTH) < scores[usual]
    always = all_rows.scores(how, STRENGTH)
    better[start] = always[start] < always[usual]
    picked = np.where(better.any(axis=0), np.where(better, scores, np.inf).argmin(axis=0), usual)
    return [names[number] for number in picked]


def _or_alone(picked: Sequence[str], rules: Sequence[str], scaled: np.ndarray, trained: Sequence[str], how: str) -> list[str]:
    """One method instead of the rule that was picked, at clients where it was better by far more than noise in all rows."""
    found = list(picked)
    for rule in set(picked):
        names = [rule, *trained]
        record = _Record.of(scaled[[rules.index(name) for name in names]])
        if record.says_nothing:
            return found
        scores = record.scores(how, STRENGTH)
        clear = scores + NOISE_OF_ALONE * record.noise(0, how, STRENGTH) < scores[0]
        best = np.where(clear, scores, np.inf).argmin(axis=0)
        for client in np.flatnonzero(clear.any(axis=0)).tolist():
            if picked[client] == rule:
                found[client] = names[int(best[client])]
    return found


def eligible(rules: Sequence[str], trained: Sequence[str], base: str, brought: bool, own: Sequence[str] = ()) -> list[str]:
    """The rules that may be chosen: if clients have a forecast, averages with it, and rules that need no training.

    Of several methods that correct the base none is among them: averages are nearly as good, and a recent best may be luck.
    """
    parts, several = mixtures(trained, base, own), len(trained) > 1
    return [
        rule for rule in rules if not (brought and base not in parts.get(rule, (base,))) and not (several and rule in trained)
    ]


def _noise_beside_forecast(names: Sequence[str]) -> np.ndarray:
    """By how many standard errors each rule must be better than the forecast that clients bring, (rules, 1)."""
    return np.array([[NOISE_OF_LIGHT if name == LIGHT else NOISE_OF_FORECAST] for name in names])


def margins(names: Sequence[str], scaled: np.ndarray, usual: str, base: str, window: int, brought: bool) -> np.ndarray:
    """How much more each rule has lost at one client than the usual one, plus the noise that it must be better by.

    Below 0: the client's own record speaks for the rule, as in `choose_rules`. Losses count in means of all rules.

    - ``names``: the rules that may be chosen, ``usual`` and ``base`` among them.
    - ``scaled`` (rules, rows): day-scaled regrets of the client. The others are as for `choose_rules`.
    """
    lost = scaled[:, None, :]
    all_rows, recent = _Record.of(lost), _Record.of(lost[:, :, max(lost.shape[2] - window, 0) :])
    times = _noise_beside_forecast(names) if brought else NOISE
    record, place = all_rows if brought else recent, names.index(usual)
    scores = record.scores(FLEET, STRENGTH)
    differences = scores - scores[place] + times * record.noise(place, FLEET, STRENGTH)
    if not brought:  # the base replaces the usual rule if it was better at all
        always = all_rows.scores(FLEET, STRENGTH)
        differences[names.index(base)] = (always - always[place])[names.index(base)]
    differences[place] = 0.0
    return np.asarray(differences[:, 0])


def _require_way(how: str) -> None:
    if how not in WAYS:
        raise ValueError(f"choose must be one of {', '.join(WAYS)}, found {how!r:.40}")

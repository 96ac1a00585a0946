"""Why a shared model loses more than a client's own one: its constraint, its prices, or both.

On held-out samples one of the two is exchanged for the others'. That makes four cells: the client's constraint and prices; its
prices with the others' constraints; its constraint with the others' prices; the others as they are. In each cell the shared
model is compared with a closed-form model of the prices there, which no constraint has shaped. (An own model is trained for its
own client's constraint: with another one it is no better than the shared model, and the comparison would say nothing.) What the
shared model loses more is divided by what is at stake, the loss of deciding by the mean of past costs: some constraints forgive
more than others.

The client's cell minus that of the others is to be explained. Two ways lead from one to the other, the constraint first or the
prices first; each part is the mean of its two steps, so that the parts add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dffl.advice.evidence import Evidence, Guesses
from dffl.advice.folds import WEEK
from dffl.federation import Client, Federation
from dffl.judging import regrets_at_each
from dffl.randomness import Purpose, stream
from dffl.shapes import evenly_spaced

OTHERS = 4
"""The most other clients with which a client is compared, evenly spaced by name."""
SURE = 0.9
"""A cause is named if this share of the draws of samples agrees."""
MOST = 0.75
"""One of the two is the cause if this share of the difference is due to it. Between this and its opposite, both are."""
EXCESS = 1.645
"""A cause is sought if the shared model loses more than the own one by this many standard errors (95 %)."""
DRAWS = 200
NOT_EXAMINED, NONE = "not examined", "none"
CAUSES = ("constraint", "prices", "both", "neither", "unclear", NONE, NOT_EXAMINED)


class Cause(NamedTuple):
    """Why the shared model loses more than the client's own one."""

    cause: str
    """One of `CAUSES`: neither, if it does no better at the others; unclear, if samples disagree; none, if it does not."""
    share: float = float("nan")
    """The share of the difference between the client and the others that is due to its constraint, in [0, 1]."""


class Cell(NamedTuple):
    """Samples of one client decided on one set: the extra loss of the shared model, and the best objective, by sample."""

    more: np.ndarray
    stake: np.ndarray


def causes(
    federation: Federation, evidence: Sequence[Evidence], own_name: str, blocks: bool = False, seed: int = 0
) -> list[Cause]:
    """The cause for each client; ``own_name`` is the name of the own model's regrets in the evidence."""
    return [_cause(place, federation, evidence, own_name, blocks, seed) for place in range(len(federation))]


def _cause(place: int, federation: Federation, evidence: Sequence[Evidence], own_name: str, blocks: bool, seed: int) -> Cause:
    client, mine = federation[place], evidence[place].guesses
    if mine is None:
        return Cause(NOT_EXAMINED)
    if not _exceeds(evidence[place].federated - getattr(evidence[place], own_name), WEEK if blocks else 1):
        return Cause(NONE)
    sides = [_Side(side, guesses) for side, other in zip(federation, evidence, strict=True) if (guesses := other.guesses)]
    others = _others(client, [side for side in sides if side.client is not client])
    if not others:
        return Cause(NOT_EXAMINED)
    return judge(_cells([_Side(client, mine), *others]), stream(seed, Purpose.COMPARE, client.name, 1), WEEK if blocks else 1)


class _Side(NamedTuple):
    client: Client
    guesses: Guesses


def _exceeds(more: np.ndarray, length: int) -> bool:
    means = np.array([part.mean() for part in np.array_split(more, max(len(more) // length, 1))])
    return bool(len(means) > 1 and means.mean() > EXCESS * means.std(ddof=1) / np.sqrt(len(means)))


def _others(client: Client, sides: list[_Side]) -> list[_Side]:
    """Some of the same sense; the choice does not depend on the order of the clients."""
    same = sorted((side for side in sides if side.client.maximize == client.maximize), key=lambda side: side.client.name)
    return [same[k] for k in evenly_spaced(len(same), min(len(same), OTHERS))]


def _cells(sides: list[_Side]) -> list[list[Cell]]:
    """Entry [k][l]: the samples of client k decided on the set of client l, for the pairs with the first client, and k = l."""
    pairs = [(k, m) for k in range(len(sides)) for m in range(len(sides)) if 0 in (k, m) or k == m]
    moved, guesses = [], []
    for k, m in pairs:
        source, target = sides[k], sides[m]
        factor = _size(target.client) / _size(source.client)  # the set may have its own costs, in its own client's units
        client = source.client.rows(source.guesses.rows)
        client = client if k == m else replace(client, c=factor * client.c, c_mean=None, set=target.client.set)
        moved += [client] * 3
        guesses += [guess if k == m else factor * guess for guess in source.guesses.costs]
    lost = regrets_at_each(moved, guesses)
    cells = [[Cell(np.empty(0), np.empty(0)) for _ in sides] for _ in sides]
    for place, (k, m) in enumerate(pairs):
        unit = float(moved[3 * place].z_star_size.mean()) or 1.0
        naive, known, shared = (cost / unit for cost in lost[3 * place : 3 * place + 3])
        cells[k][m] = Cell(shared - known, naive)
    return cells


def _size(client: Client) -> float:
    return float(np.abs(client.c).mean()) or 1.0


def judge(cells: list[list[Cell]], rng: np.random.Generator, length: int = 1) -> Cause:
    """The cause, from the cells. Samples are drawn again to measure chance; ``length`` neighbours stay together."""
    counts = [len(row[k].more) for k, row in enumerate(cells)]
    draws = [_parts(cells, [np.arange(n) for n in counts])]
    draws += [_parts(cells, [_draw(n, length, rng) for n in counts]) for _ in range(DRAWS)]
    sets, prices = np.array(draws).T
    total = sets + prices
    if not np.isfinite(total).all():
        return Cause("unclear")  # with some sets or prices there is nothing to lose
    if np.mean(total > 0) < SURE:
        return Cause("neither")
    share = float(np.clip(sets[0] / total[0], 0, 1))  # one of the two may even help
    if share >= MOST and np.mean(sets > prices) >= SURE:
        return Cause("constraint", share)
    if share <= 1 - MOST and np.mean(prices > sets) >= SURE:
        return Cause("prices", share)
    sure = min(np.mean(sets > 0), np.mean(prices > 0)) >= SURE
    return Cause("both" if sure and 1 - MOST < share < MOST else "unclear", share)


def _draw(n: int, length: int, rng: np.random.Generator) -> np.ndarray:
    length = max(1, min(length, n // 6))
    starts = rng.integers(n - length + 1, size=-(-n // length))
    return np.asarray((starts[:, None] + np.arange(length)).ravel()[:n])


def _parts(cells: list[list[Cell]], rows: list[np.ndarray]) -> tuple[float, float]:
    """The parts of the difference due to the constraint and due to the prices."""
    others = range(1, len(cells))

    def level(pairs: Sequence[tuple[int, int]]) -> float:
        stake = sum(float(cells[k][m].stake[rows[k]].sum()) for k, m in pairs)
        return sum(float(cells[k][m].more[rows[k]].sum()) for k, m in pairs) / stake if stake > 0 else float("nan")

    mine, theirs = level([(0, 0)]), level([(k, k) for k in others])
    other_sets, other_prices = level([(0, k) for k in others]), level([(k, 0) for k in others])
    return (mine - other_sets + other_prices - theirs) / 2, (mine - other_prices + other_sets - theirs) / 2

"""Which samples are held out together: a draw of each client, or by the content of the row, or by its time.

Clients may have equal rows: copies of one table, or sites of one price zone. If each client drew its own held-out samples,
the test rows of one would be training rows of another, and federating would seem to help. So the part of a row can follow
from the row and the seed. It is then the same at every client, without comparing rows, and also at a site that has only its
own table.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from dffl.randomness import Purpose, checked_seed, stream

DRAW, ROW, COST, TIME = RULES = ("draw", "row", "cost", "time")
"""A draw of each client; by the row (its key, or its features and costs); by its costs alone; by stretches of time."""
FEWEST_COSTS = 4
"""Costs of fewer columns are compared without scaling."""
NEARLY_CONSTANT = 0.01
"""A row is nearly constant if the mean distance of its costs from their mean, relative to their mean size, is below this."""
TOWERING = 1000.0
"""One cost dominates a row if it is this many times as large as the median."""


class Samples(Protocol):
    """The properties of a client's samples that are needed to divide them."""

    @property
    def name(self) -> str: ...
    @property
    def n(self) -> int: ...
    @property
    def row_keys(self) -> np.ndarray: ...
    @property
    def cost_keys(self) -> np.ndarray: ...
    @property
    def times(self) -> np.ndarray | None: ...


@dataclass(frozen=True)
class Splitting:
    """How clients divide their samples. Every client divides its own, and a deployed site does the same."""

    seed: int = 0
    rule: str = DRAW
    blocks: bool = False
    """With the rule "draw": consecutive samples by position, instead of random ones."""
    period: tuple[float, float] | None = None
    """With the rule "time": the period of the stretches. Samples outside belong to the first or the last one."""

    def folds(self, client: Samples, count: int) -> list[np.ndarray]:
        """The client's sample numbers in ``count`` folds. By row or by time, their sizes differ, and some may be empty."""
        if self.rule == DRAW:
            drawn = stream(self.seed, Purpose.FOLD, client.name, count).permutation
            order = np.arange(client.n) if self.blocks else drawn(client.n)
            return [np.sort(part) for part in np.array_split(order, count)]
        number = np.minimum((self._places(client, Purpose.FOLD) * count).astype(int), count - 1)
        folds = [np.flatnonzero(number == fold) for fold in range(count)]
        if count > 1 and max(map(len, folds)) == client.n:
            raise ValueError(f"client {client.name!r}: {self._crowded(client, f'one of {count} folds')}")
        return folds

    def held(self, client: Samples, fraction: float) -> np.ndarray:
        """The numbers of the held-out samples of a client: this fraction of them; by row or by time, approximately."""
        if self.rule == DRAW:
            out = held_out(client.n, fraction)
            if not 0 < out < client.n:
                raise ValueError(
                    f"client {client.name!r}: x must have samples enough to hold out {fraction:.0%} of them, found {client.n}; "
                    f"at least {minimum_to_split(fraction)} are needed"
                )
            if self.blocks:
                first = int(self._begin() * (client.n - out + 1))
                return np.arange(first, first + out)
            return np.sort(stream(self.seed, Purpose.SPLIT, client.name).permutation(client.n)[:out])
        places = self._places(client, Purpose.SPLIT)
        begin = self._begin() * (1 - fraction) if self.rule == TIME else 0.0
        places_held = np.flatnonzero((begin <= places) & (places < begin + fraction))
        if len(places_held) == client.n:
            raise ValueError(f"client {client.name!r}: {self._crowded(client, 'the part that is held out')}")
        return places_held

    def _begin(self) -> float:
        """The start of the held-out stretch, as a share of the possible ones: the same at all clients."""
        return float(stream(self.seed, Purpose.SPLIT).random())

    def _places(self, client: Samples, purpose: Purpose) -> np.ndarray:
        """A number in [0, 1) for each sample, equal for equal samples of any client."""
        if self.rule == TIME:
            return self._moments(client)
        return places_of(client.cost_keys if self.rule == COST else client.row_keys, self.seed, purpose)

    def _moments(self, client: Samples) -> np.ndarray:
        if client.times is None:
            raise ValueError(f"client {client.name!r}: times must be given with split='time', found none")
        if self.period is None:
            raise ValueError("period must be given with split='time': from when until when the stretches go")
        first, last = self.period
        return np.clip((client.times - first) / (last - first), 0.0, np.nextafter(1.0, 0.0))

    def _crowded(self, client: Samples, where: str) -> str:
        if self.rule == TIME:
            first, last = self.period or (0.0, 0.0)
            why = f"the stretches divide the time from {first:g} to {last:g}, and its times lie in one of them"
        else:
            keys = client.cost_keys if self.rule == COST else client.row_keys
            why = f"{len(np.unique(keys))} of its {client.n} rows differ, and equal rows stay together"
        return f"all its samples fall into {where}, so that none is left to train ({why}); give it more rows, or leave it out"


def held_out(n: int, fraction: float) -> int:
    """How many of n samples a draw holds out: the whole number nearest to the fraction."""
    return int(n * fraction + 0.5)


def minimum_to_split(fraction: float) -> int:
    """The fewest samples for which both parts of a draw have some."""
    return next(n for n in range(2, 10**6) if 0 < held_out(n, fraction) < n)


def places_of(keys: np.ndarray, seed: int, purpose: Purpose) -> np.ndarray:
    """A number in [0, 1) for each key, uniform over keys, and different for every seed and purpose."""
    words = np.array([checked_seed(seed), int(purpose)], np.uint64)
    salt = chained(words[None, :])
    return (_mixed(keys ^ salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Keyed(NamedTuple):
    """Keys of rows, and the kinds of their values, each with an example; no kinds for values that are keys already."""

    keys: np.ndarray
    kinds: dict[str, str]


NUMBERS, DATES, ZONED, TEXTS = "numbers", "dates", "dates with a time zone", "texts"
DAY = re.compile(r"(\d{4})([-/])(\d\d?)\2(\d\d?)(?!\d)")
"""How a text begins that is a date."""
WHOLE = re.compile(r"[+-]?\d+")


def keys_of(values: Any, who: str = "") -> np.ndarray:
    """Keys of rows that a user identifies by dates, numbers or texts. Equal values have equal keys, in any type and time zone.

    5, 5.0 and "5" are equal, and so are a date, its texts (2024-01-31, 2024/1/31) and a moment of that day at midnight, UTC.
    A key does not depend on other rows: one fraction, or one text, changes no other key.
    """
    return keyed(values, who).keys


def keyed(values: Any, who: str = "") -> Keyed:
    """Like `keys_of`, with the kinds of the values."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{who}keys must have one value for each row, found {array.ndim} axes")
    if array.dtype == np.uint64:  # they are keys already
        return Keyed(array, {})
    empty = np.asarray(pd.isna(array))
    if empty.any():
        raise ValueError(f"{who}keys must not be empty, found none in row {int(np.argmax(empty))}")
    example = str(array[0]) if len(array) else ""
    if array.dtype.kind == "M":
        return Keyed(array.astype("M8[ns]").astype(np.int64).view(np.uint64), {DATES: example})
    if array.dtype.kind in "iu":
        return Keyed(array.astype(np.int64).view(np.uint64), {NUMBERS: example})
    if array.dtype.kind == "f":
        return Keyed(_number_keys(array.astype(np.float64)), {NUMBERS: example})
    return _keyed_texts(np.asarray(pd.Index(array).astype(str).str.strip(), object))


def _number_keys(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers as they are, others by a digest of their bits."""
    keys = row_digests(numbers[:, None])
    with np.errstate(invalid="ignore"):
        is_integer = np.isfinite(numbers) & (numbers == np.round(numbers)) & (np.abs(numbers) < 2**53)
    keys[is_integer] = numbers[is_integer].astype(np.int64).view(np.uint64)
    return keys


def _keyed_texts(texts: np.ndarray) -> Keyed:
    """The keys of texts: dates and numbers by their value, others by a digest. Each different text is processed once."""
    unique, place = np.unique(texts.astype(str), return_inverse=True)
    keys = text_digests(unique).copy()
    kinds: dict[str, str] = {}
    dated = np.array([DAY.match(text) is not None for text in unique], bool)
    iso = [DAY.sub(lambda match: f"{match[1]}-{int(match[3]):02}-{int(match[4]):02}", text, count=1) for text in unique[dated]]
    moments = pd.to_datetime(pd.Series(iso, dtype=object), utc=True, format="ISO8601", errors="coerce")
    clock = moments.dt.tz_localize(None).to_numpy().astype("M8[ns]")
    valid = ~np.isnat(clock)
    dated[np.flatnonzero(dated)[~valid]] = False  # such as the 30th of February
    keys[dated] = clock[valid].astype(np.int64).view(np.uint64)
    if dated.any():
        zoned = np.array([ZONE.search(text) is not None for text in unique[dated]])
        apart = zoned & (clock[valid] != clock[valid].astype("M8[D]"))  # midnight, UTC, stands for its day
        for kind, some in ((DATES, ~zoned if apart.any() else np.ones_like(zoned)), (ZONED, zoned & apart.any())):
            if some.any():
                kinds[kind] = str(unique[dated][some][0])
    digits = [number for number, text in enumerate(unique) if not dated[number] and WHOLE.fullmatch(text)]
    integers = {number: int(unique[number]) for number in digits if len(unique[number]) <= 20}
    integers = {number: value for number, value in integers.items() if -(2**63) <= value < 2**63}
    keys[list(integers)] = np.array(list(integers.values()), np.int64).view(np.uint64)
    rest = np.array([number for number in range(len(unique)) if not dated[number] and number not in integers], int)
    numbers = pd.to_numeric(pd.Series(unique[rest].astype(object)), errors="coerce").to_numpy(np.float64)
    known = ~np.isnan(numbers)
    short = known & ~np.isin(rest, digits)  # a longer whole number would lose its last digits as a float, so it stays a text
    keys[rest[short]] = _number_keys(numbers[short])
    for kind, entries in ((NUMBERS, [*integers, *rest[known]]), (TEXTS, [*rest[~known]])):
        if entries:
            kinds[kind] = str(unique[entries[0]])
    return Keyed(keys[place], kinds)


ZONE = re.compile(r"\d:\d\d\S*\s?(Z|[+-]\d\d:?\d\d)$")
"""How a text ends that is a moment in a time zone."""


def text_digests(texts: np.ndarray) -> np.ndarray:
    """A digest of 64 bits of each text."""
    unique, place = np.unique(texts.astype(str), return_inverse=True)
    each = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in unique.tolist()]
    return np.frombuffer(b"".join(each), "<u8")[place]


def row_digests(*tables: np.ndarray) -> np.ndarray:
    """A digest of 64 bits of each row of some float tables (n, columns); equal rows have equal digests."""
    bits = [np.ascontiguousarray(table + 0.0).view(np.uint64) for table in tables]  # 0.0 and -0.0 are equal
    return chained(np.concatenate(bits, axis=1) if len(bits) > 1 else bits[0])


def about(numbers: np.ndarray) -> np.ndarray:
    """A word for each number, nearly always equal for numbers that agree to six digits, such as copies in single precision."""
    part, power = np.frexp(numbers)
    with np.errstate(invalid="ignore"):
        return (np.round(part * 2**17).astype(np.int64) + (power.astype(np.int64) << 24)).view(np.uint64)


def cost_digests(costs: np.ndarray) -> np.ndarray:
    """A digest of each row of costs (n, d), equal for nearly all copies in another currency, rounding or sign.

    Costs are rounded at 1e-4 of their mean size. If that would hide their differences, they are rounded differently: in a
    nearly constant row, the distances from its mean; if one cost dominates the others, each cost to six digits.
    """
    if costs.shape[1] < FEWEST_COSTS:  # without their size, too little of them would be left
        return row_digests(costs)
    sizes, sign = np.abs(costs), np.where(costs.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    size = sizes.mean(axis=1, keepdims=True)
    scaled = sign * costs / np.where(size > 0, size, 1.0)
    rest = scaled - scaled.mean(axis=1, keepdims=True)
    spread = np.abs(rest).mean(axis=1, keepdims=True)
    nearly_constant = (spread < NEARLY_CONSTANT) & (spread > 1e-12)
    digests = row_digests(np.round(np.where(nearly_constant, rest / np.where(spread > 0, spread, 1.0), scaled), 4))
    towered = sizes.max(axis=1) > TOWERING * np.median(sizes, axis=1)
    digests[towered] = chained(about(scaled[towered]))
    return digests


def chained(words: np.ndarray) -> np.ndarray:
    """The words of each row mixed into one, by their values and positions."""
    digest = np.full(len(words), 0x9E3779B97F4A7C15, np.uint64)
    for column in words.T:
        digest = _mixed(digest ^ column)
    return digest


def _mixed(words: np.ndarray) -> np.ndarray:
    """Spreads every bit of a word over all its bits (the finaliser of SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))

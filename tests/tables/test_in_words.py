"""What decisions take, in words: names, and hours of the clock where the names of columns say so."""

from __future__ import annotations

import numpy as np
import pytest

import dffl
from dffl.sets import FeasibleSet
from dffl.tables.in_words import in_words


def said(
    names: list[str], taken: list[int] | dict[int, float], s: FeasibleSet | None = None, maximize: bool = False
) -> str | None:
    decision = np.zeros((1, len(names)))
    for place, value in taken.items() if isinstance(taken, dict) else ((place, 1.0) for place in taken):
        decision[0, place] = value
    return in_words(s or dffl.TopK(len(names), 2), names, maximize, decision)[0]


def numbered(prefix: str, count: int, first: int = 0, width: int = 1, suffix: str = "") -> list[str]:
    return [f"{prefix}{number:0{width}}{suffix}" for number in range(first, first + count)]


QUARTERS = [f"{minute // 60:02}:{minute % 60:02}" for minute in range(0, 1440, 15)]


@pytest.mark.parametrize(
    ("names", "taken", "words"),
    [
        (numbered("price_", 24), [2, 3, 4, 5, 13, 23], "buy 02:00-06:00, 13:00-14:00, 23:00-24:00"),
        (numbered("price_", 24, width=2, suffix="_eur"), [0, 1], "buy 00:00-02:00"),
        (numbered("price_", 24, first=1), [0, 23], "buy 00:00-01:00, 23:00-24:00"),  # hour 1 ends at one o'clock
        (numbered("price_", 96), [1, 2, 3], "buy 00:15-01:00"),
        (numbered("h", 24, width=2), [7, 8], "choose 07:00-09:00"),
        (numbered("hour_", 6, first=8), [0, 1], "choose hour_8, hour_9"),  # counted from 0, or from 1?
        (numbered("h", 6, first=0), [0, 1, 2], "choose 00:00-03:00"),
        (numbered("h", 6, first=19), [0, 1], "choose 18:00-20:00"),  # h24 is the hour that ends at midnight
        (numbered("", 24, suffix="h"), [4], "choose 04:00-05:00"),
        (QUARTERS, [5, 6, 7, 95], "choose 01:15-02:00, 23:45-24:00"),
        ([f"lmp {hour:02}:00-{hour + 1:02}:00" for hour in range(24)], [2, 3], "buy 02:00-04:00"),
        (["price_00:00", "price_06:00", "price_12:00", "price_18:00"], [1, 2], "buy 06:00-18:00"),
        (numbered("price_", 4), [1, 2], "buy price_1, price_2"),
        (numbered("price_", 8), [1, 2, 3, 6], "buy price_1 to price_3, price_6"),
        (numbered("item_", 24), [1, 2], "choose item_1, item_2"),  # 24 products are no hours
        (["wind", "sun", "gas"], [0, 2], "choose wind, gas"),
        (["h00", "h01", "x"], [0, 1], "choose h00, h01"),
        (numbered("price_", 24), [], "buy nothing"),
        (["10:00", "09:00"], [0], "choose 10:00"),
        (["00:00", "00:40", "01:00"], [0, 1], "choose 00:00, 00:40"),
        (["08:00", "09:00", "18:00"], [0, 1, 2], "choose 08:00-10:00, 18:00-19:00"),
    ],
)
def test_items_and_hours(names: list[str], taken: list[int], words: str) -> None:
    assert said(names, taken) == words


def test_what_is_sold_and_what_is_chosen() -> None:
    prices = numbered("price_", 24)
    assert said(prices, [2, 3], maximize=True) == "sell 02:00-04:00"
    assert said(prices, [2, 3], dffl.ConsecutiveHours(24, 2)) == "buy 02:00-04:00"
    knapsack = dffl.ZeroOneKnapsack(np.ones(24), 4.0)
    assert said(prices, [2, 3, 4], knapsack) == "choose price_2 to price_4"  # 24 products that have a price


def test_parts_of_items_and_amounts() -> None:
    prices = numbered("price_", 24)
    assert said(prices, {2: 1.0, 3: 1.0, 7: 0.5}) == "buy 02:00-04:00, 50% of 07:00-08:00"
    assert said(["a", "b", "c"], {1: 0.25}, dffl.FractionalKnapsack(np.ones(3), 1.0)) == "choose 25% of b"
    assert said(["a", "b", "c"], {1: 0.25}, dffl.Box(np.zeros(3), np.ones(3))) is None
    assert said(prices, {2: 3.0}, dffl.Box(np.zeros(24), 4 * np.ones(24))) is None
    assert said(prices, {2: -1.0}, dffl.Box(-np.ones(24), np.ones(24))) is None


def test_many_items_are_counted() -> None:
    names = [f"item {letter}" for letter in "abcdefghijklmnop"]
    assert said(names, list(range(16))) == f"choose {', '.join(names[:12])} and 4 more"

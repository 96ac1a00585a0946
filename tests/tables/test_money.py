"""Units of sums, and what a row is called."""

from __future__ import annotations

import pytest

from dffl.tables.money import each, is_per, plain_per, unit_notes, unit_of_sums


@pytest.mark.parametrize(
    ("unit", "sums"),
    [("EUR/MWh", "EUR"), ("EUR", "EUR"), ("$ / kWh", "$"), ("US$ per MWh", "US$"), ("1/s", "1/s"), ("/h", "/h"), (None, None)],
)
def test_the_unit_of_a_sum(unit: str | None, sums: str | None) -> None:
    assert unit_of_sums(unit) == sums


def test_a_unit_with_a_period_belongs_into_two_keys() -> None:
    assert unit_notes("f.toml", ["EUR/h", "EUR/h", "SEK"]) == [
        'f.toml: unit \'EUR/h\' has two parts; write unit = "EUR" and per = "hour"'
    ]


def test_what_a_row_is() -> None:
    assert [each(name) for name in (None, "day", "hour", "order", "unit")] == [
        "a row",
        "a day",
        "an hour",
        "an order",
        "a unit",
    ]
    assert [plain_per(name) for name in ("day", "an hour", "per week", "delivery day")] == [
        "day",
        "hour",
        "week",
        "delivery day",
    ]
    for wrong in ("", "1", "day/2", 7, "x" * 31, "\x1b[0m"):
        assert not is_per(wrong)

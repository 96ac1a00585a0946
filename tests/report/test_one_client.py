"""The page of one client has its own numbers, and not a word about the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dffl.report import ReportData, render
from dffl.report.data import Picture
from dffl.report.one_client import of_client
from dffl.report.summary import summary
from tests.report.made import made, made_over_time


def fleet(other: str, seed: int, over_time: bool) -> ReportData:
    """A fleet in which the first client has the same numbers whatever the others are called and have."""
    build = made_over_time if over_time else made
    mine, theirs = build(("north", "x")), build(("north", other, f"{other} 2"), seed=seed)
    rest = [one for one in theirs.clients if one.name != "north"]
    results = (
        *(one for one in mine.results if one.client == "north"),
        *(one for one in theirs.results if one.client != "north"),
    )
    notes = (
        f"client {other!r}: 3 gaps",
        "client 'north': 2 gaps",
        f"client 'north': like {other}",
        f"{1000 + seed} rows in all",
    )
    told = {"notes": notes, "title": f"north and {other}", "command": f"dffl fit {other}.toml", "answer": f"Use mix at {other}"}
    if over_time:
        assert mine.over_time is not None
        assert theirs.over_time is not None
        old, own = theirs.over_time, mine.over_time
        courses = (old.courses[0], own.courses[1], *old.courses[2:])
        told["over_time"] = replace(old, courses=courses, decided=(own.decided[0], *old.decided[1:]))
    pictures = (Picture(f"A map of {other}", "<svg/>"),)
    return replace(theirs, clients=(mine.clients[0], *rest), results=results, pictures=pictures, **told)  # type: ignore[arg-type]


@pytest.mark.parametrize("over_time", [True, False])
def test_a_page_does_not_depend_on_the_other_clients(over_time: bool) -> None:
    first, second = (of_client(fleet(name, seed, over_time), "north") for name, seed in (("Zanzibar", 3), ("Quito", 4)))
    assert first == second
    page = render(first)
    assert page == render(second)
    assert "Zanzibar" not in page
    assert "1003 rows" not in page
    assert "client &#39;north&#39;: 2 gaps" in page
    assert summary(first) == summary(second)


def test_its_title_and_its_verdict_are_its_own() -> None:
    one = of_client(made_over_time(), "north")
    assert summary(one)[0] == "north: the chosen rule saves 730 EUR a year against your forecast"
    assert summary(one)[3] == "Use mix. Ranges of 80 % held 81 % of the costs."
    assert [client.name for client in one.clients] == ["north"]
    assert ReportData.from_json(one.as_json()) == one


def test_its_days_are_its_own() -> None:
    data = made_over_time()
    assert data.over_time is not None
    course = data.over_time.courses[1]
    late = replace(course, main=(*(None,) * 20, *course.main[20:]), now=(*(None,) * 20, *course.now[20:]))
    over = replace(data.over_time, courses=(data.over_time.courses[0], late, data.over_time.courses[2]))
    clients = (replace(data.clients[0], n_test=40), data.clients[1])
    found = of_client(replace(data, over_time=over, clients=clients), "north").over_time
    assert found is not None
    assert (found.first, found.rows, found.days, len(found.ends)) == ("2024-04-21", 40, 39.0, 40)


def test_an_unknown_client_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^no client 'x' in this report \(it has 'north', 'south'\)$"):
        of_client(made_over_time(), "x")

"""The report of one client, from that of a fleet: only its own numbers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from dffl.report.data import Client, ReportData
from dffl.report.money import OverTime, RefitTime, Saving
from dffl.time.words import keep_or_use

fromisoformat = datetime.fromisoformat


def of_client(data: ReportData, name: str) -> ReportData:
    """The content that concerns one client. Left out is what describes all together: curves, differences, pictures, settings
    and most notes.
    """
    names = [client.name for client in data.clients]
    if name not in names:
        few = ", ".join(map(repr, names[:5]))
        raise ValueError(f"no client {name!r} in this report (it has {few}{', ...' if len(names) > 5 else ''})")
    others = [other for other in names if other != name]
    tested = next(client.n_test for client in data.clients if client.name == name)
    over = None if data.over_time is None else _over_time(data.over_time, name, tested)
    return replace(
        data,
        title=f"{name}: decisions together or alone",
        clients=tuple(_own(client, others) for client in data.clients if client.name == name),
        results=tuple(result for result in data.results if result.client == name),
        savings=_savings(data, name),
        over_time=over,
        answer=_answer(over, name) if over is not None and over.rules else "",
        notes=tuple(note for note in data.notes if repr(name) in note and not _named(note, others)),
        differences=None,
        curves=(),
        pictures=(),
        settings={},
        command="",
    )


def _named(text: str, others: list[str]) -> bool:
    return any(other in text for other in others)


def _own(client: Client, others: list[str]) -> Client:
    """A client without advice that names other clients."""
    advice = client.advice
    return replace(client, advice=None) if advice is not None and _named(advice.reason, others) else client


def _savings(data: ReportData, name: str) -> tuple[Saving, ...]:
    """The client's savings; alone, they are those of all together."""
    client_savings = [saving for saving in data.savings if saving.client == name]
    return (*(replace(saving, client="") for saving in client_savings), *client_savings)


def _over_time(over: OverTime, name: str, tested: int) -> OverTime:
    """The client's own test rows, without the dates of other clients."""
    course = over.course(name)
    places = [] if course is None else [place for place, value in enumerate(course.main) if value is not None]
    courses = () if course is None else (replace(course, main=_at(course.main, places), now=_at(course.now, places)),)
    ends = _at(over.ends, places)
    if len(places) < len(over.ends) and ends:
        days = None if over.days is None else (fromisoformat(ends[-1]) - fromisoformat(ends[0])) / timedelta(days=1)
        over = replace(over, first=ends[0], last=ends[-1], days=days)
    return replace(
        over,
        rows=tested,
        ends=ends,
        courses=courses,
        refits=tuple(RefitTime(entry.time, {name: entry.rules[name]}) for entry in over.refits if name in entry.rules),
        decided=tuple(entry for entry in over.decided if entry.client == name),
        rules={client: rule for client, rule in over.rules.items() if client == name},
        held={client: share for client, share in over.held.items() if client == name},
    )


def _at(values: tuple[Any, ...], places: list[int]) -> tuple[Any, ...]:
    return tuple(values[place] for place in places)


def _answer(over: OverTime, name: str) -> str:
    """What to do, and whether its ranges contained the stated share."""
    text, share = f"{keep_or_use(over.rules[name])}.", over.held.get(name)
    if share is None or over.share is None:
        return text
    return f"{text} Ranges of {100 * over.share:.0f} % held {100 * share:.0f} % of the costs."

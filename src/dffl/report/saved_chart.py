"""The saving of each client, as points with intervals: in money if all have one unit, else in % of today's loss."""

from __future__ import annotations

from typing import Any

from dffl.report.charts import COLOURS, LINE, charted, dotted, framed, safe
from dffl.report.data import ReportData
from dffl.report.money import Saving
from dffl.report.saved_words import amounts, factor, rate
from dffl.report.standing import GAINS, HARMED, UNCLEAR

SHAPES = {GAINS: "triangle-right", HARMED: "x", UNCLEAR: "circle-open"}
WORDS = {GAINS: "saves", HARMED: "loses more", UNCLEAR: "unclear"}


def saved_word(saving: Saving) -> str:
    """The word of a client's colour."""
    return UNCLEAR if not saving.clear else GAINS if saving.value > 0 else HARMED


def compared_with(data: ReportData) -> list[str]:
    """The references of the chart: today's rule, and each client's own model."""
    others = dict.fromkeys(name for name in (data.now, data.reference) if name is not None)
    return [
        name for name in others if any(saving.client and saving.against == name and saving.judged for saving in data.savings)
    ]


def saved_chart(data: ReportData) -> dict[str, Any] | None:
    """One trace for each reference; the first one is shown. A single client needs no chart."""
    others, names = compared_with(data), charted(data)
    if not others or len(names) < 2:
        return None
    first = next(saving for saving in data.savings if saving.client)
    money = bool(first.unit) and len({saving.unit for saving in data.savings if saving.client}) == 1
    by = {(saving.client, saving.against): saving for saving in data.savings}
    names = sorted(names, key=lambda name: -by[name, others[0]].value if (name, others[0]) in by else 0.0)
    traces = [
        _trace(names, [by.get((name, other)) for name in names], other, money, other == others[0], data.sample)
        for other in others
    ]
    what = rate(first, data.sample) if money else "in % of what is lost without it"
    figure = framed(traces, names, safe(f"saved, {what} (right is better)"))
    figure["layout"]["shapes"] = [
        {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper", "line": {"color": LINE}}
    ]
    return figure


def _trace(names: list[str], savings: list[Saving | None], other: str, money: bool, shown: bool, sample: str) -> dict[str, Any]:
    known = [entry if entry is not None and entry.judged else None for entry in savings]
    scales = [
        0.0 if entry is None else factor(entry) if money else 100 / entry.other if entry.other > 0 else 0.0 for entry in known
    ]
    points = [None if entry is None else scale * entry.value for entry, scale in zip(known, scales, strict=True)]
    words = [UNCLEAR if entry is None else saved_word(entry) for entry in known]
    texts = [
        [safe(name), "" if entry is None else _told(entry, word, sample)]
        for name, entry, word in zip(names, known, words, strict=True)
    ]
    half = [
        None if entry is None or entry.low is None or entry.high is None else scale * (entry.high - entry.low) / 2
        for entry, scale in zip(known, scales, strict=True)
    ]
    colours = [COLOURS[word] for word in words]
    return dotted(other, points, range(len(names)), texts, shown) | {
        "marker": {
            "size": 11,
            "color": colours,
            "symbol": [SHAPES[word] for word in words],
            "line": {"width": 1.5, "color": colours},
        },
        "error_x": {"type": "data", "array": half, "color": LINE, "thickness": 1.5, "width": 3},
        "hovertemplate": "<b>%{customdata[0]}</b>: %{customdata[1]}<extra></extra>",
    }


def _told(saving: Saving, word: str, sample: str) -> str:
    value, low, high = amounts(saving)
    return safe(f"{WORDS[word]}, {value} ({low} to {high}) {rate(saving, sample)}")

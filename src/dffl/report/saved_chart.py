"""What each client saves, as points with their intervals: in money where all have one unit, else in % of what is lost now."""

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
    """How a client stands, by the word of its colour."""
    return UNCLEAR if not saving.clear else GAINS if saving.value > 0 else HARMED


def compared_with(data: ReportData) -> list[str]:
    """What the chart compares with: what the user does now, and each client's own model."""
    others = dict.fromkeys(name for name in (data.now, data.reference) if name is not None)
    return [name for name in others if any(one.client and one.against == name and one.judged for one in data.savings)]


def saved_chart(data: ReportData) -> dict[str, Any] | None:
    """One trace for each rule that is compared with; the first one is shown. One client alone needs no chart."""
    others, names = compared_with(data), charted(data)
    if not others or len(names) < 2:
        return None
    first = next(one for one in data.savings if one.client)
    money = bool(first.unit) and len({one.unit for one in data.savings if one.client}) == 1
    by = {(one.client, one.against): one for one in data.savings}
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
    known = [one if one is not None and one.judged else None for one in savings]
    scales = [0.0 if one is None else factor(one) if money else 100 / one.other if one.other > 0 else 0.0 for one in known]
    points = [None if one is None else scale * one.value for one, scale in zip(known, scales, strict=True)]
    words = [UNCLEAR if one is None else saved_word(one) for one in known]
    texts = [
        [safe(name), "" if one is None else _told(one, word, sample)]
        for name, one, word in zip(names, known, words, strict=True)
    ]
    half = [
        None if one is None or one.low is None or one.high is None else scale * (one.high - one.low) / 2
        for one, scale in zip(known, scales, strict=True)
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

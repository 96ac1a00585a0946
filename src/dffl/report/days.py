"""Decisions by day: their losses between refits, and the decisions themselves, as tables and as charts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from dffl.report.charts import LABEL, LINE, plain_layout, safe
from dffl.report.data import ReportData
from dffl.report.money import Course, DecidedRows, OverTime
from dffl.report.numbers import amount
from dffl.report.saved_words import currency
from dffl.report.table import PageCell, PageColumn, PageRow, PageTable, number

MOST_SITES = 24
"""The number of clients that a page shows by day, after all together. Other clients have pages of their own."""
NEITHER, MISSED, EXTRA, RIGHT = range(4)
WORDS = ("not chosen, rightly", "missed: it would have been best", "chosen, but not best", "chosen, rightly")
COLOURS = ("rgba(138,143,152,0.12)", "#e0a03a", "#c0504d", "#1f77b4")
SHORTEST = 3
"""The fewest common letters at the start of item names that are removed."""


def shown_courses(data: ReportData) -> list[Course]:
    """All clients together, and each of the first ones."""
    over = data.over_time
    return [] if over is None or data.now is None else list(over.courses[: MOST_SITES + 1])


def unit_of(course: Course) -> str:
    """The unit of a course."""
    return currency(course.unit) or "% of the best possible result of one sample"


def course_chart(data: ReportData) -> dict[str, Any] | None:
    """The losses of decisions so far, under the main method and under today's rule; vertical lines are refits."""
    over, courses = data.over_time, shown_courses(data)
    if over is None or not courses or data.now is None:
        return None
    traces = [
        _line(data, over, course, method, values) | {"visible": course is courses[0]}
        for course in courses
        for method, values in ((data.now, course.now), (data.main, course.main))
    ]
    layout = plain_layout(380)
    axis: dict[str, Any] = {"automargin": True, "zeroline": False}
    layout |= {
        "xaxis": {**axis, "nticks": 8, "type": None if _dated(over) else "category"},
        "yaxis": {**axis, "rangemode": "tozero"},
    }
    units = {unit_of(course) for course in courses}
    layout["yaxis"]["title"] = {"text": safe(", ".join(["lost so far", *(units if len(units) == 1 else ())]))}
    layout |= {"showlegend": True, "legend": {"orientation": "h", "y": 1.04, "yanchor": "bottom", "x": 0}}
    dotted = {"color": LINE, "width": 1.5, "dash": "dot"}
    layout["shapes"] = [
        {"type": "line", "x0": refit.time, "x1": refit.time, "y0": 0, "y1": 1, "yref": "paper", "line": dotted}
        for refit in over.refits
    ]
    if over.refits:
        layout["annotations"] = [
            {"text": "refit", "x": refit.time, "y": 1, "yref": "paper", "yanchor": "top", "xanchor": "left", "showarrow": False}
            for refit in over.refits
        ]
    return {"data": traces, "layout": layout}


def _line(data: ReportData, over: OverTime, course: Course, method: str, values: Sequence[float | None]) -> dict[str, Any]:
    main, scale = method == data.main, 1.0 if course.unit else 100.0
    line = {"color": data.method(method).colour, "width": 3 if main else 2, "dash": "solid" if main else "dash"}
    return {
        "type": "scatter", "mode": "lines", "name": safe(method), "meta": course.client, "x": list(over.ends), "line": line,
        "y": [round(scale * total, 6) for total in accumulate(value or 0.0 for value in values)], "showlegend": True,
        "hovertemplate": f"{safe(method)}<br>%{{x}}: %{{y:,.4g}} {safe(unit_of(course))}<extra></extra>",
    }  # fmt: skip


def _dated(over: OverTime) -> bool:
    return over.days is not None


def course_tables(data: ReportData) -> list[PageTable]:
    """The losses from one refit to the next, for all together and each client; without refits, in ten parts."""
    over, tables = data.over_time, []
    if over is None or data.now is None:
        return []
    cuts = _cuts(over)
    for place, course in enumerate(shown_courses(data)):
        columns = [PageColumn("From", numeric=False), PageColumn("Until", numeric=False)]
        columns += [PageColumn("Rule", numeric=False)] if over.refits else []
        columns += [PageColumn(f"Lost, {name}", unit_of(course)) for name in (data.main, data.now)]
        columns += [PageColumn("Difference", unit_of(course))]
        rows, scale = [], 1.0 if course.unit else 100.0
        for first, last in zip(cuts, [*cuts[1:], len(over.ends)], strict=True):
            lost = [scale * sum(value or 0.0 for value in line[first:last]) for line in (course.main, course.now)]
            cells = [PageCell(over.ends[first]), PageCell(over.ends[last - 1])]
            cells += [PageCell(_rules_at(over, first, course.client))] if over.refits else []
            cells += [number(value, amount(value)) for value in lost]
            rows.append(PageRow((*cells, number(lost[1] - lost[0], amount(lost[1] - lost[0], True)))))
        who = course.client or "all clients"
        tables.append(PageTable(f"course-table-{place}", f"Lost from refit to refit: {who}", tuple(columns), tuple(rows)))
    return tables


def _cuts(over: OverTime) -> list[int]:
    """The stretches at which the rows of the table begin."""
    if not over.refits:
        return sorted({place * len(over.ends) // 10 for place in range(10)})
    times = [refit.time for refit in over.refits]
    return sorted({_place(over, when) for when in times})


def _place(over: OverTime, when: str) -> int:
    """The stretch of a moment."""
    if when in over.ends:
        return over.ends.index(when)
    return min(sum(end < when for end in over.ends), len(over.ends) - 1)


def _rules_at(over: OverTime, stretch: int, client: str) -> str:
    """The rules from the last refit up to a stretch."""
    latest = [refit for refit in over.refits if _place(over, refit.time) <= stretch][-1:]
    rules = [rule for refit in latest for name, rule in refit.rules.items() if client in ("", name)]
    return ", ".join(dict.fromkeys(rules))


def shown_decisions(data: ReportData) -> list[DecidedRows]:
    """The clients whose decisions are shown."""
    return [] if data.over_time is None else list(data.over_time.decided[:MOST_SITES])


def decision_chart(data: ReportData) -> dict[str, Any] | None:
    """The decisions of the last days, and the best ones: one map for each client."""
    traces: list[dict[str, Any]] = []
    shown = shown_decisions(data)
    for rows in shown:
        names = [safe(name, LABEL) for name in short_names(rows.items)]
        days, yes_no = list(range(len(rows.times))), is_yes_no(rows)
        trace: dict[str, Any] = {
            "type": "heatmap", "x": days, "y": list(range(len(names))), "meta": rows.client, "visible": rows is shown[0],
            "xgap": 1, "ygap": 1, "hoverongaps": False,
        }  # fmt: skip
        if yes_no:
            codes = [[int(2 * a + b) for a, b in zip(*pair, strict=True)] for pair in zip(rows.chosen, rows.best, strict=True)]
            steps = [[(place + end) / 4, colour] for place, colour in enumerate(COLOURS) for end in (0, 1)]
            trace |= {"z": _turned(codes), "zmin": -0.5, "zmax": 3.5, "colorscale": steps, "showscale": False}
            words = [[WORDS[code] for code in row] for row in codes]
        else:
            trace |= {"z": _turned(rows.chosen), "colorscale": "Viridis", "colorbar": {"thickness": 12, "outlinewidth": 0}}
            words = [
                [f"{a:g}, best {b:g}" for a, b in zip(*pair, strict=True)] for pair in zip(rows.chosen, rows.best, strict=True)
            ]
        texts = [
            [f"{when}, {name}: {word}" for name, word in zip(names, row, strict=True)]
            for when, row in zip(rows.times, words, strict=True)
        ]
        trace |= {"text": _turned(texts), "hovertemplate": "%{text}<extra></extra>"}
        trace["customdata"] = [list(rows.times), names]
        traces.append(trace)
    if not traces:
        return None
    most = max(len(rows.items) for rows in shown)
    layout = plain_layout(max(min(18 * most, 640), 160) + 90)
    layout["xaxis"] = {**ticks(shown[0].times, 8), "automargin": True, "showgrid": False, "zeroline": False}
    layout["yaxis"] = {
        **ticks(short_names(shown[0].items), 24), "automargin": True, "autorange": "reversed", "showgrid": False,
        "zeroline": False,
    }  # fmt: skip
    return {"data": traces, "layout": layout}


def ticks(texts: Sequence[str], most: int) -> dict[str, Any]:
    """Some of the texts along an axis of whole numbers."""
    every = max(-(-len(texts) // most), 1)
    return {"tickvals": list(range(0, len(texts), every)), "ticktext": [safe(text, LABEL) for text in texts[::every]]}


def _turned(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def is_yes_no(rows: DecidedRows) -> bool:
    """Whether each item is either chosen or not."""
    return all(value in (0.0, 1.0) for table in (rows.chosen, rows.best) for row in table for value in row)


def short_names(items: Sequence[str]) -> list[str]:
    """Names of items without their common start: 00 for price_00."""
    start = 0
    while len(items) > 1 and all(len(name) > start + 1 and name[start] == items[0][start] for name in items):
        start += 1
    while start and items[0][start - 1].isdigit():
        start -= 1  # numbers are not cut
    return [name[start:] for name in items] if start >= SHORTEST else list(items)


def decision_tables(data: ReportData) -> list[PageTable]:
    """The decisions of the last days, in words."""
    tables = []
    for place, decided in enumerate(shown_decisions(data)):
        columns = tuple(PageColumn(label, numeric=False) for label in ("When", "Decided", "Would have been best"))
        names = short_names(decided.items)
        rows = [
            PageRow((PageCell(when), PageCell(in_words(chosen, names)), PageCell(in_words(best, names))))
            for when, chosen, best in zip(decided.times[::-1], decided.chosen[::-1], decided.best[::-1], strict=True)
        ]
        tables.append(
            PageTable(f"decided-table-{place}", f"Decisions of the last rows: {decided.client}", columns, tuple(rows))
        )
    return tables


def in_words(row: Sequence[float], names: Sequence[str]) -> str:
    """The chosen items: neighbours as a range, and amounts if they are not 1."""
    lines: list[str] = []
    place = 0
    while place < len(row):
        end = place
        while end + 1 < len(row) and row[end + 1] == row[place]:
            end += 1
        if row[place]:
            name = names[place] if end == place else f"{names[place]}\u2013{names[end]}"
            lines.append(name if row[place] == 1 else f"{name}: {row[place]:g}")
        place = end + 1
    return ", ".join(lines) or "nothing"

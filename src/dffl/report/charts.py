"""The charts of a page, as Plotly figures. A page's own style colours text and lines, so that dark mode and print follow.

Clients stand at whole numbers with their names as labels: names that look like numbers, or are equal when they are shortened,
stay apart. Plotly reads some HTML in texts, so that every name is escaped before it gets there.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from dffl.report.data import Change, ReportData, Result
from dffl.report.numbers import amount, ends, percent, shortened
from dffl.report.standing import GAINS, HARMED, MARKS, UNCLEAR, UNJUDGED, WORSE, standing_of, standings
from dffl.report.symbols import SYMBOLS

MOST = 80
"""The most clients in a chart. Tables have all of them."""
LABEL, SHORT = 20, 13
"""The most letters of a client's name next to a chart, and on a phone."""
COLOURS = {GAINS: "#1a8754", HARMED: "#d1453b", WORSE: "#c77700", UNCLEAR: "#8a8f98", UNJUDGED: "#8a8f98"}
SHAPES = {GAINS: "triangle-left", HARMED: "x", WORSE: "triangle-right", UNCLEAR: "circle-open", UNJUDGED: "circle-open"}
OUTLINE = "#7b7f87"
"""The line around every marker, so that pale colours are visible on white, and dark ones on black."""
LINE = "#8a8f98"
HOVER = "#20242c"
DASHES = ("solid", "dash", "dot", "dashdot")
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif'


def safe(text: str, most: int | None = None) -> str:
    """A text that Plotly shows unchanged."""
    return escape(text if most is None else shortened(text, most), quote=False)


def charted(data: ReportData) -> list[str]:
    """The clients in charts, from the largest gain to the largest loss. If there are too many, the middle is left out."""
    changes = {standing.client.name: standing.change for standing in standings(data)}
    worth = {name: 0.0 if change is None or change.value is None else change.value for name, change in changes.items()}
    ordered = sorted(worth, key=lambda name: worth[name])
    if len(ordered) > MOST:
        ordered = ordered[: MOST // 2] + ordered[-(MOST // 2) :]
    return ordered


def changes(data: ReportData) -> dict[str, Any] | None:
    """Each client's change against its own model, with its interval: one trace per method and reference, one of them shown.

    None if nothing was judged: a change without an interval may be noise.
    """
    if data.reference is None or not any(change.judged for result in data.results for change in result.changes):
        return None
    names, traces = charted(data), []
    for method in data.methods:
        for reference in data.references:
            if method.name != reference:
                shown = (method.name, reference) == (data.main, data.reference)
                by_client = [data.change(name, method.name, reference) for name in names]
                traces.append(_changed(names, by_client, f"{method.name}|{reference}", shown))
    figure = framed(traces, names, "change in percentage points (left is better)")
    figure["layout"]["shapes"] = [
        {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper", "line": {"color": LINE}}
    ]
    sides = (("\u2190 better than its own model", 0.0, "left"), ("worse \u2192", 1.0, "right"))
    figure["layout"]["annotations"] = [
        {
            "text": text,
            "x": x,
            "xanchor": side,
            "y": 1,
            "yanchor": "bottom",
            "xref": "paper",
            "yref": "paper",
            "showarrow": False,
        }
        for text, x, side in sides
    ]
    return figure


def _changed(names: list[str], by_client: Sequence[Change | None], key: str, shown: bool) -> dict[str, Any]:
    words = [standing_of(change) for change in by_client]
    points = [None if change is None or change.value is None else 100 * change.value for change in by_client]
    texts = [
        [safe(name), f"{MARKS[word]} {word}", "" if change is None else percent(change.value, sign=True), _interval(change)]
        for name, word, change in zip(names, words, by_client, strict=True)
    ]
    return dotted(key, points, range(len(names)), texts, shown) | {
        "marker": {
            "size": 11,
            "color": [COLOURS[word] for word in words],
            "symbol": [SHAPES[word] for word in words],
            "line": {"width": 1.5, "color": [COLOURS[word] for word in words]},
        },
        "error_x": _bars([(change.value, change.low, change.high) if change else (None, None, None) for change in by_client]),
        "hovertemplate": "<b>%{customdata[0]}</b>: %{customdata[1]}<br>%{customdata[2]} points%{customdata[3]}<extra></extra>",
    }


def _interval(value: Change | Result | None) -> str:
    interval = "" if value is None else ends(value.low, value.high, sign=isinstance(value, Change))
    return f", interval {interval}" if interval else ", no interval"


def regrets(data: ReportData) -> dict[str, Any]:
    """Each client's regret under each method, with its interval; the methods that matter most are shown first."""
    names, shown = charted(data), set(first_shown(data))
    traces = []
    for method in data.ordered:
        results = [data.result(name, method.name) for name in names]
        points = [None if result is None or result.regret is None else 100 * result.regret for result in results]
        texts = [
            [safe(name), "" if result is None else percent(result.regret), _interval(result), _lost(data, result)]
            for name, result in zip(names, results, strict=True)
        ]
        trace = dotted(method.name, points, range(len(names)), texts, method.name in shown)
        trace["marker"] = {"size": 9, "color": method.colour, "symbol": symbol_of(data, method.name)}
        trace["marker"]["line"] = {"width": 1, "color": OUTLINE}
        trace["error_x"] = _bars([(known.regret, known.low, known.high) if known else (None, None, None) for known in results])
        head = f"<b>%{{customdata[0]}}</b>, {safe(method.name)}"
        trace["hovertemplate"] = f"{head}<br>%{{customdata[1]}} % lost%{{customdata[2]}}%{{customdata[3]}}<extra></extra>"
        traces.append(trace)
    return framed(traces, names, "lost, in % of the best possible (left is better)", 30)


def symbol_of(data: ReportData, method: str) -> str:
    """The marker of a method, different for each method of a report, so that colours are not needed."""
    names = list(SYMBOLS)
    return names[[other.name for other in data.ordered].index(method) % len(names)]


def first_shown(data: ReportData) -> list[str]:
    """The main method, its references, and the naive rule that is best on average."""
    means: dict[str, list[float]] = {}
    for result in data.results:
        if data.method(result.method).kind == "naive" and result.regret is not None:
            means.setdefault(result.method, []).append(result.regret)
    best = min(means, key=lambda name: sum(means[name]) / len(means[name]), default=None)
    return [data.main, *data.references, *([best] if best else [])]


def _lost(data: ReportData, result: Result | None) -> str:
    unit = next((client.unit for client in data.clients if result is not None and client.name == result.client), "")
    if result is None or result.lost is None or not unit:
        return ""
    return f"<br>{amount(result.lost)} {safe(unit)} a {safe(data.sample)}"


def kinds_of(data: ReportData) -> list[str]:
    """The kinds of choices of trained methods: weights and epochs. Choices of naive rules are only in the table."""
    trained = [result for result in data.results if data.method(result.method).kind != "naive"]
    return list(dict.fromkeys(name for result in trained for name in result.chosen))


def choices(data: ReportData) -> dict[str, Any] | None:
    """What methods chose for each client, such as the weight of the shared model: one panel for each kind of choice."""
    kinds = kinds_of(data)
    if not kinds:
        return None
    names = charted(data)
    traces: list[dict[str, Any]] = []
    for panel, kind in enumerate(kinds, 1):
        for method in (entry for entry in data.ordered if entry.kind != "naive"):
            results = [data.result(name, method.name) for name in names]
            values = [None if entry is None else entry.chosen.get(kind) for entry in results]
            if all(value is None for value in values):
                continue
            texts = [[safe(name), amount(value)] for name, value in zip(names, values, strict=True)]
            trace = dotted(method.name, values, range(len(names)), texts, True)
            trace["marker"] = {"size": 9, "color": method.colour, "symbol": symbol_of(data, method.name)}
            trace["marker"]["line"] = {"width": 1, "color": OUTLINE}
            trace |= {"xaxis": "x" if panel == 1 else f"x{panel}", "legendgroup": method.name, "cliponaxis": False}
            trace["showlegend"] = method.name not in {entry["name"] for entry in traces}
            head = f"<b>%{{customdata[0]}}</b>, {safe(method.name)}"
            trace["hovertemplate"] = f"{head}<br>{safe(kind)} %{{customdata[1]}}<extra></extra>"
            traces.append(trace)
    figure = framed(traces, names, "")
    layout, gap = figure["layout"], 0.06
    width = (1 - gap * (len(kinds) - 1)) / len(kinds)
    for panel, kind in enumerate(kinds):
        axis = {
            **layout["xaxis"],
            "title": {"text": safe(kind)},
            "zeroline": False,
            "rangemode": "tozero",
            "anchor": "y",
            "nticks": 4,
        }
        axis["domain"] = [panel * (width + gap), panel * (width + gap) + width]
        layout["xaxis" if panel == 0 else f"xaxis{panel + 1}"] = axis
    layout |= {"showlegend": True, "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}}
    return figure


def differences(data: ReportData) -> dict[str, Any] | None:
    """How different each pair of clients is, as a map of colours with the numbers on hover."""
    table = data.differences
    if table is None:
        return None
    labels, places = [safe(name, LABEL) for name in table.names], list(range(len(table.names)))
    texts = [[f"<b>{safe(first)}</b> and <b>{safe(second)}</b>" for second in table.names] for first in table.names]
    trace = {
        "type": "heatmap", "x": places, "y": places, "z": [list(row) for row in table.values], "customdata": texts,
        "colorscale": "Viridis", "hoverongaps": False, "colorbar": {"thickness": 12, "outlinewidth": 0},
        "hovertemplate": "%{customdata}<br>%{z:.3g}<extra></extra>",
    }  # fmt: skip
    axis = {"tickvals": places, "ticktext": labels, "automargin": True, "showgrid": False, "zeroline": False, "tickangle": -60}
    layout = plain_layout(max(360, 18 * len(places) + 160), table.names)
    layout |= {"xaxis": axis, "yaxis": {**axis, "autorange": "reversed", "tickangle": 0}}
    return {"data": [trace], "layout": layout}


def curves(data: ReportData) -> dict[str, Any] | None:
    """The loss of each training by round, with the range that contains 80 % of the clients."""
    if not data.curves:
        return None
    colours = {method.name: method.colour for method in data.methods}
    traces: list[dict[str, Any]] = []
    for curve in data.curves:
        # Trainings of one method differ in line style and marker.
        number = sum(trace["meta"] == curve.method for trace in traces) // 2
        colour, rounds = colours.get(curve.method, "#777777"), [1 + value for value in curve.rounds]
        band = {
            "type": "scatter", "mode": "lines", "x": rounds + rounds[::-1], "y": [*curve.high, *curve.low[::-1]],
            "fill": "toself", "fillcolor": colour, "line": {"width": 0}, "opacity": 0.2, "hoverinfo": "skip",
            "showlegend": False,
        }  # fmt: skip
        line = {
            "type": "scatter", "mode": "lines+markers", "x": rounds, "y": list(curve.mean), "name": safe(curve.job),
            "line": {"color": colour, "width": 2, "dash": DASHES[number % len(DASHES)]}, "showlegend": True,
            "marker": {"size": 7, "symbol": list(SYMBOLS)[number % len(SYMBOLS)]},
            "hovertemplate": f"{safe(curve.job)}<br>round %{{x}}: loss %{{y:.4g}}<extra></extra>",
        }  # fmt: skip
        traces += [trace | {"meta": curve.method, "visible": curve.method == data.main} for trace in (band, line)]
    if not any(trace["visible"] for trace in traces):
        for trace in traces:
            trace["visible"] = trace["meta"] == traces[0]["meta"]
    layout = plain_layout(400)
    axis = {"automargin": True, "zeroline": False}
    layout |= {"xaxis": {**axis, "title": {"text": "round"}}, "yaxis": {**axis, "title": {"text": "loss, in scaled units"}}}
    layout |= {"showlegend": True, "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}}
    return {"data": traces, "layout": layout}


def dotted(name: str, x: Sequence[float | None], y: Sequence[float], texts: list[list[str]], shown: bool) -> dict[str, Any]:
    """The points of one trace."""
    return {
        "type": "scatter", "mode": "markers", "name": safe(name), "meta": name, "x": list(x), "y": list(y), "customdata": texts,
        "visible": shown,
    }  # fmt: skip


def _bars(values: Sequence[tuple[float | None, float | None, float | None]]) -> dict[str, Any]:
    """Error bars, in percent; none for a client without an interval."""
    below, above = [], []
    for value, low, high in values:
        known = value is not None and low is not None and high is not None
        below.append(100 * (value - low) if known else None)  # type: ignore[operator]
        above.append(100 * (high - value) if known else None)  # type: ignore[operator]
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": LINE,
        "thickness": 1.5,
        "width": 3,
    }


def plain_layout(height: int, names: Sequence[str] = ()) -> dict[str, Any]:
    """A layout without axes; the page sets its colours."""
    clear = "rgba(0,0,0,0)"
    return {
        "height": height, "margin": {"l": 10, "r": 14, "t": 24, "b": 50}, "paper_bgcolor": clear, "plot_bgcolor": clear,
        "meta": {"short": [safe(name, SHORT) for name in names]}, "showlegend": False, "hovermode": "closest",
        "dragmode": False, "font": {"size": 12, "family": FONT},
        "hoverlabel": {"bgcolor": HOVER, "bordercolor": HOVER, "align": "left", "font": {"color": "#ffffff", "size": 13}},
    }  # fmt: skip


def framed(traces: list[dict[str, Any]], names: list[str], title: str, row: int = 24) -> dict[str, Any]:
    """Traces with one line for each client."""
    layout = plain_layout(row * len(names) + 110, names)
    layout["xaxis"] = {"title": {"text": title}, "zeroline": False, "automargin": True}
    layout["yaxis"] = {
        "tickvals": list(range(len(names))), "ticktext": [safe(name, LABEL) for name in names], "automargin": True,
        "range": [len(names) - 0.4, -0.6], "zeroline": False, "showgrid": True,
    }  # fmt: skip
    return {"data": traces, "layout": layout}

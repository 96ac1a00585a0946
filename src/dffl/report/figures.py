"""All charts that the data allow, by their place on the page."""

from __future__ import annotations

from typing import Any

from dffl.report.charts import changes, choices, curves, differences, regrets
from dffl.report.data import ReportData
from dffl.report.days import course_chart, decision_chart
from dffl.report.saved_chart import saved_chart

CHARTS = {
    "saved": saved_chart, "course": course_chart, "decided": decision_chart, "changes": changes, "regrets": regrets,
    "choices": choices, "differences": differences, "curves": curves,
}  # fmt: skip


def all_charts(data: ReportData) -> dict[str, dict[str, Any]]:
    """The charts, checked by Plotly: an unknown field is an error."""
    from plotly.graph_objects import Figure

    charts = {name: draw(data) for name, draw in CHARTS.items()}
    blank: dict[str, Any] = {"template": {}}  # the usual style takes 7 kB in every figure, and the page has its own
    return {
        name: Figure({"data": chart["data"], "layout": chart["layout"] | blank}).to_plotly_json()
        for name, chart in charts.items()
        if chart is not None
    }

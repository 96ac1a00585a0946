"""Renders a report: one HTML file that contains styles, charts and the library that draws them."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from dffl.files import write_text
from dffl.report import numbers
from dffl.report.charts import charted, first_shown, symbol_of
from dffl.report.data import ReportData
from dffl.report.days import COLOURS, WORDS, course_tables, decision_tables, is_yes_no, shown_courses, shown_decisions
from dffl.report.figures import all_charts
from dffl.report.repeat import settings_in_words
from dffl.report.saved_chart import compared_with
from dffl.report.saved_words import basis, headline, named, tiles
from dffl.report.standing import MARKS, UNJUDGED, standings
from dffl.report.symbols import SYMBOLS
from dffl.report.tables import (
    advice_table,
    change_table,
    choice_tables,
    client_table,
    curve_table,
    glance_table,
    method_tables,
    pair_table,
    savings_table,
    unlike_table,
)
from dffl.report.target import require_packages, require_page
from dffl.report.verdict import verdict
from dffl.training import Settings

FOLDER = Path(__file__).parent / "template"


def write(data: ReportData, path: str | PathLike[str]) -> None:
    """Write the page, completely or not at all. It loads nothing from the network when it is opened."""
    require_page(Path(path), "a report")
    write_text(Path(path), render(data))


def render(data: ReportData) -> str:
    """The page as a text."""
    require_packages()
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {name: getattr(numbers, name) for name in ("counted",)}
    environment.filters["encoded"] = lambda svg: base64.b64encode(svg.encode()).decode("ascii")
    style, script = (Markup((FOLDER / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    values = _context(data) | {"style": style, "script": script, "library": _library()}
    return environment.get_template("page.html").render(values)


def _context(data: ReportData) -> dict[str, Any]:
    """The further inputs of the template."""
    rows, charts = standings(data), all_charts(data)
    words = [row.word for row in rows]
    usual = settings_in_words(Settings().at(1))
    trained = {method.name for method in data.methods if method.kind != "naive"}
    return {
        "data": data,
        "headline": headline(data),
        "verdict": verdict(data),
        "tiles": tiles(data),
        "basis": basis(data),
        "judged": any(word != UNJUDGED for word in words),
        "counts": {word: words.count(word) for word in MARKS if word in words},
        "marks": MARKS,
        "methods": [method.name for method in data.ordered],
        "charts": charts,
        "left_out": len(data.clients) - len(charted(data)),
        "shown": first_shown(data),
        "sign_of": lambda name: SYMBOLS[symbol_of(data, name)],
        "saved_against": {name: named(name) for name in compared_with(data)},
        "yes_no": all(map(is_yes_no, shown_decisions(data))),
        "colours": list(zip(WORDS, COLOURS, strict=True)),
        "tables": _tables(data),
        "only_tuned": {result.method for result in data.results if result.chosen and result.method in trained}
        <= {"local-tuned"},
        "changed": {name for name, value in data.settings.items() if name in usual and usual[name] != value},
    }


def _tables(data: ReportData) -> dict[str, Any]:
    """The tables by their places; several tables of one place are a list."""
    return {
        "savings": savings_table(data),
        "courses": list(zip([entry.client for entry in shown_courses(data)], course_tables(data), strict=True)),
        "decided": list(zip([entry.client for entry in shown_decisions(data)], decision_tables(data), strict=True)),
        "glance": glance_table(data),
        "clients": client_table(data),
        "changes": change_table(data),
        "methods": method_tables(data),
        "advice": advice_table(data),
        "choices": choice_tables(data),
        "unlike": unlike_table(data),
        "pairs": pair_table(data),
        "curves": curve_table(data),
    }


@cache
def _library() -> str:
    """The script of Plotly, compressed to a third of its size; browsers since 2023 can unpack it."""
    from plotly.offline import get_plotlyjs

    packed = gzip.compress(get_plotlyjs().encode(), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode("ascii")

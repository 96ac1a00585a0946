"""Renders a report: one HTML file with everything in it, styles, charts and the library that draws them."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from dffl.files import write_text
from dffl.report import numbers
from dffl.report.charts import all_charts, charted, first_shown, kinds_of, symbol_of
from dffl.report.data import ReportData
from dffl.report.repeat import settings_in_words
from dffl.report.standing import MARKS, standing_of, standings
from dffl.report.symbols import SYMBOLS
from dffl.report.target import require_packages, require_page
from dffl.report.verdict import verdict
from dffl.training import Settings

FOLDER = Path(__file__).parent / "template"


def write(data: ReportData, path: str | PathLike[str]) -> None:
    """Write the page, complete or not at all. It asks for nothing from the network when it is opened."""
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
    environment.filters |= {name: getattr(numbers, name) for name in ("percent", "amount", "ends", "counted")}
    environment.filters["encoded"] = lambda svg: base64.b64encode(svg.encode()).decode("ascii")
    style, script = (Markup((FOLDER / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    values = _context(data) | {"style": style, "script": script, "library": _library()}
    return environment.get_template("page.html").render(values)


def _context(data: ReportData) -> dict[str, Any]:
    """What the template needs in addition to the data."""
    rows, charts = standings(data), all_charts(data)
    words = [row.word for row in rows]
    usual = settings_in_words(Settings().at(1))
    return {
        "data": data,
        "verdict": verdict(data),
        "standings": rows,
        "counts": {word: words.count(word) for word in MARKS if word in words},
        "marks": MARKS,
        "standing_of": standing_of,
        "methods": [method.name for method in data.ordered],
        "glance": glance(data),
        "charts": charts,
        "left_out": len(data.clients) - len(charted(data)),
        "shown": first_shown(data),
        "sign_of": lambda name: SYMBOLS[symbol_of(data, name)],
        "kinds": kinds_of(data),
        "pairs": _pairs(data),
        "unlike": unlike(data),
        "changed": {name for name, value in data.settings.items() if name in usual and usual[name] != value},
    }


def glance(data: ReportData) -> list[dict[str, Any]]:
    """One row per method: its regrets over clients, and how many of them it helps and harms, against the fairest reference."""
    rows = []
    for method in data.methods:
        results = [result for result in data.results if result.method == method.name]
        known = sorted(result.regret for result in results if result.regret is not None)
        reference = data.references[0] if data.references else None
        words = [standing_of(data.change(result.client, method.name, reference)) for result in results] if reference else []
        middle = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2 if known else None
        row = {"method": method, "mean": sum(known) / len(known) if known else None, "median": middle}
        row |= {"worst": known[-1] if known else None, "reference": data.references[:1] == (method.name,)}
        rows.append(row | {word: words.count(word) for word in MARKS})
    return sorted(rows, key=lambda row: (row["mean"] is None, row["mean"]))


def _pairs(data: ReportData) -> list[tuple[str, str]]:
    """The methods and what they chose: the columns of the table of choices."""
    return list(dict.fromkeys((method.name, kind) for method in data.ordered for kind in _chosen_by(data, method.name)))


def _chosen_by(data: ReportData, method: str) -> list[str]:
    return list(dict.fromkeys(kind for result in data.results if result.method == method for kind in result.chosen))


def unlike(data: ReportData) -> list[tuple[str, float, str, str]]:
    """For each client, its mean difference from the others, and which of them is most and least like it."""
    differences, rows = data.differences, []
    for name, values in zip(differences.names, differences.values, strict=True) if differences is not None else ():
        known = sorted((value, other) for value, other in zip(values, differences.names, strict=True) if value is not None)  # type: ignore[union-attr]
        if known:
            rows.append((name, sum(value for value, _ in known) / len(known), known[0][1], known[-1][1]))
    return sorted(rows, key=lambda row: -row[1])


@cache
def _library() -> str:
    """Plotly's own script, compressed: a third of its size, and browsers since 2023 can unpack it."""
    from plotly.offline import get_plotlyjs

    packed = gzip.compress(get_plotlyjs().encode(), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode("ascii")

"""The page says what the data say, in one file that asks for nothing, whatever clients are called."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dffl.report import ReportData, from_comparison, render, require_page, write
from dffl.report.numbers import amount, listed, percent, shortened
from dffl.report.repeat import settings_in_words
from dffl.report.styles import luminance, on_both
from dffl.training import Settings
from dffl.training.methods import METHODS
from tests.report.made import HOSTILE, made

MEGABYTE = 1_000_000


class Page(HTMLParser):
    """The elements of a page: their attributes, the texts of cells, and the texts of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: dict[str, list[list[dict[str, str]]]] = {}
        self.scripts: dict[str, str] = {}
        self._table, self._cell, self._script = "", False, ""
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append((tag, found))
        if tag == "table":
            self._table = found.get("id") or "plain"
            self.rows.setdefault(self._table, [])
        if tag == "tr":
            self.rows[self._table].append([])
        if tag in ("td", "th"):
            self.rows[self._table][-1].append({"value": found.get("data-v") or "", "text": ""})
            self._cell = True
        if tag == "script":
            self._script = found.get("id") or "own"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cell = False
        if tag == "script":
            self._script = ""

    def handle_data(self, data: str) -> None:
        if self._script:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data
            return
        self.text += data
        if self._cell:
            self.rows[self._table][-1][-1]["text"] += data


def page_of(data: ReportData) -> Page:
    return Page(render(data))


def test_the_numbers_of_the_table_are_those_of_the_data() -> None:
    data = made()
    page = page_of(data)
    head, *rows = page.rows["client-table"]
    columns = [cell["text"] for cell in head]
    by_method, *regrets = page.rows["methods-table-1"]
    methods = [cell["text"].removesuffix("%") for cell in by_method]
    assert [row[0]["text"] for row in rows] == [row[0]["text"] for row in regrets] == [client.name for client in data.clients]
    for row, losses in zip(rows, regrets, strict=True):
        name = row[0]["text"]
        for method in data.methods:
            cell, found = losses[methods.index(method.name)], data.result(name, method.name)
            assert found is not None
            assert float(cell["value"]) == found.regret
            assert percent(found.regret) in cell["text"]
            assert f"{percent(found.low)} to {percent(found.high)}" in cell["text"]
        change = data.change(name, "crossfit", "local-tuned")
        assert change is not None
        assert float(row[columns.index("Changepoints")]["value"]) == change.value
    assert [row[1]["text"].split()[-1] for row in rows] == ["gains", "harmed", "unclear", "unclear"]
    saved = columns.index("Savedper sample")
    own, main = (data.result("north", name) for name in ("local-tuned", "crossfit"))
    assert own is not None and main is not None and own.lost is not None and main.lost is not None  # noqa: PT018
    assert float(rows[0][saved]["value"]) == pytest.approx(own.lost - main.lost)


def test_the_charts_hold_the_numbers_of_the_data() -> None:
    data = made()
    charts = json.loads(page_of(data).scripts["charts"])
    assert set(charts) == {"changes", "regrets", "choices", "differences", "curves"}
    names = charts["regrets"]["layout"]["yaxis"]["ticktext"]
    for trace in charts["regrets"]["data"]:
        for place, name in enumerate(names):
            found = data.result(name, trace["meta"])
            assert found is not None and found.regret is not None  # noqa: PT018
            assert trace["x"][place] == pytest.approx(100 * found.regret)
            assert trace["error_x"]["array"][place] == pytest.approx(100 * (found.high or 0) - 100 * found.regret)
    [shown] = [trace for trace in charts["changes"]["data"] if trace["visible"]]
    assert shown["meta"] == "crossfit|local-tuned"
    assert dict(zip(names, shown["x"], strict=True)) == pytest.approx({"north": -1, "south": 2, "east": 0, "west": 0})
    assert charts["differences"]["data"][0]["z"][1] == [1, None, 3, 4]


def test_methods_at_a_glance_are_means_over_clients() -> None:
    data = made()
    for row in page_of(data).rows["glance"][1:]:
        regrets = [one.regret or 0.0 for one in data.results if one.method == row[0]["text"]]
        assert float(row[2]["value"]) == pytest.approx(sum(regrets) / len(regrets))
        assert float(row[4]["value"]) == max(regrets)
        if row[0]["text"] != "local-tuned":
            assert [cell["value"] for cell in row[5:]] == ["1", "2", "0", "1"]


@pytest.mark.parametrize("judged", [True, False])
def test_names_are_text_and_nothing_else(judged: bool) -> None:
    data = replace(made(HOSTILE, judged=judged), title=HOSTILE[0], command=HOSTILE[3], notes=HOSTILE)
    page, plain = page_of(data), page_of(made(judged=judged))
    assert [row[0]["text"] for row in page.rows["client-table"][1:]] == list(HOSTILE)
    kinds = {tag for tag, _ in page.elements}
    assert kinds == {tag for tag, _ in plain.elements}  # no element that another federation would not have
    assert sum(tag == "script" for tag, _ in page.elements) == 3
    assert not [name for _, found in page.elements for name in found if name.startswith("on")]
    assert "49" not in page.rows["client-table"][5][0]["text"]  # nothing is evaluated


def test_plotly_reads_no_tags_in_names() -> None:
    charts = json.loads(page_of(made(HOSTILE)).scripts["charts"])

    def texts(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [
                text for key, one in value.items() if key not in ("hovertemplate", "meta", "customdata") for text in texts(one)
            ]
        if isinstance(value, list):
            return [text for one in value for text in texts(one)]
        return [value] if isinstance(value, str) else []

    assert not [text for text in texts(charts) if "<" in text]
    names = [row[0] for row in charts["changes"]["data"][0]["customdata"]]
    assert not [name for name in names if "<" in name]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in names


def test_nothing_points_outside_the_file() -> None:
    for tag, found in page_of(made(HOSTILE)).elements:
        for name in ("src", "href", "action", "poster", "data", "srcset"):
            if target := found.get(name):
                assert target.startswith(("#", "data:")), (tag, name, target)
    folder = Path(render.__code__.co_filename).parent / "template"
    for file in folder.iterdir():
        assert not re.findall(r"https?://|@import|url\(", file.read_text()), file.name


def test_a_thousand_clients_stay_under_six_megabytes(tmp_path: Path) -> None:
    data = made(tuple(f"site number {place:04d}" for place in range(1000)))
    write(replace(data, differences=None), tmp_path / "page.html")
    assert 1 * MEGABYTE < (tmp_path / "page.html").stat().st_size < 6 * MEGABYTE
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
    assert "Shown: the clients with the largest gains and losses; 920 in between are in the table." in (
        tmp_path / "page.html"
    ).read_text(encoding="utf-8")


def test_a_page_of_little_leaves_its_parts_out() -> None:
    data = made(methods=("local", "fedavg"), judged=False, unit="")
    few = replace(data, main="fedavg", references=("local",), differences=None, curves=(), settings={}, command="", notes=())
    few = replace(few, clients=tuple(replace(one, advice=None, decides="", sense="") for one in few.clients))
    page = page_of(few)
    assert set(json.loads(page.scripts["charts"])) == {"regrets"}  # a change that was not judged may be noise
    assert set(page.rows) == {"glance", "client-table", "methods-table-1", "plain"}
    assert "not judged" in page.text


def test_what_was_chosen_is_explained_by_what_was_chosen() -> None:
    data = made(("north", "south"), methods=("crossfit", "interp-spo", "local-tuned", "local"))
    assert "how much of the shared model" in render(data)
    alone = [replace(one, chosen={"epochs": 10.0} if one.method == "local-tuned" else {}) for one in data.results]
    page = render(replace(data, results=tuple(alone)))
    assert "how much of the shared model" not in page
    assert "how long its own model is trained" in page


def test_the_period_of_a_file_with_dates_is_shown_as_dates() -> None:
    settings = Settings(split="time", period=(1706313600.0, 1725148800.0))
    assert settings_in_words(settings, True)["period"] == "2024-01-27, 2024-09-01"
    assert settings_in_words(settings)["period"] == "1706313600.0, 1725148800.0"


def test_every_table_and_control_is_labelled() -> None:
    page = page_of(made())
    text = render(made())
    assert text.count("<table") == text.count("<caption")
    assert all(found.get("scope") for tag, found in page.elements if tag == "th")
    assert [found.get("lang") for tag, found in page.elements if tag == "html"] == ["en"]
    for control in re.findall(r"<(?:select|input)[^>]*>", text):
        assert "<label" in text[: text.index(control)].rpartition("</label>")[2], control


@pytest.mark.parametrize(
    ("path", "line"),
    [("none/page.html", "a folder that exists"), ("page.pdf", "must end in .html or .htm"), (".", "a folder that exists")],
)
def test_a_page_that_cannot_be_written_is_refused_before_any_work(path: str, line: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=line):
        require_page(tmp_path / path)


def test_missing_packages_are_named_with_the_command_to_type(tmp_path: Path) -> None:
    code = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name in ('plotly', 'jinja2') else real(name, *a)\n"
        "import dffl, dffl.report, dffl.demo\n"
        "print([m for m in ('plotly', 'jinja2') if m in sys.modules])\n"
        "from pathlib import Path\n"
        "try: dffl.report.require_page(Path('page.html'))\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["[]", "the report needs jinja2 and plotly: pip install 'dffl[report]'"]


def test_colours_of_methods_show_on_both_papers() -> None:
    for paper in ("#ffffff", "#171a20"):
        back = luminance([int(paper[k : k + 2], 16) / 255 for k in (1, 3, 5)])
        for method in METHODS.values():
            mine = luminance([int(on_both(method.colour)[k : k + 2], 16) / 255 for k in (1, 3, 5)])
            assert (max(back, mine) + 0.05) / (min(back, mine) + 0.05) >= 3, method.name


def test_numbers_have_few_digits() -> None:
    found = [amount(value) for value in (1234.5, 123.4, 12.34, 1.234, 0.1234, 0.01234, 0.001234, 1e-6, 0.0, None)]
    assert found == ["1,234", "123", "12.3", "1.23", "0.12", "0.012", "0.0012", "1e-06", "0", "\u2013"]
    assert amount(-1.5, sign=True) == "\u22121.50"
    assert amount(1.5, sign=True) == "+1.50"
    assert listed(list("abcde")) == "a, b, c and 2 more"
    assert listed(list("ab")) == "a and b"
    assert shortened("x" * 50 + "end", 20) == "x" * 13 + "\u2026" + "xxxend"


def test_from_comparison_refuses_a_main_method_that_is_not_there() -> None:
    import pandas as pd

    with pytest.raises(ValueError, match="main must be a method of the table"):
        from_comparison(pd.DataFrame({"method": ["local"]}), main="crossfit")

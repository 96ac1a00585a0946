"""The page in a real browser: sorted, filtered, hovered, by mouse and by keys, in light and dark, on a phone and on paper.

`DFFL_SCREENSHOTS=FOLDER` keeps the pictures, to be looked at.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from dffl.report import write
from tests.report.browser import Browser, browser, needs_browser
from tests.report.made import HOSTILE, made

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
NAMES = ("north", "south", "east", "west", *HOSTILE)
LOOKS = {"desktop": (1280, False), "desktop-dark": (1280, True), "phone": (390, False), "phone-dark": (390, True)}
HOVERED = "return document.querySelector('#chart-{} .hoverlayer').textContent"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write(made(NAMES), path)
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def opened(chromium: Browser, page: Path) -> Iterator[Browser]:
    """The page, freshly loaded; whatever a test does, nothing may complain and nothing may leave the file."""
    chromium.requests(), chromium.complaints()
    chromium.open(page)
    yield chromium
    assert chromium.complaints() == []
    outside = {url for url in chromium.requests() if not url.startswith((page.as_uri(), "data:", "blob:"))}
    assert outside == set()


def press(opened: Browser, table: str, place: int) -> None:
    opened.run("document.querySelectorAll(`#${arguments[0]} thead button`)[arguments[1]].click()", table, place)


def state(opened: Browser, table: str) -> list[str]:
    return opened.run("return [...document.querySelectorAll(`#${arguments[0]} thead th`)].map(h => h.ariaSort)", table)


def test_a_press_on_a_heading_sorts_and_another_turns_the_order(opened: Browser) -> None:
    press(opened, "client-table", 2)
    changes = [float(value) for value in opened.column("client-table", 2)]
    assert changes == sorted(changes)
    assert changes[0] < changes[-1]
    assert state(opened, "client-table")[:4] == ["none", "none", "ascending", "none"]
    press(opened, "client-table", 2)
    assert [float(value) for value in opened.column("client-table", 2)] == changes[::-1]
    assert state(opened, "client-table")[2] == "descending"
    press(opened, "client-table", 0)
    assert opened.column("client-table", 0)[-1] == "west"  # a text, not a number


def test_keys_sort_too(opened: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    heading = opened.driver.find_element("css selector", "#glance thead th:nth-child(3) button")
    heading.send_keys(Keys.ENTER)
    means = [float(value) for value in opened.column("glance", 2)]
    assert means == sorted(means)
    heading.send_keys(Keys.SPACE)
    assert [float(value) for value in opened.column("glance", 2)] == means[::-1]
    assert opened.run("return document.activeElement.textContent") == "Mean"


def test_the_table_is_filtered_by_text_and_by_verdict(opened: Browser) -> None:
    field = opened.driver.find_element("id", "client-filter")
    field.send_keys("th")  # north and south, and whatever else has it in its row
    field.send_keys(" nor")
    assert opened.column("client-table", 0) == ["north"]
    assert opened.run("return document.getElementById('client-count').textContent") == f"1 of {len(NAMES)} clients"
    field.clear()
    field.send_keys("<script>")
    assert opened.column("client-table", 0) == [HOSTILE[0]]
    opened.run("const f = document.getElementById('client-filter'); f.value = ''; f.dispatchEvent(new Event('input'))")
    chosen = "const s = document.getElementById('client-standing'); s.value = 'harmed'; s.dispatchEvent(new Event('change'))"
    opened.run(chosen)
    assert opened.column("client-table", 0) == ["south"]


def test_hovering_a_point_tells_its_numbers(opened: Browser) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    for name, wanted in (("changes", "points, interval"), ("regrets", "% lost, interval")):
        point = opened.driver.find_element("css selector", f"#chart-{name} .scatterlayer .points path")
        opened.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", point)
        ActionChains(opened.driver).move_to_element(point).perform()
        assert wanted in opened.until(HOVERED.format(name))


def test_hostile_names_stay_texts_in_the_charts(opened: Browser) -> None:
    assert opened.run("return document.querySelectorAll('main img, main b script, .chart img, .chart a').length") == 0
    labels = opened.run("return [...document.querySelectorAll('#chart-changes .ytick text')].map(t => t.textContent)")
    assert len(labels) == len(NAMES)
    assert "$x$" in labels
    assert "7" in labels
    assert any(label.startswith("<script>") for label in labels)
    hovers = opened.run("return document.getElementById('chart-changes').data[0].customdata.map(one => one[0])")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hovers


def test_methods_are_ticked_and_chosen(opened: Browser) -> None:
    shown = "return document.getElementById('chart-{}').data.filter(t => t.visible === true).map(t => t.meta)"
    assert set(opened.run(shown.format("regrets"))) >= {"crossfit", "local-tuned", "local"}
    opened.driver.find_element("css selector", "#regret-methods input[value=fedavg]").click()
    opened.driver.find_element("css selector", "#regret-methods input[value=local]").click()
    found = set(opened.run(shown.format("regrets")))
    assert "fedavg" in found
    assert "local" not in found
    opened.driver.find_element("id", "regret-log").click()
    assert opened.until("return document.getElementById('chart-regrets').layout.xaxis.type") == "log"
    choose = "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))"
    opened.run(choose, "change-method", "fedavg")
    opened.run(choose, "change-reference", "local")
    assert opened.run(shown.format("changes")) == ["fedavg|local"]


@pytest.mark.parametrize("look", LOOKS)
def test_it_fits_its_screen_in_light_and_dark(look: str, opened: Browser, page: Path) -> None:
    width, dark = LOOKS[look]
    opened.open(page, width, 844, dark)
    assert opened.run("return document.documentElement.scrollWidth") <= width  # tables scroll by themselves
    assert opened.run("return Math.max(...[...document.querySelectorAll('.main-svg')].map(s => s.clientWidth))") <= width
    ink = opened.run("return getComputedStyle(document.querySelector('.ytick text')).fill")
    assert ink == opened.run("return getComputedStyle(document.body).color")
    ground = opened.run("return getComputedStyle(document.querySelector('section')).backgroundColor")
    assert ground == ("rgb(23, 26, 32)" if dark else "rgb(255, 255, 255)")
    picture = opened.picture()
    assert struct.unpack(">I", picture[16:20])[0] == pytest.approx(width, abs=20)
    assert len(picture) > 100_000
    if folder := os.environ.get("DFFL_SCREENSHOTS"):
        (Path(folder) / f"{look}.png").write_bytes(picture)


def test_it_prints(opened: Browser) -> None:
    found = opened.printed()
    assert found.startswith(b"%PDF")
    assert len(found) > 50_000
    if folder := os.environ.get("DFFL_SCREENSHOTS"):
        (Path(folder) / "report.pdf").write_bytes(found)


def test_without_the_script_that_draws_the_tables_are_there(chromium: Browser, page: Path) -> None:
    chromium.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.driver.get(page.as_uri())
        assert "north" in chromium.driver.find_element("id", "client-table").text
    finally:
        chromium.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

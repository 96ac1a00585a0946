"""Each kind of page in a real browser: nothing is cut, nothing complains, nothing leaves the file.

`DFFL_SCREENSHOTS=FOLDER` keeps the pictures, to be looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dffl.report import write
from dffl.report.one_client import of_client
from tests.report.browser import Browser, browser, needs_browser
from tests.report.made import HOSTILE, made, made_over_time

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
FLEET = made_over_time(("north", "south", "a site whose name is longer than a column", *HOSTILE))
KINDS = {
    "fleet": FLEET,
    "client": of_client(FLEET, "north"),
    "no-unit": made_over_time(unit=""),
    "methods": made(methods=(*(f"finetune(epochs={number})" for number in range(9)), "local", "local-tuned", "crossfit")),
    "unjudged": made(judged=False),
}
PAPER = 703
"""A page of A4 in pixels, without its margins, and as much more as a scroll bar takes."""
LOOKS = {"desktop": 1280, "phone": 390}
CUT = """
const wide = document.documentElement.clientWidth + 1;
const boxes = [...document.querySelectorAll('.scroll-x, pre')].filter(b => b.clientWidth && b.scrollWidth > b.clientWidth + 1);
const kinds = 'nav a, main h2, main p, main td, main th, main select, main .tile, main svg';
const parts = [...document.querySelectorAll(kinds)].filter(p => {
  const box = p.getBoundingClientRect();
  return box.width && box.right > wide;
});
const texts = [...document.querySelectorAll('.main-svg text')].filter(t => {
  const own = t.getBoundingClientRect(), all = t.closest('.main-svg').getBoundingClientRect();
  return own.width && (own.left < all.left - 1 || own.right > all.right + 1 || own.bottom > all.bottom + 1);
});
return [...boxes, ...parts, ...texts].map(one => `${one.tagName} ${one.id} ${one.textContent.trim().slice(0, 60)}`);
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module", params=KINDS)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / f"{request.param}.html"
    write(KINDS[request.param], path)
    return path


def silent(chromium: Browser, page: Path) -> None:
    """Nothing complained, and nothing was asked for outside the file."""
    assert chromium.complaints() == []
    assert {url for url in chromium.requests() if not url.startswith((page.as_uri(), "data:", "blob:"))} == set()


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_cut(look: str, page: Path, chromium: Browser) -> None:
    chromium.requests(), chromium.complaints()
    for dark in (True, False) if os.environ.get("DFFL_SCREENSHOTS") else (False,):
        chromium.open(page, LOOKS[look], 844, dark)
        keep(chromium, f"{page.stem}-{look}{'-dark' if dark else ''}.png")
    assert chromium.run("return document.documentElement.scrollWidth") <= LOOKS[look]
    chromium.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert chromium.run(CUT) == []
    silent(chromium, page)


def test_paper_has_no_controls_and_cuts_nothing(page: Path, chromium: Browser) -> None:
    chromium.requests(), chromium.complaints()
    chromium.open(page, PAPER)
    chromium.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        chromium.run("dispatchEvent(new Event('beforeprint'))")
        chromium.until("return [...document.querySelectorAll('.main-svg')].every(s => s.clientWidth <= 680)")
        assert chromium.run(CUT) == []
        seen = "return [...document.querySelectorAll('main input, nav')].filter(one => one.offsetWidth).length"
        assert chromium.run(seen) == 0
        boxes = "[...document.querySelectorAll('.scroll-x, .scroll-y')]"
        assert chromium.run(f"return {boxes}.filter(b => b.scrollHeight > b.clientHeight + 1).length") == 0
    finally:
        chromium.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    silent(chromium, page)


def test_a_client_is_chosen_with_its_lines_its_map_and_its_tables(chromium: Browser, tmp_path: Path) -> None:
    write(FLEET, tmp_path / "page.html")
    chromium.open(tmp_path / "page.html")
    choose = "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))"
    shown = "return document.getElementById('chart-{}').data.filter(t => t.visible === true).map(t => t.meta)"
    panels = "return [...document.querySelectorAll('[data-panel={}]')].filter(p => !p.hidden).map(p => p.dataset.client)"
    assert chromium.run(shown.format("course")) == ["", ""]
    assert chromium.run(shown.format("decided")) == ["north"]
    for group, count in (("course", 2), ("decided", 1)):
        chromium.run(choose, f"{group}-client", HOSTILE[0])
        assert chromium.run(shown.format(group)) == [HOSTILE[0]] * count
        assert chromium.run(panels.format(group)) == [HOSTILE[0]]
    assert chromium.run("return document.querySelectorAll('#chart-course .shapelayer path').length") == 3  # the refits
    chromium.run(choose, "saved-against", "local-tuned")
    assert chromium.run(shown.format("saved")) == ["local-tuned"]


def keep(chromium: Browser, name: str) -> None:
    """Keep a picture where it is asked for."""
    if folder := os.environ.get("DFFL_SCREENSHOTS"):
        (Path(folder) / name).write_bytes(chromium.picture())

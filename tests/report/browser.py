"""A real browser for tests: Debian's Chromium without a window, through Selenium."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--force-device-scale-factor=1",
)  # fmt: skip
ITS_OWN = ("chrome://", "chrome-untrusted://")
PATIENCE = 60
"""Seconds until charts must be drawn: machines of CI are slow."""
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed: tools/install_chromium.sh"
)


class Browser:
    """One page in one browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a file at this size, and wait for its charts."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # a click must not miss what is still scrolling
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
        self.driver.get(page.as_uri())
        self.until("return document.body.dataset.charts === 'drawn'")

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str) -> Any:
        """Wait until a script returns something that is true."""
        end = time.monotonic() + PATIENCE
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)
        return found

    def column(self, table: str, place: int) -> list[str]:
        """The texts of one column of the rows that are shown."""
        code = (
            "return [...document.getElementById(arguments[0]).tBodies[0].rows].filter(r => !r.hidden)"
            ".map(r => r.cells[arguments[1]].dataset.v ?? r.cells[arguments[1]].textContent.trim())"
        )
        return self.run(code, table, place)

    def complaints(self) -> list[str]:
        """Errors and warnings in the console."""
        return [one["message"] for one in self.driver.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> set[str]:
        """What was asked for since the last call, but for what the browser asks of itself, such as signs of its own pages."""
        found = [json.loads(one["message"])["message"] for one in self.driver.get_log("performance")]
        sent = [one["params"] for one in found if one["method"] == "Network.requestWillBeSent"]
        asked = {(one["documentURL"], one["request"]["url"]) for one in sent}
        return {url for page, url in asked if not (page.startswith(ITS_OWN) or url.startswith(ITS_OWN))}

    def picture(self) -> bytes:
        """The whole page as a PNG."""
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        return base64.b64decode(shot["data"])

    def printed(self) -> bytes:
        """The page on paper, as a PDF."""
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with an empty profile, closed at the end."""
    from selenium import webdriver

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for option in (*OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        try:
            yield Browser(driver)
        finally:
            driver.quit()

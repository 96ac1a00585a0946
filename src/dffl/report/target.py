"""Checks whether a page can be written, before any work begins."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from dffl.files import require_target

NEEDED = ("jinja2", "plotly")
ENDINGS = (".html", ".htm")


def require_page(path: Path, option: str = "--report", inputs: Iterable[Path] = ()) -> None:
    """Refuse a target that cannot be written (see `require_target`) or has another ending; or packages are missing."""
    require_target(path, option, inputs)
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{option} must end in {' or '.join(ENDINGS)}, found {str(path)!r}")
    require_packages()


def require_packages() -> None:
    """Refuse a page if the packages that render it are missing, and name the command that installs them."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ValueError(f"the report needs {' and '.join(missing)}: pip install 'dffl[report]'")

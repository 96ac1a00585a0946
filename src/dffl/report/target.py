"""Where a page may be written, and whether it can be: refused before any work begins."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

NEEDED = ("jinja2", "plotly")
ENDINGS = (".html", ".htm")


def require_page(path: Path, option: str = "--report") -> None:
    """Refuse a page that could not be written: a folder that is not there, another ending, or packages that are missing."""
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{option} must name a file in a folder that exists, found {str(path)!r}")
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{option} must end in {' or '.join(ENDINGS)}, found {str(path)!r}")
    require_packages()


def require_packages() -> None:
    """Refuse to make a page without the packages that render it, and say what to type."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ValueError(f"the report needs {' and '.join(missing)}: pip install 'dffl[report]'")

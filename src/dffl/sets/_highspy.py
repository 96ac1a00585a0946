"""HiGHS, loaded when it is first used.

The wheels of highspy and of OR-Tools each bring a library of the name libhighs.so.1, in different versions. The one that is
loaded first serves both in a process, and the other package cannot be imported any more. So a process that uses no HiGHS of
ours can still use OR-Tools, and the other way round the user gets a line that says what to do.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


class _Lazily:
    def __getattr__(self, name: str) -> Any:
        found = getattr(_loaded(), name)
        setattr(self, name, found)
        return found


def _loaded() -> Any:
    try:
        return import_module("highspy")
    except ImportError as error:
        if not any(name.partition(".")[0] == "ortools" for name in sys.modules):
            raise
        fix = "import highspy before pyepo and ortools, and hand in PyEPO's models by class, as dffl.sets.pyepo(Model, ...)"
        reason = " ".join(str(error).split())[-120:]
        why = "HiGHS cannot be loaded together with OR-Tools, which brings its own HiGHS"
        raise ValueError(f"{why}; {fix} ({reason})") from None


highspy: Any = _Lazily()


def set_options(highs: Any, options: dict[str, Any]) -> None:
    """Set options; one that this version of HiGHS does not know is left out."""
    for name, value in options.items():
        highs.setOptionValue(name, value)

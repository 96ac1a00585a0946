"""What is needed to get the same numbers again: versions, and the settings of training."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dffl.cells import shown_moment
from dffl.training import Settings

PACKAGES = ("jax", "equinox", "optax", "numpy", "scipy", "highspy", "pandas")


def versions() -> dict[str, str]:
    """The versions of dffl, Python and the packages that affect numbers."""
    from dffl import __version__

    texts = {"dffl": __version__, "Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for name in PACKAGES:
        try:
            texts[name] = version(name)
        except PackageNotFoundError:  # installed without metadata
            texts[name] = "unknown"
    return texts


def settings_in_words(settings: Settings, dates: bool = False) -> dict[str, Any]:
    """The settings by name; a named value, such as a loss with its options, in one line. With ``dates``, times are dates."""
    values = {name: value for name, value in settings.described().items() if value is not None}
    if dates and settings.period is not None:
        values["period"] = [shown_moment(moment, True) for moment in settings.period]
    return {name: _line(value) for name, value in values.items()}


def _line(value: Any) -> Any:
    if isinstance(value, dict):
        name = next((str(value[key]) for key in ("name", "kind", "type") if key in value), None)
        rest = ", ".join(f"{key}={_line(inner)}" for key, inner in value.items() if key not in ("name", "kind", "type"))
        return f"{name}({rest})" if name and rest else name or rest
    return ", ".join(str(_line(inner)) for inner in value) if isinstance(value, list | tuple) else value

"""Finds the files of a folder, so that adding one is all that it takes."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module


def import_all(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, in the order of their names: what they define registers itself."""
    for name in sorted(module.name for module in pkgutil.iter_modules(path)):
        import_module(f"{package}.{name}")

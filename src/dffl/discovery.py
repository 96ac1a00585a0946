"""Imports the modules of a folder, so that a new file in it is found without a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


def import_all(package: str, path: Iterable[str]) -> None:
    """Import every public module of a package in alphabetical order. The modules register what they define."""
    import pkgutil  # only when modules are searched, not when one is named

    for name in sorted(module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_")):
        import_module(f"{package}.{name}")


def submodules(package: str) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package: its modules are attributes, imported on first use."""

    def found(name: str) -> Any:
        full_name = f"{package}.{name}"
        if not name.startswith("_"):
            try:
                return import_module(full_name)
            except ModuleNotFoundError as error:
                if error.name != full_name:  # an import inside the module failed
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return found

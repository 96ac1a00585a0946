"""Finds the files of a folder, so that adding one is all that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


def import_all(package: str, path: Iterable[str]) -> None:
    """Import every public module of a package, in the order of their names: what they define registers itself."""
    import pkgutil  # not for those who only name a module

    for name in sorted(module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_")):
        import_module(f"{package}.{name}")


def submodules(package: str) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package: its modules are attributes, imported when they are first named."""

    def found(name: str) -> Any:
        full_name = f"{package}.{name}"
        if not name.startswith("_"):
            try:
                return import_module(full_name)
            except ModuleNotFoundError as error:
                if error.name != full_name:  # a package that is needed is not installed
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return found

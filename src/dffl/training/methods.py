"""The registry of methods: a method is one function in one file, registered under its name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from dffl.training.run import Outcome, Run
from dffl.training.settings import Settings

Recipe = Callable[[Run], Outcome]
Work = dict[str, float]
"""Passes over all the data that each training takes, by the training's name: what the progress bar counts."""


@dataclass(frozen=True)
class Method:
    """A way from a federation to one predictor for each client."""

    name: str
    fit: Recipe
    work: Callable[[Settings], Work]
    splits: bool
    """Holds out a part of each client's samples."""
    validates: bool
    """Needs a separate validation federation."""


METHODS: dict[str, Method] = {}


def method(
    name: str, *, work: Callable[[Settings], Work] | None = None, splits: bool = False, validates: bool = False
) -> Callable[[Recipe], Recipe]:
    """Register a function from a `Run` to an `Outcome` as a method."""

    def register(fit: Recipe) -> Recipe:
        known = METHODS.get(name)
        if known is not None and known.fit.__module__.startswith("dffl.") and known.fit.__module__ != fit.__module__:
            raise ValueError(f"method {name!r} is built in; choose another name")
        METHODS[name] = Method(name, fit, work or (lambda settings: {}), splits, validates)
        return fit

    return register


def named(name: str) -> Method:
    """The method of this name."""
    if name not in METHODS:
        near = difflib.get_close_matches(str(name), METHODS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown method {name!r}{hint} (allowed: {', '.join(METHODS)})")
    return METHODS[name]

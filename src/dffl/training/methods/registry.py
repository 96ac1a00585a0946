"""The registry of methods: a method is one function in one file, registered under its name, with its label and its colour.

Its keywords are its options: what `dffl.fit(federation, "ditto", pull=0.1)` hands on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dffl.named import find, nearest, register
from dffl.training.run import Outcome, Run
from dffl.training.settings import MOVED, Settings, refuse_moved

METHODS: dict[str, Method] = {}
SPARE_COLOURS = ("#882255", "#332288", "#999933", "#661100", "#6699CC", "#888888")
"""For methods that name no colour of their own."""


@dataclass(frozen=True)
class Method:
    """A way from a federation to one predictor for each client."""

    name: str
    fit: Callable[..., Outcome]
    label: str
    """What tables and figures call it."""
    colour: str

    @property
    def options(self) -> dict[str, Any]:
        """Its options and their defaults."""
        keywords = list(inspect.signature(self.fit).parameters.values())[1:]
        return {one.name: one.default for one in keywords}


def method(name: str, *, label: str | None = None, colour: str | None = None) -> Callable[..., Callable[..., Outcome]]:
    """Register a function from a `Run` to an `Outcome` as a method; its further keywords are its options."""
    if not isinstance(name, str):
        raise ValueError('register a method with its name: @dffl.method("name")')

    def add(fit: Callable[..., Outcome]) -> Callable[..., Outcome]:
        for option in list(inspect.signature(fit).parameters.values())[1:]:
            if option.name in Settings.names():
                raise ValueError(f"method {name!r}: option {option.name!r} is the name of a setting; read run.settings instead")
            if option.default is inspect.Parameter.empty:
                raise ValueError(f"method {name!r}: option {option.name!r} needs a default")
        spare = SPARE_COLOURS[len(METHODS) % len(SPARE_COLOURS)]
        register(METHODS, name, Method(name, fit, label or name, colour or spare), "method", lambda one: one.fit)
        return fit

    return add


def label_of(name: str) -> str:
    """What tables and figures call a method; another name stays as it is."""
    return METHODS[name].label if name in METHODS else name


def colour_of(name: str) -> str:
    """A method's colour, the same in every figure."""
    return METHODS[name].colour if name in METHODS else "#777777"


@dataclass(frozen=True)
class Request:
    """A method and the options that were given with it."""

    method: Method
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name with its options, to tell two requests for one method apart."""
        shown = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.method.name}({shown})" if shown else self.method.name

    def __call__(self, run: Run) -> Outcome:
        """Run the method."""
        run.performing = self.method.name
        return self.method.fit(run, **self.options)


def request(wanted: Any, keywords: Mapping[str, Any]) -> tuple[Request, dict[str, Any]]:
    """One method from its name, and keywords parted into its options and the settings of the run."""
    asked = _request(wanted)
    own = {name: value for name, value in keywords.items() if name in asked.method.options}
    rest = {name: value for name, value in keywords.items() if name not in own}
    known = set(Settings.names())
    for name in rest:
        if name in MOVED and MOVED[name][0] in asked.method.options:
            raise ValueError(f"{name} is now the option {MOVED[name][0]!r} of {asked.method.name!r}")
        if name not in known and "." not in name:
            _refuse(name, asked.method)
    [whole], rest = _dotted([Request(asked.method, {**asked.options, **own})], rest)
    return whole, rest


def requests(wanted: Iterable[Any], settings: Mapping[str, Any]) -> tuple[list[Request], dict[str, Any]]:
    """Several methods, each a name or a name with options, and the settings of the run.

    A setting such as ``finetune.epochs`` is an option of that method: for command lines and files.
    """
    asked = [_request(one) for one in wanted]
    found, rest = _dotted([one for place, one in enumerate(asked) if one not in asked[:place]], settings)
    for name in (name for name in rest if name not in (*Settings.names(), *MOVED)):
        owners = [one.method.name for one in found if name in one.method.options]
        others = [one.name for one in METHODS.values() if name in one.options]
        if others and not owners:
            raise ValueError(f"{name!r} is an option of {', '.join(others)}, not asked for, and no setting")
        if owners:
            fix = f"({owners[0]!r}, {{{name!r}: ...}})"
            raise ValueError(
                f"{name!r} is an option of {', '.join(owners)}: give it with its method, as in methods=[{fix}, ...]"
            )
    return found, rest


def options_of(name: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of one method among settings such as ``finetune.epochs``, and the settings without options of any method."""
    own = {key: value for key, value in settings.items() if key.startswith(f"{name}.")}
    [asked], _ = _dotted([_request(name)], own)
    return dict(asked.options), {key: value for key, value in settings.items() if "." not in key}


def _request(wanted: Any) -> Request:
    if isinstance(wanted, Request):
        return wanted
    if isinstance(wanted, str):
        return Request(find(METHODS, wanted, "method"))
    if isinstance(wanted, Sequence) and len(wanted) == 2 and isinstance(wanted[1], Mapping):
        found = find(METHODS, wanted[0], "method")
        for name in wanted[1]:
            if name not in found.options:
                _refuse(name, found)
        return Request(found, dict(wanted[1]))
    raise ValueError(f"a method is a name, or a name with options such as ('ditto', {{'pull': 0.1}}), found {wanted!r:.80}")


def _dotted(found: list[Request], settings: Mapping[str, Any]) -> tuple[list[Request], dict[str, Any]]:
    """Options that were written as ``method.option`` among the settings, given to their methods."""
    rest = {name: value for name, value in settings.items() if "." not in name}
    for name, value in settings.items():
        owner, dot, option = name.partition(".")
        if dot:
            _request((owner, {option: value}))  # refuses what is unknown
            if all(one.method.name != owner for one in found):
                asked = ", ".join(one.method.name for one in found)
                raise ValueError(f"{name} is an option of a method that is not asked for (asked for: {asked})")
            found = [Request(one.method, {**one.options, option: value}) if one.method.name == owner else one for one in found]
    return found, rest


def _refuse(name: str, chosen: Method) -> None:
    """Refuse an option that a method does not have, and say whose it is or what was probably meant."""
    others = [one.name for one in METHODS.values() if name in one.options]
    own = ", ".join(chosen.options) or "none"
    if others:
        raise ValueError(
            f"option {name!r} belongs to {', '.join(others)}; method {chosen.name!r} does not have it (its own: {own})"
        )
    refuse_moved(name)
    known = [*chosen.options, *Settings.names()]
    raise ValueError(
        f"unknown setting or option {name!r}{nearest(name, known)} (options of {chosen.name!r}: {own}; "
        f"settings: {', '.join(Settings.names())})"
    )

"""The registry of methods: a method is one function in one file, registered under its name, with its label and its colour.

Its keywords are its options: what `dffl.fit(federation, "ditto", pull=0.1)` passes to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, get_args

from dffl.named import Catalogue, find, nearest, register
from dffl.training.run import Outcome, Run
from dffl.training.settings import Settings, refuse_moved

METHODS: Catalogue[Method] = Catalogue("method", "dffl.methods", "a function with @dffl.method('{name}')", lambda one: one.fit)
Kind = Literal["naive", "alone", "together"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of methods, in the order of reports."""
SPARE_COLOURS = ("#AA7744", "#5577AA", "#999933", "#661100", "#6699CC", "#888888")
"""For methods that name no colour of their own."""


@dataclass(frozen=True)
class Method:
    """A function from a federation to one predictor for each client."""

    name: str
    fit: Callable[..., Outcome]
    label: str
    """What tables and figures call it."""
    colour: str
    kind: Kind = "together"
    """Whether it is a naive rule, a model of the client alone, or trained together."""
    words: str = ""
    """What it is, in a few words for people who have read no paper."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that the method has by default where `Settings` has others; what a user gives takes their place."""

    @property
    def options(self) -> dict[str, Any]:
        """Its options and their defaults."""
        keywords = list(inspect.signature(self.fit).parameters.values())[1:]
        return {one.name: one.default for one in keywords}


def method(
    name: str,
    *,
    label: str | None = None,
    colour: str | None = None,
    kind: Kind = "together",
    words: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Callable[..., Callable[..., Outcome]]:
    """Register a function from a `Run` to an `Outcome` as a method; its further keywords are its options.

    - ``label``: what tables and figures call it (default: its name).
    - ``colour``: its colour in figures, such as "#44AA99".
    - ``kind``: "naive", "alone" or "together"; reports show methods in this order.
    - ``words``: what it is in a few words, for reports (default: its label).
    - ``settings``: its own defaults for settings of the run, such as ``{"schedule": "cosine"}``.
    """
    if not isinstance(name, str):
        raise ValueError('register a method with its name: @dffl.method("name")')
    if kind not in KINDS:
        raise ValueError(f"method {name!r}: kind must be one of {', '.join(KINDS)}, found {kind!r:.80}")
    own = dict(settings or {})
    Settings.of(**own)  # refuses what is unknown or impossible

    def add(fit: Callable[..., Outcome]) -> Callable[..., Outcome]:
        for option in list(inspect.signature(fit).parameters.values())[1:]:
            if option.name in Settings.names():
                raise ValueError(f"method {name!r}: option {option.name!r} is the name of a setting; read run.settings instead")
            if option.default is inspect.Parameter.empty:
                raise ValueError(f"method {name!r}: option {option.name!r} needs a default")
        spare = SPARE_COLOURS[len(METHODS) % len(SPARE_COLOURS)]
        made = Method(name, fit, label or name, colour or spare, kind, words or label or name, own)
        register(METHODS, name, made, "method", METHODS.origin)
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
        """The name with its options, which distinguishes two requests for one method."""
        shown = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.method.name}({shown})" if shown else self.method.name

    def __call__(self, run: Run) -> Outcome:
        run.performing = self.method.name
        return self.method.fit(run, **self.options)


def request(wanted: Any, keywords: Mapping[str, Any]) -> tuple[Request, dict[str, Any]]:
    """One method from its name, and keywords divided into its options and the settings of the run."""
    asked = _request(wanted)
    own = {name: value for name, value in keywords.items() if name in asked.method.options}
    others = {name: value for name, value in keywords.items() if name not in own}
    [whole], settings = _divided([Request(asked.method, {**asked.options, **own})], others)
    return whole, {**asked.method.settings, **settings}


def requests(wanted: Iterable[Any], settings: Mapping[str, Any]) -> tuple[list[Request], dict[str, Any]]:
    """Several methods, each a name or a name with options, and the settings of the run.

    A setting such as ``finetune.epochs`` is an option of that method: for command lines and files.
    """
    asked = [_request(one) for one in wanted]
    return _divided([one for place, one in enumerate(asked) if one not in asked[:place]], settings)


def options_of(name: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of one method among settings such as ``finetune.epochs``, and the settings without options of any method."""
    own = {key: value for key, value in settings.items() if key.startswith(f"{name}.")}
    [asked], _ = _divided([_request(name)], own)
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
                _refuse(name, [found])
        return Request(found, dict(wanted[1]))
    raise ValueError(f"a method is a name, or a name with options such as ('ditto', {{'pull': 0.1}}), found {wanted!r:.80}")


def _divided(found: list[Request], settings: Mapping[str, Any]) -> tuple[list[Request], dict[str, Any]]:
    """The requests with the options that were written as ``method.option`` among the settings, and the other settings."""
    rest = {name: value for name, value in settings.items() if "." not in name}
    for name, value in settings.items():
        owner, dot, option = name.partition(".")
        if dot:
            _request((owner, {option: value}))  # refuses what is unknown
            if all(one.method.name != owner for one in found):
                asked = ", ".join(one.method.name for one in found)
                raise ValueError(f"{name} is an option of a method that is not asked for (asked for: {asked})")
            found = [Request(one.method, {**one.options, option: value}) if one.method.name == owner else one for one in found]
    for name in rest:
        if name not in Settings.names():
            _refuse(name, [one.method for one in found])
    return found, rest


def _refuse(name: str, asked: Sequence[Method]) -> NoReturn:
    """Refuse an option that these methods do not take here, and name its methods or what was probably meant."""
    refuse_moved(name)
    methods, settings = ", ".join(one.name for one in asked), Settings.names()
    options = list(dict.fromkeys(option for one in asked for option in one.options))
    if name in options:
        fix = next(one.name for one in asked if name in one.options)
        raise ValueError(f"{name!r} is an option: give it with its method, as in methods=[({fix!r}, {{{name!r}: ...}}), ...]")
    if name in settings:
        raise ValueError(f"{name!r} is a setting of the run, not an option of {methods}: give it outside the methods")
    own = f"options of {methods}: {', '.join(options) or 'none'}"
    if others := [one.name for one in METHODS.values() if name in one.options]:
        raise ValueError(f"{name!r} is an option of {', '.join(others)}, not of {methods} ({own})")
    near = nearest(name, [*options, *settings])
    raise ValueError(f"unknown setting or option {name!r}{near} ({own}; settings: {', '.join(settings)})")

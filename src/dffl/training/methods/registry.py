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
"""The colour of methods that set none."""


@dataclass(frozen=True)
class Method:
    """A function from a federation to one predictor for each client."""

    name: str
    fit: Callable[..., Outcome]
    label: str
    """Its name in tables and figures."""
    colour: str
    kind: Kind = "together"
    """Whether it is a naive rule, a model of the client alone, or trained together."""
    words: str = ""
    """A few words that say what it is, for people who have not read the papers."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Its own defaults of settings; values of a user replace them."""

    @property
    def options(self) -> dict[str, Any]:
        """Its options and their defaults."""
        keywords = list(inspect.signature(self.fit).parameters.values())[1:]
        return {argument.name: argument.default for argument in keywords}


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
    own_settings = dict(settings or {})
    Settings.of(**own_settings)  # refuses what is unknown or impossible

    def add(fit: Callable[..., Outcome]) -> Callable[..., Outcome]:
        for option in list(inspect.signature(fit).parameters.values())[1:]:
            if option.name in Settings.names():
                raise ValueError(f"method {name!r}: option {option.name!r} is the name of a setting; read run.settings instead")
            if option.default is inspect.Parameter.empty:
                raise ValueError(f"method {name!r}: option {option.name!r} needs a default")
        spare = SPARE_COLOURS[len(METHODS) % len(SPARE_COLOURS)]
        new_method = Method(name, fit, label or name, colour or spare, kind, words or label or name, own_settings)
        register(METHODS, name, new_method, "method", METHODS.origin)
        return fit

    return add


def label_of(name: str) -> str:
    """The name of a method in tables and figures; other names are unchanged."""
    return METHODS[name].label if name in METHODS else name


def colour_of(name: str) -> str:
    """A method's colour, the same in every figure."""
    return METHODS[name].colour if name in METHODS else "#777777"


@dataclass(frozen=True)
class Request:
    """A method and the given options."""

    method: Method
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name with its options, which distinguishes two requests of one method."""
        shown = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.method.name}({shown})" if shown else self.method.name

    def __call__(self, run: Run) -> Outcome:
        run.performing = self.method.name
        return self.method.fit(run, **self.options)


def request(wanted: Any, keywords: Mapping[str, Any]) -> tuple[Request, dict[str, Any]]:
    """One method from its name, and keywords divided into its options and the settings of the run."""
    asked = _request(wanted)
    own_options = {name: value for name, value in keywords.items() if name in asked.method.options}
    others = {name: value for name, value in keywords.items() if name not in own_options}
    [complete], settings = _divided([Request(asked.method, {**asked.options, **own_options})], others)
    return complete, {**asked.method.settings, **settings}


def requests(wanted: Iterable[Any], settings: Mapping[str, Any]) -> tuple[list[Request], dict[str, Any]]:
    """Several methods, each a name or a name with options, and the settings of the run.

    A setting such as ``finetune.epochs`` is an option of that method: for command lines and files.
    """
    asked = [_request(entry) for entry in wanted]
    return _divided([entry for place, entry in enumerate(asked) if entry not in asked[:place]], settings)


def options_of(name: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of one method among settings such as ``finetune.epochs``, and the settings without options of any method."""
    prefixed = {key: value for key, value in settings.items() if key.startswith(f"{name}.")}
    [asked], _ = _divided([_request(name)], prefixed)
    return dict(asked.options), {key: value for key, value in settings.items() if "." not in key}


def _request(wanted: Any) -> Request:
    if isinstance(wanted, Request):
        return wanted
    if isinstance(wanted, str):
        return Request(find(METHODS, wanted, "method"))
    if isinstance(wanted, Sequence) and len(wanted) == 2 and isinstance(wanted[1], Mapping):
        method = find(METHODS, wanted[0], "method")
        for name in wanted[1]:
            if name not in method.options:
                _refuse(name, [method])
        return Request(method, dict(wanted[1]))
    raise ValueError(f"a method is a name, or a name with options such as ('ditto', {{'pull': 0.1}}), found {wanted!r:.80}")


def _divided(asked_for: list[Request], settings: Mapping[str, Any]) -> tuple[list[Request], dict[str, Any]]:
    """The requests with the options that were written as ``method.option`` among the settings, and the other settings."""
    rest = {name: value for name, value in settings.items() if "." not in name}
    for name, value in settings.items():
        owner, dot, option = name.partition(".")
        if dot:
            _request((owner, {option: value}))  # refuses what is unknown
            if all(request.method.name != owner for request in asked_for):
                asked = ", ".join(request.method.name for request in asked_for)
                raise ValueError(f"{name} is an option of a method that is not asked for (asked for: {asked})")
            asked_for = [
                Request(request.method, {**request.options, option: value}) if request.method.name == owner else request
                for request in asked_for
            ]
    for name in rest:
        if name not in Settings.names():
            _refuse(name, [request.method for request in asked_for])
    return asked_for, rest


def _refuse(name: str, asked: Sequence[Method]) -> NoReturn:
    """Refuse an option that these methods do not have, and name the methods that have it or the most similar name."""
    refuse_moved(name)
    methods, settings = ", ".join(method.name for method in asked), Settings.names()
    options = list(dict.fromkeys(option for method in asked for option in method.options))
    if name in options:
        fix = next(method.name for method in asked if name in method.options)
        raise ValueError(f"{name!r} is an option: give it with its method, as in methods=[({fix!r}, {{{name!r}: ...}}), ...]")
    if name in settings:
        raise ValueError(f"{name!r} is a setting of the run, not an option of {methods}: give it outside the methods")
    listed = f"options of {methods}: {', '.join(options) or 'none'}"
    if others := [method.name for method in METHODS.values() if name in method.options]:
        raise ValueError(f"{name!r} is an option of {', '.join(others)}, not of {methods} ({listed})")
    near = nearest(name, [*options, *settings])
    raise ValueError(f"unknown setting or option {name!r}{near} ({listed}; settings: {', '.join(settings)})")

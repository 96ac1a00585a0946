"""Values that have a name: losses, aggregators, optimisers, schedules, sets, methods. A custom one needs one file."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from dffl.plugins import Plugin, plugins

T = TypeVar("T")


class Catalogue(dict[str, T]):
    """The values of one kind by name: those that this process has registered, and those of installed packages.

    A plugin is imported when its name is asked for and is not registered yet; its module registers it. Arguments:

    - ``what``: the name of the kind in messages, such as "loss".
    - ``group``: the group of entry points, such as "dffl.losses"; "" for a kind that packages cannot extend.
    - ``wanted``: what a plugin of this kind must be, for messages.
    - ``origin``: the class or function of a registered value.
    """

    def __init__(self, what: str, group: str = "", wanted: str = "", origin: Callable[[T], Any] = lambda value: value) -> None:
        super().__init__()
        self.what, self.group, self.wanted, self.origin = what, group, wanted, origin

    def names(self) -> list[str]:
        """All names: the registered ones, then those of installed packages."""
        installed = plugins(self.group, self) if self.group else None
        return [*self, *(installed.usable if installed is not None else ())]

    def bring(self, name: str) -> None:
        """Import the plugin of this name, if a package has one. An error names its package and entry."""
        if not self.group or name in self:
            return
        installed = plugins(self.group, self)
        if name in installed.problems:
            raise ValueError(installed.problems[name])
        if name in installed.usable:
            self.load(installed.usable[name])

    def load(self, plugin: Plugin) -> None:
        """Import a plugin, which registers itself."""
        before = dict(self)
        try:
            brought = plugin.load()
        except ValueError:  # a module that failed may have registered some of its names
            self.clear()
            self.update(before)
            raise
        if plugin.name not in self or self.origin(self[plugin.name]) is not brought:
            wanted = self.wanted.format(name=plugin.name)
            raise ValueError(f"{plugin.place} ({plugin.entry.value}): must be {wanted}, found {brought!r:.80}")


class Named:
    """The base of a kind of values, such as `dffl.Loss`.

    A kind sets ``what``, its name in messages. A class of the kind sets its ``name``, and is registered under it. Values are
    compared by their class and their attributes, never by identity: equal trainings of two methods are done once, and a
    program is compiled once. The arguments of the constructor are attributes with the same names; so a value can be saved.
    """

    what: ClassVar[str] = ""
    name: ClassVar[str] = ""
    key: ClassVar[str] = "name"
    """The key under which a table of a file has the name."""
    group: ClassVar[str] = ""
    """The entry points by which other packages extend the kind."""
    known: ClassVar[Catalogue[Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "what" in cls.__dict__:
            wanted = f'a subclass of {cls.__name__} with name = "{{name}}"'
            cls.known = Catalogue(cls.what, cls.group, wanted)
        elif cls.__dict__.get("name"):
            register(cls.known, cls.name, cls, cls.what)

    @classmethod
    def of(cls, value: Any) -> Self:
        """The value itself, the value of this name with its defaults, or the value of a table with its name and arguments."""
        if isinstance(value, cls):
            if not value.name:
                raise ValueError(f"{cls.what} {type(value).__name__} needs a name: set the class attribute name")
            return value
        if isinstance(value, Mapping):
            return cls._of_table(value)
        if not isinstance(value, str):
            article = "an" if cls.what[0] in "aeiou" else "a"
            raise ValueError(f"{cls.what} must be a name or {article} {cls.what} object, found {value!r:.80}")
        try:
            instance: Self = find(cls.known, value, cls.what)()
        except TypeError as error:
            raise ValueError(f"{cls.what} {value!r} cannot be made from its name alone ({error}); pass the object") from None
        return instance

    @classmethod
    def _of_table(cls, table: Mapping[str, Any]) -> Self:
        if not isinstance(table.get(cls.key), str):
            raise ValueError(f"{cls.what}: a table must say its {cls.key}, found {dict(table)!r:.80}")
        kind: type[Self] = find(cls.known, table[cls.key], cls.what)
        known = list(inspect.signature(kind).parameters)
        arguments = {name: value for name, value in table.items() if name != cls.key}
        for name in arguments:
            if name not in known:
                who, allowed = f"{cls.what} {table[cls.key]!r}", ", ".join(known) or "none"
                raise ValueError(f"{who} has no argument {name!r}{nearest(name, known)} (allowed: {allowed})")
        try:
            return kind(**arguments)
        except TypeError as error:
            raise ValueError(f"{cls.what} {table[cls.key]!r} cannot be made from {arguments!r:.80} ({error})") from None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        try:
            return hash((type(self), tuple(sorted(vars(self).items()))))
        except TypeError:
            shown = f"{self.what} {self.name!r}"
            raise TypeError(f"{shown}: its attributes must be numbers, texts or tuples, found {vars(self)!r:.80}") from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


def plain(value: Any) -> Any:
    """A named value for JSON: its kind, its name, and the arguments that differ from the defaults. Other values unchanged."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if not isinstance(value, Named):
        return value
    arguments = inspect.signature(type(value)).parameters
    for name in arguments:
        if not hasattr(value, name):
            who = f"{value.what} {value.name!r}"
            raise ValueError(f"{who} cannot be saved: its argument {name!r} must be kept as an attribute of the same name")
    changed = {name: getattr(value, name) for name, argument in arguments.items() if getattr(value, name) != argument.default}
    return {"kind": value.what, "name": value.name} | {name: plain(inner) for name, inner in changed.items()}


def rebuilt(value: Any) -> Any:
    """The inverse of `plain`."""
    if not (isinstance(value, Mapping) and "kind" in value):
        return value
    kind = find({base.what: base for base in Named.__subclasses__()}, value["kind"], "kind of value")
    arguments = {name: rebuilt(inner) for name, inner in value.items() if name not in ("kind", "name")}
    if isinstance(value["name"], str):
        kind.known.bring(value["name"])
    if value["name"] not in kind.known:
        fix = "install the package that brings it, or import the module that defines it first"
        raise ValueError(f"{kind.what} {value['name']!r} is not known here; {fix}")
    return kind.known[value["name"]](**arguments)


def register(known: dict[str, T], name: str, value: T, what: str, origin: Callable[[T], Any] = lambda value: value) -> None:
    """Register a value under its name. A name that has another ``origin`` (class or function) already is refused."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"a {what} needs a name, found {name!r}")
    before = known.get(name)
    if before is not None and _place(origin(before)) != _place(origin(value)):
        there, new = (".".join(_place(origin(entry))) for entry in (before, value))
        raise ValueError(f"{what} {name!r} is there already ({there}); choose another name for {new}")
    known[name] = value


def _place(value: Any) -> tuple[str, str]:
    # A cell of a notebook that is run again defines the same class again, which is allowed.
    kind = type(value)
    return getattr(value, "__module__", kind.__module__), getattr(value, "__qualname__", kind.__qualname__)


def find(known: Mapping[str, T], name: Any, what: str) -> T:
    """The value of this name, here or in an installed package. Otherwise an error suggests the most similar name."""
    if isinstance(name, str) and isinstance(known, Catalogue):
        known.bring(name)
    if not isinstance(name, str) or name not in known:
        names = known.names() if isinstance(known, Catalogue) else list(known)
        raise ValueError(f"unknown {what} {name!r:.80}{nearest(name, names)} (allowed: {', '.join(names)})")
    return known[name]


def nearest(name: Any, known: Iterable[str]) -> str:
    """The suggestion in a message: the most similar known name."""
    near = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names for a message: the first ``most`` of them."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")

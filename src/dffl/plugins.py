"""Extensions that other installed packages bring, by entry points: sets, losses, methods, aggregators, commands and sources.

A package names what it brings in its pyproject.toml, one line each::

    [project.entry-points."dffl.commands"]
    hello = "my_package.hello:hello"

Finding them reads metadata only. An extension is imported when it is used, and it cannot replace a name of dffl itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points, version
from typing import Any, NamedTuple

GROUPS = ("dffl.sets", "dffl.losses", "dffl.methods", "dffl.aggregators", "dffl.commands", "dffl.sources")
"""The groups of entry points."""


class Plugin(NamedTuple):
    """One extension of another package, not imported yet."""

    name: str
    entry: EntryPoint

    @property
    def package(self) -> str:
        """The distribution that contains it."""
        return self.entry.dist.name if self.entry.dist is not None else "an unknown package"

    @property
    def place(self) -> str:
        """Its name in messages."""
        version = f" {self.entry.dist.version}" if self.entry.dist is not None else ""
        return f"{self.entry.group} {self.name!r} of {self.package}{version}"

    @property
    def requirement(self) -> str:
        """The versions of dffl that its package requires, or an empty text."""
        required = (self.entry.dist.requires if self.entry.dist is not None else None) or []
        return next((text for text in required if re.match(r"dffl\s*[<>=!~(]", text)), "")

    def load(self) -> Any:
        """Import it. An error names its package and entry."""
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:  # a module that exits would end a command with success
            reason = " ".join(str(error).split()) or type(error).__name__
            wanted = f" (made for {self.requirement}, this is {version('dffl')})" if self.requirement else ""
            raise ValueError(
                f"{self.place} ({self.entry.value}) cannot be imported: {reason}; update or remove it{wanted}"
            ) from error


class Plugins(NamedTuple):
    """The extensions of one group by name, and the problem of each name that cannot be used."""

    usable: dict[str, Plugin]
    problems: dict[str, str]


def plugins(group: str, taken: Collection[str] = ()) -> Plugins:
    """The extensions of a group. A name that dffl itself has (``taken``), or that two packages have, cannot be used."""
    result = Plugins({}, {})
    for entry in sorted(entry_points(group=group), key=lambda candidate: (candidate.name, candidate.value)):
        plugin, before = Plugin(entry.name, entry), result.usable.get(entry.name)
        if entry.name in taken:
            result.problems[entry.name] = f"{plugin.place}: dffl has this name itself; rename the entry, or remove the package"
        elif before is not None and before.entry.value != entry.value:
            result.problems[entry.name] = f"{before.place} and {plugin.place} have one name; remove one of the packages"
        else:
            result.usable[entry.name] = plugin
    for name in result.problems:
        result.usable.pop(name, None)
    return result

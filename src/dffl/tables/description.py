"""A federation from one file, `federation.toml`: tables, constraints and training, checked as a whole."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from dffl.federation import Client, Federation
from dffl.files import read_regular
from dffl.tables.assembly import Assembly
from dffl.tables.encoding import Encoding
from dffl.tables.keys import DescriptionError, Problems
from dffl.tables.money import unit_notes
from dffl.tables.plan import Plan, read_plan

__all__ = ["Description", "DescriptionError", "read"]


@dataclass(frozen=True)
class Description:
    """What a federation's file says, with its tables read."""

    path: Path
    train: Federation
    test: Federation
    """The last rows of each client, some at random, or a table of its own."""
    method: str
    options: dict[str, Any]
    """The options of the method."""
    settings: dict[str, Any]
    """The settings of training: what the file gives, and what follows from it."""
    encoding: Encoding
    """How columns become features; it is to be saved with a fit."""
    units: dict[str, str]
    """The unit of the costs of each client that has one."""
    costs: tuple[str, ...]
    """The names of the cost columns."""
    order: str | None = None
    """The column by which the rows are a time series."""
    notes: list[str] = field(default_factory=list)
    """What a user should know, such as rows that were left out; one line each."""
    dates: bool = False
    """Whether the order is of dates: the times of the clients are then seconds since 1970."""
    named: bool = True
    """Whether the file names its method."""
    time: dict[str, Any] = field(default_factory=dict)
    """What the file says under [time]."""
    twice: dict[str, str] = field(default_factory=dict)
    """For each client with two rows of one moment, where they stand: a choice over time refuses them."""
    per: str | None = None
    """What a row is, such as a day, if the file says it."""

    @property
    def keywords(self) -> dict[str, Any]:
        """All keywords for ``dffl.fit(description.train, description.method, **description.keywords)``."""
        return {**self.settings, **self.options}

    @property
    def agreement(self) -> Agreement:
        """What sites that are apart must agree on; compare its digest."""
        return Agreement.of(self.train[0])

    @property
    def forecast(self) -> dict[str, str]:
        """For each cost the column that forecasts it, where the file names a forecast."""
        names = self.encoding.feature_names[-len(self.costs) :] if self.train.has_forecast else ()
        return dict(zip(self.costs, names, strict=False))


def read(path: str | PathLike[str]) -> Description:
    """Read a federation's file and its tables. All problems are raised at once, as a `DescriptionError`."""
    problems = Problems()
    plan = planned(Path(path), problems)
    return described(Assembly(plan, problems))


def inputs_of(path: Path) -> list[Path]:
    """A description, a federation's or a site's, and all files that it names: no output may replace one of them.

    Every text counts that is the path of a file, whatever its key: tables, databases, columns of numbers, models.
    """
    return [path, *(file for text in _texts(parse(path)) if (file := path.parent / text).is_file())]


def _texts(value: Any) -> Iterator[str]:
    """All texts in the values of a TOML file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def planned(path: Path, problems: Problems, content: dict[str, Any] | None = None) -> Plan:
    """What the keys of a file say, or those of its ``content`` if that is given.

    A file that is not TOML is refused at once; problems of keys are added to the others.
    """
    if content is None:
        with problems.catching():
            content = parse(path)
        problems.stop()
    assert content is not None, "what cannot be parsed is a problem"
    return read_plan(path, content, problems)


def described(assembly: Assembly) -> Description:
    """A plan with what its tables gave; or all problems at once."""
    train, test = assembly.federations()
    plan = assembly.plan
    return Description(
        path=plan.path,
        train=train,
        test=test,
        method=plan.method,
        options=plan.options,
        settings=plan.settings,
        encoding=assembly.encoding,
        units=assembly.units,
        costs=tuple(train.cost_names or ()),
        order=plan.order,
        notes=[*assembly.notes, *unit_notes(str(plan.path), list(assembly.units.values()))],
        dates=assembly.dates,
        named=plan.named,
        time=plan.time,
        twice=assembly.twice,
        per=plan.per,
    )


def parse(path: Path) -> dict[str, Any]:
    """The content of a TOML file; an error names its line."""
    try:
        return tomllib.loads(read_regular(path).decode("utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file; `dffl init DIR` writes an example") from None
    except (OSError, RecursionError) as error:
        raise ValueError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or 'nested too deeply'})") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(f"{path}, line {line}: is not text in UTF-8; save it as UTF-8") from None
    except ValueError as error:
        if match := re.search(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL):
            raise ValueError(f"{path}, line {match[2]}, column {match[3]}: {match[1]}") from None
        raise ValueError(f"{path}: cannot be read as TOML ({error!s:.200})") from None


VERSION = 1


@dataclass(frozen=True)
class Agreement:
    """The columns that a site's rows have after encoding. It holds names and categories, and nothing of any row."""

    features: tuple[str, ...]
    costs: tuple[str, ...]
    forecast: bool = False
    """Whether the last features are a forecast of the costs, in their order."""
    item_features: int = 0
    """How many features each item has."""

    @classmethod
    def of(cls, client: Client) -> Agreement:
        """The columns of a client."""
        names = tuple(client.feature_names or ()), tuple(client.cost_names or ())
        return cls(*names, client.forecast is not None, client.item_features)

    @property
    def digest(self) -> str:
        """The same text at two sites means the same columns in the same order."""
        plain = {"version": VERSION, "features": list(self.features), "costs": list(self.costs)}
        plain |= {"forecast": True} if self.forecast else {}
        plain |= {"item_features": self.item_features} if self.item_features else {}
        return hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=True).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """For messages and programs."""
        pairs = dict(zip(self.costs, self.features[-len(self.costs) :], strict=False)) if self.forecast else None
        return {
            "features": list(self.features), "costs": list(self.costs), "forecast": pairs, "dim": len(self.costs),
            "digest": self.digest,
        }  # fmt: skip

    def difference(self, other: Agreement) -> str | None:
        """How another site's columns differ from these, in one line; nothing where they are the same."""
        for what, mine, theirs in (("features", self.features, other.features), ("costs", self.costs, other.costs)):
            if mine == theirs:
                continue
            if lacking := [name for name in mine if name not in theirs]:
                return f"{what}: it lacks {lacking[0]!r}" + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else "")
            if more := [name for name in theirs if name not in mine]:
                return f"{what}: it has {more[0]!r} too" + (f" and {len(more) - 1} more" if len(more) > 1 else "")
            place = next(place for place, name in enumerate(mine) if theirs[place] != name)
            return f"{what}: another order: {theirs[place]!r} where {mine[place]!r} is expected"
        if self.forecast != other.forecast:
            return "forecast: it has none" if self.forecast else "forecast: it has one"
        if self.item_features != other.item_features:
            return f"items: they have {other.item_features} features each where {self.item_features} are expected"
        return None

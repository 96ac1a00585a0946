"""A study: a grid of jobs, one function that turns a job into rows, and the protocol that they share."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

Parameters = dict[str, Any]
RESERVED = ("job", "dffl")
"""Columns that the store adds to all rows: the job's key, and the version of dffl that made the row."""


@dataclass(frozen=True)
class Job:
    """One point of the grid: its parameters, which become columns of its rows."""

    parameters: Parameters
    values: tuple[str, ...] | None = field(default=None, compare=False)
    """The values of the study's inner axis that are to be computed; None: all."""

    @property
    def key(self) -> str:
        """A name that depends only on the parameters, so that a resumed run recognises the job."""
        return hashlib.blake2b(json.dumps(self.parameters, sort_keys=True).encode(), digest_size=8).hexdigest()

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.parameters.items())


@dataclass(frozen=True)
class Study:
    """A name, a task, its jobs, and the protocol: what is the same for all jobs and decides what the numbers mean.

    ``task(**protocol, **job, **places)`` returns a data frame. It runs in a process of its own, so it must be a function of a
    module (or of a script's top level), and it must not depend on what ran before it.
    """

    name: str
    task: Callable[..., pd.DataFrame]
    jobs: Sequence[Job]
    protocol: Parameters = field(default_factory=dict)
    weight: Callable[[Parameters], float] = lambda parameters: 1.0
    """The expected duration of a job relative to others, for the progress bar."""
    places: Parameters = field(default_factory=dict)
    """Paths, such as a folder of data: passed to every worker, but not part of the protocol, and never compared."""
    inner_axis: tuple[str, str] | None = None
    """A list in the protocol, and the column of the rows that holds its values: ``("methods", "method")``.

    One job computes all values, because they share work. Values can be added to a folder: the task is then called with the
    missing ones alone, so the rows of a value must not depend on the others in the list. The list is not compared.
    """
    defaults: Parameters = field(default_factory=dict)
    """The values of names that older protocols lack: how the task behaved before it had them. May be nested like the protocol.
    """

    def __post_init__(self) -> None:
        if not self.jobs:
            raise ValueError(f"study {self.name!r} needs at least one job, found none")
        for job in self.jobs:
            for name, value in job.parameters.items():
                if not isinstance(value, str | bool | int | float | None):
                    kind = type(value).__name__
                    raise ValueError(f"study {self.name!r}: {name} must be a text, a number, true, false or none, found {kind}")
        if reserved := [name for name in RESERVED if name in self.parameters]:
            raise ValueError(
                f"study {self.name!r}: a parameter must not be called {reserved[0]!r}, as the rows have such a column"
            )
        if len({job.key for job in self.jobs}) < len(self.jobs):
            raise ValueError(f"study {self.name!r}: jobs must differ, found two alike")
        names = {tuple(job.parameters) for job in self.jobs}
        if len(names) > 1:
            raise ValueError(f"study {self.name!r}: all jobs must have the same parameters, found {names}")
        counts = Counter([*self.protocol, *self.parameters, *self.places])
        if twice := [name for name, count in counts.items() if count > 1]:
            raise ValueError(f"study {self.name!r}: {twice[0]} must be in one of protocol, jobs and places, found it in two")
        try:
            json.dumps([self.protocol, [job.parameters for job in self.jobs]], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"study {self.name!r}: protocol and jobs must be values that JSON has ({error})") from None
        if self.inner_axis is not None:
            listed = self.protocol.get(self.inner_axis[0])
            texts = isinstance(listed, list) and all(isinstance(value, str) for value in listed)
            if not texts or not listed or len(set(listed)) < len(listed):
                asked = f"{self.inner_axis[0]} must be a list of different texts in the protocol"
                raise ValueError(f"study {self.name!r}: {asked}, found {listed!r}")

    @property
    def parameters(self) -> list[str]:
        return list(self.jobs[0].parameters)

    @property
    def values(self) -> list[str]:
        """The values of the inner axis; none without such an axis."""
        return list(self.protocol[self.inner_axis[0]]) if self.inner_axis else []

    def arguments(self, job: Job) -> Parameters:
        """The arguments of the task."""
        asked = {self.inner_axis[0]: list(job.values)} if self.inner_axis and job.values is not None else {}
        return {**self.protocol, **asked, **job.parameters, **self.places}

    def weigh(self, job: Job) -> float:
        """The expected duration of a job relative to others, with the values that it will compute."""
        share = len(job.values) / len(self.values) if self.inner_axis and job.values is not None else 1.0
        return share * self.weight(job.parameters)

    def difference(self, name: str, protocol: Parameters) -> str | None:
        """The first difference from a study of this name and protocol; None if they are equal."""
        mine, theirs = json_copy(self.protocol), dict(protocol)
        if self.inner_axis:
            for side in (mine, theirs):
                side.pop(self.inner_axis[0], None)
        named = first_difference({"study": self.name}, {"study": name})
        return named or first_difference(mine, theirs, json_copy(self.defaults))

    def added_to(self, protocol: Parameters) -> Parameters:
        """The protocol of a folder that also gets this study's rows: the values and the names of both."""
        both = _merged(protocol, json_copy(self.protocol))
        if self.inner_axis:
            both[self.inner_axis[0]] = list(dict.fromkeys([*protocol.get(self.inner_axis[0], []), *self.values]))
        return both

    def asking(self, values: Sequence[str]) -> Study:
        """The study with other values of its inner axis."""
        if self.inner_axis is None:
            raise ValueError(f"study {self.name!r} has no inner axis, whose values could be chosen")
        return replace(self, protocol=self.protocol | {self.inner_axis[0]: list(values)})

    def only(self, filters: Iterable[str]) -> Study:
        """The jobs that pass every filter, each a text such as ``degree=2,4``."""
        jobs = list(self.jobs)
        for text in filters:
            name, _, wanted = text.partition("=")
            if name not in self.parameters or not wanted:
                known = ", ".join(self.parameters)
                raise ValueError(f"--only must be NAME=VALUE[,VALUE...] with NAME one of {known}, found {text!r}")
            allowed = {shown(job.parameters[name]) for job in self.jobs}
            values = {_number_text(value) for value in wanted.split(",")}
            if unknown := values - allowed:
                raise ValueError(f"--only {name}: must be among {', '.join(sorted(allowed))}, found {min(unknown)}")
            jobs = [job for job in jobs if shown(job.parameters[name]) in values]
        if not jobs:
            raise ValueError("--only leaves no configuration; loosen a filter")
        return replace(self, jobs=jobs)


def grid(**axes: Sequence[Any]) -> list[Job]:
    """A job for each combination of the values; the last axis varies fastest."""
    plain = [[value.item() if isinstance(value, np.generic) else value for value in values] for values in axes.values()]
    return [Job(dict(zip(axes, values, strict=True))) for values in itertools.product(*plain)]


def shown(value: Any) -> str:
    """A parameter in the form in which people write it."""
    return _number_text(str(value))


def _number_text(text: str) -> str:
    """A text that is equal for ``1`` and ``1.0``, and for ``True`` and ``true``."""
    text = text.strip().lower()
    try:
        return repr(float(text)).removesuffix(".0")
    except ValueError:
        return text


def json_copy(values: Parameters) -> Parameters:
    """``values`` as they are after a round trip through JSON."""
    return dict(json.loads(json.dumps(values)))


def first_difference(mine: Parameters, theirs: Parameters, defaults: Parameters | None = None) -> str | None:
    """The first name with different values, and both values, or None. A name that one side lacks has its default."""
    defaults = defaults or {}
    for name in [*mine, *(name for name in theirs if name not in mine)]:
        here, there = (side.get(name, defaults.get(name)) for side in (mine, theirs))
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            inside = defaults.get(name)
            if difference := first_difference(dict(here), dict(there), inside if isinstance(inside, dict) else None):
                return difference
        # 1 is not true, None is not absent.
        elif (name not in defaults and (name in mine) != (name in theirs)) or json.dumps(here) != json.dumps(there):
            absent = f"{defaults[name]!r} (by default)" if name in defaults else "absent"
            shown_here, shown_there = (repr(side[name]) if name in side else absent for side in (mine, theirs))
            return f"{name} = {shown_there} there and {shown_here} here"
    return None


def _merged(old: Parameters, new: Parameters) -> Parameters:
    """All names of both, those of ``new`` first; nested tables likewise."""
    both = old | new
    for name in old.keys() & new.keys():
        if isinstance(old[name], dict) and isinstance(new[name], dict):
            both[name] = _merged(old[name], new[name])
    return both

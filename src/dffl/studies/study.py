"""What a study is: a grid of jobs, one function that turns a job into tidy rows, and the protocol that they share."""

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


@dataclass(frozen=True)
class Job:
    """One point of the grid: its parameters, which become columns of its rows."""

    parameters: Parameters

    @property
    def key(self) -> str:
        """A name that depends on the parameters alone, so that a resumed run knows the job again."""
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
    """How long a job takes compared with others: what the progress bar counts."""
    places: Parameters = field(default_factory=dict)
    """Where things are, such as a folder of data: handed to every worker, but no part of the protocol, and never compared."""

    def __post_init__(self) -> None:
        if not self.jobs:
            raise ValueError(f"study {self.name!r} needs at least one job, found none")
        for job in self.jobs:
            for name, value in job.parameters.items():
                if not isinstance(value, str | bool | int | float | None):
                    kind = type(value).__name__
                    raise ValueError(f"study {self.name!r}: {name} must be a text, a number, true, false or none, found {kind}")
        if "job" in self.parameters:
            raise ValueError(f"study {self.name!r}: a parameter must not be called 'job', as the rows have such a column")
        if len({job.key for job in self.jobs}) < len(self.jobs):
            raise ValueError(f"study {self.name!r}: jobs must differ, found two alike")
        names = {tuple(job.parameters) for job in self.jobs}
        if len(names) > 1:
            raise ValueError(f"study {self.name!r}: all jobs must have the same parameters, found {names}")
        given = Counter([*self.protocol, *self.parameters, *self.places])
        if twice := [name for name, count in given.items() if count > 1]:
            raise ValueError(f"study {self.name!r}: {twice[0]} must be in one of protocol, jobs and places, found it in two")
        try:
            json.dumps([self.protocol, [job.parameters for job in self.jobs]], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"study {self.name!r}: protocol and jobs must be values that JSON has ({error})") from None

    @property
    def parameters(self) -> list[str]:
        return list(self.jobs[0].parameters)

    def arguments(self, job: Job) -> Parameters:
        """What the task is called with."""
        return {**self.protocol, **job.parameters, **self.places}

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
    """A parameter as a person writes it."""
    return _number_text(str(value))


def _number_text(text: str) -> str:
    """A text that is the same for ``1`` and ``1.0``, and for ``True`` and ``true``."""
    text = text.strip().lower()
    try:
        return repr(float(text)).removesuffix(".0")
    except ValueError:
        return text


def first_difference(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """The first name whose values differ, with both; None if there is none."""
    for name in [*mine, *(name for name in theirs if name not in mine)]:
        one, other = mine.get(name), theirs.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if inside := first_difference(one, other):
                return inside
        elif (name in mine) != (name in theirs) or json.dumps(one) != json.dumps(other):  # 1 is not true, None is not absent
            here, there = (repr(side[name]) if name in side else "absent" for side in (mine, theirs))
            return f"{name} = {there} there and {here} here"
    return None

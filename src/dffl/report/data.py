"""What a report says, as plain values: they can be saved with a fit, sent as JSON, and rendered later.

Regrets and changes are shares of the best possible result (0.01 is one percent); ``lost`` is in the client's own units. What is
not known is None, so that everything is JSON.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from dffl.jsonable import jsonable
from dffl.report.money import OverTime, Saving, over_time_of

FORMAT = 1
"""Raised when a field changes its meaning; a page of another format is refused."""
KEPT = "report.json"
"""The file in which a study keeps what its page says."""


@dataclass(frozen=True)
class Method:
    """A method or a rule: what it is called, and whether it is naive, of one client alone, or trained together."""

    name: str
    kind: str
    """naive, alone or together."""
    what: str
    """In a few words, for people."""
    colour: str = "#777777"


@dataclass(frozen=True)
class Change:
    """A client's regret under a method minus that under a reference, with the ends of its interval."""

    against: str
    value: float | None
    low: float | None
    high: float | None
    verdict: str
    """better, worse, unclear, not judged, or reference."""
    harmed: bool | None
    """Above the tolerance, and the interval excludes 0. None: not judged."""
    above_tolerance: bool | None = None
    """Above the tolerance in the first start alone, which is noisy."""

    @property
    def judged(self) -> bool:
        """Whether it has an interval, and is not the reference itself."""
        return self.low is not None and self.verdict != "reference"


@dataclass(frozen=True)
class Result:
    """One client under one method."""

    client: str
    method: str
    regret: float | None
    """The mean relative regret over test samples and starts."""
    low: float | None = None
    high: float | None = None
    lost: float | None = None
    """What a sample loses on average, in the units of the client's costs."""
    chosen: dict[str, float] = field(default_factory=dict)
    """What the method chose for the client: lambda, epochs."""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Advice:
    """What the advice says to a client."""

    recommendation: str
    use: str
    reason: str


@dataclass(frozen=True)
class Client:
    """What is known about a client in addition to its results."""

    name: str
    n: int
    n_test: int
    sense: str = ""
    """minimises or maximises; empty where it is not known."""
    decides: str = ""
    """The feasible set in a few words."""
    unit: str = ""
    """The unit of its costs, such as EUR; empty where none was given."""
    advice: Advice | None = None


@dataclass(frozen=True)
class Differences:
    """How different each pair of clients is: a matrix of bounds on the difference of their losses, in scaled units."""

    names: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    note: str
    """How reliable the numbers are."""


@dataclass(frozen=True)
class Curve:
    """The loss of one training, round by round: the mean over clients, and the range in which eight in ten of them are."""

    method: str
    job: str
    rounds: tuple[int, ...]
    mean: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True)
class Picture:
    """A drawing of what a report is about, such as a map. It is shown as an image, so that nothing in it can run."""

    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True)
class ReportData:
    """Everything that a page says."""

    title: str
    main: str
    """The method that the verdict is about."""
    methods: tuple[Method, ...]
    clients: tuple[Client, ...]
    results: tuple[Result, ...]
    references: tuple[str, ...] = ()
    """What methods are compared with, the fairest first."""
    starts: int | None = None
    confidence: float = 0.95
    tolerance: float = 0.01
    sample: str = "sample"
    """What a sample is called: day, order, patient."""
    answer: str = ""
    """What to do, in words, where the training has said it already: then it is the verdict."""
    notes: tuple[str, ...] = ()
    """Notes for the reader, such as how samples were split."""
    differences: Differences | None = None
    curves: tuple[Curve, ...] = ()
    pictures: tuple[Picture, ...] = ()
    """Drawings that follow the verdict."""
    now: str | None = None
    """The rule by which the user decides today, as far as one knows: the forecast, or else the best moving average."""
    savings: tuple[Saving, ...] = ()
    """What the main method saves against what the user does now, and against every other method."""
    over_time: OverTime | None = None
    """The test rows in their order, where they have one."""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    command: str = ""
    """What to type to get the same numbers again."""
    again: str = "Train again with three or more random seeds"
    """What to do if there are too few starts to distinguish harm from noise."""
    made: str = ""
    """The date of the computation."""

    def result(self, client: str, method: str) -> Result | None:
        """One client under one method; None where it was not judged."""
        return self._found.get((client, method))

    @property
    def reference(self) -> str | None:
        """What the verdict compares with: the first reference that is not the main method itself."""
        return next((name for name in self.references if name != self.main), None)

    def method(self, name: str) -> Method:
        """The method of this name."""
        return next(one for one in self.methods if one.name == name)

    @property
    def ordered(self) -> list[Method]:
        """The main method, what it is compared with, then the others: naive ones last."""
        first = list(dict.fromkeys([self.main, *self.references]))
        rest = [one for one in reversed(self.methods) if one.name not in first]
        return [self.method(name) for name in first] + rest

    def change(self, client: str, method: str, against: str | None) -> Change | None:
        """How a method changes a client's regret against a reference; None where that is not known."""
        found = self.result(client, method)
        return None if found is None else next((one for one in found.changes if one.against == against), None)

    def saving(self, client: str, against: str | None) -> Saving | None:
        """What a client, or all together (an empty name), saves against a method; None where that is not known."""
        return next((one for one in self.savings if (one.client, one.against) == (client, against)), None)

    @property
    def _found(self) -> dict[tuple[str, str], Result]:
        kept: dict[tuple[str, str], Result] | None = self.__dict__.get("_kept")
        if kept is None:
            kept = {(one.client, one.method): one for one in self.results}
            object.__setattr__(self, "_kept", kept)  # frozen, and asked thousands of times for one page
        return kept

    def as_json(self) -> dict[str, Any]:
        """For programs, and to be kept in ``Fit.about``."""
        plain: dict[str, Any] = jsonable(asdict(self))
        return {"format": FORMAT, **plain}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> ReportData:
        """What `as_json` gave."""
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            found = plain.get("format") if isinstance(plain, dict) else type(plain).__name__
            raise ValueError(
                f"report: format must be {FORMAT}, found {found!r}; make the report again with this version of dffl"
            )
        rest = {name: value for name, value in plain.items() if name != "format"}
        try:
            return cls(**{name: _READ[name](value) if name in _READ else value for name, value in rest.items()})
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"report: these are not the fields of a report ({error})") from None


def _result(plain: dict[str, Any]) -> Result:
    return Result(**plain | {"changes": tuple(Change(**one) for one in plain["changes"])})


def _client(plain: dict[str, Any]) -> Client:
    return Client(**plain | {"advice": plain["advice"] and Advice(**plain["advice"])})


def _differences(plain: dict[str, Any] | None) -> Differences | None:
    return plain and Differences(tuple(plain["names"]), tuple(map(tuple, plain["values"])), plain["note"])  # type: ignore[return-value]


def _curve(plain: dict[str, Any]) -> Curve:
    return Curve(**plain | {name: tuple(plain[name]) for name in ("rounds", "mean", "low", "high")})


_READ: dict[str, Any] = {
    "methods": lambda many: tuple(Method(**one) for one in many),
    "clients": lambda many: tuple(map(_client, many)),
    "results": lambda many: tuple(map(_result, many)),
    "references": tuple,
    "notes": tuple,
    "differences": _differences,
    "curves": lambda many: tuple(map(_curve, many)),
    "savings": lambda many: tuple(Saving(**one) for one in many),
    "over_time": over_time_of,
    "pictures": lambda many: tuple(Picture(**one) for one in many),
}

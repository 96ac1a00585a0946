"""The content of a report as plain values: they can be saved with a fit, sent as JSON, and rendered later.

Regrets and changes are shares of the best possible result (0.01 is one percent); ``lost`` is in the client's own units.
Unknown values are None, so that everything is JSON.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from dffl.jsonable import jsonable
from dffl.report.money import OverTime, Saving, over_time_of

FORMAT = 1
"""Increased when a field changes its meaning. A page of another format is refused."""
KEPT = "report.json"
"""The file in which a study stores the content of its page."""


@dataclass(frozen=True)
class Method:
    """A method or a rule: its name, and its kind."""

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
    """Above the tolerance with the first seed alone, which is noisy."""

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
    """The mean relative regret over test samples and seeds."""
    low: float | None = None
    high: float | None = None
    lost: float | None = None
    """The mean loss of a sample, in the units of the client's costs."""
    chosen: dict[str, float] = field(default_factory=dict)
    """The choices of the method for the client: lambda, epochs."""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Advice:
    """The advice for a client."""

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
    """minimises or maximises; empty if unknown."""
    decides: str = ""
    """The feasible set in a few words."""
    unit: str = ""
    """The unit of its costs, such as EUR; empty if unknown."""
    advice: Advice | None = None


@dataclass(frozen=True)
class Differences:
    """The difference of each pair of clients: a matrix of bounds on the difference of their losses, in scaled units."""

    names: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    note: str
    """The reliability of the numbers."""


@dataclass(frozen=True)
class Curve:
    """The loss of one training by round: the mean over clients, and the range that contains 80 % of them."""

    method: str
    job: str
    rounds: tuple[int, ...]
    mean: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True)
class Picture:
    """A drawing of the topic of a report, such as a map. It is shown as an image, so that nothing in it can run."""

    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True)
class ReportData:
    """The content of a page."""

    title: str
    main: str
    """The method of the verdict."""
    methods: tuple[Method, ...]
    clients: tuple[Client, ...]
    results: tuple[Result, ...]
    references: tuple[str, ...] = ()
    """The references of methods, the fairest first."""
    starts: int | None = None
    confidence: float = 0.95
    tolerance: float = 0.01
    sample: str = "sample"
    """The name of a sample: day, order, patient."""
    answer: str = ""
    """What to do, in words, if the training has said it already: then it is the verdict."""
    notes: tuple[str, ...] = ()
    """Notes for the reader, such as how samples were split."""
    differences: Differences | None = None
    curves: tuple[Curve, ...] = ()
    pictures: tuple[Picture, ...] = ()
    """Drawings after the verdict."""
    now: str | None = None
    """The rule by which the user decides today, as far as known: the forecast, or else the best moving average."""
    savings: tuple[Saving, ...] = ()
    """The saving of the main method compared with today's rule, and with every other method."""
    over_time: OverTime | None = None
    """The test rows in their order, if they have one."""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    command: str = ""
    """The command that gives the same numbers again."""
    again: str = "Train again with three or more random seeds"
    """What to do if there are too few seeds to distinguish harm from noise."""
    made: str = ""
    """The date of the computation."""

    def result(self, client: str, method: str) -> Result | None:
        """One client under one method; None if it was not judged."""
        return self._found.get((client, method))

    @property
    def reference(self) -> str | None:
        """The reference of the verdict: the first one that is not the main method itself."""
        return next((name for name in self.references if name != self.main), None)

    def method(self, name: str) -> Method:
        """The method of this name."""
        return next(method for method in self.methods if method.name == name)

    @property
    def ordered(self) -> list[Method]:
        """The main method, its references, then the others: naive ones last."""
        first = list(dict.fromkeys([self.main, *self.references]))
        rest = [method for method in reversed(self.methods) if method.name not in first]
        return [self.method(name) for name in first] + rest

    def change(self, client: str, method: str, against: str | None) -> Change | None:
        """The change of a client's regret by a method, against a reference; None if unknown."""
        result = self.result(client, method)
        return None if result is None else next((change for change in result.changes if change.against == against), None)

    def saving(self, client: str, against: str | None) -> Saving | None:
        """The saving of a client, or of all together (an empty name), against a method; None if unknown."""
        return next((saving for saving in self.savings if (saving.client, saving.against) == (client, against)), None)

    @property
    def _found(self) -> dict[tuple[str, str], Result]:
        by_pair: dict[tuple[str, str], Result] | None = self.__dict__.get("_kept")
        if by_pair is None:
            by_pair = {(result.client, result.method): result for result in self.results}
            object.__setattr__(self, "_kept", by_pair)  # cached although frozen: it is used thousands of times for one page
        return by_pair

    def as_json(self) -> dict[str, Any]:
        """As JSON values, to be stored in ``Fit.about``."""
        plain: dict[str, Any] = jsonable(asdict(self))
        return {"format": FORMAT, **plain}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> ReportData:
        """The inverse of `as_json`."""
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            shown = plain.get("format") if isinstance(plain, dict) else type(plain).__name__
            raise ValueError(
                f"report: format must be {FORMAT}, found {shown!r}; make the report again with this version of dffl"
            )
        rest = {name: value for name, value in plain.items() if name != "format"}
        try:
            return cls(**{name: _READ[name](value) if name in _READ else value for name, value in rest.items()})
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"report: these are not the fields of a report ({error})") from None


def _result(plain: dict[str, Any]) -> Result:
    return Result(**plain | {"changes": tuple(Change(**change) for change in plain["changes"])})


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

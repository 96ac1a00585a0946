"""A model from an MPS or LP file, also compressed, as a feasible set."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from dffl.files import special
from dffl.sets import _lp_text, _matching, _mps_text
from dffl.sets._model_draft import ReadModel
from dffl.sets._program import SEMI_CONTINUOUS, Program
from dffl.sets.base import FeasibleSet
from dffl.sets.parameters import FLAG, LIMITS, NAMES, PATH, TEXT
from dffl.sets.program_set import NODES, SECONDS, ProgramSet, checked_limits

Sense = Literal["min", "max"]
MOST_SEMI = 1e5
"""The largest upper bound of a semi-continuous variable that HiGHS takes."""


class ModelFile(ProgramSet):
    """The feasible set of a linear or mixed-integer model in an MPS or LP file, also compressed (.gz).

    ``predicted`` says which variables get their costs from predictions: a pattern with one star ("x_*"), or a list of names.
    All other variables are helpers, and keep the file's objective as known costs. The rules:

    - A predicted variable's own coefficient in the file's objective is replaced by the prediction. With
      ``keep_coefficients=True`` it is a known cost that is added to the prediction.
    - The known costs, and a constant of the objective, are in the file's sense. A client of a file that maximises must have
      ``maximize=True``, and one of a file that minimises must not, unless nothing in the objective is known. ``sense`` ("min"
      or "max") says it otherwise.
    - Named cost columns are matched by the text under the star: ``price_3`` belongs to ``x_3``. ``costs`` is their pattern; it
      is found by itself where one fits. Plain arrays are in the order of the file, a list of names in its own order
      (refused where the numbers in the names of variables and columns say otherwise).

    A saved fit holds the file's text, not its path. ``text``, ``format`` ("mps" or "lp") and ``name`` give a model without a
    file. For ``nodes``, ``seconds`` and ``relaxed`` see `MixedInteger`.
    """

    toml_name = "file"
    toml_parameters = {
        "path": PATH, "predicted": NAMES, "costs": TEXT, "keep_coefficients": FLAG, "sense": TEXT, "relaxed": FLAG, **LIMITS,
    }  # fmt: skip

    local: ClassVar[tuple[str, ...]] = ("path",)

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        predicted: str | Sequence[str] = "*",
        *,
        costs: str | None = None,
        keep_coefficients: bool = False,
        sense: Sense | None = None,
        nodes: int = NODES,
        seconds: float = SECONDS,
        relaxed: bool = False,
        text: str | None = None,
        format: str | None = None,
        name: str | None = None,
    ):
        if (path is None) == (text is None):
            raise ValueError("ModelFile: give the path of a file, or text and format")
        if text is not None and format not in ("mps", "lp"):
            raise ValueError(f"ModelFile: format must be 'mps' or 'lp' where text is given, found {format!r}")
        if sense not in (None, "min", "max"):
            raise ValueError(f"ModelFile: sense must be 'min' or 'max', found {sense!r}")
        source = ModelText(text, str(format), name or f"model.{format}") if text is not None else read_text(str(path))
        owner = f"ModelFile {source.name}"
        read = parse(source)
        chosen = _predicted(owner, predicted, read.columns)
        limits = checked_limits(owner, nodes, seconds)
        known = np.zeros(read.cost.size) + read.cost
        if not keep_coefficients:
            known[chosen] = 0.0
        if not np.isfinite(known).all() or not np.isfinite(read.offset):
            raise ValueError(f"{owner}: the coefficients of its objective must be finite")
        _require_semi(owner, read)
        program = Program(
            owner=owner,
            matrix=read.matrix,
            row_lower=read.row_lower,
            row_upper=read.row_upper,
            lower=read.lower,
            upper=read.upper,
            kind=read.kind,
            predicted=chosen,
            known=known,
            offset=read.offset,
            maximize=read.maximize if sense is None else sense == "max",
            columns=read.columns,
            rows=read.rows,
        )
        spec: dict[str, Any] = {"text": source.text, "format": source.format, "name": source.name}
        spec |= {"predicted": predicted if isinstance(predicted, str) else tuple(predicted)}
        spec |= {"costs": costs} if costs is not None else {}
        spec |= {"keep_coefficients": True} if keep_coefficients else {}
        spec |= {"sense": sense} if sense is not None else {}
        spec |= limits | ({"relaxed": True} if relaxed else {})
        self._start(spec, program)

    @classmethod
    def asked(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        return super().asked(spec) | {"texts": len(str(spec.get("text", "")))}

    def in_words(self) -> str:
        return f"model file, {self.dim} decisions"

    @property
    def sense(self) -> Sense:
        """What the known costs of the file are meant for."""
        program = self.program
        assert program is not None, "a model file is a program"
        return "max" if program.maximize else "min"

    def require_sense(self, maximize: bool) -> None:
        program = self.program
        assert program is not None, "a model file is a program"
        if self._known and (self.sense == "max") != maximize:
            does, other = ("maximises", "maximize=True") if self.sense == "max" else ("minimises", "maximize=False")
            fix = f"make the client with {other}, or say by ModelFile(sense=...) how its known costs are meant"
            raise ValueError(f"{program.owner}: its objective {does} known costs; {fix}")
        super().require_sense(maximize)

    def matched(self, cost_names: Sequence[str]) -> FeasibleSet:
        spec, program = self.spec(), self.program
        assert program is not None, "a model file is a program"
        assert program.columns is not None, "its columns have names"
        pattern = spec["predicted"]
        if not isinstance(pattern, str) or "*" not in pattern:
            _matching.contradiction(program.owner, [program.columns[j] for j in program.predicted], cost_names)
            return self
        by_text = _matching.find(program.owner, "predicted", pattern, program.columns)
        names = _matching.in_cost_order(program.owner, by_text, cost_names, spec.get("costs"))
        # As names in the order of the costs: a pattern that was matched once is not matched again.
        return type(self)(**(spec | {"predicted": tuple(names)}))


def _require_semi(owner: str, read: ReadModel) -> None:
    """Refuse what HiGHS does not solve: semi-continuous variables that may be negative or large."""
    bad = (read.kind >= SEMI_CONTINUOUS) & ((read.lower < 0) | (read.upper > MOST_SEMI))
    for j in np.flatnonzero(bad)[:1]:
        bounds = f"found {read.lower[j]:g} and {read.upper[j]:g}"
        raise ValueError(
            f"{owner}: semi-continuous variable {read.columns[j]!r} must have bounds in [0, {MOST_SEMI:g}], {bounds}"
        )


def _predicted(owner: str, wanted: str | Sequence[str], columns: tuple[str, ...]) -> np.ndarray:
    """The numbers of the predicted columns: in the file's order for a pattern, in the given order for names."""
    place = {name: number for number, name in enumerate(columns)}
    if len(place) < len(columns):
        raise ValueError(f"{owner}: two of its variables have one name; predicted variables are found by their names")
    if isinstance(wanted, str) and "*" in wanted:
        names = list(_matching.find(owner, "predicted", wanted, columns).values())
    else:
        names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in place:
            raise ValueError(f"{owner}: predicted names {name!r}, which is not a variable of the model")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{owner}: predicted must name one or more different variables, found {names!r:.80}")
    return np.array([place[name] for name in names])


FORMATS = {".mps": "mps", ".lp": "lp", ".mps.gz": "mps", ".lp.gz": "lp"}
MOST_BYTES = 200_000_000
"""The largest text of a model."""


class ModelText(NamedTuple):
    """A model file's content: its text, its format, and what messages call it."""

    text: str
    format: str
    name: str


def read_text(path: str | PathLike[str]) -> ModelText:
    """The text of a model file; compressed ones end in .gz."""
    source = Path(path)
    ending = "".join(source.suffixes[-2:]).lower() if source.suffix.lower() == ".gz" else source.suffix.lower()
    if ending not in FORMATS:
        raise ValueError(f"{source.name}: a model file must end in {', '.join(FORMATS)}, found {source.suffix!r}")
    if what := special(source):
        raise ValueError(f"{source}: {what}, not a regular file")
    try:
        with gzip.open(source) if ending.endswith(".gz") else source.open("rb") as file:
            size = 0
            while block := file.read(1 << 20):  # a small file can hold a large text: it is measured before it is held
                size += len(block)
                if size > MOST_BYTES:
                    raise ValueError(_too_large(source.name))
            file.seek(0)
            content = file.read()
        return ModelText(content.decode("utf-8-sig"), FORMATS[ending], source.name)
    except (EOFError, UnicodeDecodeError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{source.name}: cannot be read as text ({error})") from None
    except OSError as error:
        raise ValueError(f"{source}: cannot be read ({error.strerror or error})") from None


def parse(model: ModelText) -> ReadModel:
    """The model that a text describes; what is not linear, or not understood, is refused with its line."""
    if len(model.text) > MOST_BYTES:
        raise ValueError(_too_large(model.name))
    return (_mps_text if model.format == "mps" else _lp_text).read(model.text, model.name)


def _too_large(name: str) -> str:
    return f"{name}: its text must have at most {MOST_BYTES // 10**6} MB; split the model, or shorten its names"

"""Models as text: MPS and LP files, read by HiGHS into programs."""

from __future__ import annotations

import gzip
import re
import tempfile
import zlib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from dffl.files import write_text
from dffl.sets import _lp_text

if TYPE_CHECKING:
    import highspy
else:
    from dffl.sets._highspy import highspy

FORMATS = {".mps": "mps", ".lp": "lp", ".mps.gz": "mps", ".lp.gz": "lp"}
MOST_CHARACTERS = 200_000_000
_MPS_REFUSED = {
    "QUADOBJ": "a quadratic objective", "QMATRIX": "a quadratic objective", "QSECTION": "a quadratic objective",
    "QCMATRIX": "quadratic constraints", "CSECTION": "conic constraints", "SOS": "special ordered sets",
    "SOS1": "special ordered sets", "SOS2": "special ordered sets", "INDICATORS": "indicator constraints",
    "GENCONS": "general constraints", "PWLOBJ": "a piecewise linear objective",
}  # fmt: skip
_LP_REFUSED = {
    "SOS": "special ordered sets", "SOS1": "special ordered sets", "SOS2": "special ordered sets",
    "PWLOBJ": "a piecewise linear objective", "GENERAL CONSTRAINTS": "general constraints",
}  # fmt: skip


class ModelText(NamedTuple):
    """A model file's content: its text, its format, and what messages call it."""

    text: str
    format: str
    name: str


class ReadModel(NamedTuple):
    """A model as the file has it: minimised, or maximised."""

    matrix: sparse.csr_matrix
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    kind: np.ndarray
    cost: np.ndarray
    offset: float
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    maximize: bool


def read_text(path: str | PathLike[str]) -> ModelText:
    """The text of a model file; compressed ones end in .gz."""
    source = Path(path)
    ending = "".join(source.suffixes[-2:]).lower() if source.suffix.lower() == ".gz" else source.suffix.lower()
    if ending not in FORMATS:
        raise ValueError(f"{source.name}: a model file must end in {', '.join(FORMATS)}, found {source.suffix!r}")
    try:
        data = source.read_bytes()
        text = (gzip.decompress(data) if ending.endswith(".gz") else data).decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{source}: cannot be read ({error.strerror or error})") from None
    except (EOFError, UnicodeDecodeError, zlib.error) as error:
        raise ValueError(f"{source.name}: cannot be read as text ({error})") from None
    return ModelText(text, FORMATS[ending], source.name)


def parse(model: ModelText) -> ReadModel:
    """The model that a text describes; what is not linear is refused."""
    if len(model.text) > MOST_CHARACTERS:
        raise ValueError(f"{model.name}: must have at most {MOST_CHARACTERS:,} characters, found {len(model.text):,}")
    refused = _mps_refused(model.text) if model.format == "mps" else _lp_refused(model.text)
    if refused:
        rest = "" if "MPS" in refused else "; only linear models, with whole numbers, can be used"
        raise ValueError(f"{model.name}: it has {refused}{rest}")
    if model.format == "lp" and (wrong := _lp_text.misread(model.text)):
        raise ValueError(f"{model.name}: it has {wrong}")
    highs = _loaded(model)
    lp = highs.getLp()
    if lp.num_col_ == 0:
        raise ValueError(f"{model.name}: it has no variables")
    columns = _names(lp.col_names_, lp.num_col_, "x")
    if model.format == "lp":
        _require_binary(model, dict(zip(columns, zip(lp.col_lower_, lp.col_upper_, strict=True), strict=True)))
    start, index, value = (np.asarray(a) for a in (lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_))
    by_columns = lp.a_matrix_.format_ == highspy.MatrixFormat.kColwise
    kind = sparse.csc_matrix if by_columns else sparse.csr_matrix
    matrix = sparse.csr_matrix(kind((value, index, start), shape=(lp.num_row_, lp.num_col_)))
    integrality = [int(one) for one in lp.integrality_] or [0] * lp.num_col_
    kinds = np.array(integrality)
    if (kinds > 3).any():
        raise ValueError(f"{model.name}: variable {columns[int(np.argmax(kinds > 3))]!r} is of a kind that cannot be used")
    return ReadModel(
        matrix,
        np.asarray(lp.row_lower_, float),
        np.asarray(lp.row_upper_, float),
        np.asarray(lp.col_lower_, float),
        np.asarray(lp.col_upper_, float),
        kinds,
        np.asarray(lp.col_cost_, float),
        float(lp.offset_),
        columns,
        _names(lp.row_names_, lp.num_row_, "row "),
        lp.sense_ == highspy.ObjSense.kMaximize,
    )


def _loaded(model: ModelText) -> highspy.Highs:
    with tempfile.TemporaryDirectory(prefix="dffl-") as folder:
        path = Path(folder) / f"model.{model.format}"
        write_text(path, model.text)
        log = Path(folder) / "log"
        highs = highspy.Highs()
        highs.setOptionValue("log_to_console", False)
        highs.setOptionValue("log_file", str(log))
        status = highs.readModel(str(path))
        highs.setOptionValue("log_file", "")
        highs.setOptionValue("output_flag", False)
        if status == highspy.HighsStatus.kError:
            raise ValueError(f"{model.name}: HiGHS cannot read it as {model.format.upper()}; is it complete, and linear?")
        ignored = _ignored(log.read_text(encoding="utf-8", errors="replace"))
    if ignored is not None:
        raise ValueError(f"{model.name}: HiGHS would not use all of it ({ignored}); mend the file")
    if highs.getModel().hessian_.dim_ > 0:
        raise ValueError(f"{model.name}: it has a quadratic objective; only linear models, with whole numbers, can be used")
    return highs


def _ignored(log: str) -> str | None:
    """The first warning of HiGHS that is of something in the file that it leaves out or changes."""
    harmless = "switching to fixed format", "values summed"
    warnings = [" ".join(line.split()[1:]) for line in log.splitlines() if line.startswith("WARNING:")]
    return next((words for words in warnings if not any(some in words for some in harmless)), None)


def _require_binary(model: ModelText, bounds: dict[str, tuple[float, float]]) -> None:
    for name in _lp_text.sections(model.text).binaries:
        low, high = bounds.get(name, (0.0, 1.0))
        if low < 0 or high > 1:
            raise ValueError(f"{model.name}: variable {name!r} is binary and has the bounds {low:g} and {high:g}; remove these")


def _names(given: list[str], count: int, prefix: str) -> tuple[str, ...]:
    return tuple(given) if len(given) == count else tuple(f"{prefix}{number}" for number in range(count))


def _mps_refused(text: str) -> str | None:
    # A section begins at the first character of a line; data lines are indented.
    for line in text.splitlines():
        if line[:1].isalpha():
            word = line.split()[0].upper()
            if word in _MPS_REFUSED:
                return _MPS_REFUSED[word]
    return None


def _lp_refused(text: str) -> str | None:
    for line in text.splitlines():
        words = line.split("\\", 1)[0]
        if re.search(r"\w\[[^\]\s]*\]", words):
            return "names with square brackets, which an LP file cannot have: write it as MPS"
        if re.search(r"\^\s*2|\[|\]", words):
            return "quadratic terms"
        if "->" in words:
            return "indicator constraints"
        found = _LP_REFUSED.get(words.strip().rstrip(":").upper())
        if found:
            return found
    return None

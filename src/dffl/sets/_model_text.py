"""Models as text: MPS and LP files, also compressed."""

from __future__ import annotations

import gzip
import zlib
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from dffl.files import special
from dffl.sets import _lp_text, _mps_text
from dffl.sets._model_draft import ReadModel

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

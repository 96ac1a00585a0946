"""study.json: the meaning of the rows of a folder, and the versions of dffl that made them."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import dffl
from dffl.files import write_text
from dffl_studies.running.sealed import seal_json
from dffl_studies.running.study import Study, json_copy

FORMAT = 3
"""The version of the folder's format. Raise it if a reader of older versions would read a folder wrongly. Older formats are
still read.

Format 1 has no digests. Formats 1 and 2 have one version for all rows, and only rows of complete jobs.
"""
ANOTHER = "restore it from a copy, or choose another folder"

Description = dict[str, Any]


def read_description(folder: Path) -> Description:
    """The content of study.json, checked."""
    path = folder / "study.json"
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{folder}: holds no study (no study.json there); run one first") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: cannot be read ({error}); {ANOTHER}") from None
    if type(described) is not dict:
        raise ValueError(f"{path}: must be an object with the fields of a study, found {type(described).__name__}; {ANOTHER}")
    number = described.get("format")
    if type(number) is not int or not 1 <= number <= FORMAT:
        raise ValueError(f"{path}: format must be 1 to {FORMAT}, found {number!r}; choose another folder")
    if (number > 1 or "digest" in described) and described.get("digest") != seal_json(described)["digest"]:
        raise ValueError(f"{path}: is damaged or was edited (its content does not match its digest); {ANOTHER}")
    for name, kind, asked in (("study", str, "a text"), ("dffl", str, "a text"), ("protocol", dict, "an object")):
        if not isinstance(described.get(name), kind):
            raise ValueError(f"{path}: {name} must be {asked}, found {described.get(name)!r}; {ANOTHER}")
    return described


def write_description(folder: Path, described: Description) -> None:
    """Write study.json with its digest, in one step."""
    write_text(folder / "study.json", json.dumps(seal_json(described), indent=2) + "\n")


def first_description(study: Study) -> Description:
    """The description of a new folder."""
    about = {"format": FORMAT, "study": study.name, "dffl": dffl.__version__, "protocol": json_copy(study.protocol)}
    return about | _axis(study) | {"machine": machine()}


def widened(described: Description, study: Study) -> Description:
    """The description of a folder that also gets rows of this study, made by this version."""
    later = dict(described.get("later_versions", {}))
    if dffl.__version__ != described["dffl"]:
        later.setdefault(dffl.__version__, machine())
    about = {"format": FORMAT, "protocol": study.added_to(described["protocol"]), **_axis(study)}
    return described | about | ({"later_versions": later} if later else {})


def axis_column(described: Description) -> str | None:
    """The column of the inner axis; None if there is none."""
    axis = described.get("inner_axis")
    return None if axis is None else str(axis["column"])


def axis_values(described: Description) -> list[str]:
    """The wanted values of the inner axis."""
    axis = described.get("inner_axis")
    return [] if axis is None else list(described["protocol"][axis["argument"]])


def _axis(study: Study) -> Description:
    if study.inner_axis is None:
        return {}
    argument, column = study.inner_axis
    return {"inner_axis": {"argument": argument, "column": column}}


def machine() -> dict[str, Any]:
    """The system on which the numbers were computed, without the name of the machine."""
    names = ("jax", "jaxlib", "optax", "equinox", "numpy")
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    versions = {name: metadata.version(name) for name in names}
    return {"processor": model, "cores": os.cpu_count(), "python": platform.python_version(), **versions}

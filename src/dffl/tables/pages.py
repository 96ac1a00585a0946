"""What `dffl report` shows: the page of a model, of a folder of models, or of a study that kept its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from dffl.report.data import KEPT, ReportData
from dffl.report.merged import merged
from dffl.tables.model import OwnModel

MODELS = "*.dffl"


class FolderReport(NamedTuple):
    """A report, and the models of a folder that are not on it, each with the reason."""

    data: ReportData
    left_out: list[str]


def pages_at(path: Path) -> list[Path]:
    """The files that `found_at` may read."""
    return [path / KEPT, *sorted(path.glob(MODELS))] if path.is_dir() else [path]


def found_at(path: Path) -> FolderReport:
    """The report of a model's file or of a folder."""
    if not path.is_dir():
        return FolderReport(_of_model(path), [])
    if (path / KEPT).is_file():
        return FolderReport(_kept(path / KEPT), [])
    models = sorted(path.glob(MODELS))
    parts, left_out = {}, []
    for model in models:
        try:
            parts[model.stem] = _of_model(model)
        except ValueError as error:
            left_out.append(str(error))
    if parts:
        try:
            return FolderReport(merged(parts), left_out)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if left_out:
        more = f" (and {len(left_out) - 1} more such files)" if len(left_out) > 1 else ""
        raise ValueError(f"{left_out[0]}{more}")
    raise ValueError(f"{path}: {_nothing(path)}")


def _of_model(path: Path) -> ReportData:
    plain = OwnModel.load(path).about.get("report")
    if plain is None:
        raise ValueError(f"{path}: is the exported model of one client; the report is in the model of all")
    return ReportData.from_json(plain)


def _kept(path: Path) -> ReportData:
    try:
        return ReportData.from_json(json.loads(path.read_bytes()))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from None


def _nothing(path: Path) -> str:
    """Why a folder has no page, and what to type."""
    files = [one.name for one in sorted(path.glob("*.toml"))]
    if files:
        toml, model = path / files[0], path / "model.dffl"
        return f"holds no model; train one: dffl fit {toml} -o {model}"
    if (path / "study.json").is_file():
        return f"is a study without a page ({KEPT}); `dffl energy run PANEL -o {path} --show` adds one to an energy study"
    return f"holds no model of `dffl fit` ({MODELS}) and no page of a study ({KEPT})"

"""What `dffl report` shows: the page of a model, of a folder of models, or of a study; of all clients or of each."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from dffl.files import require_makeable
from dffl.report.data import KEPT, ReportData
from dffl.report.merged import merged
from dffl.report.numbers import counted
from dffl.report.one_client import of_client
from dffl.report.page import write
from dffl.report.summary import summary
from dffl.report.target import require_packages, require_page
from dffl.tables.model import OwnModel
from dffl.terminal import printable

MODELS = "*.dffl"
LONGEST = 80
"""The most letters of a client's name in a file name."""


class Wanted(NamedTuple):
    """What to write or print of a report."""

    out: Path | None = None
    client: str | None = None
    each: Path | None = None
    text: bool = False

    def require(self, inputs: Sequence[Path]) -> None:
        """Refuse targets that cannot be written, before anything is read."""
        if self.client is not None and self.each is not None:
            raise ValueError("--each cannot be combined with --client: it writes the page of every client; remove one")
        if self.out is None and self.each is None and not self.text:
            raise ValueError("nothing to write: give --out PAGE.html, --each FOLDER or --text")
        if self.out is not None:
            require_page(self.out, "--out", inputs)
        if self.each is not None:
            require_packages()
            if not self.each.is_dir():
                require_makeable(self.each)


@dataclass(frozen=True)
class Pages:
    """The written files, and the summary if it was asked for."""

    out: Path | None
    each: dict[str, str]
    text: list[str]
    left_out: list[str]

    def show(self, console: Console) -> None:
        for line in self.text:
            console.print(printable(line), soft_wrap=True)
        for line in self.left_out:
            console.print(f"left out: {printable(line)}", soft_wrap=True)
        if self.out is not None:
            console.print(f"wrote {self.out}", soft_wrap=True)
        if self.each:
            folder = Path(next(iter(self.each.values()))).parent
            console.print(f"wrote {counted(len(self.each), 'page')} to {folder}, one for each client", soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        more = {"each": self.each} if self.each else {}
        told = {"text": self.text} if self.text else {}
        return {"report": None if self.out is None else str(self.out), **more, **told, "left_out": self.left_out}


def written(path: Path, wanted: Wanted) -> Pages:
    """Write the pages of a model or of a folder."""
    wanted.require([])
    inputs = pages_at(path)
    wanted.require(inputs)
    source = found_at(path)
    data = source.data if wanted.client is None else of_client(source.data, wanted.client)
    pages: dict[str, str] = {}
    if wanted.each is not None:
        targets = {name: wanted.each / file for name, file in file_names([client.name for client in data.clients]).items()}
        wanted.each.mkdir(parents=True, exist_ok=True)
        for target in targets.values():
            require_page(target, "--each", inputs)
        for name, target in targets.items():
            write(of_client(data, name), target)
            pages[name] = str(target)
    if wanted.out is not None:
        write(data, wanted.out)
    return Pages(wanted.out, pages, summary(data) if wanted.text else [], source.left_out)


def file_names(names: Sequence[str]) -> dict[str, str]:
    """A file name for each client: its name without signs that file names cannot have. Equal file names are numbered."""
    files: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:LONGEST] or "client"
        number, file = 1, plain
        while file.casefold() in {other.casefold() for other in files.values()}:
            number += 1
            file = f"{plain}-{number}"
        files[name] = file
    return {name: f"{file}.html" for name, file in files.items()}


class FolderReport(NamedTuple):
    """A report, and the models of a folder that are not in it, each with the reason."""

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
    files = [file.name for file in sorted(path.glob("*.toml"))]
    if files:
        toml, model = path / files[0], path / "model.dffl"
        return f"holds no model; train one: dffl fit {toml} -o {model}"
    if (path / "study.json").is_file():
        return f"is a study without a page ({KEPT}); `dffl energy run PANEL -o {path} --show` adds one to an energy study"
    return f"holds no model of `dffl fit` ({MODELS}) and no page of a study ({KEPT})"

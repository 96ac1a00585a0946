"""Figures on disk, in each format that is asked for; the same data give the same files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from dffl.files import write_whole
from dffl.studies.figures.style import in_print


def write_figures(
    figures: Iterable[tuple[str, Figure | None]], folder: Path, formats: Sequence[str], resolution: int
) -> list[Path]:
    """Write figures by name, but for those that there was nothing to draw of; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures:
        if figure is None:
            continue
        for kind in formats:
            path = folder / f"{name}.{kind}"
            write_whole(path, partial(_save, figure, kind, resolution))
            written.append(path)
    return written


def _save(figure: Figure, kind: str, resolution: int, path: Path) -> None:
    # Without a date the same data give the same file.
    metadata = {"CreationDate": None} if kind == "pdf" else None
    with in_print():
        figure.savefig(path, format=kind, dpi=resolution, metadata=metadata)

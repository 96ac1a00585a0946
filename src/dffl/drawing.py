"""Figures: sizes for print, labels, and files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from dffl.files import write_whole

WIDE = 7.0
"""The width of a page in inches. Figures are drawn at the size at which they are printed."""

PRINT: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "figure.titlesize": 9,
    "legend.frameon": False,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # some publishers refuse Type 3, the default
}
INK, PALE_INK = "#222222", "#666666"


def in_print(formulas: bool = True) -> Any:
    """The context in which figures are drawn and saved. Without ``formulas``, names with $ are shown as they are."""
    return mpl.rc_context(PRINT | {"text.parse_math": formulas})


def blank(width: float, height: float) -> Figure:
    """An empty figure, with a size in inches. It is in no window and no list of open figures, so it need not be closed."""
    return Figure(figsize=(width, height), layout="constrained")


def note(figure: Figure, text: str) -> None:
    """A small text below the figure that says how to read it."""
    figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color=PALE_INK)


def legend_above(figure: Figure, handles: Iterable[Artist], labels: Iterable[str], columns: int) -> None:
    """One legend for all panels, placed where it covers nothing."""
    thin = {"handlelength": 1.4, "columnspacing": 1.4, "borderpad": 0.2}
    figure.legend(list(handles), list(labels), loc="outside upper center", ncols=columns, **thin)


def ink_on(colour: str | tuple[float, float, float, float]) -> str:
    """White on dark colours, black on others, by the luminance of WCAG."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < 0.21 else "black"


def write_figures(
    figures: Iterable[tuple[str, Figure | None]], folder: Path, formats: Sequence[str], resolution: int
) -> list[Path]:
    """Write figures by name and return the files; a figure that is None is left out."""
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
    # no date, so that equal data give equal files
    metadata = {"CreationDate": None} if kind == "pdf" else None
    with in_print():
        figure.savefig(path, format=kind, dpi=resolution, metadata=metadata)

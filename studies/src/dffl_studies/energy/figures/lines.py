"""What figures of zones share: one line per zone, named by the zone and the hours that it buys, and a note below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dffl.drawing import PALE_INK, WIDE, blank
from dffl_studies.energy.papers_tables import name_of

MOST = 60
"""The most zones that have a line each."""
EACH_END = 20
"""If there are more zones, this many from each end of their order are shown."""
NOTE_WIDTH = 124
"""The most characters in a line of a note."""
POINTS = 72
"""In an inch."""
TITLE_WIDTH = 66
"""The most characters in one line of the titles of all panels."""


def lines_of(order: Sequence[str]) -> dict[str, int]:
    """The line of every zone that is shown, from the top. One line is left empty for zones that are not."""
    if len(order) <= MOST:
        return {zone: line for line, zone in enumerate(order)}
    ends = [*enumerate(order[:EACH_END]), *enumerate(order[-EACH_END:], start=EACH_END + 1)]
    return {zone: line for line, zone in ends}


def method_panels(
    title: str, methods: Sequence[str], lines: Mapping[str, int], pad: float = 6.0
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """A figure with one panel per method; lines are lower where there are many, so that they stay on one page."""
    figure = blank(WIDE, 1.2 + pad / POINTS + max(0.6, len(lines) * min(0.18, max(0.13, 4.4 / len(lines)))))
    figure.suptitle(title, x=0.01, ha="left")
    panels = list(figure.subplots(1, len(methods), sharex=True, sharey=True, squeeze=False)[0])
    for axes, method in zip(panels, methods, strict=True):
        title = "\n".join(fill(line, TITLE_WIDTH // len(methods)) for line in name_of(method).splitlines())
        axes.set_title(title, fontweight="bold", pad=pad)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    return figure, panels


def name_lines(axes: Axes, lines: Mapping[str, int], rows: pd.DataFrame, hidden: int) -> None:
    """Name each line by its zone and demand, and the empty one by how many zones are hidden in it."""
    demands = rows.groupby("zone", observed=True)["demand"].first()
    names = {line: f"{zone}  {_hours(demands[zone])}" for zone, line in lines.items()}
    if hidden:
        names[EACH_END] = f"… {hidden:,} zones between …"
    axes.set_yticks(list(names), list(names.values()))
    axes.set_ylim(max(names) + 0.6, -0.6)
    if hidden:
        axes.get_yticklabels()[-1].set_color(PALE_INK)


def _hours(demand: float) -> str:
    """The demand, as wide with one digit as with two, so that hours are aligned."""
    return f"{demand:g} h".rjust(4, "\N{FIGURE SPACE}")


def note_text(*parts: str) -> str:
    """The parts of a note that are not empty, in lines that fit on a page."""
    return fill(" ".join(part for part in parts if part), NOTE_WIDTH)

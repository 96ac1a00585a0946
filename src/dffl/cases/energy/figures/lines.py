"""The axis that figures of zones share: a line a zone, named by the zone and the hours that it buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes

from dffl.studies.drawing import PALE_INK

MOST = 60
"""Zones that a page has lines for."""
EACH_END = 20
"""Of more zones, so many at either end of their order are shown."""
NOTE_WIDTH = 124
"""Letters of a note that a page is wide enough for."""


def lines_of(order: Sequence[str]) -> dict[str, int]:
    """The line of every zone that is shown, from the top. One line is left empty for zones that are not."""
    if len(order) <= MOST:
        return {zone: line for line, zone in enumerate(order)}
    ends = [*enumerate(order[:EACH_END]), *enumerate(order[-EACH_END:], start=EACH_END + 1)]
    return {zone: line for line, zone in ends}


def height_of(lines: Mapping[str, int]) -> float:
    """Inches that the lines take: fewer each when there are many, so that they stay on one page."""
    return max(0.6, len(lines) * min(0.18, max(0.13, 4.4 / len(lines))))


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
    """The demand, as wide with one digit as with two, so that hours make a column."""
    return f"{demand:g} h".rjust(4, "\N{FIGURE SPACE}")

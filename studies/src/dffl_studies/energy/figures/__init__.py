"""The figures of the energy case study: of its rows, its zones and one zone's calendar.

Each figure is a function in its own file; it returns None if there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from dffl.drawing import write_figures
from dffl_studies.energy.figures.bars import draw_bars
from dffl_studies.energy.figures.calendar import draw_calendar
from dffl_studies.energy.figures.changes import draw_changes
from dffl_studies.energy.figures.places import draw_places
from dffl_studies.energy.figures.weights import draw_zone_weights

__all__ = ["draw_all", "draw_bars", "draw_calendar", "draw_changes", "draw_places", "draw_zone_weights"]


def draw_all(
    rows: pd.DataFrame, zones: pd.DataFrame, calendar: tuple[pd.DataFrame, str, str] | None, folder: Path,
    formats: Sequence[str] = ("png",), resolution: int = 200,
) -> list[Path]:  # fmt: skip
    """Write every figure that the data allow, in each format, and return the files.

    ``calendar`` is one zone's days, its name and the method that chose its hours.
    """
    figures = {
        "changes": draw_changes(rows),
        "bars": draw_bars(rows),
        "places": draw_places(zones),
        "weights": draw_zone_weights(rows),
        "calendar": None if calendar is None else draw_calendar(*calendar),
    }
    return write_figures(figures.items(), folder, formats, resolution)

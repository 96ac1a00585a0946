"""The figures of a study, drawn from its rows.

A figure is a function of the rows in a file of its own; a new one also takes a line in `DRAWINGS`. Their numbers come from
`dffl_studies.paper.by_level`, which also makes tables of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from dffl.drawing import write_figures
from dffl_studies.paper.figures.boxes import draw_boxes
from dffl_studies.paper.figures.face import draw_face
from dffl_studies.paper.figures.means import draw_means
from dffl_studies.paper.figures.oracles import draw_oracles
from dffl_studies.paper.figures.parts import Draw, drawing
from dffl_studies.paper.figures.slopes import draw_slopes
from dffl_studies.paper.figures.toy import ToyNumbers, draw_toy, toy_numbers
from dffl_studies.paper.figures.weights import draw_weights
from dffl_studies.paper.figures.winners import draw_winners
from dffl_studies.paper.tables import READING

__all__ = ["DRAWINGS", "ToyNumbers", "draw_all", "toy_numbers"]

DRAWINGS: dict[str, Draw] = {
    "toy": draw_toy,
    "face": draw_face,
    "boxes-knapsack": drawing(partial(draw_boxes, problem="knapsack")),
    "boxes-portfolio": drawing(partial(draw_boxes, problem="portfolio")),
    "means": drawing(draw_means),
    "winners": drawing(draw_winners),
    "weights": drawing(draw_weights),
    "oracles": drawing(draw_oracles),
    "slopes-knapsack-balanced": drawing(partial(draw_slopes, problem="knapsack", imbalanced=False)),
    "slopes-knapsack-imbalanced": drawing(partial(draw_slopes, problem="knapsack", imbalanced=True)),
    "slopes-portfolio-balanced": drawing(partial(draw_slopes, problem="portfolio", imbalanced=False)),
    "slopes-portfolio-imbalanced": drawing(partial(draw_slopes, problem="portfolio", imbalanced=True)),
}
"""Every figure by its file's name. A function answers None where the rows hold nothing that it could draw."""


def draw_all(
    rows: pd.DataFrame,
    folder: Path,
    formats: Sequence[str] = ("png", "pdf"),
    resolution: int = 200,
    noise: float = 0.0,
    reading: str = READING,
) -> list[Path]:
    """Write every figure that the rows with this noise allow, in each format; the files written."""
    return write_figures(((name, draw(rows, noise, reading)) for name, draw in DRAWINGS.items()), folder, formats, resolution)

"""The figures of a study, drawn from its rows.

A figure is a function of the rows in a file of its own; a new one also takes a line in `DRAWINGS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from dffl.cases.paper.figures.boxes import draw_boxes
from dffl.cases.paper.figures.face import draw_face
from dffl.cases.paper.figures.means import draw_means
from dffl.cases.paper.figures.oracles import draw_oracles
from dffl.cases.paper.figures.parts import Draw
from dffl.cases.paper.figures.slopes import draw_slopes
from dffl.cases.paper.figures.toy import ToyNumbers, draw_toy, toy_numbers
from dffl.cases.paper.figures.weights import draw_weights
from dffl.cases.paper.figures.winners import draw_winners
from dffl.studies.drawing import write_figures

__all__ = ["DRAWINGS", "ToyNumbers", "draw_all", "toy_numbers"]

DRAWINGS: dict[str, Draw] = {
    "toy": draw_toy,
    "face": draw_face,
    "boxes-knapsack": partial(draw_boxes, problem="knapsack"),
    "boxes-portfolio": partial(draw_boxes, problem="portfolio"),
    "means": draw_means,
    "winners": draw_winners,
    "weights": draw_weights,
    "oracles": draw_oracles,
    "slopes-knapsack-balanced": partial(draw_slopes, problem="knapsack", imbalanced=False),
    "slopes-knapsack-imbalanced": partial(draw_slopes, problem="knapsack", imbalanced=True),
    "slopes-portfolio-balanced": partial(draw_slopes, problem="portfolio", imbalanced=False),
    "slopes-portfolio-imbalanced": partial(draw_slopes, problem="portfolio", imbalanced=True),
}
"""Every figure by its file's name. A function answers None where the rows hold nothing that it could draw."""


def draw_all(rows: pd.DataFrame, folder: Path, formats: Sequence[str] = ("png", "pdf"), resolution: int = 200) -> list[Path]:
    """Write every figure that the rows allow, in each format; the files written."""
    return write_figures(((name, draw(rows)) for name, draw in DRAWINGS.items()), folder, formats, resolution)

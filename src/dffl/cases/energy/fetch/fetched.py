"""What a source returns."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd


class Fetched(NamedTuple):
    """A table, and what a reader of it should know, a line each."""

    table: pd.DataFrame
    notes: list[str]

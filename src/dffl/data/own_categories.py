"""The categories of one site's own table: what sites that are apart put together and list in `federation.toml`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from dffl.data.encoding import agreed, summary
from dffl.data.matching import matching
from dffl.data.sources import load, open_source


def own_categories(path: str | PathLike[str], features: str | Sequence[str]) -> dict[str, list[str]]:
    """For each feature that holds texts, its texts in this table: no rows and no counts. ``features`` as in the file."""
    source = open_source(Path(path))
    names = matching(features, source.columns)
    table = load(source, names)
    columns = [agreed(name, [summary(table.frame[name])]) for name in names]
    return {column.name: list(column.categories) for column in columns if column.kind == "category"}

"""A federation's file with an order and costs, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from dffl.tables.description import read
from tests.tables.made import TOML, files, write

FEATURES = 'features = ["temp_*", "weather", "date"]\n'


def test_costs_alone_are_enough_where_rows_have_dates(tmp_path: Path) -> None:
    alone = files() | {"federation.toml": TOML.replace(FEATURES, "")}
    made = read(write(tmp_path, alone))
    names = made.train[0].feature_names
    assert names
    assert all("date" in name for name in names)


def test_without_an_order_features_are_needed(tmp_path: Path) -> None:
    bare = files() | {"federation.toml": TOML.replace(FEATURES, "").replace('order = "date"\n', "")}
    with pytest.raises(ValueError, match="features: is missing"):
        read(write(tmp_path, bare))

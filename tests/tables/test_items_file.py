"""``[items]`` of a federation's file: columns matched with the costs by name, features that never change, bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.tables.description import Agreement, Description, read
from dffl.tables.encoding import Encoding
from dffl.tables.keys import DescriptionError
from dffl.tables.one_site import read_site

TOML = """\
[federation]
features = ["temp"]
costs = "price_*"

[items]
features = ["wind_*", "load_*"]
known = { weight = { file = "items.csv", column = "weight", by = "cost" } }

[training]
method = "fedavg"
rounds = 1

[[client]]
name = "north"
table = "north.csv"
set = { type = "top-k", k = 1 }

[[client]]
name = "south"
table = "south.csv"
set = { type = "top-k", k = 1 }
"""
HOURS = (1, 2, 10)
WEIGHTS = {"price_10": 3.0, "price_1": 1.0, "price_2": 2.0}


def table(seed: int, rows: int = 20) -> pd.DataFrame:
    """Columns stand in another order than the costs."""
    rng = np.random.default_rng(seed)
    names = [f"{what}_{hour}" for hour in HOURS[::-1] for what in ("load", "price", "wind")]
    return pd.DataFrame({"temp": np.arange(rows)} | {name: rng.uniform(1, 9, rows).round(2) for name in names})


def written(folder: Path, toml: str = TOML, north: pd.DataFrame | None = None, weights: Any = None) -> Path:
    (folder / "federation.toml").write_text(toml)
    (table(0) if north is None else north).to_csv(folder / "north.csv", index=False)
    frame = table(1)
    frame[sorted(frame.columns)].to_csv(folder / "south.csv", index=False)
    values = WEIGHTS if weights is None else weights
    pd.DataFrame({"cost": list(values), "weight": list(values.values())}).to_csv(folder / "items.csv", index=False)
    return folder / "federation.toml"


def raw(folder: Path, description: Description, name: str) -> np.ndarray:
    """The features of the items of training rows, from the table itself."""
    frame = pd.read_csv(folder / f"{name}.csv")
    rows = [int(np.flatnonzero(frame["temp"] == temp)[0]) for temp in description.train[name].x[:, 0]]
    own = np.stack([frame[[f"{what}_{hour}" for hour in HOURS]].to_numpy()[rows] for what in ("wind", "load")], axis=-1)
    return np.concatenate([own, np.broadcast_to([[1.0], [2.0], [3.0]], (len(rows), 3, 1))], axis=-1)


def test_columns_are_matched_with_the_costs_by_the_text_under_the_star(tmp_path: Path) -> None:
    description = read(written(tmp_path))
    for name in ("north", "south"):
        np.testing.assert_array_equal(description.train[name].items, raw(tmp_path, description, name))
    assert description.train.feature_names is not None
    assert description.train.feature_names[:4] == ("temp", "wind_1", "load_1", "weight of item 0")
    alone = read_site(tmp_path / "federation.toml", "north")
    assert alone.agreement.digest == description.agreement.digest
    plain = Agreement(description.agreement.features, description.agreement.costs)
    assert description.agreement.difference(plain) == "items: they have 0 features each where 3 are expected"
    again = Encoding.from_json(description.encoding.as_json()).only("north").composed()
    frame = pd.read_csv(tmp_path / "north.csv")
    np.testing.assert_array_equal(again.features(frame, "north"), description.encoding.features(frame, "north"))


def test_with_a_forecast_and_without_other_features(tmp_path: Path) -> None:
    frame = table(0).assign(**{f"dnn_{hour}": 4.0 + hour for hour in HOURS})
    toml = TOML.replace('features = ["temp"]\n', 'forecast = "dnn_*"\n').replace('"south.csv"', '"north.csv"')
    one = read(written(tmp_path, toml, frame)).train["north"]
    np.testing.assert_array_equal(one.forecast, np.tile([5.0, 6.0, 14.0], (one.n, 1)))
    assert one.x.shape[1] == 3 * 3 + 3
    np.testing.assert_array_equal(one.items[0, :, 2], [1, 2, 3])
    only = TOML.replace('features = ["wind_*", "load_*"]\n', "").replace("{ file", "{ file", 1)
    assert read(written(tmp_path, only)).train["north"].items.shape[1:] == (3, 1)


KNOWN = '{ file = "items.csv", column = "weight", by = "cost" }'
FEATURES = 'features = ["wind_*", "load_*"]\n'
NORTH: dict[str, tuple[dict[str, Any], str]] = {
    "too few columns": (
        {"wind_2": None},
        "'wind_*': 2 columns ('wind_10', 'wind_1') for 3 costs; every cost needs one column",
    ),
    "text": ({"wind_2": "calm"}, "line 2, column 'wind_2': must be a finite number, found 'calm'"),
    "empty": ({"wind_2": [None, *[1.0] * 19]}, "line 2, column 'wind_2': the feature of an item is missing"),
}
TOMLS: dict[str, tuple[str, str, str]] = {
    "no column": ("load_*", "rain_*", "north.csv: items.features: no column fits 'rain_*'"),
    "no star": ("load_*", "load_1", "items.features: each must have one star, such as 'wind_*', found 'load_1'"),
    "one column twice": ("load_*", "w*nd_1", "two patterns choose the column 'wind_1'"),
    "costs": ("load_*", "pri*", "items.features: 'price_1', 'price_2', 'price_10' is among the costs, too"),
    "unknown key": ("known =", "fixed =", "items.fixed: no such key"),
    "nothing": (f"{FEATURES}known = {{ weight = {KNOWN} }}\n", "", "items.features: is missing"),
    "too few": (KNOWN, "[1, 2]", "items.known.weight: must have an entry for each of the 3 cost columns, found 2"),
    "no numbers": (KNOWN, '"heavy"', "items.known.weight: must be a number or a list of numbers, or from a file, found"),
    "no column of the file": ('"weight", by', '"size", by', "items.csv"),
}


@pytest.mark.parametrize(("change", "message"), NORTH.values(), ids=NORTH.keys())
def test_wrong_columns_are_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    frame = table(0).assign(**change).dropna(axis=1, how="all")
    with pytest.raises(DescriptionError) as caught:
        read(written(tmp_path, north=frame))
    assert any("north.csv" in line and message in line for line in caught.value.problems), caught.value.problems


@pytest.mark.parametrize(("old", "new", "message"), TOMLS.values(), ids=TOMLS.keys())
def test_bad_keys_are_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TOML
    with pytest.raises(DescriptionError) as caught:
        read(written(tmp_path, TOML.replace(old, new)))
    assert any(message in line for line in caught.value.problems), caught.value.problems


def test_a_file_without_a_row_for_a_cost_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="must have a row for each cost column, found none for 'price_10'"):
        read(written(tmp_path, weights={"price_1": 1.0, "price_2": 2.0}))


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    toml = TOML.replace("load_*", "rain_*").replace("rounds = 1", "rounds = 0")
    toml = toml.replace('"weight", by = "cost"', '"heavy"')
    with pytest.raises(DescriptionError) as caught:
        read(written(tmp_path, toml))
    assert len(caught.value.problems) >= 2


def test_a_model_of_a_file_decides_by_the_same_columns(tmp_path: Path) -> None:
    from dffl.models import OWN_DATA, with_columns

    description = read(written(tmp_path))
    fit = dffl.fit(description.train, "mean-cost", progress=False)
    fit.about[OWN_DATA] = {"encoding": description.encoding.as_json()}
    frame = pd.read_csv(tmp_path / "south.csv").drop(columns=[f"price_{hour}" for hour in HOURS])
    model = with_columns(fit)
    features = model._read("south", frame)
    np.testing.assert_array_equal(features, description.encoding.features(frame, "south"))
    assert model.decide("south", frame).shape == (20, 3)
    with pytest.raises(ValueError, match="load_10"):
        model.decide("south", frame.drop(columns="load_10"))

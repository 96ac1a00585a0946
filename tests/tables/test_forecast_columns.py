"""`forecast` of a federation's file: its columns are matched with the costs by name, in any order among other columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dffl.tables.description import Agreement, Description, read
from dffl.tables.encoding import Encoding
from dffl.tables.keys import DescriptionError
from dffl.tables.one_site import read_site

TOML = """\
[federation]
features = ["temp", "sky", "date"]
costs = "price_*"
forecast = "dnn_*"
order = "date"
categories = { sky = ["clear", "rain"] }
times = []

[training]
method = "forecast"

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
FORECAST = [f"dnn_{hour:02d}" for hour in HOURS]


def table(seed: int, rows: int = 20) -> pd.DataFrame:
    """The forecast stands in another order than the costs, before a category and a date."""
    rng = np.random.default_rng(seed)
    made = {name: rng.uniform(1, 9, rows).round(2) for name in ("dnn_10", "temp", "dnn_01", "dnn_02")}
    made |= {f"price_{hour}": rng.uniform(1, 9, rows).round(2) for hour in HOURS}
    return pd.DataFrame(made).assign(
        sky=rng.choice(["clear", "rain"], rows), date=pd.date_range("2026-01-01", periods=rows).strftime("%Y-%m-%d")
    )


def written(folder: Path, toml: str = TOML, north: pd.DataFrame | None = None, south: pd.DataFrame | None = None) -> Path:
    (folder / "federation.toml").write_text(toml)
    (table(0) if north is None else north).to_csv(folder / "north.csv", index=False)
    frame = table(1)
    (frame[sorted(frame.columns)] if south is None else south).to_csv(folder / "south.csv", index=False)
    return folder / "federation.toml"


def brought(description: Description) -> np.ndarray:
    """North's forecast in training rows, as the library has it."""
    one = description.train["north"]
    np.testing.assert_array_equal(one.x[:, -3:], one.forecast)
    return np.asarray(one.forecast)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Description:
    return read(written(tmp_path_factory.mktemp("plain")))


def test_the_forecast_is_found_by_name_behind_no_calendar(plain: Description) -> None:
    np.testing.assert_array_equal(brought(plain), table(0)[FORECAST][:16])
    assert plain.train.feature_names is not None
    assert plain.train.feature_names[:3] == ("temp", "sky=clear", "sky=rain")
    assert plain.train.feature_names[-3:] == tuple(FORECAST)
    assert len(plain.train.feature_names) == 3 + 9 + 3  # a date is nine columns
    np.testing.assert_array_equal(plain.test["south"].forecast, table(1)[FORECAST][16:])


def test_which_column_forecasts_which_cost_is_told(plain: Description) -> None:
    assert plain.forecast == {"price_1": "dnn_01", "price_2": "dnn_02", "price_10": "dnn_10"}
    [note] = plain.notes
    assert note.endswith("forecast: dnn_01 forecasts price_1, dnn_02 forecasts price_2, dnn_10 forecasts price_10")
    assert plain.agreement.as_json()["forecast"] == plain.forecast


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["temp", "sky", "date"]', '["dnn_*", "temp", "sky", "date"]'),  # a column is a feature or a forecast
        ('["temp", "sky", "date"]', '["dnn_01", "temp", "sky", "date"]'),
        ('"dnn_*"', '["dnn_01", "dnn_02", "dnn_10"]'),
    ],
)
def test_other_ways_to_write_the_same(before: str, after: str, plain: Description, tmp_path: Path) -> None:
    found = read(written(tmp_path, TOML.replace(before, after, 1)))
    assert found.train.feature_names == plain.train.feature_names
    for name in ("north", "south"):
        np.testing.assert_array_equal(found.train[name].x, plain.train[name].x)


def test_a_pattern_of_the_costs_does_not_choose_the_forecast(plain: Description, tmp_path: Path) -> None:
    names = {f"dnn_{hour:02d}": f"price_dnn_{hour}" for hour in HOURS}
    north, south = (table(seed).rename(columns=names) for seed in (0, 1))
    found = read(written(tmp_path, TOML.replace('"dnn_*"', '"price_dnn_*"'), north, south))
    assert found.forecast == {f"price_{hour}": f"price_dnn_{hour}" for hour in HOURS}
    np.testing.assert_array_equal(brought(found), brought(plain))


@pytest.mark.parametrize("features", ['features = "dnn_*"\n', ""])
def test_a_forecast_may_be_all_that_is_known(features: str, tmp_path: Path) -> None:
    toml = TOML.replace('features = ["temp", "sky", "date"]\n', features)
    toml = toml.replace('categories = { sky = ["clear", "rain"] }\n', "")
    found = read(written(tmp_path, toml))
    assert found.train.feature_names == tuple(FORECAST)
    np.testing.assert_array_equal(found.train["north"].x, table(0)[FORECAST][:16])


def test_a_site_alone_has_the_same_columns(tmp_path: Path) -> None:
    path = written(tmp_path, TOML.replace('order = "date"\n', ""))
    whole = read(path)
    (tmp_path / "south.csv").unlink()
    alone = read_site(path, "north")
    np.testing.assert_array_equal(alone.train["north"].x, whole.train["north"].x)
    assert alone.agreement == whole.agreement
    assert alone.forecast == whole.forecast


def test_the_agreement_tells_a_forecast_from_features_and_is_else_that_of_before() -> None:
    without = Agreement(("temp", "dnn_1"), ("price_1",))
    brings = Agreement(("temp", "dnn_1"), ("price_1",), forecast=True)
    assert without.digest == "9806b00c7075a7d563ed226b7c37d9a337182fea82d7807b82e5485fd54fdd79"
    assert brings.digest != without.digest
    assert brings.difference(without) == "forecast: it has none"
    assert without.difference(brings) == "forecast: it has one"


def gap(frame: pd.DataFrame, column: str, row: int = 2) -> pd.DataFrame:
    return frame.assign(**{column: frame[column].where(frame.index != row)})


@pytest.mark.parametrize("missing", ["refuse", "mean"])
def test_an_empty_forecast_is_never_filled(missing: str, tmp_path: Path) -> None:
    more = "\ngaps = []" if missing == "mean" else ""
    path = written(tmp_path, TOML.replace("times = []", f'times = []\nmissing = "{missing}"{more}'), gap(table(0), "dnn_02"))
    with pytest.raises(DescriptionError, match=r"north.csv, line 4, column 'dnn_02': the forecast is missing; fill it, leave"):
        read(path)


def test_rows_without_a_forecast_can_be_left_out(tmp_path: Path) -> None:
    found = read(written(tmp_path, TOML.replace("times = []", 'times = []\nmissing = "drop"'), gap(table(0), "dnn_02")))
    assert found.train["north"].n + found.test["north"].n == 19
    assert any("1 of 20 rows have empty cells" in note for note in found.notes)


def test_new_rows_without_the_forecast_are_refused_by_name(plain: Description) -> None:
    encoding = Encoding.from_json(plain.encoding.as_json())
    assert encoding == plain.encoding
    fresh = table(5, 4)
    np.testing.assert_array_equal(encoding.features(fresh, "north")[:, -3:], fresh[FORECAST])
    with pytest.raises(ValueError, match="lacks the columns 'dnn_02'"):
        encoding.features(fresh.drop(columns="dnn_02"), "north")
    filling = Encoding(encoding.columns, "mean").with_fills({})
    with pytest.raises(ValueError, match="column 'dnn_10': the forecast is missing"):
        filling.features(gap(fresh, "dnn_10"), "north")


WRONG = {
    "no such column": ('"dnn_*"', '"lear_*"', r"north.csv: federation.forecast: no column fits 'lear_\*'"),
    "two stars": ('"dnn_*"', '"d*n_*"', "must have one star, such as 'dnn_\\*', or be a list of names, found 'd\\*n_\\*'"),
    "too few": ('"dnn_*"', '["dnn_01", "dnn_02"]', "2 columns .* for 3 costs; every cost needs one forecast column"),
    "twice": ('"dnn_*"', '["dnn_01", "dnn_01", "dnn_02"]', "'dnn_01' is listed twice"),
    "another order": ('"dnn_*"', '["dnn_02", "dnn_01", "dnn_10"]', "'dnn_02' would forecast the cost 'price_1', though"),
    "the costs themselves": ('"dnn_*"', '"price_*"', "federation.forecast: 'price_1', .* is among the costs, too"),
    "true": ('"dnn_*"', "true", 'federation.forecast: must be a pattern such as "dnn_\\*", or names'),
    "a category": ("{ sky =", '{ dnn_01 = ["1"], sky =', "categories.dnn_01: is not a feature"),
    "in training": (
        'method = "forecast"', "forecast = true",
        r'training.forecast: forecast is not a setting, as it took .* by position; .*forecast = "dnn_\*" under \[federation\]',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "line"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_named_in_one_line(before: str, after: str, line: str, tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=line) as refused:
        read(written(tmp_path, TOML.replace(before, after, 1)))
    assert all("\n" not in problem for problem in refused.value.problems)


def test_the_forecast_has_the_same_names_at_all_sites_and_holds_numbers(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"south.csv: federation.forecast: has 'dnn_1' where another table has 'dnn_01'"):
        read(written(tmp_path, south=table(1).rename(columns={"dnn_01": "dnn_1"})))
    with pytest.raises(DescriptionError, match=r"south.csv: federation.forecast: 2 columns"):
        read(written(tmp_path, south=table(1).drop(columns="dnn_01")))
    texts = table(0).astype({"dnn_10": object})
    texts.loc[3, "dnn_10"] = "high"
    with pytest.raises(DescriptionError, match=r"north.csv, line 5, column 'dnn_10': must be a finite number, found 'high'"):
        read(written(tmp_path, north=texts))

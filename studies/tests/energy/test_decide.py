"""A model for tomorrow: it decides as the backtest's rule does, and refuses what it cannot know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.time.bases import steady
from dffl.time.chosen import Chosen
from dffl_studies.energy.data import open_panel
from dffl_studies.energy.decide import decide
from dffl_studies.energy.decisions import sets_of
from dffl_studies.energy.model import train
from dffl_studies.energy.preset import Preset
from studies.tests.energy.data.made import refused, write
from studies.tests.energy.test_market import prices

QUICK = {"rounds": 1, "local_epochs": 1}
COLUMNS = [f"price_{period}" for period in range(6)]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return prices().assign(wind=rng.normal(10, 3, 180))


def model(folder: Path, rule: str, rows: pd.DataFrame, **options: object) -> Chosen:
    preset = Preset(settings=QUICK, **options)  # type: ignore[arg-type]
    return train(preset.market(write(rows, folder / "market.csv")), preset, rule, progress=False)


def tomorrow(folder: Path, date: str = "2023-04-01", **columns: object) -> Path:
    return write(pd.DataFrame([{"date": date, "wind": 9.0, **columns}]), folder / "tomorrow.csv")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Chosen:
    return model(tmp_path_factory.mktemp("model"), "mix", table())


def test_a_naive_rule_buys_what_it_expects_to_be_cheapest(tmp_path: Path) -> None:
    rows = table()
    own = rows.loc[rows["zone"] == "Z1", COLUMNS].to_numpy()
    [found] = decide(model(tmp_path, "mean-7", rows), "Z1", tomorrow(tmp_path))
    assert found.buy == sorted(np.argsort(own[-7:].mean(axis=0))[:2].tolist())
    assert (found.demand, found.demand_from, found.prices_until, found.currency) == (2.0, "the panel", "2023-03-31", "EUR")
    assert found.low is not None
    assert found.high is not None
    assert found.expected_cost is not None
    assert found.low <= found.expected_cost <= found.high


def test_a_mix_decides_as_the_last_row_of_a_backtest_would(mixed: Chosen, tmp_path: Path) -> None:
    [found] = decide(mixed, "Z0", tomorrow(tmp_path))
    assert len(found.buy) == 2
    assert found.rule == "mix"
    saved = tmp_path / "model.dffl"
    mixed.save(saved)
    assert decide(dffl.load(saved), "Z0", tomorrow(tmp_path)) == [found]


def test_the_base_is_the_steady_average_of_the_kept_days(tmp_path: Path) -> None:
    rows = table()
    fit = model(tmp_path, "steady", rows)
    own = rows.loc[rows["zone"] == "Z0", COLUMNS].to_numpy()
    days = np.arange(np.datetime64("2023-01-01"), np.datetime64("2023-04-02")).astype(float)
    expected = steady(np.vstack([own, own[-1:]]), fit.weight, days)[-1]
    [found] = decide(fit, "Z0", tomorrow(tmp_path))
    assert found.buy == sorted(np.argsort(expected)[:2].tolist())


def test_days_since_training_count_and_change_what_is_known(mixed: Chosen, tmp_path: Path) -> None:
    later = prices(days=95).query("date > '2023-03-31'").assign(wind=8.0)
    past = write(later.sort_values("date", ascending=False), tmp_path / "past.csv")
    [found] = decide(mixed, "Z0", tomorrow(tmp_path, "2023-04-06"), past)
    assert found.prices_until == "2023-04-05"
    known = "prices are known up to 2023-04-05; decide for a day after it"
    with refused(f"{tmp_path / 'tomorrow.csv'}, line 2: zone Z0, 2023-04-05: {known}"):
        decide(mixed, "Z0", tomorrow(tmp_path, "2023-04-05"), past)
    far = write(later.assign(date="2023-05-01").head(1), tmp_path / "far.csv")
    with pytest.raises(ValueError, match="the day before it that is known is 2023-03-31; give the 30 days between too"):
        decide(mixed, "Z0", tomorrow(tmp_path, "2023-05-02"), far)


def test_what_cannot_be_decided_is_refused_in_one_line(mixed: Chosen, tmp_path: Path) -> None:
    path = tmp_path / "tomorrow.csv"
    fix = "pass the prices since then with --past FILE"
    with refused(f"{path}, line 2: zone Z0, 2023-04-08: prices are known up to 2023-03-31 only, 8 days before; {fix}"):
        decide(mixed, "Z0", tomorrow(tmp_path, "2023-04-08"))
    with refused(f"{path}: must have a column 'wind', found date, zone"):
        decide(mixed, "Z0", write(pd.DataFrame([{"date": "2023-04-01", "zone": "Z0"}]), path))
    with refused("--zone must be one of Z0, Z1, found 'Z7'"):
        decide(mixed, "Z7", path)
    with refused(f"{path}: has no column zone; name the zone with --zone"):
        decide(mixed, None, tomorrow(tmp_path))


def test_a_model_of_version_0_2_0_is_refused_in_one_line(mixed: Chosen, tmp_path: Path) -> None:
    older = {"recipe": {"cost": "total", "weather_lag": 0, "weight": None}, "covariates": ["wind"], "weekdays": [], "zones": {}}
    client = next(iter(mixed.kept.values()))
    fit = dffl.fit(dffl.Federation([client]), "mean-cost", progress=False)
    with refused("MODEL was made by dffl energy of version 0.2.0, which decided by other features; train it again"):
        decide(replace(fit, about={"energy": older}), "Z0", tomorrow(tmp_path))


def test_weather_that_was_never_seen_is_noted_and_a_lag_moves_the_day(mixed: Chosen, tmp_path: Path) -> None:
    [found] = decide(mixed, "Z0", tomorrow(tmp_path, wind=99.0))
    assert found.notes[0].startswith("wind is 99, and was ")
    lagged = model(tmp_path, "fedavg", table(), weather_lag=1)
    [next_day] = decide(lagged, "Z0", tomorrow(tmp_path, "2023-03-31"))
    assert next_day.date == "2023-04-01"


def test_demands_that_were_drawn_are_said_to_be(tmp_path: Path) -> None:
    fit = model(tmp_path, "steady", table().drop(columns="demand"))
    [found] = decide(fit, "Z0", tomorrow(tmp_path))
    assert found.demand_from == "drawn at random by the zone's name"
    assert "\n  demand: drawn at random by the zone's name\n" in found.in_words()


# ---- other decisions than k periods

DECISIONS = """
[default]
type = "consecutive-hours"
run = 3
[zones.Z1]
type = "flexible-load"
energy = 5
limit = 2
"""


def toml(folder: Path, text: str = DECISIONS) -> Path:
    path = folder / "zones.toml"
    path.write_text(text)
    return path


def test_a_block_and_a_flexible_load_decide_as_their_sets_do(tmp_path: Path) -> None:
    rows = table()
    fit = model(tmp_path, "mean-7", rows, decisions=str(toml(tmp_path)))
    features = write(
        pd.DataFrame([{"zone": zone, "date": "2023-04-01", "wind": 9.0} for zone in ("Z0", "Z1")]), tmp_path / "t.csv"
    )
    block, load = decide(fit, None, features)
    mean = rows.loc[rows["zone"] == "Z0", COLUMNS].tail(7).mean().to_numpy()
    start = int(np.argmin([mean[place : place + 3].sum() for place in range(4)]))
    assert block.buy == [start, start + 1, start + 2]
    assert (block.demand, load.demand) == (None, None)
    other = np.argsort(rows.loc[rows["zone"] == "Z1", COLUMNS].tail(7).mean().to_numpy())
    assert np.array(load.hours)[other].tolist() == pytest.approx([2, 2, 1, 0, 0, 0])


def test_batteries_are_there_and_what_is_wrong_names_the_file_and_the_key(tmp_path: Path) -> None:
    panel = open_panel(write(prices(), tmp_path / "market.csv"))
    battery = '[zones.Z0]\ntype = "battery"\ncapacity = 4\ncharge = 1\n'
    assert sets_of(toml(tmp_path, battery), panel)["Z0"].in_words() == "battery over 6 hours"
    path = tmp_path / "zones.toml"
    for text, message in (
        ("[zones.Z9]\ntype='top-k'\nk=1", f"zones.Z9: is not a zone of {panel.source}; it has Z0, Z1"),
        ("[zone]\n", "zone: must be one of the tables default, zones"),
        ("[default]\ntype='flexible-load'\nenergy=12\nlimit=2", "default.energy: must be below limit x periods = 12, found 12"),
        ("[default]\ntype='flexible-load'\nenergy=1", "default.limit: must be a number above 0, found None"),
        ("[default]\ntype='top-k'\nk=9", "default.k: TopK: k must be in [0, 6], found 9"),
    ):
        with refused(f"{path}: {message}"):
            sets_of(toml(tmp_path, text), panel)


MPS = """NAME plant
OBJSENSE
    MIN
ROWS
 N cost
 G need
COLUMNS
    w_0 need 1
    w_1 need 1
    w_2 need 1
    w_3 need 1
    w_4 need 1
    w_5 need 1
RHS
    RHS need 3
BOUNDS
 UP BND w_0 2
 UP BND w_1 2
 UP BND w_2 2
 UP BND w_3 2
 UP BND w_4 2
 UP BND w_5 2
ENDATA
"""


def test_a_model_in_mps_and_a_battery_are_judged_and_decide(tmp_path: Path) -> None:
    (tmp_path / "plant.mps").write_text(MPS)
    text = '[zones.Z0]\ntype = "file"\npath = "plant.mps"\n[zones.Z1]\ntype = "battery"\ncapacity = 2\ncharge = 1\nload = 1\n'
    rows = table()
    fit = model(tmp_path, "mean-7", rows, decisions=str(toml(tmp_path, text)))
    plant, battery = (decide(fit, zone, tomorrow(tmp_path))[0] for zone in ("Z0", "Z1"))
    mean = rows.loc[rows["zone"] == "Z0", COLUMNS].tail(7).mean().to_numpy()
    assert np.array(plant.hours)[np.argsort(mean)].tolist() == pytest.approx([2, 1, 0, 0, 0, 0])
    assert sum(battery.hours) >= 6 - 1e-6  # the load, and what the battery loses
    assert " each)" in plant.in_words()

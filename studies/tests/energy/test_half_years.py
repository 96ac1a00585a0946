"""`dffl energy study`: any half-year of a market, judged from one backtest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl_studies.energy import half_years
from dffl_studies.energy.expected import ENDS, USUAL
from dffl_studies.energy.half_year_tables import Judged, all_tables, measured
from dffl_studies.energy.half_years import Source, judge
from dffl_studies.energy.preset import Preset
from dffl_studies.running.store import Store
from dffl_studies.running.tables import Table
from studies.tests.energy.data.made import write
from studies.tests.energy.test_market import prices

WEEKS = 45


def made(shares: dict[str, float], trained: str = "shared", seed: int = 0) -> pd.DataFrame:
    """Rows of a job: the steady average loses 7 a week in the first weeks and then 14, other rules a share of that."""
    steady = np.where(np.arange(WEEKS) < 10, 7.0, 14.0)
    lost = {"steady": steady, "mean-14": np.where(np.arange(WEEKS) < 10, 6.9, 21.0)}
    lost |= {rule: share * steady for rule, share in shares.items()}
    facts = {"days": np.full(WEEKS, 7.0), "ranged": np.full(WEEKS, 7.0), "inside": np.full(WEEKS, 5.6), "best": steady}
    kinds = dict.fromkeys(facts, "fact") | {"steady": "naive", "mean-14": "naive", "chosen": "chosen"}
    rows = [
        {"zone": zone, "rule": rule, "kind": kinds.get(rule, "method")} | {f"week_{w:03d}": size * x for w, x in enumerate(own)}
        for zone, size in (("small", 1.0), ("large", 100.0))
        for rule, own in (lost | facts).items()
    ]
    table = pd.DataFrame(rows).assign(market="M", trained=trained, seed=seed, first="2021-03-01", job=trained)
    days = table["rule"].isin(["days", "ranged", "inside"])
    table.loc[days & (table["zone"] == "large"), [f"week_{w:03d}" for w in range(WEEKS)]] /= 100
    return table


def numbers(tables: list[Table], name: str) -> dict[tuple[str, ...], dict[str, float]]:
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for cell in next(table for table in tables if table.name == name).cells:
        found.setdefault(cell.row, {})[cell.column] = cell.ours.mean
    return found


def test_each_half_year_is_judged_against_the_naive_rule_of_the_weeks_before_it() -> None:
    rows = pd.concat([made({"fedavg": 0.8, "chosen": 0.9}), made({"local": 1.0, "chosen": 0.95}, "alone")])
    tables = all_tables(rows)
    halves = numbers(tables, "half-years")
    # The mean of 14 days was better by a hair until it became worse by half: only later choices know.
    assert [row[2] for row in halves] == ["mean-14", "steady", "steady", "steady"]
    assert next(iter(halves))[1].startswith("2021-04-19 to ")
    assert list(halves)[-1][1] == "2021-07-12 to 2022-01-09"
    last = halves[list(halves)[-1]]
    assert (last["change %"], last["alone %"], last["ranges held %"]) == pytest.approx((-10, -5, 80))
    assert (last["low %"], last["high %"]) == pytest.approx((-10, -10))  # the weeks are alike
    assert last["naive"] == pytest.approx((2 + 200) / 2)  # a day, mean over zones
    [whole] = numbers(tables, "markets").values()
    assert (whole["half-years"], whole["of them apart"], whole["worst %"]) == pytest.approx((4, 1, -10))
    shared = numbers(tables, "sharing")
    assert shared["M", "fedavg against local"]["change %"] == pytest.approx(-20)


def test_a_short_last_week_ends_on_its_last_day() -> None:
    rows = made({"chosen": 1.0})
    rows.loc[rows["rule"] == "days", f"week_{WEEKS - 1:03d}"] = 3.0
    assert Judged("M", rows).last_of(slice(19, 45)) == np.datetime64("2022-01-05")


def test_a_job_is_one_backtest_from_the_first_day_that_can_be_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = write(prices(days=90), tmp_path / "market.csv")
    monkeypatch.setitem(half_years.MARKETS, "made", Source("made", ("market.csv",), Preset()))
    monkeypatch.setitem(half_years.CANDIDATES, "shared", [])
    rows = judge(market="made", trained="shared", seed=0, refit=28, made=str(tmp_path))
    weeks = [name for name in rows if name.startswith("week_")]
    found = dffl.backtest(Preset().market(panel).federation, [], refit=28, start="2023-02-26", progress=False)
    assert rows["first"].unique().tolist() == ["2023-02-26"]
    assert len(weeks) == 5
    for place, zone in enumerate(("Z0", "Z1")):
        own = rows[rows["zone"] == zone].set_index("rule")[weeks]
        np.testing.assert_allclose(own.loc["chosen"].sum(), found.regrets("chosen", place)[-34:].sum(), rtol=1e-5)
        np.testing.assert_allclose(own.loc["steady"].iloc[0], found.regrets("steady", place)[:7].sum(), rtol=1e-5)
        assert own.loc["days"].tolist() == [7, 7, 7, 7, 6]


RESULTS = Path(__file__).resolve().parents[2] / "results" / "energy-half-years"


def test_what_is_expected_of_a_market_is_what_the_stored_rows_give() -> None:
    rows = Store(RESULTS).rows()
    markets = [Judged(str(name), part) for name, part in rows.groupby("market", sort=False) if "with" not in str(name)]
    parts = [own for market in markets for own in market.parts().values()]
    found = measured(parts)
    assert (found.usual, *found.ends) == pytest.approx((USUAL, *ENDS), abs=0.006)
    assert np.mean(found.unseen) == pytest.approx(0.8, abs=0.01)


def test_ends_are_widened_until_they_hold_on_markets_that_they_were_not_made_of() -> None:
    rng = np.random.default_rng(0)
    naive = np.exp(rng.normal(0, 0.3, 60))
    calm, wild = ([(np.exp(rng.normal(0, size, 60)), naive)] for size in (0.3, 0.6))
    found = measured([calm, calm, wild])
    assert found.factor > 1
    assert np.mean(found.unseen) >= 0.8
    assert measured([calm]).factor == 1.0

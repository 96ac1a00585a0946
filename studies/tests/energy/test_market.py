"""`dffl energy run` on markets of many kinds: what is judged, what is said, and what was noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dffl
from dffl.cli import app
from dffl.harm import interval
from dffl.report import ReportData, render
from dffl.report.data import Picture
from dffl_studies.energy.answers import Answer
from dffl_studies.energy.backtests import decoded, encoded, judge, study
from dffl_studies.energy.checks import side_by_side
from dffl_studies.energy.data import open_panel
from dffl_studies.energy.data.clients import in_time
from dffl_studies.energy.expected import ENDS, USUAL, drift, expected_mean, weekly
from dffl_studies.energy.figures.manager import days_of
from dffl_studies.energy.market_result import MarketResult
from dffl_studies.energy.newcomers import Newcomers, newcomers
from dffl_studies.energy.page import report_data
from dffl_studies.energy.preset import Preset
from studies.tests.energy.data.made import refused, write

QUICK = {"settings": {"rounds": 1, "local_epochs": 1}, "methods": ("fedavg",)}
DAYS = 90


def prices(zones: int = 2, days: int = DAYS, periods: int = 6, start: str = "2023-01-01", seed: int = 0) -> pd.DataFrame:
    """Prices alone: a daily shape, a level that drifts, noise; each zone buys two periods."""
    rng, dates = np.random.default_rng(seed), np.arange(np.datetime64(start), np.datetime64(start) + days)
    shape = 10 * np.sin(np.arange(periods) / periods * 2 * np.pi)
    tables = []
    for zone in range(zones):
        level = 50 + np.cumsum(rng.normal(0, 1, days))[:, None]
        values = level + shape + rng.normal(0, 4, (days, periods))
        table = pd.DataFrame(values.round(2), columns=[f"price_{period}" for period in range(periods)])
        tables.append(table.assign(zone=f"Z{zone}", date=dates.astype(str), demand=2.0, currency="EUR"))
    return pd.concat(tables, ignore_index=True)


def judged(folder: Path, table: pd.DataFrame, **options: object) -> pd.DataFrame:
    """The rows of one seed, in this process."""
    begun = study(write(table, folder / "market.csv"), Preset(**QUICK | options), [0])  # type: ignore[arg-type]
    return judge(**begun.protocol, **begun.places, seed=0)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("market")
    return folder / "market.csv", judged(folder, prices())


def test_naive_rules_and_methods_are_those_of_the_librarys_backtest(rows: tuple[Path, pd.DataFrame]) -> None:
    path, found = rows
    panel = open_panel(path)
    federation = in_time(panel, Preset().sampling)
    asked = {"refit": 28, "start": "2023-02-26", "seed": 0, "progress": False, "rounds": 1, "local_epochs": 1}
    whole = dffl.backtest(federation, ["fedavg"], **asked)
    for place, zone in enumerate(panel.names):
        for rule in (*whole.lost, "chosen"):
            [row] = found[(found["zone"] == zone) & (found["rule"] == rule)].to_dict("records")
            assert row["regret"] == pytest.approx(whole.regrets(rule, place)[-34:].mean(), rel=1e-12)
            assert row["n_test"] == 34
    kinds = dict(zip(found["rule"], found["kind"], strict=True))
    assert kinds == {
        "steady": "naive", "mean-7": "naive", "mean-14": "naive", "mean-28": "naive", "fedavg": "method",
        "fedavg+steady": "method", "chosen": "chosen",
    }  # fmt: skip


def test_weeks_add_up_and_regrets_are_those_of_the_prices(rows: tuple[Path, pd.DataFrame]) -> None:
    path, found = rows
    weeks = [name for name in found if name.startswith("week_")]
    np.testing.assert_allclose(found[weeks].sum(axis=1), found["regret"], rtol=1e-5)
    panel, own = open_panel(path), open_panel(path).prices[:DAYS]
    lost = []
    for day in range(56, DAYS):
        mean = own[day - 7 : day].mean(axis=0)
        bought = np.argsort(mean, kind="stable")[:2]
        lost.append(own[day][bought].sum() - np.sort(own[day])[:2].sum())
    [mean_7] = found[(found["zone"] == panel.names[0]) & (found["rule"] == "mean-7")]["regret"]
    assert mean_7 == pytest.approx(np.mean(lost))


def test_the_naive_rule_is_the_one_of_the_days_before_and_zones_count_alike() -> None:
    made = []
    for zone, size in (("small", 1.0), ("large", 100.0)):
        for rule, kind, past, after in (
            ("steady", "naive", 3 if zone == "large" else 1, 2.0), ("mean-7", "naive", 2, 1.0),
            ("fedavg", "method", 1, 1.5), ("chosen", "chosen", 1, 1.5 if zone == "small" else 2.2),
        ):  # fmt: skip
            weeks = {f"week_{week:02d}": size * after / 4 for week in range(4)}
            made.append(
                {"zone": zone, "seed": 0, "rule": rule, "kind": kind, "past": size * past, "regret": size * after} | weeks
            )
    answer = Answer(pd.DataFrame(made))
    assert answer.naive_rule == "steady"  # a third better at the small zone, 20 % worse at the large one
    found = answer.change("chosen", "steady")
    assert found is not None
    assert found.mean == pytest.approx((-25 + 10) / 2)  # of zones, not of their sum
    assert (found.worst, found.where) == (pytest.approx(10), "large")
    assert (found.low, found.high) == pytest.approx((found.mean, found.mean))  # the weeks are alike


def test_the_interval_of_a_change_is_over_weeks_and_over_seeds() -> None:
    rng, made = np.random.default_rng(0), []
    for rule in ("steady", "chosen"):
        for zone in ("A", "B"):
            for seed in (2, 0, 1):
                weeks = rng.uniform(0.5, 1, 5) if rule == "chosen" else np.full(5, 1.0)
                facts = {"zone": zone, "seed": seed, "rule": rule, "kind": "naive", "past": 1.0, "regret": weeks.sum()}
                made.append(facts | {f"week_{week:02d}": value for week, value in enumerate(weeks)})
    rows = pd.DataFrame(made)
    found = Answer(rows).change("chosen", "steady")
    own = rows[rows["rule"] == "chosen"].groupby("seed")[[f"week_{week:02d}" for week in range(5)]].mean().to_numpy()
    expected = interval(100 * 5 * (own - 1) / 5)  # each zone's reference is 5
    assert found is not None
    assert found[:3] == pytest.approx(expected)


def test_a_verdict_is_money_a_year_first_or_says_that_nothing_is_gained() -> None:
    def answer(after: float, noise: float = 0.0) -> Answer:
        made = []
        for rule, kind, mean in (("steady", "naive", 2.0), ("chosen", "chosen", after)):
            for zone in ("A", "B"):
                weeks = mean / 4 + noise * np.array([1, -1, 1, -1]) * (rule == "chosen")
                facts = {"zone": zone, "seed": 0, "rule": rule, "kind": kind, "past": 1.0, "regret": mean}
                choices = {"choices": "2023-03-01 steady; 2023-03-29 fedavg+steady"}
                made.append(facts | choices | {f"week_{week:02d}": value for week, value in enumerate(weeks)})
        return Answer(pd.DataFrame(made))

    gain = (
        "Use the chosen rules (now fedavg+steady): they save 182 EUR a year in the mean of zones against the steady average of "
        "past prices, which changes its regret by -25.0 % (95 % interval over weeks: -25.0 to -25.0 %); no zone loses more."
    )
    assert answer(1.5).in_words("EUR") == gain
    unclear = answer(1.9, noise=0.2).in_words("EUR")
    assert unclear.startswith("Keep to the steady average of past prices: the chosen rules change its regret by -5.0 %")
    assert "no clear gain" in unclear
    assert answer(2.2).in_words("EUR").startswith("Keep to the steady average")
    assert "they lose more; the worst zone" in answer(2.2).in_words("EUR")
    assert "the worst zone is A (+10.0 %)" in answer(2.2).in_words("EUR")


def test_what_is_expected_is_of_the_weeks_before_and_widens_with_the_drift_of_the_market() -> None:
    rng = np.random.default_rng(0)
    calm = expected_mean(np.full(13, 10.0), np.full(24, 20.0))
    assert calm[0] < 10 < calm[1]
    low, high = np.log(np.array(calm) / 10) / drift(np.full(24, 20.0))
    assert (low, high) == pytest.approx(ENDS)  # the mean of the last weeks is continued
    assert drift(np.full(24, 20.0)) == pytest.approx(USUAL / np.sqrt(6))  # five months without a change, and a usual one
    naive = np.repeat([5.0, 20.0, 4.0, 30.0, 8.0, 2.0], 4)
    wild = expected_mean(np.full(13, 10.0), naive)
    assert wild[1] / wild[0] > calm[1] / calm[0]
    assert expected_mean(np.concatenate([rng.gamma(1, 9, 5), np.full(13, 10.0)]), np.full(24, 20.0)) == calm
    assert all(np.isnan(expected_mean(np.full(3, 10.0), naive)))


def test_weeks_of_zones_of_different_lengths_end_on_the_same_day() -> None:
    found = weekly([np.arange(21.0), np.full(7, 100.0)])
    np.testing.assert_allclose(found, [3.0, 10.0, (17 + 100) / 2])


@pytest.mark.parametrize("options", [{"demand_seed": -1}, {"demand_seed": 2**63}])
def test_a_seed_that_is_none_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="demand_seed must be a whole number"):
        Preset(**options)


def test_decisions_are_kept_as_text_and_those_that_sell_are_not() -> None:
    bought = np.array([[0, 2.0, 0, 2.0], [2.0, 0, 1.0, 0]])
    np.testing.assert_allclose(decoded(encoded(bought), 4), bought / 2, atol=1 / 18)
    assert encoded(-bought) == encoded(np.zeros((2, 4))) == ""


def test_the_page_shows_money_by_zone_each_day_and_the_map(rows: tuple[Path, pd.DataFrame]) -> None:
    path, found = rows
    market = Preset(**QUICK).market(path)  # type: ignore[arg-type]
    placed = replace(market.panel, places=np.array([[50.0, 8.0], [51.0, 9.0]]))
    some = found.assign(seed=0, job="one", dffl="0")
    result = MarketResult(study(path, Preset(), [0]), path.parent, some, some, [], [], market._replace(panel=placed))
    data = ReportData.from_json(report_data(result).as_json())
    titles = [one.title for one in data.pictures]
    assert titles[0] == "Money saved in a year, by zone"
    assert titles[-2:] == ["Ranges that held", "Where the zones are, and what they save"]
    assert {title for title in titles if title.startswith("Every decision")} == {f"Every decision of {z}" for z in ("Z0", "Z1")}
    saved = result.answer.saved_by_zone["saved"]
    assert saved.mean() == pytest.approx(result.answer.saved, rel=1e-5)
    days = days_of(result, "Z0")
    assert days is not None
    own = found[(found["zone"] == "Z0") & (found["rule"] == "chosen")]["regret"].iloc[0]
    assert (days["price"] * (days["chosen"] - days["cheapest"])).sum() / 34 == pytest.approx(own)
    page = render(replace(data, pictures=(Picture("A <b>", "<svg><script>alert(1)</script></svg>"),)))
    assert "alert(1)" not in page
    assert "A &lt;b&gt;" in page


# ---- what was noticed


def market(folder: Path, table: pd.DataFrame, **options: object) -> dffl.Federation:
    made = Preset(**QUICK | options).market(write(table, folder / "market.csv"))  # type: ignore[arg-type]
    market.notes = made.panel.notes  # type: ignore[attr-defined]
    return made.federation


def test_a_zone_that_lacks_a_few_days_of_a_short_panel_is_not_left_out(tmp_path: Path) -> None:
    table = prices()
    table = table[~((table["zone"] == "Z1") & table["date"].isin(["2023-01-20", "2023-01-21"]))]
    made = Preset().market(write(table, tmp_path / "market.csv"))
    assert (made.federation.names, made.first_test) == (["Z0", "Z1"], "2023-02-28")


def test_zones_without_a_choice_are_left_out_and_named(tmp_path: Path) -> None:
    table = prices(4)
    table["demand"] = table["zone"].map({"Z0": 0, "Z1": 2, "Z2": 6, "Z3": 3})
    assert market(tmp_path, table).names == ["Z1", "Z3"]
    ends = "of 6 periods: there is nothing to decide, so it was left out"
    assert f"zone Z0: its demand is 0 {ends}" in market.notes
    assert f"zone Z2: its demand is 6 {ends}" in market.notes
    with refused(f"{tmp_path / 'market.csv'}: every zone has a demand of 0 or of all periods: there is nothing to decide"):
        market(tmp_path, table.assign(demand=6))


def test_a_price_that_does_not_move_for_a_week_and_negative_prices_are_noted(tmp_path: Path) -> None:
    table = prices()
    columns = [f"price_{period}" for period in range(6)]
    table.loc[10:16, columns] = 42.0
    table.loc[table["zone"] == "Z1", columns] -= 500
    market(tmp_path, table)
    assert (
        "zone Z0: the price is 42 in every period from 2023-01-11 to 2023-01-17: is a meter stuck? these days were kept; "
        "nothing can be lost on them"
    ) in market.notes
    assert "zone Z1: all prices are negative, from 2023-01-01 to 2023-03-31: is the sign right? they were kept" in market.notes
    table.loc[16, columns] = 43.0
    market(tmp_path, table)
    assert not any("stuck" in note for note in market.notes)


def test_one_zone_is_enough_and_is_told_what_that_means(tmp_path: Path) -> None:
    found = judged(tmp_path, prices(1))
    assert set(found["zone"]) == {"Z0"}
    market(tmp_path, prices(1))
    assert market.notes[-1].startswith("one zone (Z0): what is shared is learned from little")


def test_zones_that_begin_late_or_end_early_are_left_out_by_name_where_days_are_missing(tmp_path: Path) -> None:
    table = prices(4, 150)
    late = (table["zone"] == "Z1") & (table["date"] < "2023-02-15")
    early = (table["zone"] == "Z2") & (table["date"] > "2023-03-20")
    some = (table["zone"] == "Z3") & ((table["date"] > "2023-05-01") | (table["date"] < "2023-01-15"))
    assert market(tmp_path, table[~late & ~early & ~some]).names == ["Z0", "Z3"]
    needed = "where at least 56 and 10 are needed"
    assert f"left out: zone Z1 has 30 days before 2023-03-17 and 75 from then on, {needed}" in market.notes
    assert f"left out: zone Z2 has 75 days before 2023-03-17 and 4 from then on, {needed}" in market.notes
    found = judged(tmp_path, table[~late & ~early & ~some])
    days = found[found["rule"] == "chosen"].set_index("zone")["n_test"]
    assert days.to_dict() == {"Z0": 75, "Z3": 46}


def test_markets_of_different_years_are_put_side_by_side_on_the_same_weekdays(tmp_path: Path) -> None:
    old = prices(1, 120, start="2019-01-01", seed=1).assign(zone="OLD")
    table = pd.concat([old, prices(1, 120, start="2023-01-01")])
    panel = side_by_side(open_panel(write(table, tmp_path / "p.csv")))
    assert panel.dates[0] == np.datetime64("2019-01-01") + 4 * 364
    assert panel.notes[-1] == "zone OLD: its days end 2019-04-30, before the newest market's begin: moved by 1456 days"
    found = judged(tmp_path, table)
    assert set(found["zone"]) == {"OLD", "Z0"}


def test_too_few_days_and_a_split_outside_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "market.csv"
    needed = "at least 56 and 10 are needed; split elsewhere with --split"
    with refused(f"{path}: zone Z0 has 56 days before 2023-02-26 and 4 from then on; {needed}"):
        market(tmp_path, prices(days=60))
    with refused("--split must be after 2023-01-01 and not after 2023-03-31, found 2030-01-01"):
        market(tmp_path, prices(), split="2030-01-01")


# ---- newcomers


def test_a_newcomer_learns_from_the_others_and_its_first_days_are_enough_for_a_naive_rule(tmp_path: Path) -> None:
    preset = Preset(settings={"rounds": 1, "local_epochs": 1})
    made = preset.market(write(prices(3, 130), tmp_path / "market.csv"))
    found = newcomers(made, preset, ["Z1"], days=(3, 60))
    assert {(row.days, row.rule) for row in found.rows.itertuples()} == {
        (3, "steady"), (3, "mean-7"), (3, "shared"),
        (60, "steady"), (60, "mean-7"), (60, "shared"), (60, "tuned"), (60, "alone"),
    }  # fmt: skip
    own, start = made.federation["Z1"].c, 65
    lost = []
    for day in range(start, start + 56):
        mean = own[max(start - 3, day - 7) : day].mean(axis=0)
        lost.append(own[day][np.argsort(mean, kind="stable")[:2]].sum() - np.sort(own[day])[:2].sum())
    [mean_7] = found.rows.query("days == 3 and rule == 'mean-7'")["regret"]
    assert mean_7 == pytest.approx(np.mean(lost))
    # Nothing of the newcomer's older days, and no later day of it, is known to the shared model.
    table = prices(3, 130)
    older = (table["zone"] == "Z1") & (table["date"] < "2023-03-04")
    table.loc[older, [f"price_{period}" for period in range(6)]] *= 3
    again = newcomers(preset.market(write(table, tmp_path / "other.csv")), preset, ["Z1"], days=(3,))
    pd.testing.assert_frame_equal(again.rows, found.rows[found.rows["days"] == 3].reset_index(drop=True))


def test_until_when_sharing_pays_is_said_and_one_zone_is_refused(tmp_path: Path) -> None:
    rows = [
        ("A", days, rule, lost)
        for days, *each in ((3, 9.0, 6.0), (30, 5.0, 5.0))
        for rule, lost in zip(("steady", "shared"), each, strict=True)
    ]
    found = Newcomers(pd.DataFrame(rows, columns=["zone", "days", "rule", "regret"]), "EUR")
    assert found.in_words() == "From 30 days of its own on a newcomer does as well by itself."
    assert found.as_json()["zones"]["A"][0] == {"days": 3, "rule": "steady", "regret": 9.0}
    found.write(tmp_path / "out")
    made = {"newcomers.csv", "newcomers.md", "newcomers.png", "newcomers.tex", "regrets.csv", "remark.md"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == made
    assert (tmp_path / "out" / "regrets.csv").read_text().splitlines()[1] == "A,3,steady,9.0"
    better = Newcomers(found.rows.assign(regret=[9.0, 6.0, 5.0, 4.0]), "EUR")
    assert better.in_words() == "The others' model is better up to 30 days, the most that were tried."
    preset = Preset()
    with refused(f"{tmp_path / 'one.csv'}: a newcomer needs other zones to learn from, found one zone"):
        newcomers(preset.market(write(prices(1), tmp_path / "one.csv")), preset, ["Z0"])


# ---- the command


def test_the_command_answers_people_and_programs(tmp_path: Path) -> None:
    path = write(prices(), tmp_path / "market.csv")
    options = ["energy", "run", str(path), "--out", str(tmp_path / "out"), "--rounds", "1", "--methods", "fedavg", "--quiet"]
    answer = CliRunner().invoke(app, [*options, "--json"], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert set(found["naive"]) == {"steady", "mean-7", "mean-14", "mean-28"}
    assert set(found["methods"]) == {"fedavg", "fedavg+steady"}
    assert {tuple(by) for kind in ("naive", "methods") for by in found[kind].values()} == {("Z0", "Z1")}
    chosen = found["chosen"]
    assert set(chosen) == {"rule", "by_zone", "expected", "rules"}
    assert chosen["rule"] == chosen["rules"][0][1]
    assert chosen["rules"][0][0] == found["first_test"] == "2023-02-26"
    assert set(chosen["by_zone"]) == {"Z0", "Z1"}
    assert (found["currency"], found["unit"]) == ("EUR", "EUR a day for 1 MWh in each period bought")
    assert found["demands"]["Z0"] == {"periods": 2.0, "from": "the panel"}
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, [*options, "--show", "--report", str(page)], catch_exceptions=False).stdout
    assert "EUR a year" in shown
    assert "EUR a year by the chosen rules, mean of 2 zones" in page.read_text(encoding="utf-8")
    assert (tmp_path / "out" / "report.json").is_file()  # for `dffl report FOLDER`
    assert (tmp_path / "out" / "tables" / "zones.csv").is_file()
    tomorrow = write(pd.DataFrame({"zone": ["Z0"], "date": ["2023-04-01"]}), tmp_path / "tomorrow.csv")
    model = str(tmp_path / "out" / "model.dffl")
    decided = CliRunner().invoke(app, ["energy", "decide", model, "--features", str(tomorrow)], catch_exceptions=False)
    assert "Z0, Sat 2023-04-01: buy 2 of 6 periods: " in decided.stdout
    assert "\n  demand: the panel\n" in decided.stdout
    assert " EUR for 1 MWh in each period bought" in decided.stdout

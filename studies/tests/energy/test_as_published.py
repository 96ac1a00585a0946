"""The paper's energy study: its protocol, its Tables 4 and 5, and when the paper's numbers may be shown."""

import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from dffl.cli import app
from dffl.training import Settings
from dffl_studies.energy import published
from dffl_studies.energy.data import HOURS, read_panel
from dffl_studies.energy.papers_tables import all_tables, table_4, table_5
from dffl_studies.energy.published import Comparison, checked_market
from dffl_studies.energy.setup import EVERY_METHOD, Setup, halves, one_year, published_settings, six_months
from dffl_studies.energy.study import PublishedResult, judge, study
from dffl_studies.paper.study import AUTHORS
from dffl_studies.running.render import to_csv, to_markdown
from studies.tests.energy.data.made import panel_table, refused, write
from studies.tests.energy.made_rows import with_weeks
from studies.tests.energy.markets import frame

PAPERS = list(published.ZONES)


def call(*arguments: object):
    return CliRunner().invoke(app, ["energy", *map(str, arguments)], catch_exceptions=False)


def market_file(folder, zones=("AECO", "BGE"), days=200, start="2025-01-01"):
    """A panel of random prices with the demands of the authors' later code."""
    table = panel_table(zones, days, start)
    return write(table.assign(demand=table["zone"].map(published.DEMANDS).fillna(5.0)), folder / "market.csv")


def compared(folder, market="pjm", setup=None, **made) -> Comparison:
    return Comparison.of(read_panel(market_file(folder, **made)), setup or Setup(published=True), market)


def random_rows(zones, seeds=5) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    rows = [
        {"seed": seed, "zone": zone, "demand": 6.0, "method": method, "best": 100.0, "regret": rng.uniform(10, 60),
         "lambda": rng.uniform() if method == "interp-spo" else None}
        for seed in range(seeds) for zone in zones for method in (*EVERY_METHOD, "mean-7", "steady")
    ]  # fmt: skip
    return with_weeks(pd.DataFrame(rows))


# --- the protocol


def test_the_settings_are_those_of_the_synthetic_study_and_of_no_other_place():
    assert published_settings({}) == AUTHORS["settings"]
    assert published_settings({"crossfit.judge": "spo+", "rounds": 50}) == AUTHORS["settings"] | {"crossfit.judge": "spo+"}
    used = Settings.of(**published_settings({})).at(HOURS)
    assert (used.rounds, used.local_epochs, used.batch_size, used.client_fraction) == (50, 5, 64, 0.2)
    assert (used.tau, used.hidden, used.learning_rate, used.validation_fraction) == (20.0, 64, 1e-3, 0.2)


def test_the_command_hands_over_the_protocol(tmp_path, monkeypatch):
    handed = []

    def run(panel, setup, options, seeds, figures, market):
        handed.append((setup, seeds, market))
        raise ValueError("enough")

    monkeypatch.setattr("dffl_studies.energy.study.run", run)
    call("run", "none.csv", "--as-published", "--market", "PJM", "--cost", "total+own", "--from", "2025/1/1", "--without", "A")
    [(setup, seeds, market)] = handed
    assert setup.settings == AUTHORS["settings"]
    assert (setup.published, setup.blocked, setup.lags, setup.cost, setup.first) == (
        True,
        False,
        False,
        "total+own",
        "2025-01-01",
    )
    assert setup.methods == EVERY_METHOD
    assert (seeds, market) == ([0, 1, 2, 3, 4], "pjm")


@pytest.mark.parametrize(
    ("options", "option", "instead"),
    [
        (("--split", "2025-05-01"), "--split", "trains on the first six months"),
        (("--methods", "fedavg"), "--methods", "has the paper's market, decisions and methods"),
        (("--weather-lag", 1), "--weather-lag", "uses the weather of the day itself"),
        (("--covariates", "wind"), "--covariates", "uses the covariates of the paper"),
        (("--seeds", 3), "--seeds 3", "has 5 seeds"),
        (("--rounds", 10), "--rounds 10", "has 50 rounds"),
        (("--set", "client_fraction=1"), "--set client_fraction=1", "has client_fraction = 0.2"),
        (("--set", "hidden=32"), "--set hidden=32", "has hidden = 64"),
        (("--set", "local.epochs=50"), "--set local.epochs=50", "has the paper's local"),
    ],
)
def test_an_option_that_contradicts_it_is_refused_in_one_line_that_names_both(options, option, instead):
    answer = call("run", "no-such-file.csv", "--as-published", *options)  # before anything is read
    assert answer.exit_code == 3
    assert answer.stderr == f"dffl: {option} contradicts --as-published, which {instead}; leave one of them out\n"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--from", "2025-05-01", "--to", "2025-04-30"), "--from must not be after --to, found 2025-05-01 and 2025-04-30"),
        (("--from", "May"), "--from must be a day such as 2021-01-31, found 'May'"),
        (
            ("--market", "nyiso"),
            "--market must be pjm, the market of the paper, found 'nyiso'; leave it out for another market",
        ),
    ],
)
def test_a_span_or_a_market_that_is_wrong_is_refused_before_anything_is_read(options, line):
    answer = call("run", "no-such-file.csv", *options)
    assert (answer.exit_code, answer.stderr) == (3, f"dffl: {line}\n")


def test_days_that_do_not_fit_are_refused_in_one_line(tmp_path):
    path = str(market_file(tmp_path, days=400))
    year = "one year, 2025-01-01 to 2025-12-31"
    with refused(f"--to 2026-01-10 contradicts --as-published, which has {year}; leave one of them out"):
        Setup(published=True, last="2026-01-10").open(path)
    with refused(f"{path}: has no day from 2030-01-01 to its last; its days are 2025-01-01 to 2026-02-04"):
        Setup(first="2030-01-01").open(path)
    short = Setup(published=True, last="2025-06-30")
    tests = "trains on six months and tests from 2025-07-01 on, and the last day is 2025-06-30"
    with refused(f"{path}: --as-published {tests}; use a panel with more days, or leave --as-published out"):
        halves(short.open(path), short)


def test_one_year_whose_first_six_months_train(tmp_path):
    setup, path = Setup(published=True, blocked=False), str(market_file(tmp_path, days=400))
    panel = setup.open(path)
    assert (str(panel.days[0]), str(panel.days[-1]), len(panel.days)) == ("2025-01-01", "2025-12-31", 365)
    assert panel.notes[-1] == "--as-published has one year: the days from 2026-01-01 to 2026-02-04 were left out"
    made = halves(panel, setup)
    assert (made.first_test, made.train.counts[0], made.test.counts[0]) == ("2025-07-01", 181, 184)
    later = Setup(published=True, blocked=False, first="2025-02-01", last="2026-01-31").open(path)
    assert (one_year(later, "2026-01-31"), six_months(later)) == (("2025-02-01", "2026-01-31"), "2025-08-01")
    assert not any("left out" in note for note in later.notes)


def test_of_a_file_too_it_uses_the_papers_covariates_only(tmp_path):
    table = panel_table(days=5).assign(load_max=np.arange(10.0))
    path = str(write(table, tmp_path / "panel.csv"))
    assert Setup().open(path).covariate_names == ("tmean", "wind", "load_max", "day_of_week")
    panel = Setup(published=True).open(path)
    assert panel.covariate_names == ("tmean", "wind", "day_of_week")
    assert any("left out load_max, which the paper does not use" in note for note in panel.notes)


def test_days_outside_the_span_are_not_read_and_not_noted(tmp_path):
    table = panel_table(days=30).astype({"price_3": object})
    table.loc[table["date"] == "2021-01-02", "price_3"] = "broken"
    path = str(write(table, tmp_path / "panel.csv"))
    panel = Setup(first="2021-01-03", last="2021-01-20").open(path)
    assert (str(panel.days[0]), str(panel.days[-1]), panel.notes) == ("2021-01-03", "2021-01-20", ())
    with pytest.raises(ValueError, match="price_3 must be a finite number, found 'broken'"):
        Setup().open(path)


def test_a_protocol_without_the_new_options_is_that_of_version_0_2_0():
    plain = Setup().as_json()
    assert list(plain) == [
        "split", "lags", "cost", "weather_lag", "covariates", "without", "demand_seed", "blocked", "settings",
    ]  # fmt: skip
    assert Setup.of(plain) == Setup()
    asked = Setup(blocked=False, first="2025-01-01", published=True, settings=published_settings({}))
    assert Setup.of(json.loads(json.dumps(asked.as_json()))) == asked


# --- its results, as version 0.2.0 had them

RESULTS = {
    "local": (37.1621052631579, 47.002105263157894, 29.336842105263152),
    "fedavg": (37.09473684210526, 47.71421052631579, 29.265263157894736),
    "interp-spo": (37.42052631578947, 47.41, 29.507894736842104),
}
"""Regrets of AECO, BGE and COMED after two rounds of one epoch."""
WHOLE = {
    "local": (35.845263157894735, 42.75315789473684, 28.70526315789473),
    "fedavg": (37.703157895, 44.113684211, 30.818421053),
    "interp-spo": (34.29, 45.421052631578945, 28.95473684210527),
}
"""The same after the paper's 50 rounds of five epochs."""


def results(folder, **changed):
    path = market_file(folder, ("AECO", "BGE", "COMED"))
    begun = study(path, Setup(published=True, blocked=False, settings=published_settings({}) | changed), [0])
    rows = judge(**begun.protocol | {"methods": list(RESULTS)}, seed=0, panel=str(path))
    return {method: tuple(own["regret"]) for method, own in rows.groupby("method")}, rows["lambda"].dropna().tolist()


def test_its_results_are_those_of_version_0_2_0(tmp_path):
    found, weights = results(tmp_path, rounds=2, local_epochs=1)
    assert found == {method: pytest.approx(values, abs=1e-9) for method, values in RESULTS.items()}
    assert weights == [0.5, 0.0, 0.65]


@pytest.mark.slow
def test_its_whole_training_ends_as_in_version_0_2_0(tmp_path):
    found, weights = results(tmp_path)
    assert found == {method: pytest.approx(values, abs=1e-8) for method, values in WHOLE.items()}
    assert weights == [0.65, 0.6, 0.85]


# --- Tables 4 and 5


def test_table_4_is_what_the_rows_give_by_hand():
    rows = random_rows(PAPERS)
    table = table_4(rows, Comparison())
    shown = {(*cell.row, cell.column): cell.ours for cell in table.cells}
    regret = {(row.seed, row.zone, row.method): row.regret for row in rows.itertuples()}
    for method, label in (("fedavg", "Federated"), ("interp-spo", "Interpolated (SPO+)"), ("local-tuned", "Local, tuned")):
        by_seed: dict[str, list[float]] = {
            "mean change %": [],
            "median change %": [],
            "worst harm %": [],
            "worst-20 % harm": [],
        }
        for seed in range(5):
            own = [(seed, zone, "local") for zone in PAPERS]
            changes = sorted(100 * (regret[(*key[:2], method)] - regret[key]) / regret[key] for key in own)
            by_seed["mean change %"].append(math.fsum(changes) / 19)
            by_seed["median change %"].append(changes[9])
            by_seed["worst harm %"].append(changes[-1])
            by_seed["worst-20 % harm"].append(sum(max(change, 0) for change in changes[-4:]) / 4)
        for column, values in by_seed.items():
            mean = sum(values) / 5
            sd = math.sqrt(sum((value - mean) ** 2 for value in values) / 4)
            assert shown[label, column] == pytest.approx((mean, sd)), (label, column)
    assert [row[0] for row in dict.fromkeys(cell.row for cell in table.cells)][:3] == [
        "Federated", "Interpolated (SPO+)", "Local, tuned",
    ]  # fmt: skip


def test_table_5_has_the_papers_order_and_each_zones_means_over_seeds():
    rows = random_rows([*sorted(PAPERS), "ELSEWHERE"])
    table = table_5(rows, Comparison(tuple(PAPERS), True))
    assert [row[0] for row in dict.fromkeys(cell.row for cell in table.cells)] == [*PAPERS, "ELSEWHERE"]
    shown = {(cell.row[0], cell.column): cell for cell in table.cells}
    for method, column in (("local", "local"), ("fedavg", "federated"), ("interp-spo", "interpolated")):
        own = rows[(rows["zone"] == "BGE") & (rows["method"] == method)]["regret"]
        assert shown["BGE", column].ours == pytest.approx((own.mean(), own.std()))
        assert shown["BGE", column].paper == published.ZONES["BGE"][method]
        assert shown["ELSEWHERE", column].paper is None


def test_the_papers_numbers_need_the_market_and_a_missing_zone_removes_one_row(tmp_path):
    year = {"days": 200, "start": "2025-01-01"}
    rows = random_rows(PAPERS)
    whole = all_tables(rows, compared(tmp_path, zones=PAPERS, **year))
    assert "| Federated | paper | -8.23 ± 0.59 | -10.45 ± 2.09 | 21.23 ± 4.96 | 8.78 ± 3.12 |" in to_markdown(whole[0])
    assert "difference" in to_markdown(whole[0])
    assert to_markdown(whole[1]).count("| paper |") == 19
    assert "| DUQ | 6 | paper | 21.55 ± 0.62 | 16.52 ± 0.79 | 16.03 ± 1.16 | 1.00 ± 0.00 |" in to_markdown(whole[1])
    less = [zone for zone in PAPERS if zone != "DUQ"]
    fewer = all_tables(random_rows(less), compared(tmp_path, zones=less, **year))
    assert to_markdown(fewer[1]).count("| paper |") == 18
    assert "DUQ | 6" not in to_markdown(fewer[1])
    assert "| paper | -8.23 ± 0.59 |" in to_markdown(fewer[0])
    assert "The paper's Table 4 is of 19 zones, ours of 18 of them (without DUQ)." in fewer[0].note
    made_up = all_tables(rows, compared(tmp_path, market=None, zones=PAPERS, **year))
    for table in made_up:
        assert "| paper |" not in to_markdown(table)
        assert "8.23" not in to_csv(table)


def test_another_year_stands_with_a_sentence_and_without_differences(tmp_path):
    found = compared(tmp_path, zones=PAPERS, days=365, start="2020-05-01")
    assert (found.zones, found.same_year) == (tuple(PAPERS), False)
    first = (
        "The same zones and market, another year: the paper's numbers are of 2025, ours of 2020-05-01 to 2021-04-30. They need "
        "not agree."
    )
    assert found.sentences[0] == first
    assert found.lines() == [
        "The paper's own panel (PJM, 2025): dffl energy fetch authors -o pjm.csv, then dffl energy run pjm.csv --as-published "
        "--market pjm"
    ]
    for table in all_tables(random_rows(PAPERS), found)[:2]:
        text = to_markdown(table)
        assert "| paper |" in text
        assert first in text
        assert "difference" not in text


def test_what_differs_from_the_paper_is_said_in_one_sentence_each(tmp_path):
    same = compared(tmp_path, zones=PAPERS)
    assert same.same_year
    assert same.lines() == []  # this is the paper's panel, and the notes of the tables say the rest
    assert same.sentences == (
        "The paper also has the covariates tmin, tmax, humidity, solar_irradiance_mean, solar_irradiance_max.",
        "Demands are those of the authors' later code.",
        "The authors' later code counts the own part of a price twice (--cost total+own).",
    )
    twice = Comparison.of(read_panel(market_file(tmp_path, PAPERS)), Setup(cost="total+own"), "pjm")
    assert not any("twice" in sentence for sentence in twice.sentences)
    other = panel_table(PAPERS, 5, "2025-01-01").assign(demand=6)
    assert "Demands are not those of the authors' later code at " in " ".join(
        Comparison.of(read_panel(write(other, tmp_path / "o.csv")), Setup(), "pjm").sentences
    )
    drawn = read_panel(write(other.drop(columns="demand"), tmp_path / "d.csv"))
    assert (
        "Demands are random; those of the authors' later code are other ones." in Comparison.of(drawn, Setup(), "pjm").sentences
    )


def test_other_zones_and_names_alone_get_one_line_and_no_number(tmp_path):
    none = compared(tmp_path, zones=("A", "B"))
    assert none.sentences == ("None of these zones is one of the paper's 19: its numbers are not shown.",)
    assert none.zones == ()
    assert none.lines() == [*none.sentences, none.source]
    assert none.source.startswith("The paper's own panel (PJM, 2025): dffl energy fetch authors")
    names = compared(tmp_path, market=None, setup=Setup())
    assert names.sentences == (
        "2 of these zones have names of the paper's 19; its numbers are shown next to PJM's day-ahead prices only: add "
        "--market pjm if these are.",
    )
    assert names.zones == ()
    with refused("--market must be pjm, the market of the paper, found 'miso'; leave it out for another market"):
        checked_market("miso")


def test_the_terminal_shows_both_tables_with_the_settings_and_what_differs(tmp_path):
    path = market_file(tmp_path, PAPERS, days=200, start="2021-01-01")
    setup, rows = Setup(published=True, blocked=False, settings=published_settings({})), random_rows(PAPERS)
    panel = setup.open(str(path))
    found = Comparison.of(panel, setup, "pjm")
    tables = all_tables(rows, found)
    rows = rows.assign(dffl="0.2.0", job="job")
    whole = PublishedResult(
        study(path, setup), tmp_path / "out", rows, pd.DataFrame(), [], [], panel=panel, setup=setup, first_test="2021-07-01",
        tables=tables, comparison=found,
    )  # fmt: skip
    with (screen := Console(width=160, file=io.StringIO())).capture() as printed:
        whole.show(screen)
    text = " ".join(printed.get().split())
    titles = ("The paper's Table 4: change", "The paper's Table 5: regret", "Change of regret against local-tuned")
    assert [text.find(title) > 0 for title in titles] == [True] * 3
    for words in (
        "As published: rounds = 50, local_epochs = 5, batch_size = 64, client_fraction = 0.2, scale_costs = True, random days",
        "19 zones; 2021-01-01 to 2021-06-30 train, 2021-07-01 to 2021-07-19 test; 5 seeds.",
        "The same zones and market, another year: the paper's numbers are of 2025, ours of 2021-01-01 to 2021-07-19.",
        "Paper: The paper's own panel (PJM, 2025): dffl energy fetch authors -o pjm.csv",
    ):
        assert words in text, words
    assert whole.as_json()["paper"]["zones"] == PAPERS


def test_the_whole_command_prints_both_tables(tmp_path, monkeypatch):
    for name in ("rounds", "local_epochs"):  # the paper's 250 epochs take minutes
        monkeypatch.setitem(AUTHORS["settings"], name, 1)
    table = frame(zones=3, days=200, start="2024-03-01")
    table["zone"] = table["zone"].map({"Z00": "AECO", "Z01": "BGE", "Z02": "Elsewhere"})
    path = write(table.assign(demand=4.0), tmp_path / "panel.csv")
    options = ("--as-published", "--market", "pjm", "--out", tmp_path / "out", "--workers", 1, "--quiet")
    answer = call("run", path, *options)
    assert answer.exit_code == 0, answer.output
    text = " ".join(answer.stdout.split())
    for words in (
        "The paper's Table 4: change of regret against local",
        "The paper's Table 5: regret and interpolation weight of each zone",
        "As published: rounds = 1, local_epochs = 1, batch_size = 64, client_fraction = 0.2, scale_costs = True, random days",
        "3 zones; 2024-03-01 to 2024-08-31 train, 2024-09-01 to 2024-09-16 test; 5 seeds.",
        "The same zones and market, another year: the paper's numbers are of 2025, ours of 2024-03-01 to 2024-09-16.",
        "The paper's Table 4 is of 19 zones, ours of 2 of them",
        "Paper: The paper's own panel (PJM, 2025): dffl energy fetch authors -o pjm.csv",
    ):
        assert words in text, words
    tables = tmp_path / "out" / "tables"
    assert "| paper | 35.58 ± 0.97 |" in (tables / "table-5.md").read_text()
    assert "Elsewhere | 4 | ours alone |" in (tables / "table-5.md").read_text()
    rows = pd.read_parquet(tmp_path / "out" / "rows.parquet")
    assert set(EVERY_METHOD) <= set(rows["method"])
    assert "Interpolated (MSE)" in (tables / "changes-local.md").read_text()
    assert (tmp_path / "out" / "figures" / "bars.png").is_file()
    found = json.loads(call("run", path, *options[:5], "--no-figures", "--show", "--json").stdout)
    assert found["paper"]["zones"] == ["AECO", "BGE"]
    assert found["paper"]["same_year"] is False

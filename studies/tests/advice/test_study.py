"""The advice study: what is right and wrong, what each rule loses, and the command."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dffl.cli import app
from dffl.training.sharing import sharing
from dffl_studies.advice import alike
from dffl_studies.advice import study as advice
from dffl_studies.advice.federations import CLIENTS, SIZES, configurations, federation
from dffl_studies.advice.tables import (
    all_tables,
    at_stake,
    clients,
    directions,
    estimates,
    followed,
    right,
    shared_tables,
    wrong,
)
from dffl_studies.energy.data import digest
from studies.tests.energy.markets import panel_file

KIND = {"problem": "purchase", "prices": "two odd ones", "eta_constr": 1.0, "sizes": "mixed", "noise": 0.5, "degree": 2}
SHORT = {
    "rounds": 2,
    "local_epochs": 2,
    "finetune.epochs": (0, 2),
    "crossfit.epochs": (0, 2),
    "local-tuned.epochs": (2, 4),
    "hidden": 8,
}


def rows() -> pd.DataFrame:
    """Six clients of whom it is known what should be counted."""
    advised = ["federate", "federate", "stay local", "stay local", "personalise", "cannot tell"]
    local = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    fed = np.array([0.5, 1.5, 1.5, 0.5, 1.05, 0.2])
    return pd.DataFrame(
        {
            "job": "j", "client": list("abcdef"), "n": [40, 40, 100, 100, 240, 240], "saturated": False, "problem": "knapsack",
            "recommendation": advised, "gain": 1 - fed, "gain_low": 0.4 - fed, "gain_high": [0.6, 0.0, 0.0, 0.0, 0.0, 0.0],
            "crossfit_gain": 0.1, "crossfit_low": 0.0, "crossfit_high": 0.35,
            "deploy": ["fedavg", "finetune", "local-tuned", "crossfit", "finetune", "mean-cost"], "quick": "stay local",
            "condition": True, "lambda": [1.0, 0.0, 1.0, 0.0, 0.5, 0.0], "test_mean-cost": 2.0, "test_local": 1.2 * local,
            "test_local-tuned": local, "test_fedavg": fed, "test_interp-spo": 0.9, "test_finetune": 0.8,
            "test_crossfit": [0.9, 0.9, 1.2, 0.9, 0.7, 0.9], "mean_cost": 2.0, "local": 1.3, "local_tuned": 1.1,
            "federated": 1.0, "finetuned": 0.9, "crossfit": 0.9, "seen_crossfit": 0.8, "seen_local-tuned": 1.1,
        }
    )  # fmt: skip


def test_right_and_wrong_are_counted_among_large_changes_only():
    judged = clients(rows())
    assert judged["client"].tolist() == list("abcde")  # f loses nothing on its own
    assert at_stake(judged, "recommendation").tolist() == pytest.approx([0.5, -0.5, -0.2, 0.5, 0.3])
    assert right(judged, "recommendation").tolist() == [True, False, True, False, True]
    assert wrong(judged, "recommendation").tolist() == [False, True, False, True, False]
    cells = {cell.column: cell.ours.mean for cell in directions(judged).cells if cell.row == ("all", "")}
    assert cells["clients"] == 5
    assert cells["large change"] == 5
    assert cells["right"] == 60
    assert cells["wrong"] == 40
    assert cells["interval holds: shared"] == 80  # all but d's, which ends at 0
    assert cells["interval holds: crossfit"] == 80  # all but c's
    assert cells["quick: right"] == 50  # of the four for whom the shared model changes over 10 %


def test_what_each_rule_loses():
    lost = {name: regret.tolist() for name, regret in followed(clients(rows())).items()}
    assert lost["always federate"] == [0.5, 1.5, 1.5, 0.5, 1.05]
    assert lost["the paper's condition"] == lost["always federate"]
    assert lost["interpolation weight at least 1/2"] == [0.5, 1.2, 1.5, 1.2, 1.05]
    assert lost["the recommendation"] == [0.5, 1.5, 1.0, 1.0, 0.7]
    assert lost["the advice's choice of method"] == [0.5, 0.8, 1.0, 0.9, 0.8]
    assert lost["best of local-tuned and federated"] == [0.5, 1.0, 1.0, 0.5, 1.0]
    assert lost["best of all"] == [0.5, 0.8, 0.8, 0.5, 0.7]


def test_held_out_regrets_stand_beside_test_regrets():
    cells = {(*cell.row, cell.column): cell.ours.mean for cell in estimates(clients(rows())).cells}
    assert cells["local-tuned", "held out"] == pytest.approx(110)
    assert cells["local-tuned", "above test"] == pytest.approx(10)
    assert cells["crossfit", "test"] == pytest.approx(92)
    assert cells["crossfit, as its fit keeps it", "above test"] == pytest.approx(100 * (0.8 / 0.92 - 1))


def test_saturated_clients_are_left_out():
    table = rows().assign(saturated=[True] + [False] * 5)
    assert clients(table)["client"].tolist() == list("bcde")


def test_the_study_has_432_federations_in_an_order_that_mixes_kinds():
    jobs = configurations([0])
    assert len(jobs) == 432
    first = pd.DataFrame([job.parameters for job in jobs[:60]])
    assert all(len(first[name].unique()) == len({job.parameters[name] for job in jobs}) for name in first)
    assert [job.key for job in jobs] == [job.key for job in configurations([0])]


def test_the_odd_ones_are_odd_and_test_samples_are_of_the_same_clients():
    near = federation(**KIND | {"prices": "near"}, seed=0, split="train")
    odd = federation(**KIND, seed=0, split="train")
    test = federation(**KIND, seed=0, split="test")
    assert near.counts == list(SIZES["mixed"])
    x = np.ones((1, near.features))
    same = [np.allclose(a.cost_at(x), b.cost_at(x)) for a, b in zip(near, odd, strict=True)]
    assert same == [True] * (CLIENTS - 2) + [False] * 2
    for mine, theirs in zip(odd, test, strict=True):
        np.testing.assert_allclose(mine.cost_at(x), theirs.cost_at(x))
        assert float(mine.set.k) == float(theirs.set.k)
        assert theirs.n == 1000
        assert not mine.maximize


def test_a_client_is_advised_and_judged():
    table = advice.judge_synthetic(settings=SHORT, **KIND | {"sizes": "equal"}, seed=0)  # one size: few programs
    assert len(table) == CLIENTS
    assert table["n"].tolist() == list(SIZES["equal"])
    assert {
        "recommendation",
        "gain_low",
        "deploy",
        "cause",
        "quick",
        "condition",
        "lambda",
        "test_local",
        "test_crossfit",
        "seen_crossfit",
    } <= set(table)
    assert np.isfinite(
        table[["gain", "crossfit_gain", "test_local", "test_local-tuned", "test_crossfit", "test_mean-cost"]]
    ).all(axis=None)
    names = [table_.name for table_ in all_tables(table.assign(job="j", problem="purchase"))]
    assert names == ["directions", "rules", "recommendations", "estimates"]


def test_show_of_a_finished_folder_and_bad_input(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(advice, "judge_synthetic", _canned)
    out = tmp_path / "out"
    only = [part for name in ("prices=near", "sizes=equal", "noise=0", "degree=2", "eta_constr=0") for part in ("--only", name)]
    answer = CliRunner().invoke(app, ["advice-study", "--out", str(out), "--workers", "1", "--quiet", *only])
    assert answer.exit_code == 0, answer.output
    assert "3 of 3 configurations" in answer.output
    assert "the recommendation" in (out / "tables" / "rules.md").read_text()
    assert (
        "| all |  | 15 | 15 | 60 | 40 | 80 | 80 |" in (out / "tables" / "directions.md").read_text()
    )  # counts without decimals
    shown = CliRunner().invoke(app, ["advice-study", "--out", str(out), "--show", "--json"])
    assert set(json.loads(shown.stdout)["tables"]) == {"directions", "rules", "recommendations", "estimates"}
    refused = CliRunner().invoke(app, ["advice-study", "--out", str(out), "--show", "--workers", "2"])
    assert refused.exit_code == 3
    assert "--show runs nothing" in refused.output


@pytest.mark.parametrize(("kind", "rules"), [("copies", {"row"}), ("noise", {"draw"}), ("zone", {"row", "cost"})])
def test_federations_share_what_their_kind_says(kind, rules):
    made = [alike.federation(kind, seed, "train") for seed in range(12)]
    assert {sharing(one.clients).rule for one in made} == rules
    assert {one.counts[0] for one in made} == set(alike.ROWS)
    assert {type(one[0].set).__name__ for one in made} == {"TopK", "FractionalKnapsack"}
    for seed in range(3):
        train, test = made[seed], alike.federation(kind, seed, "test")
        assert test.counts == [alike.TEST_ROWS] * alike.CLIENTS
        assert not np.isin(test[0].cost_keys, train[0].cost_keys).any()
        assert all(repr(mine.set) == repr(theirs.set) for mine, theirs in zip(train, test, strict=True))


def test_noise_has_nothing_to_learn_and_a_zone_has():
    told = {}
    for kind in alike.KINDS:
        x, c = (np.concatenate([getattr(alike.federation(kind, seed, "test")[0], name) for seed in (0,)]) for name in "xc")
        wide = np.column_stack([np.ones(len(x)), x, x**2])
        rest = c - wide @ np.linalg.lstsq(wide, c, rcond=None)[0]
        told[kind] = 1 - rest.var() / (c - c.mean(axis=0)).var()
    assert told["noise"] < 0.01
    assert min(told["copies"], told["zone"]) > 0.2


def shared_row(kind: str = "copies", **other: object) -> dict[str, object]:
    """A client whose intervals both hold: the shared model saves 10 %, crossfit 20 %."""
    return {
        "job": "j", "kind": kind, "client": "a", "nothing": False, "recommendation": "cannot tell", "deploy": "crossfit",
        "gain": 0.1, "gain_low": 0.0, "gain_high": 0.3, "crossfit_gain": 0.1, "crossfit_low": 0.0, "crossfit_high": 0.3,
        "test_local-tuned": 1.0, "test_fedavg": 0.9, "test_crossfit": 0.8,
    } | other  # fmt: skip


def test_intervals_are_counted_over_clients_and_over_federations():
    lost = {"test_fedavg": 1.1}
    made = [shared_row(), shared_row(**lost), shared_row(job="k"), shared_row(job="k"), shared_row(nothing=True, **lost)]
    made += [shared_row("zone", job="z", **lost, deploy="mean-cost")]
    holding, verdicts = shared_tables(pd.DataFrame(made))
    cells = {(*cell.row, cell.column): cell.ours.mean for cell in holding.cells}
    assert cells["all", "clients"] == 5  # who has nothing to gain is left out
    assert cells["copies", "federations"] == 2
    assert cells["copies", "shared: holds"] == 75
    assert cells["copies", "shared: for most"] == 50
    assert cells["copies", "shared: error"] == pytest.approx(25)  # of 50 % and 100 %
    assert cells["copies", "shared: width"] == pytest.approx(30)
    assert cells["zone", "shared: holds"] == 0
    assert cells["zone", "crossfit: holds"] == 100
    said = {(*cell.row, cell.column): cell.ours.mean for cell in verdicts.cells}
    assert said["zone", "cannot tell", "mean cost deployed"] == 100
    assert said["copies", "cannot tell", "crossfit: true"] == pytest.approx(20)


def test_the_study_of_shared_rows_from_the_command_line(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(advice, "judge_alike", _canned_alike)
    out = tmp_path / "out"
    asked = ["advice-study", "--shared", "--out", str(out), "--workers", "1", "--quiet", "--only", "seed=0"]
    answer = CliRunner().invoke(app, asked)
    assert answer.exit_code == 0, answer.output
    assert "3 of 3 configurations" in answer.output
    shown = CliRunner().invoke(app, ["advice-study", "--shared", "--out", str(out), "--show", "--json"])
    assert json.loads(shown.stdout)["configurations"] == 180
    refused = CliRunner().invoke(app, ["advice-study", "--shared", "--zones", str(tmp_path)])
    assert refused.exit_code == 3
    assert "--shared and --zones cannot be combined" in refused.output


def _canned_alike(**job: object) -> pd.DataFrame:
    return pd.DataFrame([shared_row()]).drop(columns=["job", "kind"])


@pytest.mark.slow
def test_a_federation_of_copies_is_advised_and_judged():
    table = advice.judge_alike(kind="copies", seed=1000, settings=SHORT)
    assert (table["shared_rows"] == table["n"]).all()
    assert not (table["recommendation"] == "federate").any()
    assert np.isfinite(table[["gain_low", "crossfit_high", "test_fedavg", "test_crossfit", "test_local-tuned"]]).all(axis=None)


def _canned(**job: object) -> pd.DataFrame:
    return rows().drop(columns=["job", "problem"])


def test_workers_get_the_folder_of_the_zones_and_the_protocol_only_its_content(tmp_path: Path, monkeypatch):
    panel = panel_file(tmp_path)
    study = advice.zones(panel, seeds=(3,))
    arguments = study.arguments(study.jobs[0])
    assert arguments == {"data": digest(panel), "settings": {}, "seed": 3, "folder": str(panel.resolve())}
    assert "folder" not in study.protocol  # a moved folder of the same data is the same study
    assert not [name for name in os.environ if "DFFL" in name and os.environ[name] == str(panel.resolve())]
    monkeypatch.setattr(advice, "judge", lambda train, test, blocks, **settings: pd.DataFrame({"n": [len(train)]}))
    monkeypatch.setattr(advice, "LEFT_OUT", ("Z03",))
    monkeypatch.setattr(advice, "FIRST_HALF", ("2022-01-01", "2022-01-30"))
    monkeypatch.setattr(advice, "SECOND_HALF", ("2022-01-31", "2022-03-01"))
    assert advice.judge_zones(**arguments)["n"].tolist() == [3]
    with pytest.raises(ValueError, match="the tables are not those that the study began with"):
        advice.judge_zones(**arguments | {"data": "other"})


def test_a_folder_without_prices_is_named_and_one_without_weather_is_read(tmp_path: Path):
    day = {"zone": "A", "date": "2021-01-01", "hour": range(24), "total": 1.0}
    pd.DataFrame(day).to_csv(tmp_path / "weather.csv.gz", index=False)
    answer = CliRunner().invoke(app, ["advise", str(tmp_path)])
    assert answer.exit_code == 3
    assert "prices.csv.gz: there is no such file" in answer.output
    (tmp_path / "weather.csv.gz").rename(tmp_path / "prices.csv.gz")  # prices alone are enough, but not of one day
    answer = CliRunner().invoke(app, ["advise", str(tmp_path)])
    assert answer.exit_code == 3
    assert "zone A has 1 days" in answer.output

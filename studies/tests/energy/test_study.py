"""The study's jobs."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dffl.time.bases import NAIVE
from dffl_studies.energy.data import read_panel
from dffl_studies.energy.setup import METHODS, Setup
from dffl_studies.energy.study import judge, study
from dffl_studies.energy.weeks import week_columns, week_names, weeks_of
from studies.tests.energy.markets import frame, panel_file


def test_a_job_refuses_a_panel_that_is_not_the_one_of_its_study(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = panel_file(tmp_path / "a"), panel_file(tmp_path / "b", seed=1)
    begun = study(first, Setup())
    assert begun.places == {"panel": str(first)}
    with pytest.raises(ValueError, match="the panel is not the one that the study began with"):
        judge(**begun.protocol, seed=0, panel=str(second))


def test_two_studies_do_not_share_a_place(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    before = dict(os.environ)
    monkeypatch.chdir(tmp_path / "a")
    panel_file(tmp_path / "a")
    first, second = study(Path("panel.csv"), Setup()), study(panel_file(tmp_path / "b", seed=1), Setup())
    assert dict(os.environ) == before
    assert first.arguments(first.jobs[0])["panel"] == str(tmp_path / "a" / "panel.csv")  # wherever a worker starts
    assert second.arguments(second.jobs[0])["panel"] == str(tmp_path / "b" / "panel.csv")


def test_the_protocol_of_a_study_is_read_back_as_it_was(tmp_path):
    asked = Setup("2022-02-01", True, "total+own", 1, ("wind",), ("Z00",), 3, False, {"rounds": 2})
    assert Setup.of(study(panel_file(tmp_path), asked).protocol["protocol"]) == asked
    assert asked.training(4) == {"rounds": 2, "seed": 4, "validation_blocks": False}


@pytest.mark.parametrize("name", ["seed", "forecast", "validation_blocks"])
def test_what_the_protocol_says_cannot_be_set(name):
    with pytest.raises(ValueError, match=f"--set cannot change {name}: the protocol says it"):
        Setup(settings={name: 1})


@pytest.mark.slow
def test_what_the_weeks_add_gives_the_regret(tmp_path):
    begun = study(panel_file(tmp_path, zones=2), Setup(settings={"rounds": 1, "local_epochs": 1, "batch_size": 8}))
    rows = judge(**begun.protocol, seed=0, panel=begun.places["panel"])
    assert set(rows["method"]) == {*METHODS, *NAIVE}
    weeks = week_names(rows)
    assert weeks == [f"week_{week:02d}" for week in range(5)]  # 30 days
    np.testing.assert_allclose(rows[weeks].sum(axis=1), rows["regret"], rtol=1e-5)
    assert rows.loc[rows["method"] == "crossfit", "epochs"].notna().all()
    assert rows.loc[rows["method"] == "interp-spo", "lambda"].notna().all()
    two = judge(**begun.protocol | {"methods": ["fedavg", "mean-7"]}, seed=0, panel=begun.places["panel"])
    alike = rows[rows["method"].isin(["fedavg", "mean-7"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(two, alike)  # a method's rows do not depend on which others are asked for


def test_rules_can_be_asked_for_alone(tmp_path):
    begun = study(panel_file(tmp_path, zones=2), Setup(settings={"finetune.epochs": [0, 1]}))
    assert begun.values == [*METHODS, *NAIVE]
    rows = judge(**begun.protocol | {"methods": ["mean-7", "mean-28"]}, seed=0, panel=begun.places["panel"])
    assert rows["method"].tolist() == ["mean-7", "mean-28"] * 2
    assert rows[["lambda", "epochs"]].isna().all(axis=None)


def test_a_week_is_seven_days_from_the_first_test_day_whatever_days_are_missing(tmp_path):
    table = frame(zones=2, days=40).assign(demand=5)
    table[~table["date"].isin(["2022-01-22", "2022-01-23"]) | (table["zone"] == "Z00")].to_csv(tmp_path / "p.csv", index=False)
    weeks = weeks_of(read_panel(tmp_path / "p.csv"), "2022-01-21")
    assert [own[:8].tolist() for own in weeks] == [[0] * 7 + [1], [0] * 5 + [1] * 3]
    parts = week_columns([np.ones(len(own)) for own in weeks], weeks)
    assert parts.iloc[0].tolist() == pytest.approx([7 / 20, 7 / 20, 6 / 20])
    assert parts.iloc[1].tolist() == pytest.approx([5 / 18, 7 / 18, 6 / 18])

"""The study's jobs."""

import os
from pathlib import Path

import pytest

from dffl.cases.energy.setup import Setup
from dffl.cases.energy.study import judge, study
from tests.cases.energy.markets import panel_file


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
    asked = Setup("2022-02-01", True, "total+own", 1, ("wind",), ("Z00",), 3, {"rounds": 2})
    assert Setup.of(study(panel_file(tmp_path), asked).protocol["protocol"]) == asked
    assert asked.training(4) == {"rounds": 2, "seed": 4, "forecast": True}


@pytest.mark.parametrize(("name", "instead"), [("seed", "--seeds"), ("forecast", "--lags")])
def test_what_has_an_option_of_its_own_cannot_be_set_beside_it(name, instead):
    with pytest.raises(ValueError, match=f"--set cannot change {name}; use {instead}"):
        Setup(settings={name: 1})

"""The study's jobs."""

import pytest

from dffl.cases.energy.setup import Setup
from dffl.cases.energy.study import judge, study
from tests.cases.energy.markets import panel_file


def test_a_job_refuses_a_panel_that_is_not_the_one_of_its_study(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = panel_file(tmp_path / "a"), panel_file(tmp_path / "b", seed=1)
    begun = study(first, Setup())
    study(second, Setup())  # takes the place of the first in the environment
    with pytest.raises(ValueError, match="the panel is not the one that the study began with"):
        judge(**begun.protocol, seed=0)


def test_the_protocol_of_a_study_is_read_back_as_it_was(tmp_path):
    asked = Setup("2022-02-01", True, "total+own", 1, ("wind",), ("Z00",), 3, {"rounds": 2})
    assert Setup.of(study(panel_file(tmp_path), asked).protocol["protocol"]) == asked
    assert asked.training(4) == {"rounds": 2, "seed": 4, "forecast": True}


@pytest.mark.parametrize(("name", "instead"), [("seed", "--seeds"), ("forecast", "--lags")])
def test_what_has_an_option_of_its_own_cannot_be_set_beside_it(name, instead):
    with pytest.raises(ValueError, match=f"--set cannot change {name}; use {instead}"):
        Setup(settings={name: 1})

"""How sure a gain over a naive rule is."""

import numpy as np
import pytest

from dffl.cases.energy.data import read_panel
from dffl.cases.energy.model import train
from dffl.cases.energy.naive import daily_regrets, naive_regrets
from dffl.cases.energy.resampling import resampled_change
from dffl.cases.energy.setup import Setup
from tests.cases.energy.markets import panel_file

SPLIT = "2022-01-31"


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    return read_panel(panel_file(tmp_path_factory.mktemp("market")))


@pytest.fixture(scope="module")
def trained(panel):
    return train(panel, Setup(settings={"rounds": 2}), method="fedavg", progress=False)


def test_the_change_is_that_of_all_days_and_lies_in_its_range(panel, trained):
    found = resampled_change(trained, panel, "total", SPLIT, "yesterday")
    mine = np.mean([trained.first_half.regrets(client).mean() for client in trained.test])
    theirs = naive_regrets(panel, "total", SPLIT)["yesterday"].mean()
    assert found.change == pytest.approx(100 * (mine / theirs - 1))
    assert found.low < found.change < found.high
    assert resampled_change(trained, panel, "total", SPLIT, "yesterday") == found  # the same draws each time


def test_nothing_is_said_against_a_rule_that_loses_nothing(panel, trained):
    assert resampled_change(trained, panel, "total", SPLIT, "perfect-foresight") is None


def test_a_rule_is_no_better_and_no_worse_than_itself(panel, trained, monkeypatch):
    own = [trained.first_half.regrets(client) for client in trained.test]
    monkeypatch.setattr("dffl.cases.energy.resampling.daily_regrets", lambda *_: {"itself": own})
    found = resampled_change(trained, panel, "total", SPLIT, "itself")
    assert (found.change, found.low, found.high) == pytest.approx((0, 0, 0))


def test_means_are_means_of_days(panel):
    daily, means = daily_regrets(panel, "total", SPLIT), naive_regrets(panel, "total", SPLIT)
    for rule, zones in daily.items():
        assert [len(lost) for lost in zones] == [30] * 4
        np.testing.assert_allclose([lost.mean() for lost in zones], means[rule])

"""The made-up market."""

from pathlib import Path

import numpy as np

from dffl_studies.energy.data import example_panel, read_panel
from studies.tests.energy.data.made import zone_days


def test_the_example_is_a_panel_that_is_read_back_as_it_was(tmp_path: Path) -> None:
    made = example_panel()
    made.write(tmp_path / "example.csv")
    read = read_panel(tmp_path / "example.csv")
    assert (len(read.names), len(read.days), read.notes) == (8, 365, ())
    np.testing.assert_array_equal(read.prices, made.prices)
    np.testing.assert_array_equal(read.covariates, made.covariates)
    np.testing.assert_array_equal(read.demands, made.demands)


def test_a_seed_fixes_it_and_a_town_is_the_same_whoever_else_is_there() -> None:
    whole, some = example_panel(seed=3), example_panel(seed=3, towns=["Cedarby", "Dunmere"])
    np.testing.assert_array_equal(zone_days(whole, "Dunmere").prices, zone_days(some, "Dunmere").prices)
    assert not np.array_equal(whole.prices, example_panel(seed=4).prices)


def test_what_its_story_says() -> None:
    panel = example_panel()
    for zone in (zone_days(panel, name) for name in panel.names):
        months = zone.dates.astype("datetime64[M]").astype(int) % 12
        winter, summer = np.isin(months, (0, 1, 11)), np.isin(months, (5, 6, 7))
        assert zone.prices[winter][:, 17:20].mean() > zone.prices[winter][:, 2:5].mean() + 10
        wind, nights = zone.covariates[:, 3], zone.prices[:, 1:6].mean(axis=1)
        assert np.corrcoef(wind, nights)[0, 1] < -0.5
        hot = zone.covariates[:, 2] > 26
        assert zone.prices[summer & hot][:, 14:17].mean() > zone.prices[summer & ~hot][:, 14:17].mean()

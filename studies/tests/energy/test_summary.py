"""Changes against local: literal numbers."""

import numpy as np
import pandas as pd
import pytest

from dffl_studies.energy.summary import REFERENCES, as_json, by_seed, statistics, with_changes
from studies.tests.energy.made_rows import with_weeks


def rows(changes: dict[str, list[float]], seed: int = 0) -> pd.DataFrame:
    """Zones whose own models both lose 10, and other methods with these changes in percent."""
    made = [
        {"seed": seed, "zone": f"Z{z}", "demand": 4.0, "method": own, "regret": 10.0} for own in REFERENCES for z in range(6)
    ]
    for method, values in changes.items():
        made += [
            {"seed": seed, "zone": f"Z{z}", "demand": 4.0, "method": method, "regret": 10 * (1 + v / 100), "lambda": z / 5}
            for z, v in enumerate(values)
        ]
    return with_weeks(pd.DataFrame(made))


def test_the_four_statistics_of_a_seed():
    found = statistics(np.array([-30.0, -20, -10, 0, 5, 25]))
    # the worst fifth of six zones, rounded up, are two: 25 and 5
    assert found == pytest.approx({"mean_change": -5, "median_change": -5, "worst_harm": 25, "worst20_harm": 15})


def test_nineteen_zones_have_a_worst_fifth_of_four_and_a_gain_is_no_harm():
    changes = np.concatenate([[8.0, 2.0], np.full(17, -10.0)])
    assert statistics(changes)["worst20_harm"] == pytest.approx((8 + 2 + 0 + 0) / 4)
    assert statistics(np.full(5, -3.0)) == {"mean_change": -3, "median_change": -3, "worst_harm": -3, "worst20_harm": 0}


def test_the_worst_harm_is_taken_in_each_seed_and_then_averaged():
    table = pd.concat([rows({"fedavg": [20, 0, 0, 0, 0, 0]}), rows({"fedavg": [0, 0, 0, 0, 0, 10]}, seed=1)])
    worst = by_seed(table).query("method == 'fedavg'")["worst_harm"]
    assert worst.tolist() == pytest.approx([20, 10])  # not 10, the worst of the means over seeds
    assert as_json(table)["against"]["local-tuned"]["fedavg"]["worst_harm"] == pytest.approx(15)


def test_a_zone_is_harmed_beyond_one_percent_only():
    assert with_changes(rows({"fedavg": [0.9, 1.1, -5, 0, 0, 0]})).query("method == 'fedavg'")["harmed"].tolist() == [
        False, True, False, False, False, False,
    ]  # fmt: skip


def test_a_zone_whose_local_model_has_no_regret_is_left_out_of_percentages():
    table = rows({"fedavg": [-10] * 6})
    table.loc[table["zone"] == "Z2", "regret"] = [0.0, 0.0, 3.0]
    changed = with_changes(table).query("method == 'fedavg'").set_index("zone")["change"]
    assert np.isnan(changed["Z2"])
    found = by_seed(table).set_index("method").loc["fedavg"]
    assert (found["mean_change"], found["worst_harm"], found["harmed"]) == pytest.approx((-10, -10, 0))
    nobody = by_seed(rows({"fedavg": [0] * 6}).assign(regret=0.0)).set_index("method").loc["fedavg"]
    assert np.isnan(nobody["mean_change"])


def test_the_answer_for_programs():
    table = pd.concat([rows({"interp-spo": [-10] * 6}), rows({"interp-spo": [-20] * 6}, seed=1)])
    found = as_json(table)
    assert set(found) == {"zones", "against"}
    first = found["zones"][0]
    assert first == {
        "zone": "Z0",
        "demand": 4.0,
        "regret": {"local-tuned": [10, 10], "local": [10, 10], "interp-spo": pytest.approx([9, 8])},
        "lambda": [0, 0],
    }
    summary = found["against"]["local-tuned"]["interp-spo"]
    assert set(summary) == {"mean_change", "median_change", "worst_harm", "worst20_harm", "over", "harmed"}
    assert summary["mean_change"] == pytest.approx(-15)


def test_changes_are_against_the_own_model_that_is_asked_for():
    table = pd.concat([rows({"fedavg": [0] * 6}, seed) for seed in range(3)])
    table.loc[table["method"] == "local", "regret"] = 20.0
    found = as_json(with_weeks(table))["against"]
    assert found["local-tuned"]["fedavg"]["mean_change"] == pytest.approx(0)
    assert found["local-tuned"]["local"] == pytest.approx(
        {"mean_change": 100, "median_change": 100, "worst_harm": 100, "worst20_harm": 100, "over": 6, "harmed": 6}
    )
    assert found["local"]["fedavg"]["mean_change"] == pytest.approx(-50)
    assert found["local"]["local-tuned"]["harmed"] == 0

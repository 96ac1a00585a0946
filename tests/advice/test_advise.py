"""`dffl.advise` from end to end on small federations: direction, words, determinism, refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest

import dffl
from dffl.advice.advising import recommend
from dffl.advice.words import reason
from tests.federations import client, mixed

QUICK = {"rounds": 4, "local_epochs": 3, "finetune.epochs": (0, 5), "hidden": 16, "folds": 3, "progress": False}
SIGNALS = ("cost_p_value", "pooled_cost_regret", "decision_distance")
TRAINED = {"seed": 1, "rounds": 20, "learning_rate": 0.005, "finetune.epochs": (0, 5), "hidden": 16, "progress": False}


@pytest.fixture(scope="module")
def fleet() -> dffl.Federation:
    """Eight with few samples that gain from each other, and one with more whose prices move otherwise."""
    kind = {"clients": 9, "dim": 6, "features": 4, "degree": 2, "noise": 0.3}
    near, far = (dffl.synthetic.knapsack(eta_obj=eta, samples=n, **kind) for eta, n in ((0.0, 30), (4.0, 60)))
    return dffl.Federation([*near[:8], replace(far[8], name="odd")])


@pytest.fixture(scope="module")
def advice(fleet) -> dffl.Advice:
    return dffl.advise(fleet, **TRAINED)


def test_the_odd_one_out_is_told_to_stay_and_others_to_federate(advice):
    assert advice["odd"]["recommendation"] == "stay local"
    assert "differently from the others" in advice["odd"]["reason"]
    others = advice.table.query("client != 'odd' and not nothing")["recommendation"]
    assert (others == "federate").sum() >= 4
    assert (others == "stay local").sum() == 0


def test_the_table_is_complete_and_ordered(advice, fleet):
    table = advice.table
    assert table["client"].tolist() == fleet.names
    assert table["n"].tolist() == fleet.counts
    assert (table["gain_low"] < table["gain"]).all()
    assert (table["gain"] < table["gain_high"]).all()
    assert set(table["use"]) <= {"mean-cost", "local", "fedavg", "finetune"}
    assert np.isfinite(table[["mean_cost", "local", "federated", "finetuned", *SIGNALS]]).all(axis=None)
    assert (table["mean_cost"] > table["local"]).mean() > 0.5  # the naive choice stands beside the others


def test_json_is_plain(advice):
    answer = json.loads(json.dumps(advice.as_json(), allow_nan=False))
    assert answer["folds"] == 5
    assert {row["client"] for row in answer["clients"]} == set(advice.table["client"])


def test_the_same_seed_gives_the_same_advice(fleet, advice):
    again = dffl.advise(fleet, **TRAINED)
    assert again.table.equals(advice.table)


def test_quick_trains_nothing_and_agrees_on_the_odd_one(fleet):
    found = dffl.advise(fleet, quick=True, progress=False)
    assert found["odd"]["gain"] < 0
    assert found.table["finetuned"].isna().all()
    assert set(found.table["use"]) <= {"mean-cost", "local", "fedavg"}
    json.dumps(found.as_json(), allow_nan=False)


def test_any_mix_of_families_and_senses_is_advised():
    families = ("knapsack", "ball", "polytope")
    members = [one.rows(slice(0, 12)) for one in mixed(n=12, families=families)]
    found = dffl.advise(dffl.Federation(members), **QUICK | {"rounds": 1})
    assert np.isfinite(found.table[["gain", "local", "federated", "finetuned", *SIGNALS[1:]]]).all(axis=None)
    assert (found.table[["local", "federated", "finetuned"]] >= 0).all(axis=None)


def test_blocks_hold_out_stretches(fleet):
    one = dffl.advise(fleet, blocks=True, **QUICK | {"rounds": 1})
    other = dffl.advise(fleet, blocks=False, **QUICK | {"rounds": 1})
    assert one.blocks
    assert not np.allclose(one.table["local"], other.table["local"])


@pytest.mark.parametrize(
    ("probability", "tuned_better", "nothing", "recommended"),
    [
        (0.8, False, False, "federate"),
        (0.79, True, False, "personalise"),
        (0.79, False, False, "cannot tell"),
        (0.21, True, False, "personalise"),
        (0.2, True, False, "stay local"),
        (0.99, True, True, "stay local"),
    ],
)
def test_what_is_recommended(probability, tuned_better, nothing, recommended):
    assert recommend(probability, tuned_better, nothing) == recommended


ROW = {
    "n": 50, "recommendation": "federate", "nothing": False, "cost_p_value": 0.5, "local": 0.1,
    "pooled_cost_regret": 0.0, "decision_distance": 0.0,
    "federated": 0.05, "finetuned": 0.05, "use": "fedavg", "gain_low": -0.1, "gain_high": 0.3, "mean_cost": 0.5,
    "unknown": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "few samples (50; the median is 100)"),
        ({"decision_distance": 0.5}, "your constraint differs, but costs you nothing"),
        ({"cost_p_value": 0.01}, "somewhat differently from the others'"),
        ({"n": 100}, "the clients' own models lose 20% more"),
        ({"use": "finetune", "finetuned": 0.04}, "Then tune it: on your samples the tuned model loses 20% less"),
        ({"recommendation": "stay local", "use": "local"}, "the shared model loses 5.00%, your own 10.00%"),
        (
            {"recommendation": "stay local", "use": "local", "cost_p_value": 0.01},
            "your prices move differently from the others'",
        ),
        ({"recommendation": "stay local", "use": "local", "n": 300}, "enough samples of your own (300"),
        ({"recommendation": "stay local", "use": "finetune"}, "the tuned model loses 50% less than your own"),
        ({"recommendation": "cannot tell", "use": "fedavg"}, "from -10% to +30% allows both; 50 samples are too few"),
        ({"recommendation": "personalise", "use": "finetune", "finetuned": 0.09}, "about equally good; tuned on your samples"),
        ({"use": "mean-cost"}, "the mean of past costs decides better than any model"),
        ({"nothing": True, "local": 0.0}, "your own model already loses nothing"),
        ({"nothing": True, "mean_cost": 0.0}, "the mean of past costs already loses nothing"),
        ({"unknown": True}, "ask without quick"),
    ],
)
def test_reasons_are_given_in_words(change, words):
    assert words in reason(ROW | change, median=100, steep=0.2)


def test_refusals():
    lone = dffl.Federation([client("a", dffl.TopK(5, 2))])
    with pytest.raises(ValueError, match="advise: a federation of one client has nobody to federate with"):
        dffl.advise(lone)
    two = dffl.Federation([client("a", dffl.TopK(5, 2)), client("b", dffl.TopK(5, 2))])
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), found 1"):
        dffl.advise(two, confidence=1)
    with pytest.raises(ValueError, match="folds must be a whole number >= 3, found 2"):
        dffl.advise(two, folds=2)
    with pytest.raises(ValueError, match="unknown setting 'round'; did you mean 'rounds'"):
        dffl.advise(two, round=3)
    with pytest.raises(ValueError, match=r"federation must be a dffl.Federation, found list"):
        dffl.advise([])
    with pytest.raises(ValueError, match="client 'a': x must have at least 20 samples to be judged in 10 folds, found 12"):
        dffl.advise(two, folds=10)


def test_an_unknown_client_is_named(advice):
    with pytest.raises(ValueError, match="no client 'nobody' in this advice"):
        advice["nobody"]


def test_it_reads_as_sentences(advice):
    lines = str(advice).splitlines()
    assert len(lines) == 9
    assert lines[-1].startswith("odd: stay local; ")


def test_the_answer_does_not_depend_on_the_order_of_the_clients(fleet):
    there, back = (dffl.advise(dffl.Federation(order), quick=True, folds=3).table for order in (list(fleet), list(fleet)[::-1]))
    back = back.set_index("client").loc[there["client"]].reset_index()
    assert there["recommendation"].tolist() == back["recommendation"].tolist()
    for column in ("gain", "gain_low", "local", "federated", "pooled_cost_regret", "cost_p_value", "decision_distance"):
        np.testing.assert_allclose(there[column], back[column], rtol=1e-6, atol=1e-9)

"""`dffl.advise` from end to end on small federations: direction, words, determinism, refusals."""

import io
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import dffl
from dffl.advice import advising, gains
from dffl.advice.advising import JOINT, REGRETS, recommend, settle
from dffl.advice.display import AdviceShown
from dffl.advice.words import reason, shared_model
from tests.federations import client, mixed

STOPS = {"finetune.epochs": (0, 5), "crossfit.epochs": (0, 5), "local-tuned.epochs": (5, 20, 100)}
QUICK = {"rounds": 4, "local_epochs": 3, **STOPS, "hidden": 16, "folds": 3, "progress": False}
NAN = float("nan")
SIGNALS = ("cost_p_value", "pooled_cost_regret", "decision_distance")
TRAINED = {"seed": 1, "rounds": 20, "learning_rate": 0.005, **STOPS, "hidden": 16, "progress": False}


@pytest.fixture(scope="module")
def fleet() -> dffl.Federation:
    """Eight with few samples whose prices move alike, and one with more whose prices move otherwise."""
    kind = {"clients": 9, "dim": 6, "features": 4, "degree": 2, "noise": 0.3}
    near, far = (dffl.synthetic.knapsack(eta_obj=eta, samples=n, **kind) for eta, n in ((0.0, 30), (4.0, 60)))
    return dffl.Federation([*near[:8], replace(far[8], name="odd")])


@pytest.fixture(scope="module")
def advice(fleet) -> dffl.Advice:
    return dffl.advise(fleet, **TRAINED)


@pytest.mark.parametrize(
    ("ratio", "finetuned", "expected"),
    [
        (2.0, 0.002, 2.0),  # cut from log(100): it loses twice as much as the own model, and is not 14 % of it
        (2.0, 0.0005, 0.5),
        (-0.5, 0.05, np.exp(-0.5) / 2),  # as the shared model is expected to gain, tuning is compared with that
    ],
)
def test_tuning_is_no_better_than_it_was_on_held_out_rows(ratio: float, finetuned: float, expected: float) -> None:
    flat = gains.Curve(0.0, 0.0)
    known = SimpleNamespace(curve=flat, ratio=np.array([ratio]))
    found = SimpleNamespace(shared=known, personal=known, undecided=lambda _: False)
    row = {"client": "a", "forecast": NAN, "naive": NAN, "naive_rule": "", "nothing": False, "mean_cost": 1.0}
    own = 0.001 * np.exp(gains.LOCAL_TUNED.fall(flat))  # so that the own model is expected to lose .1 %
    row |= {"local": 0.01, "local_tuned": own, "federated": 0.1, "finetuned": finetuned}
    assert advising._expected(row, "stay local", found, 0, 5, False)["finetune"] == pytest.approx(expected)


def test_the_odd_one_out_is_told_to_stay_and_others_are_not(advice):
    # On test samples local-tuned, the shared model and crossfit lose 2.2, 12.1 and 10.4 % at the odd one. At the others
    # crossfit loses 3 % more than local-tuned on average, from 41 % less to 43 % more: nobody can tell from 30 samples.
    assert advice["odd"]["recommendation"] == "stay local"
    assert advice["odd"]["deploy"] == "local-tuned"
    assert advice["odd"]["cause"] == "prices"
    assert "main cause: your prices (" in advice["odd"]["reason"]
    assert "the shared model as it is would lose 14.17%, your own 3.32%" in advice["odd"]["shared_model"]
    others = advice.table.query("client != 'odd' and not nothing")
    assert len(others) >= 6
    assert (others["recommendation"] != "stay local").all()
    for column in ("gain", "crossfit_gain"):
        assert others[column].min() > advice["odd"][column] + 1


def test_the_table_is_complete_and_ordered(advice, fleet):
    table = advice.table
    assert table["client"].tolist() == fleet.names
    assert table["n"].tolist() == fleet.counts
    assert (table["gain_low"] < table["gain"]).all()
    assert (table["gain"] < table["gain_high"]).all()
    assert set(table["deploy"]) <= {*REGRETS.values()}
    assert (table["crossfit_low"] < table["crossfit_gain"]).all()
    assert (table["crossfit_gain"] < table["crossfit_high"]).all()
    assert np.isfinite(table[[*REGRETS, *SIGNALS]]).all(axis=None)
    assert (table["mean_cost"] > table["local"]).mean() > 0.5  # the naive choice is among the others


def test_json_is_plain(advice):
    answer = json.loads(json.dumps(advice.as_json(), allow_nan=False))
    assert answer["folds"] == 5
    assert {row["client"] for row in answer["clients"]} == set(advice.table["client"])


def test_the_same_seed_gives_the_same_advice(fleet, advice):
    again = dffl.advise(fleet, **TRAINED)
    assert again.table.equals(advice.table)


def test_where_all_decisions_are_equal_nobody_can_tell():
    x = np.random.default_rng(0).normal(size=(2, 12, 2))
    flat, cheap = np.full((12, 4), 5.0), np.tile([1.0, 9.0, 9.0, 9.0], (12, 1))
    federation = dffl.Federation(
        [dffl.Client(n, x[k], c, dffl.TopK(4, 1)) for k, (n, c) in enumerate((("a", flat), ("b", cheap)))]
    )
    found = dffl.advise(federation, quick=True)
    assert found["a"]["recommendation"] == "cannot tell"
    assert found["a"]["reason"] == "all decisions cost the same on your samples, so models cannot be compared"
    assert found["a"]["deploy"] not in JOINT
    assert found["b"]["recommendation"] == "stay local"  # one decision is the best on all days: it has nothing to gain
    assert "loses nothing" in found["b"]["reason"]
    AdviceShown(found, "federation").show(Console(file=io.StringIO()))


def test_quick_trains_nothing_and_agrees_on_the_odd_one(fleet):
    found = dffl.advise(fleet, quick=True, progress=False)
    assert found["odd"]["gain"] < 0
    assert found.table[["finetuned", "local_tuned", "crossfit", "crossfit_gain"]].isna().all(axis=None)
    assert not found.fits
    assert set(found.table["deploy"]) <= {"mean-cost", "local", "fedavg"}
    json.dumps(found.as_json(), allow_nan=False)


def shown(advice: dffl.Advice) -> str:
    console = Console(width=160, file=io.StringIO(), record=True)
    AdviceShown(advice, "a fleet").show(console)
    return console.export_text()


def copies(count: int = 4, n: int = 60) -> dffl.Federation:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 6))
    c = 3 + np.abs(1 + x @ rng.normal(size=(6, 8))) + rng.uniform(0, 6, size=(n, 8))
    return dffl.Federation([dffl.Client(f"site-{place}", x, c, dffl.TopK(8, 3)) for place in range(count)])


def test_copies_of_one_table_are_not_told_to_federate(monkeypatch):
    given = []
    monkeypatch.setattr(advising, "estimate", lambda *args, **how: given.append(how["keys"]) or gains.estimate(*args, **how))
    with pytest.warns(UserWarning, match="4 of 4 clients share rows"):
        found = dffl.advise(copies(), quick=True, progress=False)
    assert [own.tolist() for own in given[0]] == [copies()[0].row_keys.tolist()] * 4  # equal rows are known to be equal
    assert found.table["shared_rows"].tolist() == [60] * 4
    assert set(found.table["recommendation"]) == {"cannot tell"}
    assert (found.table["gain_low"] < 0).all()
    assert "others hold 60 of your 60 rows too, so that their rows teach little that is new" in found["site-0"]["reason"]
    answer = found.as_json()
    assert answer["sharing"].startswith("4 of 4 clients share rows: 'site-0' has 60 of its 60 rows in common with")
    assert answer["clients"][0]["shared_rows"] == 60
    assert "4 of 4 clients share rows: 'site-0' has 60 of its 60 rows in common" in " ".join(shown(found).split())


def test_rows_that_nobody_shares_are_not_mentioned(advice):
    assert advice.sharing == ""
    assert not advice.table["shared_rows"].any()
    assert "others hold" not in "".join(advice.table["reason"])
    assert "clients share rows" not in shown(advice)


@pytest.mark.slow
def test_any_mix_of_families_and_senses_is_advised():
    families = ("knapsack", "ball", "polytope")
    members = [one.rows(slice(0, 12)) for one in mixed(n=12, families=families)]
    found = dffl.advise(dffl.Federation(members), **QUICK | {"rounds": 1})
    assert np.isfinite(found.table[["gain", "crossfit_gain", *REGRETS, *SIGNALS[1:]]]).all(axis=None)
    assert (found.table[[*REGRETS]] >= 0).all(axis=None)


def test_blocks_hold_out_stretches(fleet):
    one = dffl.advise(fleet, blocks=True, **QUICK | {"rounds": 1})
    other = dffl.advise(fleet, blocks=False, **QUICK | {"rounds": 1})
    assert one.blocks
    assert not np.allclose(one.table["local"], other.table["local"])
    assert one.fits["crossfit"].settings.validation_blocks


@pytest.mark.parametrize(
    ("shared", "personal", "nothing", "recommended"),
    [
        (0.8, 0.1, False, "federate"),
        (0.79, 0.8, False, "personalise"),
        (0.1, 0.8, False, "personalise"),  # the shared model as it is does not suit it, but trained further it does
        (0.79, 0.79, False, "cannot tell"),
        (0.1, 0.21, False, "cannot tell"),
        (0.2, 0.2, False, "stay local"),
        (0.99, 0.99, True, "stay local"),
        (0.2, NAN, False, "stay local"),  # quick
        (NAN, 0.8, False, "personalise"),  # fits that were passed
        (NAN, 0.2, False, "stay local"),
    ],
)
def test_what_is_recommended(shared, personal, nothing, recommended):
    assert recommend(shared, personal, nothing) == recommended


@pytest.mark.parametrize(
    ("verdict", "expected", "settled"),
    [
        ("stay local", {"local-tuned": 1.0, "crossfit": 1.2, "finetune": 1.1}, ("stay local", "local-tuned")),
        ("stay local", {"local-tuned": 1.0, "crossfit": 1.2, "finetune": 0.9}, ("cannot tell", "finetune")),
        ("stay local", {"local-tuned": 1.0, "mean-cost": 0.8, "finetune": 0.9}, ("stay local", "mean-cost")),
        ("federate", {"local": 0.5, "fedavg": 0.8, "crossfit": 0.9}, ("federate", "fedavg")),
        ("federate", {"local-tuned": 1.0, "fedavg": 0.8, "crossfit": 0.7}, ("federate", "crossfit")),
        ("personalise", {"local-tuned": 1.0, "fedavg": 0.6, "crossfit": 0.7}, ("personalise", "crossfit")),
        ("personalise", {"local-tuned": 1.0, "crossfit": 0.7, "mean-cost": 0.5}, ("cannot tell", "mean-cost")),
        ("federate", {"local-tuned": 1.0, "fedavg": 0.7, "mean-cost": 0.5}, ("cannot tell", "mean-cost")),
        ("cannot tell", {"local-tuned": 1.0, "crossfit": 0.9, "fedavg": 0.8}, ("cannot tell", "fedavg")),
    ],
)
def test_the_verdict_and_what_is_deployed_agree(verdict, expected, settled):
    assert settle(verdict, expected) == settled


def test_nobody_is_told_two_things(advice):
    joint = advice.table["deploy"].isin(JOINT)
    assert not joint[advice.table["recommendation"] == "stay local"].any()
    assert joint[advice.table["recommendation"].isin(["federate", "personalise"])].all()


def test_what_the_shared_model_would_do():
    assert shared_model(ROW | STAY) == "the shared model as it is would lose 20.00%, your own 10.00% (crossfit: 11.00%)"
    quick = ROW | {"local_tuned": NAN, "crossfit": NAN}
    assert shared_model(quick) == "the shared model as it is would lose 5.00%, your own 12.00%"
    assert shared_model(ROW | {"federated": NAN}).startswith("the shared model as it is was not judged; your own")


def test_no_gain_is_shown_as_minus_nothing(advice):
    table = advice.table.assign(crossfit_gain=-0.001, crossfit_low=-0.004, crossfit_high=0.004, nothing=False)
    text = shown(replace(advice, table=table))
    assert "+0% (+0% to +0%)" in text
    assert "-0%" not in text


def test_models_are_those_of_the_methods(fleet, advice):
    settings = {name: value for name, value in TRAINED.items() if "." not in name}
    for method, epochs in (("crossfit", (0, 5)), ("local-tuned", (5, 20, 100))):
        fit = dffl.fit(fleet, method, epochs=epochs, **settings)
        for one in fleet:
            mine, theirs = (found.out_of_fold(one.name)["regret"] for found in (fit, advice.fits[method]))
            np.testing.assert_array_equal(mine, theirs)
    # `local` is the last stop of `local-tuned`. A single candidate leaves no choice: the evidence is what its fit keeps.
    again = dffl.advise(fleet, **TRAINED | {"local-tuned.epochs": (100,)})
    kept = [again.fits["local-tuned"].out_of_fold(one.name)["regret"].mean() / one.z_star_size.mean() for one in fleet]
    np.testing.assert_allclose(again.table["local_tuned"], kept, atol=1e-12)
    np.testing.assert_array_equal(again.table["local"], again.table["local_tuned"])
    np.testing.assert_array_equal(again.table["local"], advice.table["local"])


def test_epochs_are_chosen_without_the_fold_that_judges_them(fleet, advice):
    # Choosing on the samples that judge can only look better.
    seen = [advice.fits["crossfit"].out_of_fold(one.name)["regret"].mean() / one.z_star_size.mean() for one in fleet]
    assert (advice.table["crossfit"] >= np.array(seen) - 1e-6).all()
    assert (advice.table["crossfit"] > np.array(seen) + 1e-6).any()


def test_fits_that_are_there_cost_nothing(fleet, advice, tmp_path, monkeypatch):
    saved = {}
    for method, fit in advice.fits.items():
        fit.save(tmp_path / method)
        saved[method] = dffl.load(tmp_path / method)
    monkeypatch.setattr(dffl.training.Run, "trained", lambda *_: pytest.fail("something was trained"))
    found = dffl.advise(fleet, fits=saved, seed=1)
    table = found.table
    assert table[["local", "federated", "finetuned", "gain", "probability"]].isna().all(axis=None)
    for name, method in (("crossfit", "crossfit"), ("local_tuned", "local-tuned")):
        kept = [advice.fits[method].out_of_fold(one.name)["regret"].mean() / one.z_star_size.mean() for one in fleet]
        np.testing.assert_allclose(table[name], kept, rtol=1e-5, atol=1e-9)
    assert set(table["recommendation"]) <= {"personalise", "stay local", "cannot tell"}
    assert set(table["cause"]) == {"not examined"}
    assert "was not examined" in found["odd"]["reason"]
    assert set(table["deploy"]) <= {"mean-cost", "local-tuned", "crossfit"}
    np.testing.assert_allclose(table["mean_cost"], advice.table["mean_cost"])
    json.dumps(found.as_json(), allow_nan=False)


def test_fits_of_something_else_are_refused(fleet, advice):
    fits = advice.fits
    with pytest.raises(ValueError, match=r"fits must be {'crossfit': fit, 'local-tuned': fit}"):
        dffl.advise(fleet, fits={"crossfit": fits["crossfit"]})
    with pytest.raises(ValueError, match=r"fits\['crossfit'\] must be a fit of 'crossfit', found one of 'local-tuned'"):
        dffl.advise(fleet, fits={"crossfit": fits["local-tuned"], "local-tuned": fits["crossfit"]})
    with pytest.raises(ValueError, match=r"fits\['local-tuned'\] must be a fit of 'local-tuned', found str"):
        dffl.advise(fleet, fits={"crossfit": fits["crossfit"], "local-tuned": "path"})
    other = dffl.Federation([replace(fleet[0], c=2 * fleet[0].c), *list(fleet)[1:]])
    with pytest.raises(
        ValueError, match="client 'client-01': its samples are not those that the fit of 'crossfit' was trained"
    ):
        dffl.advise(other, fits=fits)
    with pytest.raises(ValueError, match="quick uses no fits"):
        dffl.advise(fleet, fits=fits, quick=True)


ROW = {
    "n": 50, "recommendation": "federate", "nothing": False, "cost_p_value": 0.5, "local": 0.12, "local_tuned": 0.1,
    "pooled_cost_regret": 0.0, "decision_distance": 0.0, "probability": 0.9, "crossfit_gain": 0.4, "crossfit": 0.05,
    "crossfit_low": -0.1, "crossfit_high": 0.3,
    "federated": 0.05, "finetuned": 0.05, "deploy": "fedavg", "gain_low": -0.2, "gain_high": 0.3, "mean_cost": 0.5,
    "unknown": False, "tuning": False, "cause": "none", "constraint_share": NAN, "shared_rows": 0,
}  # fmt: skip
STAY = {"recommendation": "stay local", "deploy": "local-tuned", "federated": 0.2, "crossfit": 0.11}
SEEN = {"cause": "not examined"}
PRICES, CONSTRAINT = "your prices move differently from the others'", "your constraint asks for decisions unlike the others'"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "few samples (50; the median is 100)"),
        ({"decision_distance": 0.5}, "your constraint differs, but that costs less than their data save"),
        ({"decision_distance": 0.5, "local_tuned": NAN}, "your constraint differs, and what that costs, a quick answer cannot"),
        ({"cost_p_value": 0.01}, "somewhat differently from the others'"),
        ({"n": 100}, "the clients' own models lose 20% more"),
        (
            {"deploy": "crossfit", "crossfit": 0.04},
            "training the shared model further (crossfit) loses 20% less on your held-out samples",
        ),
        ({"deploy": "finetune", "finetuned": 0.03}, "(finetune) loses 40% less on your held-out samples"),
        (STAY, "on your held-out samples the shared model and crossfit did no better than your own"),
        (
            STAY | {"crossfit": 0.09},
            "crossfit did better, but what you would deploy of your own is expected to do better still",
        ),
        (STAY | {"federated": NAN}, "on your held-out samples crossfit did no better than your own"),
        (STAY | SEEN, "whether your constraint or your prices are the cause was not examined"),
        (STAY | SEEN | {"cost_p_value": 0.01}, PRICES),
        (STAY | SEEN | {"decision_distance": 0.6}, CONSTRAINT),
        (STAY | SEEN | {"decision_distance": 0.6, "cost_p_value": 0.01, "pooled_cost_regret": 0.05}, PRICES),
        (
            STAY | {"cause": "constraint", "constraint_share": 0.9},
            "main cause: your constraint (90% of the extra loss of the shared",
        ),
        (
            STAY | {"cause": "prices", "constraint_share": 0.1},
            "main cause: your prices (90% of the extra loss of the shared model), not",
        ),
        (STAY | {"cause": "both", "constraint_share": 0.4}, "and your prices (60%)"),
        (STAY | {"cause": "neither"}, "the shared model suits the others no better"),
        (STAY | {"cause": "unclear"}, "your samples do not show whether your constraint or your prices"),
        (STAY | {"cause": "unclear", "cost_p_value": 0.01}, f"what can be seen is that {PRICES}"),
        (STAY | {"local_tuned": NAN, "decision_distance": 0.6}, "a quick answer cannot tell"),
        (STAY | {"n": 300}, "enough samples of your own (300"),
        ({"recommendation": "cannot tell", "deploy": "fedavg"}, "from -10% to +30% allows both; 50 samples are too few"),
        (
            {"recommendation": "personalise", "deploy": "crossfit"},
            "is expected to lose 40% less than the best that you do alone",
        ),
        (
            {"recommendation": "cannot tell", "deploy": "finetune", "tuning": True},
            "neither the shared model as it is nor crossfit is likely to beat your own; but finetune may: "
            "it lost 5.00% on your held-out samples, your own ",
        ),
        (
            {"recommendation": "cannot tell", "gain_low": -0.001, "crossfit_low": -0.001, "crossfit_high": 0.004},
            "from +0% to +0% allows both",
        ),
        (
            {"recommendation": "personalise", "probability": 0.1, "federated": 0.2, "cause": "prices", "constraint_share": 0.0},
            "the shared model as it is does not beat your own: main cause: your prices (100% of the",
        ),
        (STAY | {"deploy": "mean-cost"}, "did no better than your own; but no model beats the mean of past costs yet"),
        (
            {"recommendation": "cannot tell", "deploy": "mean-cost"},
            "your features say too little about your costs, or models are not trained enough, to tell what joining would gain; "
            "no model beats the mean of past costs yet",
        ),
        (
            {"recommendation": "cannot tell", "shared_rows": 50},
            "allows both; 50 samples are too few to tell; others hold 50 of your 50 rows too, so that their rows teach little",
        ),
        ({"nothing": True, "local_tuned": 0.0}, "your own model already loses nothing"),
        ({"nothing": True, "mean_cost": 0.0}, "the mean of past costs already loses nothing"),
        ({"unknown": True, "local_tuned": NAN}, "ask without quick"),
    ],
)
def test_reasons_are_given_in_words(change, words):
    assert words in reason(ROW | change, median=100, steep=0.2, distance=0.1)


def test_prices_that_cost_little_are_not_the_reason_of_a_site_with_another_constraint():
    # Every difference of prices is significant with enough samples.
    row = ROW | STAY | SEEN | {"cost_p_value": 0.01, "decision_distance": 0.6, "pooled_cost_regret": 0.02}
    assert PRICES not in reason(row, median=100, steep=0.2, distance=0.1)
    assert CONSTRAINT not in reason(row, median=100, steep=0.2, distance=0.5)  # all of them differ as much
    assert PRICES in reason(row, median=100, steep=0.2, distance=0.5)


def test_refusals():
    lone = dffl.Federation([client("a", dffl.TopK(5, 2))])
    with pytest.raises(ValueError, match="advise: a federation of one client has no other client to federate with"):
        dffl.advise(lone)
    two = dffl.Federation([client("a", dffl.TopK(5, 2)), client("b", dffl.TopK(5, 2))])
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), found 1"):
        dffl.advise(two, confidence=1)
    with pytest.raises(ValueError, match="folds must be a whole number >= 3, found 2"):
        dffl.advise(two, folds=2)
    with pytest.raises(ValueError, match="unknown setting or option 'round'; did you mean 'rounds'"):
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
    assert lines[-1].startswith("odd: deploy local-tuned (your own model); joining: stay local; main cause: your prices (")
    assert lines[-1].count("deploy") == 1


def test_the_answer_does_not_depend_on_the_order_of_the_clients(fleet):
    there, back = (dffl.advise(dffl.Federation(order), quick=True, folds=3).table for order in (list(fleet), list(fleet)[::-1]))
    back = back.set_index("client").loc[there["client"]].reset_index()
    assert there["recommendation"].tolist() == back["recommendation"].tolist()
    for column in ("gain", "gain_low", "local", "federated", "pooled_cost_regret", "cost_p_value", "decision_distance"):
        np.testing.assert_allclose(there[column], back[column], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("error", [0.3, None])
def test_what_a_client_has_without_training_is_a_row_and_may_be_deployed(error: float | None) -> None:
    """Costs that stand still but for noise, and features that say nothing: nothing that is trained does better."""
    rng, clients = np.random.default_rng(0), []
    for name in ("north", "south"):
        costs = np.tile([9.0, 7.0, 5.0, 3.0], (120, 1)) + np.repeat([0.0, 0.0, 0.0, 6.0], 30)[:, None] * [0, 0, -1, 1]
        costs = costs + rng.normal(0, 0.3, costs.shape)
        forecast = None if error is None else costs + rng.normal(0, error, costs.shape)
        clients.append(
            dffl.Client(name, rng.normal(size=(120, 2)), costs, dffl.TopK(4, 1), times=np.arange(120), forecast=forecast)
        )
    found = dffl.advise(dffl.Federation(clients), quick=True, split="time")
    for row in found.rows():
        deployed = {"fedavg": "federated", "forecast": "forecast"}.get(row["deploy"], row["deploy"])
        lost = row["naive"] if row["deploy"] == row["naive_rule"] else row[deployed]
        known = [row["forecast"], row["naive"], row["local"]]
        assert lost <= min(value for value in known if not np.isnan(value))
    if error is None:
        assert found.table["deploy"].str.startswith("mean-").all()
        assert "federate" not in set(found.table["recommendation"])
        assert all("keep to it" in row["reason"] for row in found.rows())
        assert found.table["forecast"].isna().all()


def test_nobody_is_told_to_join_for_less_than_the_own_forecast() -> None:
    expected = {"local-tuned": 1.0, "crossfit": 0.8, "fedavg": 0.9}
    assert settle("personalise", expected) == ("personalise", "crossfit")
    assert settle("personalise", {**expected, "forecast": 0.5}) == ("cannot tell", "forecast")
    assert settle("stay local", {**expected, "crossfit": 1.2, "fedavg": 1.1, "mean-14": 0.5}) == ("stay local", "mean-14")


def test_rows_that_a_client_repeats_count_once():
    """Copies within one client are no evidence, as copies of other clients' rows are none."""
    fed = dffl.Federation([client(name, dffl.TopK(6, 2), 30) for name in "ab"])
    twice = dffl.Federation([one.rows(np.repeat(np.arange(30), 2)) for one in fed])
    assert advising._keys(fed, False) is None
    keys = advising._keys(twice, False)
    assert [len(np.unique(own)) for own in keys] == [30, 30]


def test_samples_of_one_key_are_no_evidence_of_two_clients():
    """Sites that bring their own rows of the same dates have good and bad days together."""
    fed = dffl.Federation([replace(client(name, dffl.TopK(6, 2), 30), keys=np.arange(30)) for name in "ab"])
    keys = advising._keys(fed, False)
    assert np.array_equal(keys[0], keys[1])


def test_samples_with_times_are_held_out_by_stretches(fleet):
    dated = dffl.Federation([replace(one, times=np.arange(one.n)) for one in fleet])
    assert dffl.advise(dated, quick=True).blocks
    with pytest.warns(UserWarning, match="intervals are too narrow; write split='time'"):
        assert not dffl.advise(dated, quick=True, split="draw").blocks

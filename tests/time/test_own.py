"""Models that see a client's own features: what they are, the choice where features explain the costs, and files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.archive import read
from dffl.limits import Limits
from dffl.tables.chosen import words_of
from dffl.time import backtest as module
from dffl.time import choosing
from dffl.time.bases import SteadyAverage
from dffl.time.choice import choose_rules
from dffl.time.chosen import Chosen
from dffl.time.mixtures import mixtures, usual_rule
from dffl.time.outcome import CHOSEN
from dffl.time.own import OwnFeatures, Views, at_most_as_long, described
from dffl.time.past import Past
from dffl.time.refits import Candidate
from tests.time.made import federation as drifting

ROWS, START = 140, "2022-04-11"
LOCAL = "local-epochs=2"
RIDGES = [
    ("ridge", {"features": "own"}),
    ("ridge", {"features": "own", "degree": 2}),
    ("ridge", {"features": "both"}),
    ("ridge-pooled", {"features": "both"}),
]
ONCE = ("local", {"features": "own", "once": True, "epochs": 2})


def explained(form: str = "linear", rows: int = ROWS) -> dffl.Federation:
    """Two clients whose costs follow from their features alone, each in its own way."""
    clients = []
    for place in range(2):
        rng = np.random.default_rng(place)
        x, slopes = rng.normal(size=(rows, 3)), rng.normal(size=(3, 5))
        level = x @ slopes if form == "linear" else 2 * np.abs(x) @ slopes
        days = np.datetime64("2022-01-01") + np.arange(rows)
        costs = 20 + level + rng.normal(0, 2, level.shape)
        clients.append(dffl.Client(f"c{place}", x, costs, dffl.TopK(5, 2), times=days))
    return dffl.Federation(clients)


def parted(found: dffl.Federation, count: int) -> dffl.Federation:
    return dffl.Federation([one.rows(slice(0, count)) for one in found])


@pytest.mark.parametrize("form", ["linear", "absolute"])
def test_where_features_explain_the_costs_the_choice_loses_no_more_than_what_is_fitted_once(form: str) -> None:
    fed = explained(form)
    found = dffl.backtest(fed, RIDGES, start=START, refit=20)
    first = ROWS - 40
    assert found.timeline.shown(found.timeline.start) == START
    once = dffl.fit(parted(fed, first), "ridge", degree=1 if form == "linear" else 2)
    test = dffl.Federation([one.rows(slice(first, ROWS)) for one in fed])
    assert found.means[CHOSEN] <= 1.05 * once.evaluate(test)["relative_regret"].mean()
    assert found.means[CHOSEN] < 0.6 * min(found.means[rule] for rule in ("steady", "mean-7", "mean-14", "mean-28"))
    rules, _ = choosing.final_rules(found, 90, "fleet")
    assert {part for part in rules[0].split("+") if "own" in part}, "it is what is kept too"


def test_a_ridge_of_own_features_is_that_of_the_rows_before_each_refit() -> None:
    fed = explained()
    seen: dict[str, list[np.ndarray]] = {}
    with pytest.MonkeyPatch.context() as patch:
        ranges_of = module.ranges_of
        patch.setattr(
            module, "ranges_of", lambda whole, some, tables, *rest: seen.update(tables) or ranges_of(whole, some, tables, *rest)
        )
        found = dffl.backtest(fed, [RIDGES[0], ONCE], start=START, refit=20)
    first = found.timeline.origins[0]
    for origin in found.timeline.origins:
        for method, known, rule in (("ridge", origin, "ridge-own"), ("local", found.timeline.trained_once(origin), LOCAL)):
            options = {} if method == "ridge" else {"epochs": 2}
            fit = dffl.fit(parted(fed, known), method, split="time", **options)
            rows = slice(origin, min(origin + 20, ROWS))
            expected = fit.predict("c1", fed["c1"].x[rows])
            np.testing.assert_array_equal(seen[rule][1][rows.start - first : rows.stop - first], expected)


def test_what_is_trained_once_is_trained_twice_in_a_backtest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trained, train = [], OwnFeatures.trained

    def counted(self: OwnFeatures, candidate: Candidate, known: Any, settings: Any) -> Any:
        trained.append((candidate.label, list(known)))
        return train(self, candidate, known, settings)

    monkeypatch.setattr(OwnFeatures, "trained", counted)
    found = dffl.backtest(explained(), [ONCE], start=START, refit=10)
    assert len(found.timeline.origins) > 3
    assert sorted(trained) == [(LOCAL, [found.timeline.origins[0]] * 2), (LOCAL, [ROWS - 40] * 2)]  # side by side


def test_rules_of_own_features() -> None:
    rules = mixtures(("a", "b"), "steady", ("x", "y"))
    assert {rule: parts for rule, parts in rules.items() if not {"x", "y"} & set(parts)} == mixtures(("a", "b"), "steady")
    assert (rules["x"], rules["x+y"], rules["y+steady"]) == (("x",), ("x", "y"), ("y", "steady"))
    assert rules["a+b+x"] == ("a", "b", "x")
    assert [usual_rule(some, "steady") for some in (("a", "b"), ("a",), ())] == ["mix", "a+steady", "steady"]


def test_a_model_of_own_features_replaces_the_usual_rule_where_it_is_better_by_two_standard_errors() -> None:
    names = ["steady", "a", "a+steady", "x"]

    def chosen(lost: np.ndarray, base: str = "steady", rules: list[str] = names, **how: Any) -> str:
        record = np.repeat(lost[:, None], 2, axis=1)
        return choose_rules(rules, record, ("a",), base, 40, own=("x",), **how)[0]

    lost = np.ones((4, 40))
    assert chosen(lost) == "a+steady"
    lost[3] -= 0.01
    assert chosen(lost) == "x"
    lost[3] = 1 + np.tile([-0.5, 0.3], 20)  # 0.1 better, with a standard error of 0.4 / sqrt(40) = 0.063: 1.6 of them
    assert chosen(lost) == "a+steady"
    assert chosen(np.tile(lost, 2)[:, -40:]) == "a+steady"
    lost[1] = lost[3]
    assert chosen(lost) == "a", "one is enough for a method that corrects the base"
    with_forecast = ["forecast", "a", "a+forecast", "x", "x+forecast"]
    lost = np.ones((5, 40))
    lost[3] = 0.2
    assert chosen(lost, "forecast", with_forecast, brought=True) == "forecast", "only an average with a forecast replaces it"
    lost[4] = 0.9
    assert chosen(lost, "forecast", with_forecast, brought=True) == "x+forecast"


def fitted(rule: str, **keywords: Any) -> Chosen:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "final_rules", lambda found, *_: ([rule] * len(found.clients), "recent"))
        made = dffl.fit(parted(explained(), ROWS - 1), "chosen", **{"candidates": [*RIDGES, ONCE], "refit": 20, **keywords})
    assert isinstance(made, Chosen)
    return made


@pytest.fixture(scope="module")
def model() -> Chosen:
    return fitted(f"ridge-pooled-both+{LOCAL}")


def test_what_is_kept_is_fitted_on_all_rows_and_a_file_gives_the_same_bits(model: Chosen, tmp_path: Path) -> None:
    assert {name: {one.n for one in fit.members.values()} for name, fit in model.parts.items()} == {
        "ridge-pooled-both": {ROWS - 1 - 28}, LOCAL: {ROWS - 1}
    }  # fmt: skip
    fed = explained()
    x = fed["c0"].x[-1:]
    once = dffl.fit(parted(fed, ROWS - 1), "local", epochs=2, split="time")
    views = Views(
        [fed["c0"]],
        [np.arange(ROWS) + 18993.0],
        [SteadyAverage([fed["c0"]], [None]).forecasts(model.weight)[0]],
        model.past,
    )
    assert views.of("own").predictions(model.parts[LOCAL], [slice(ROWS - 1, ROWS)])[0] == pytest.approx(once.predict("c0", x))
    model.save(tmp_path / "m.dffl")
    loaded = dffl.load(tmp_path / "m.dffl")
    assert isinstance(loaded, Chosen)
    assert loaded.own == model.own
    np.testing.assert_array_equal(loaded.predict("c0", x), model.predict("c0", x))
    loaded.only("c0").save(tmp_path / "one.dffl")
    alone = dffl.load(tmp_path / "one.dffl")
    assert isinstance(alone, Chosen)
    np.testing.assert_array_equal(alone.predict("c0", x), model.predict("c0", x))
    assert alone.digest("c0") == model.digest("c0")


def test_only_files_with_such_models_are_of_version_2(model: Chosen, tmp_path: Path) -> None:
    plain = dffl.fit(drifting(rows=120), "chosen", candidates=[], refit=12)
    for number, one in ((1, plain), (2, model)):
        one.save(tmp_path / "m.dffl")
        manifest = json.loads(read(tmp_path / "m.dffl", "manifest.json", "a model", Limits()).members["manifest.json"])
        assert (manifest["version"], "own" in manifest) == (number, number == 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"parts": {}},
            "client 'c0': its rule 'ridge-pooled-both\\+local-epochs=2' needs '(local-epochs=2|ridge-pooled-both)', which",
        ),
        ({"own": ()}, "unknown rule 'ridge-pooled-both\\+local-epochs=2'"),
        ({"sees": "all"}, "features of a part must be one of past, own, both, found 'all'"),
    ],
)
def test_a_crafted_file_is_refused_in_one_line(model: Chosen, tmp_path: Path, change: dict, message: str) -> None:
    if "sees" in change:
        parts = {name: replace(fit, about={"features": change["sees"]}) for name, fit in model.parts.items()}
        change = {"parts": parts}
    replace(model, **change).save(tmp_path / "m.dffl")
    with pytest.raises(ValueError, match=message) as refused:
        dffl.load(tmp_path / "m.dffl")
    assert "\n" not in str(refused.value)


def test_with_a_forecast_models_see_it_and_the_base_is_not_doubled(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    clients = [replace(one, forecast=one.c + rng.normal(0, 2, one.c.shape)) for one in explained()]
    fed = dffl.Federation(
        [dffl.Client(one.name, one.x[:, :3], one.c, one.set, times=one.times, forecast=one.forecast) for one in clients]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "final_rules", lambda found, *_: (["ridge-both+forecast"] * 2, "recent"))
        made = dffl.fit(parted(fed, ROWS - 1), "chosen", candidates=RIDGES, refit=20)
    assert isinstance(made, Chosen)
    assert made.parts["ridge-both"].features == 3 + 5 + 3 * 5 + 3 + 3 + 7
    made.save(tmp_path / "m.dffl")
    loaded = dffl.load(tmp_path / "m.dffl")
    x, forecast = fed["c1"].x[-1:, :3], fed["c1"].forecast[-1:]
    np.testing.assert_array_equal(loaded.predict("c1", x, forecast=forecast), made.predict("c1", x, forecast=forecast))


def test_rows_with_many_costs_have_no_lags_and_short_settings_cap_the_epochs() -> None:
    costs = np.random.default_rng(0).normal(size=(40, 49))
    assert sum(part.shape[1] for part in described(costs, costs, Past(), None)) == 6
    assert sum(part.shape[1] for part in described(costs[:, :5], costs[:, :5], Past(), None)) == 3 * 5 + 6 + 5
    assert at_most_as_long({}) == (10, 25, 50, 100, 250)
    assert at_most_as_long({"rounds": 4, "local_epochs": 5}) == (10, 20)


@pytest.mark.parametrize(("base", "kept"), [("steady", ["x"]), ("forecast", ["other"])])
def test_a_model_of_own_features_is_kept_where_it_beat_the_choice_but_never_instead_of_a_forecast(
    monkeypatch: pytest.MonkeyPatch, base: str, kept: list[str]
) -> None:
    """What is known afterwards tells nobody to leave a forecast."""
    monkeypatch.setattr(choosing, "record_of", lambda *_: (None, None))
    monkeypatch.setattr(choosing, "choose_rules", lambda *_: ["other"])
    means = {base: 0.02, "x": 0.01, "other": 0.02, CHOSEN: 0.015}
    found = SimpleNamespace(
        lost=dict.fromkeys((base, "x", "other")), means=means, base=base, own=("x",), trained=(), clients=[None], timeline=None
    )
    assert choosing.final_rules(found, 90, "fleet")[0] == kept  # type: ignore[arg-type]


def test_baselines_that_were_chosen_among_are_not_named_before_the_choice() -> None:
    known = {"why": "simple", "means": [["steady", 0.03], [CHOSEN, 0.02]], "inside": {}, "share": 0.8}
    table = pd.DataFrame({"client": "a", "method": ["ridge", "local-tuned", CHOSEN], "relative_regret": [0.01, 0.015, 0.02]})
    words = [
        words_of(SimpleNamespace(evidence=known, rules={"a": "steady"}, own=own), table)  # type: ignore[arg-type]
        for own in ((), ("ridge-own",), ("ridge-own", "local-tuned"))
    ]
    assert [one.split()[0] for one in words] == ["ridge", "local-tuned", "Keep"]

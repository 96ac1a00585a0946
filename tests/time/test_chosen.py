"""`chosen` over time: what is chosen and kept, that decisions know nothing too early, files, gaps, ranges and bad input."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl import archive
from dffl.judging import regrets_at
from dffl.serial import Sureness
from dffl.time import choosing, chosen, gains
from dffl.time.bases import plain_mean
from dffl.time.chosen import Chosen, parts_of
from dffl.time.outcome import CHOSEN, Backtest
from dffl.time.past import Past
from dffl.time.ranges import AdaptiveRange
from dffl.time.refits import Prepared
from dffl.time.words import said
from tests.time.made import federation, series

ROWS, MORE = 120, 270
RULE = "ridge+steady"


def past(error: float | None = None) -> dffl.Federation:
    """The first rows of clients with more rows."""
    return dffl.Federation([one.rows(slice(0, ROWS)) for one in federation(error, rows=MORE)])


def fitted(**keywords: Any) -> Chosen:
    made = dffl.fit(past(), "chosen", **{"candidates": ["ridge"], "refit": 12, **keywords})
    assert isinstance(made, Chosen)
    return made


@pytest.fixture(scope="module")
def model() -> Chosen:
    """A model whose rule uses a trained part and the base."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "final_rules", lambda found, *_: ([RULE] * len(found.clients), "recent"))
        return fitted()


def later(rows: int = ROWS + 10, name: str = "a") -> dffl.Client:
    """The rows of a client that follow those of the model."""
    return federation(rows=MORE)[name].rows(slice(ROWS, rows))


def test_the_default_is_the_choice_where_all_clients_have_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dffl.models.fit_chosen", lambda *_, **given: given)
    monkeypatch.setattr("dffl.models.fit_once", lambda _, method, **__: method)
    assert dffl.fit(federation(rows=ROWS), seed=3) == {"seed": 3}
    assert dffl.fit(federation(rows=60)) == "crossfit"  # too few rows before the test
    timeless = [dffl.Client(one.name, one.x, one.c, one.set) for one in federation(rows=ROWS)]
    assert dffl.fit(dffl.Federation(timeless)) == "crossfit"
    assert dffl.fit(federation(rows=ROWS), "fedavg") == "fedavg"


def test_rules_are_means_of_the_parts_that_a_backtest_uses() -> None:
    found = choosing.backtested(past(), ["ridge", "mean-cost"], refit=24)
    for rule in found.lost:
        assert set(parts_of(rule, found.trained, found.base)) <= set(found.lost)
    assert parts_of("mix", ("x", "y"), "steady") == ("x", "y", "steady")
    with pytest.raises(ValueError, match="unknown rule 'z'"):
        parts_of("z", ("x",), "steady")


def test_the_parts_are_fitted_on_all_rows(model: Chosen) -> None:
    assert {part: [member.n for member in fit.members.values()] for part, fit in model.parts.items()} == {
        "ridge": [ROWS - 28] * 2
    }


def test_it_decides_what_the_backtest_would(model: Chosen) -> None:
    """A row after the last is predicted as by a model that saw all rows before it, with the row among them."""
    whole, row = federation(rows=MORE)["a"].rows(slice(0, ROWS + 1)), slice(ROWS, ROWS + 1)
    days = [whole.times / 86400e9]
    base = chosen.steady(whole.c, model.weight, days[0], 0)
    [predicted] = Prepared([whole], days, [base], model.past).predictions(model.parts["ridge"], [row])
    expected = (predicted + base[row]) / 2
    np.testing.assert_allclose(model.predict("a", later().rows(slice(0, 1)).x), expected, rtol=1e-9)
    best = np.argsort(expected[0], kind="stable")[:2]
    np.testing.assert_array_equal(np.flatnonzero(model.decide("a", later().rows(slice(0, 1)).x)[0]), np.sort(best))


def test_no_decision_sees_its_own_row_or_a_later_one(model: Chosen) -> None:
    new = later()
    changed = dffl.Client("a", new.x, np.vstack([new.c[:4], new.c[4:] * 9]), new.set, times=new.times)
    one, other = (model.evaluate([client]) for client in (new, changed))
    assert one["regret"][0] != other["regret"][0]
    mine, theirs = (model.replayed("a", model._rows_of(client)) for client in (new, changed))
    np.testing.assert_array_equal(mine.expected[:5], theirs.expected[:5])
    np.testing.assert_array_equal(mine.ranges[:5], theirs.ranges[:5])
    assert not np.array_equal(mine.expected[5:], theirs.expected[5:])


def test_a_file_gives_the_same_bits_and_an_export_has_one_client(model: Chosen, tmp_path: Path) -> None:
    new = later().rows(slice(0, 1))
    model.save(tmp_path / "m.dffl")
    loaded = dffl.load(tmp_path / "m.dffl")
    assert isinstance(loaded, Chosen)
    for mine, theirs in zip(*(one.ahead("a", one.rows("a", new.x)) for one in (model, loaded)), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    loaded.save(tmp_path / "again.dffl")
    assert (tmp_path / "again.dffl").read_bytes() == (tmp_path / "m.dffl").read_bytes()
    loaded.only("a").save(tmp_path / "a.dffl")
    alone = dffl.load(tmp_path / "a.dffl")
    assert isinstance(alone, Chosen)
    assert list(alone.kept) == list(alone.rules) == list(alone.parts["ridge"].members) == ["a"]
    assert all(list(by) == ["a"] for by in alone.evidence["rules"].values())
    np.testing.assert_array_equal(alone.predict("a", new.x), model.predict("a", new.x))
    hidden = model.kept["b"].c.tobytes()
    assert hidden in (tmp_path / "m.dffl").read_bytes()
    assert hidden not in (tmp_path / "a.dffl").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": {"a": "mix"}}, "it must hold rules, ranges and last rows of the same clients"),
        ({"rules": {"a": "other", "b": "steady"}}, "unknown rule 'other'"),
        ({"parts": {}}, "client 'a': its rule 'ridge\\+steady' needs 'ridge', which the file does not hold"),
        ({"rules": {"a": "forecast", "b": "steady"}}, "client 'a': its rule 'forecast' needs a forecast"),
        ({"weight": 2.0}, "with a weight in \\(0, 1\\]"),
        ({"past": Past(lags=tuple(range(1, 5000)))}, "its past asks for 30\\d* features, and 'ridge' was trained on"),
        ({"about": "mine"}, "about must be a dictionary"),
        ({"trained": ("\x1b[31mridge",)}, r"unknown rule 'ridge\+steady' \(trained: \\x1b\[31mridge; base: steady\)"),
        ({"ranges": {"a": AdaptiveRange(low_rate=1e300), "b": AdaptiveRange()}}, "its rates at most 2"),
        (
            {"evidence": {"inside": {"a": 0.8, "b": 0.8}, "rules": {"steady": {"a": 0.1}}}},
            "evidence must be of all its clients",
        ),
    ],
)
def test_a_crafted_file_is_refused_in_one_line(model: Chosen, tmp_path: Path, change: dict, message: str) -> None:
    replace(model, **change).save(tmp_path / "m.dffl")
    with pytest.raises(ValueError, match=message) as refused:
        dffl.load(tmp_path / "m.dffl")
    assert "\n" not in str(refused.value)


def many_parts(model: Chosen, path: Path, count: int, **changed: bytes) -> Path:
    """A file with copies of its part, in which some members are others."""
    model.save(path)
    parts = archive.read(path, "manifest.json", "a model").members
    manifest = json.loads(parts["manifest.json"])
    [first] = manifest["parts"]
    copied = {name.removeprefix("parts/0/"): content for name, content in parts.items() if name.startswith("parts/0/")}
    copied |= {name.replace("_", "."): content for name, content in changed.items()}
    for number in range(1, count):
        manifest["parts"].append(first | {"name": f"more {number}"})
        parts |= {f"parts/{number}/{name}": content for name, content in copied.items()}
    archive.write(path, parts | {"manifest.json": json.dumps(manifest).encode()})
    return path


def test_parts_that_are_each_within_the_limits_are_counted_together(model: Chosen, tmp_path: Path) -> None:
    long = io.BytesIO()
    pd.DataFrame({"loss": np.zeros(900_000, np.float32)}).to_parquet(long)
    assert len(dffl.load(many_parts(model, tmp_path / "few.dffl", 5, history_parquet=long.getvalue())).parts) == 5
    with pytest.raises(ValueError, match=r"m\.dffl: it asks for \d+ cells of all histories, and at most 10,000,000 are"):
        dffl.load(many_parts(model, tmp_path / "m.dffl", 13, history_parquet=long.getvalue()))
    with pytest.raises(ValueError, match=r"m\.dffl: it asks for 1001 trained parts, and at most 1,000 are allowed"):
        dffl.load(many_parts(model, tmp_path / "m.dffl", 1001))
    with pytest.raises(ValueError, match=r"m\.dffl: it asks for \d+ values of all parts, and at most"):
        dffl.load(many_parts(model, tmp_path / "m.dffl", 50), limits={"values": 3000})


def test_what_is_observed_moves_the_ranges_and_not_the_model(model: Chosen, tmp_path: Path) -> None:
    model.save(tmp_path / "before.dffl")
    new = later()
    dear = dffl.Client("a", new.x, new.c + 40, new.set, times=new.times)
    seen = model.observe("a", dear)
    assert (len(seen.rows), seen.inside) == (10, pytest.approx(0.8))  # the first two of them came as a surprise
    again = model.observe("a", dear.rows(slice(5, 10)), seen=model.observe("a", dear.rows(slice(0, 5))))
    assert len(again.rows) == 10
    x = new.x[:1]
    first, after = model.ahead("a", model.rows("a", x)), model.ahead("a", model.rows("a", x, seen=seen), seen)
    assert after.ranges[0, 1] > first.ranges[0, 1] + 40  # two items, each dearer by 40
    np.testing.assert_array_equal(model.ahead("a", model.rows("a", x, seen=again), again).ranges, after.ranges)
    model.save(tmp_path / "after.dffl")
    assert (tmp_path / "after.dffl").read_bytes() == (tmp_path / "before.dffl").read_bytes()
    with pytest.raises(ValueError, match="client 'b': what was observed is of client 'a'"):
        model.decide("b", x, seen=seen)
    with pytest.raises(ValueError, match="the row of 2021-05-04 has no costs; observe takes rows whose costs are known"):
        model.observe("a", x)


def test_ranges_hold_what_they_state_on_rows_that_follow(model: Chosen) -> None:
    held = [model.observe(name, later(ROWS + 150, name)).inside for name in ("a", "b")]
    assert 0.72 <= np.mean(held) <= 0.88


def test_rows_to_decide_follow_the_last_known_row(model: Chosen) -> None:
    x, day = later().x, np.datetime64("2021-05-04")
    assert model.decide("a", x[:1], times=day).shape == (1, 6)
    for wrong, message in (
        (
            day + 1,
            "its last row with known costs is of 2021-05-03, and known_after = 0 allows a row to decide at most 1 row later",
        ),
        (day - 5, "the row of 2021-04-29 is to be decided, but costs are known up to 2021-05-03"),
    ):
        with pytest.raises(ValueError, match=message):
            model.decide("a", x[:1], times=wrong)
    with pytest.raises(ValueError, match=r"found 2021-05-05; add the rows in between .* known_after = 1 under"):
        model.decide("a", x[:2])
    with pytest.raises(ValueError, match="two rows are of 2021-05-04; keep one row for each moment"):
        model.decide("a", x[:2], times=[day, day])


def test_a_delay_allows_as_many_rows_ahead() -> None:
    late = fitted(past=Past(known_after=2), candidates=[])
    assert late.decide("a", later().x[:3]).shape == (3, 6)
    with pytest.raises(ValueError, match="known_after = 2 allows a row to decide at most 3 rows later, found 2021-05-07"):
        late.decide("a", later().x[:4])


def test_a_good_forecast_is_kept_and_a_naive_rule_too() -> None:
    good = dffl.fit(past(0.05), "chosen", candidates=["ridge"], refit=12)
    assert isinstance(good, Chosen)
    assert set(good.rules.values()) == {"forecast"}
    assert good.evidence["why"] == "simple"
    naive = fitted()
    means = dict(naive.evidence["means"])
    [rule] = set(naive.rules.values())
    if naive.evidence["why"] == "simple":
        assert means[rule] == min(means[name] for name in ("steady", "mean-7", "mean-14", "mean-28"))
        assert means[rule] <= means[CHOSEN]
    one = past()["a"]
    lost = regrets_at(one, plain_mean("mean-7", one.c))[96:]
    assert naive.evidence["rules"]["mean-7"]["a"] == pytest.approx(lost.sum() / one.z_star_size[96:].sum())


def test_a_forecast_is_not_left_for_an_average_that_was_lucky(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = dffl.backtest(federation(3.0), ["ridge"], refit=40, window=40)
    means = dict.fromkeys(outcome.means, 0.02) | {"mean-7": 0.019}
    for high, kept in ((0.001, "forecast"), (np.inf, "forecast"), (-0.001, "mean-7")):
        monkeypatch.setattr(Backtest, "means", means)
        monkeypatch.setattr(Backtest, "difference", lambda *_, high=high: (-0.001, -0.002, high))
        assert choosing.final_rules(replace(outcome), 40, "fleet") == ([kept] * 2, "simple")


def test_it_refuses_in_one_line() -> None:
    weekly = series("b", 2, rows=ROWS)
    weekly = dffl.Client("b", weekly.x, weekly.c, weekly.set, times=np.datetime64("2021-01-04") + 7 * np.arange(ROWS))
    with pytest.raises(ValueError, match="client 'b': its rows are 7 times as far apart as those of other clients"):
        dffl.fit(dffl.Federation([series("a", 1, rows=ROWS), weekly]), "chosen")
    with pytest.raises(ValueError, match="refit must be at most 24, the 24 moments from 2021-04-10 on, found 30"):
        fitted(refit=30)
    with pytest.raises(ValueError, match="chosen cannot be combined with privacy"):
        fitted(privacy={"level": "client", "clip": 1.0, "noise": 2.0})
    with pytest.raises(ValueError, match="start must be 2021-05-02 or later"):
        fitted(past=Past(lags=(1, 90)), start="2021-04-20")


def evidence(**changes: Any) -> dict[str, Any]:
    means = [["forecast", 0.015], ["steady", 0.02], ["mix", 0.0144], [CHOSEN, 0.0145]]
    usual = {"why": "recent", "reference": "forecast", "means": means, "from": "2024-09-01", "rows": 84, "share": 0.8}
    return {**usual, "gain": [0.0333, 0.01, 0.06], "inside": {"a": 0.79, "b": 0.81}, **changes}


@pytest.mark.parametrize(
    ("changes", "rule", "others", "first"),
    [
        ({}, "mix", {}, "Use mix: chosen by what each rule has lost in rows that its models had not seen. Chosen like"),
        ({"why": "simple"}, "forecast", {"ridge": 0.0155}, "Keep your forecast: it loses 1.50 % on the test rows"),
        ({"why": "simple"}, "mean-14", {}, "Keep to the moving average of 14 rows (mean-14): it loses"),
        (
            {},
            "mix",
            {"ridge": 0.01, "local": 0.02},
            "ridge loses least on the test rows (1.00 %), fitted once on the rows before",
        ),
    ],
)
def test_the_first_sentence_names_the_winner(changes: dict, rule: str, others: dict, first: str) -> None:
    told = evidence(**changes)
    told["means"] = [*told["means"], ["mean-14", 0.0143]]
    assert said(told, {"a": rule, "b": rule}, others).startswith(first)


def test_a_forecast_that_loses_almost_nothing_is_questioned() -> None:
    few = {"why": "simple", "means": [["forecast", 0.0001], ["steady", 0.02], [CHOSEN, 0.0002]]}
    question = "Your forecast loses almost nothing: is it known before each decision?"
    assert question in said(evidence(**few), {"a": "forecast"})
    assert question not in said(evidence(why="simple"), {"a": "forecast"})
    rounded = [dffl.Client(one.name, one.x, one.c, one.set, times=one.times, forecast=np.round(one.c)) for one in federation()]
    verdict = dffl.backtest(dffl.Federation(rounded), ["ridge"], refit=40, window=40).verdict()
    assert verdict.endswith("Keep using your forecast. It loses almost nothing: is it known before the decision?")


def test_why_no_interval_is_given_counts_the_rows_of_that_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = dffl.backtest(federation(), ["ridge"], refit=40, window=40)
    monkeypatch.setattr(gains, "sureness", lambda *_: Sureness(1.0, 3.0))
    found = choosing.evidence_of(outcome, ["steady", "steady"], "recent")
    assert found["gain"][1:] == [None, None]
    assert found["independent"] == 3.0


def test_what_to_expect_has_a_range_or_says_that_too_little_is_known() -> None:
    rules = {"a": "mix", "b": "mix"}
    sure = said(evidence(), rules)
    assert "3.3% less than your forecast (1.50 %) (90% range: 1.0 % to 6.0 % less)." in sure
    assert sure.endswith("Ranges of 80% held 80% of the costs.")
    assert "it may be noise" in said(evidence(gain=[0.0333, -0.01, 0.06]), rules)
    unsure = evidence(gain=[0.0333, None, None])
    assert "How sure this is, one cannot tell: that is too few rows." in said(unsure, rules)
    why = "the test rows are too alike in time (they count as about 3 independent ones)"
    assert f"one cannot tell: {why}." in said(unsure | {"independent": 2.7}, rules)
    assert "about as much as your forecast" in said(evidence(gain=[0.001, -0.01, 0.01]), rules)

"""The table of `compare`: paired changes against local, and who is harmed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.comparing import against, fit_all, judge_starts, tabulate
from dffl.harm import interval
from dffl.progress import Progress
from dffl.randomness import start_seeds

QUICK = {"rounds": 3, "local_epochs": 2}


@pytest.fixture(scope="module")
def parts() -> tuple[dffl.Federation, dffl.Federation, dict[str, dffl.Fit], pd.DataFrame]:
    common = {"seed": 2, "clients": 4, "dim": 6}
    fed = dffl.synthetic.knapsack(samples=30, **common)  # type: ignore[arg-type]
    test = dffl.synthetic.knapsack(split="test", samples=80, **common)  # type: ignore[arg-type]
    fits = fit_all(fed, ["mean-cost", "fedavg", "interp-spo", "finetune"], **QUICK)
    return fed, test, fits, tabulate(fits, test)


def test_one_row_per_client_and_method_and_local_is_always_there(parts: tuple) -> None:
    _, test, fits, table = parts
    assert set(fits) == {"mean-cost", "local", "fedavg", "interp-spo", "finetune"}
    assert len(table) == len(test) * len(fits)
    assert table.loc[table["method"] == "local", "change"].abs().max() == 0
    assert not table.loc[table["method"] == "local", "harmed"].any()
    assert table.loc[table["method"] == "interp-spo", "lambda"].between(0, 1).all()
    assert table.loc[table["method"] == "finetune", "epochs"].isin([0, 3, 10, 30, 100]).all()


@pytest.fixture(scope="module")
def compared(parts: tuple) -> pd.DataFrame:
    fed, test, *_ = parts
    return dffl.compare(fed, ["mean-cost", "fedavg", "finetune"], test=test, **QUICK)


def test_numbers_are_means_over_starts_and_the_first_start_is_the_given_seed(parts: tuple, compared: pd.DataFrame) -> None:
    fed, test, fits, _ = parts
    seeds = start_seeds(0, 3)
    assert seeds[0] == 0
    assert len(set(seeds)) == 3
    assert seeds == start_seeds(0, 5)[:3]
    every = [fits, *(fit_all(fed, ["mean-cost", "fedavg", "finetune"], seed=seed, **QUICK) for seed in seeds[1:])]
    rows = [one["fedavg"].evaluate(test).iloc[1] for one in every]
    row = compared[compared["method"] == "fedavg"].iloc[1]
    for name in ("regret", "relative_regret", "mean_ratio"):
        assert row[name] == pytest.approx(np.mean([one[name] for one in rows]))
    assert row["spread"] == pytest.approx(np.std([one["relative_regret"] for one in rows], ddof=1))
    assert row["spread"] > 0
    lost = [np.stack([one[name].regrets(test[1]) for one in every]) for name in ("fedavg", "local")]
    changes = np.array(interval(lost[0] - lost[1])) / test[1].z_star_size.mean()
    assert row[["change", "change_low", "change_high"]].tolist() == pytest.approx(changes.tolist())
    above = lost[0][0].mean() > 1.01 * lost[1][0].mean()
    assert row["above_tolerance"] == above
    chosen = [one["finetune"].members[test[1].name].choices["epochs"] for one in every]
    assert compared[compared["method"] == "finetune"].iloc[1]["epochs"] == pytest.approx(np.mean(chosen))
    assert not compared[compared["method"] == "mean-cost"]["spread"].any()


def test_local_is_the_reference_and_every_client_is_judged(compared: pd.DataFrame) -> None:
    local = compared["method"] == "local"
    assert set(compared.loc[local, "verdict"]) == {"reference"}
    assert not compared.loc[local, ["change", "change_low", "change_high", "harmed", "above_tolerance"]].any(axis=None)
    assert set(compared.loc[~local, "verdict"]) <= {"better", "worse", "unclear"}
    assert compared["harmed"].notna().all()


def test_one_start_is_that_of_fit_and_cannot_tell_harm_from_luck(parts: tuple) -> None:
    fed, test, fits, table = parts
    pd.testing.assert_frame_equal(dffl.compare(fed, list(fits), test=test, starts=1, **QUICK), table[: len(table)])
    others = table[table["method"] != "local"]
    assert set(others["verdict"]) == {"not judged"}
    assert others["harmed"].isna().all()
    assert others["spread"].isna().all()
    assert np.isinf(others[["change_low", "change_high"]]).all(axis=None)
    assert others["above_tolerance"].any()
    summary = dffl.summarise(table)
    assert summary["harmed"].isna().tolist() == [name != "local" for name in summary.index]


def test_local_trained_again_harms_nobody_beyond_luck(parts: tuple) -> None:
    """The same method under another name, from other starts: whatever differs is luck."""
    fed, test, *_ = parts
    found = judge_starts(fed, ["local"], test=test, starts=6, **QUICK)
    again = [
        one._replace(rows=one.rows | {"again": other.rows["local"]}, lost=one.lost | {"again": other.lost["local"]})
        for one, other in zip(found[:3], found[3:], strict=True)
    ]
    other = against(again, test).query("method == 'again'")
    swapped = against(again, test, "again").query("method == 'local'")
    assert swapped["change"].tolist() == pytest.approx((-other["change"]).tolist())
    either = pd.concat([other, swapped])
    assert either["above_tolerance"].sum() >= 2, "one run takes luck for harm"
    assert not either["harmed"].any()


def test_the_bar_covers_all_starts(parts: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    fed, test, *_ = parts
    totals: list[tuple[float, float]] = []
    real = Progress.advance

    def noted(bar: Progress, units: float, label: str) -> None:
        real(bar, units, label)
        totals.append((bar.done, bar.total))

    monkeypatch.setattr(Progress, "advance", noted)
    judge_starts(fed, ["fedavg"], test=test, starts=2, progress=False, **QUICK)
    work = 2 * 2 * sum(fed.counts) * 6  # starts, methods (local is there), samples, epochs
    assert {total for _, total in totals} == {work}
    assert totals[-1][0] == work


COSTS = {
    "a": [[1, 2], [1, 2], [3, 1], [1, 5]],
    "b": [[2, 4], [2, 4.1], [2, 3.9], [2, 4]],
    "c": [[4, 2], [4.1, 2], [3.9, 2], [4, 2]],
    "d": [[1, 1.01], [1, 1], [1, 1], [1.01, 1]],
}
"""Four clients that buy the cheaper of two things. What each loses with the first or the second is worked out by hand below."""


@pytest.fixture(scope="module")
def by_hand() -> tuple[dict[str, dffl.Fit], dffl.Federation]:
    """Under `local` everybody buys the first thing, under `fedavg` the second."""
    test = dffl.Federation(
        [dffl.Client(name, np.arange(4)[:, None], np.array(c, float), dffl.TopK(2, 1)) for name, c in COSTS.items()]
    )
    fit = dffl.fit(test, "mean-cost")

    def always(costs: list[float]) -> dffl.Fit:
        return replace(
            fit, members={n: replace(m, predictor=dffl.ConstantPredictor(np.array(costs))) for n, m in fit.members.items()}
        )

    return {"local": always([0.0, 1.0]), "fedavg": always([1.0, 0.0])}, test


# Regrets with the first thing: a 0 0 2 0, b 0 0 0 0, c 2 2.1 1.9 2, d 0 0 0 .01; with the second: a 1 1 0 4, b 2 2.1 1.9 2,
# c 0 0 0 0, d .01 0 0 0. The best costs are a 1 1 1 1, b 2 2 2 2, c 2 2 2 2, d 1 1 1 1. The 97.5 % point of Student's t with 3
# degrees of freedom is 3.182446. a: the differences 1 1 -2 4 have the mean 1 and the standard error sqrt(6 / 4) = 1.224745.
# b and c: 2 2.1 1.9 2, mean 2, standard error sqrt(.02 / 3 / 4) = .040825. d: .01 0 0 -.01. Three starts that are alike add
# no variance.
@pytest.mark.parametrize(
    ("client", "regret", "change", "half", "verdict", "harmed", "above"),
    [
        ("a", 1.5, 1.0, 3.182446 * 1.224745, "unclear", False, True),
        ("b", 1.0, 1.0, 3.182446 * 0.040825 / 2, "worse", True, True),
        ("c", 0.0, -1.0, 3.182446 * 0.040825 / 2, "better", False, False),
        ("d", 0.0025, 0.0, 3.182446 * 0.00408248, "unclear", False, False),
    ],
)
def test_a_row_is_what_one_works_out_by_hand(
    by_hand: tuple, client: str, regret: float, change: float, half: float, verdict: str, harmed: bool, above: bool
) -> None:
    fits, test = by_hand
    row = tabulate([fits] * 3, test).set_index(["method", "client"]).loc[("fedavg", client)]
    assert row["relative_regret"] == pytest.approx(regret, abs=1e-9)
    found = (row["change"], row["change_low"], row["change_high"])
    assert found == pytest.approx((change, change - half, change + half), abs=1e-5)
    assert (row["verdict"], bool(row["harmed"]), bool(row["above_tolerance"])) == (verdict, harmed, above)


def test_harm_is_beyond_the_stated_tolerance(by_hand: tuple) -> None:
    """Client a loses three times as much as with its local model, 200 % more, but its four samples disagree."""
    fits, test = by_hand
    for tolerance, above in ((0.0, "ab"), (1.99, "ab"), (2.01, "b"), (1e9, "b")):
        table = tabulate([fits] * 3, test, harm_tolerance=tolerance)
        assert "".join(table.loc[table["above_tolerance"], "client"]) == above
        assert "".join(table.loc[table["harmed"], "client"]) == "b"


def test_the_summary_counts_verdicts_and_harm(by_hand: tuple) -> None:
    fits, test = by_hand
    summary = dffl.summarise(tabulate([fits] * 3, test))
    assert summary[["better", "worse", "harmed", "above_tolerance"]].to_dict("index") == {
        "local": {"better": 0, "worse": 0, "harmed": 0, "above_tolerance": 0},
        "fedavg": {"better": 1, "worse": 1, "harmed": 1, "above_tolerance": 2},
    }
    assert summary.loc["fedavg", ["mean", "median", "max"]].tolist() == pytest.approx([2.5025 / 4, 1.0025 / 2, 1.5])


def test_the_summary_is_over_clients(parts: tuple) -> None:
    *_, table = parts
    summary = dffl.summarise(table)
    values = table.loc[table["method"] == "fedavg", "relative_regret"]
    assert summary.loc["fedavg", "mean"] == pytest.approx(values.mean())
    assert summary.loc["fedavg", "p90"] == pytest.approx(np.quantile(values, 0.9))
    assert summary.loc["fedavg", "max"] == values.max()
    assert summary.loc["fedavg", "clients"] == 4


@pytest.mark.parametrize("keyed", [False, True])
def test_repeated_samples_count_once(parts: tuple, keyed: bool) -> None:
    """Copies of rows, and rows of one key, make no verdict surer."""
    _, test, fits, _ = parts
    two = [{name: fits[name] for name in ("local", "fedavg")}] * 3
    keys = np.repeat(np.arange(80), 6) if keyed else None
    often = dffl.Federation([replace(one.rows(np.repeat(np.arange(80), 6)), keys=keys) for one in test])
    columns = ["change_low", "change_high", "relative_regret_low", "relative_regret_high"]
    pd.testing.assert_frame_equal(tabulate(two, often)[columns], tabulate(two, test)[columns])


def test_samples_with_times_are_judged_by_stretches_of_time(parts: tuple) -> None:
    _, test, fits, _ = parts
    dated = dffl.Federation([replace(client, times=np.arange(client.n)) for client in test])
    two = {name: fits[name] for name in ("local", "fedavg")}
    row = tabulate([two] * 3, dated).set_index(["method", "client"]).loc[("fedavg", test[1].name)]
    lost = [np.tile(fits[name].regrets(test[1]), (3, 1)) for name in ("fedavg", "local")]
    by_stretch, by_day = (
        np.array(interval(lost[0] - lost[1], ordered=ordered)) / test[1].z_star_size.mean() for ordered in (True, False)
    )
    assert row[["change", "change_low", "change_high"]].tolist() == pytest.approx(by_stretch.tolist())
    assert by_stretch.tolist() != pytest.approx(by_day.tolist())
    _, low, high = np.array(interval(lost[0], ordered=True)) / test[1].z_star_size.mean()
    ends = [max(low, 0.0), high]
    assert row[["relative_regret_low", "relative_regret_high"]].tolist() == pytest.approx(ends)


def test_a_single_test_sample_has_no_finite_interval(parts: tuple) -> None:
    _, test, fits, _ = parts
    one = dffl.Federation([client.rows(np.array([0])) for client in test])
    table = tabulate([{"local": fits["local"], "fedavg": fits["fedavg"]}] * 3, one)
    assert np.isinf(table.loc[table["method"] == "fedavg", "change_high"]).all()
    assert table.loc[table["method"] == "fedavg", "harmed"].isna().all()


@pytest.mark.parametrize(
    ("methods", "settings", "titles", "options"),
    [
        (["fedavg"], {}, ["fedavg", "local"], {}),
        (["fedavg"], {"local.epochs": 2}, ["fedavg", "local"], {"epochs": 2}),
        ([("local", {"epochs": 2}), "fedavg"], {}, ["local", "fedavg"], {"epochs": 2}),
        ([("local", {"epochs": 1}), ("local", {"epochs": 2})], {}, ["local(epochs=1)", "local(epochs=2)", "local"], {}),
    ],
)
def test_there_is_one_local_to_compare_with_and_options_reach_it(
    parts: tuple, methods: list, settings: dict, titles: list[str], options: dict
) -> None:
    fed, test, *_ = parts
    fits = fit_all(fed, methods, **settings, **QUICK)
    assert list(fits) == titles
    assert fits["local"].options == options
    assert tabulate(fits, test)["method"].unique().tolist() == titles


def test_bad_arguments_are_refused(parts: tuple) -> None:
    fed, test, fits, _ = parts
    for chosen in ("chosen", ("chosen", {"refit": 7})):
        with pytest.raises(ValueError, match=r"'chosen' is a choice among methods .* dffl compare FILE --method chosen"):
            dffl.compare(fed, [chosen], test=test)
    with pytest.raises(ValueError, match="methods must be a list of names, found the text 'local'"):
        dffl.compare(fed, "local", test=test)
    with pytest.raises(ValueError, match="harm_tolerance must be >= 0"):
        tabulate(fits, test, harm_tolerance=-1)
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), found 95"):
        tabulate(fits, test, confidence=95)
    with pytest.raises(ValueError, match=r"fits must have 'local', and the same methods in every start, found \['fedavg'\]"):
        tabulate({"fedavg": fits["fedavg"]}, test)
    with pytest.raises(ValueError, match="fits must have 'local', and the same methods in every start"):
        tabulate([fits, {"local": fits["local"]}], test)


def test_what_cannot_be_judged_is_refused_before_anything_trains(parts: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    fed, test, _, _ = parts
    monkeypatch.setattr("dffl.comparing.perform", lambda *_, **__: pytest.fail("trained"))
    for starts in (0, -1, 1.5, "3", True):
        with pytest.raises(ValueError, match="starts must be a whole number >= 1, found"):
            dffl.compare(fed, ["fedavg"], test=test, starts=starts)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), found 95"):
        dffl.compare(fed, ["fedavg"], test=test, confidence=95)
    stranger = dffl.Client("new", test[0].x, test[0].c, test[0].set, True)
    with pytest.raises(ValueError, match=r"test: client 'new' took no part, so it has no local model"):
        dffl.compare(fed, ["fedavg"], test=dffl.Federation([stranger]))
    with pytest.raises(ValueError, match=r"test must be a dffl.Federation, found list"):
        dffl.compare(fed, ["fedavg"], test=[test[0]])  # type: ignore[arg-type]

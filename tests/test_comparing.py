"""The table of `compare`: paired changes against local, and who is harmed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

import dffl
from dffl.comparing import fit_all, tabulate

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


def test_the_interval_is_the_paired_one(parts: tuple) -> None:
    _, test, fits, table = parts
    client = test[1]
    difference = fits["fedavg"].regrets(client) - fits["local"].regrets(client)
    size = np.abs(np.sum(client.c * client.w_star, axis=1)).mean()
    low, high = ttest_1samp(difference, 0).confidence_interval(0.95)
    row = table[(table["client"] == client.name) & (table["method"] == "fedavg")].iloc[0]
    assert row["change"] == pytest.approx(difference.mean() / size)
    assert (row["change_low"], row["change_high"]) == (pytest.approx(low / size), pytest.approx(high / size))
    local = table[(table["client"] == client.name) & (table["method"] == "local")].iloc[0]
    assert row["change"] == pytest.approx(row["relative_regret"] - local["relative_regret"])


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
        [dffl.Client(name, np.ones((4, 1)), np.array(c, float), dffl.TopK(2, 1)) for name, c in COSTS.items()]
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
# b and c: 2 2.1 1.9 2, mean 2, standard error sqrt(.02 / 3 / 4) = .040825. d: .01 0 0 -.01.
@pytest.mark.parametrize(
    ("client", "regret", "change", "half", "verdict", "harmed"),
    [
        ("a", 1.5, 1.0, 3.182446 * 1.224745, "unclear", True),
        ("b", 1.0, 1.0, 3.182446 * 0.040825 / 2, "worse", True),
        ("c", 0.0, -1.0, 3.182446 * 0.040825 / 2, "better", False),
        ("d", 0.0025, 0.0, 3.182446 * 0.00408248, "unclear", False),
    ],
)
def test_a_row_is_what_one_works_out_by_hand(
    by_hand: tuple, client: str, regret: float, change: float, half: float, verdict: str, harmed: bool
) -> None:
    row = tabulate(*by_hand).set_index(["method", "client"]).loc[("fedavg", client)]
    assert row["relative_regret"] == pytest.approx(regret, abs=1e-9)
    found = (row["change"], row["change_low"], row["change_high"])
    assert found == pytest.approx((change, change - half, change + half), abs=1e-5)
    assert (row["verdict"], bool(row["harmed"])) == (verdict, harmed)


def test_harm_is_beyond_the_stated_tolerance(by_hand: tuple) -> None:
    """Client a loses three times as much as with its local model: 200 % more."""
    for tolerance, harmed in ((0.0, "ab"), (1.99, "ab"), (2.01, "b"), (1e9, "b")):
        table = tabulate(*by_hand, harm_tolerance=tolerance)
        assert "".join(table.loc[table["harmed"], "client"]) == harmed


def test_the_summary_counts_verdicts_and_harm(by_hand: tuple) -> None:
    summary = dffl.summarise(tabulate(*by_hand))
    assert summary[["better", "worse", "harmed"]].to_dict("index") == {
        "local": {"better": 0, "worse": 0, "harmed": 0}, "fedavg": {"better": 1, "worse": 1, "harmed": 2},
    }  # fmt: skip
    assert summary.loc["fedavg", ["mean", "median", "max"]].tolist() == pytest.approx([2.5025 / 4, 1.0025 / 2, 1.5])


def test_the_summary_is_over_clients(parts: tuple) -> None:
    *_, table = parts
    summary = dffl.summarise(table)
    values = table.loc[table["method"] == "fedavg", "relative_regret"]
    assert summary.loc["fedavg", "mean"] == pytest.approx(values.mean())
    assert summary.loc["fedavg", "p90"] == pytest.approx(np.quantile(values, 0.9))
    assert summary.loc["fedavg", "max"] == values.max()
    assert summary.loc["fedavg", "clients"] == 4


def test_a_single_test_sample_has_no_finite_interval(parts: tuple) -> None:
    _, test, fits, _ = parts
    one = dffl.Federation([client.rows(np.array([0])) for client in test])
    table = tabulate({"local": fits["local"], "fedavg": fits["fedavg"]}, one)
    assert np.isinf(table.loc[table["method"] == "fedavg", "change_high"]).all()


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
    with pytest.raises(ValueError, match="methods must be a list of names, found the text 'local'"):
        dffl.compare(fed, "local", test=test)
    with pytest.raises(ValueError, match="harm_tolerance must be >= 0"):
        tabulate(fits, test, harm_tolerance=-1)
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), found 95"):
        tabulate(fits, test, confidence=95)


def test_what_cannot_be_judged_is_refused_before_anything_trains(parts: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    fed, test, _, _ = parts
    monkeypatch.setattr("dffl.comparing.fit_all", lambda *_, **__: pytest.fail("trained"))
    stranger = dffl.Client("new", test[0].x, test[0].c, test[0].set, True)
    with pytest.raises(ValueError, match=r"test: client 'new' took no part, so it has no local model"):
        dffl.compare(fed, ["fedavg"], test=dffl.Federation([stranger]))
    with pytest.raises(ValueError, match=r"test must be a dffl.Federation, found list"):
        dffl.compare(fed, ["fedavg"], test=[test[0]])  # type: ignore[arg-type]

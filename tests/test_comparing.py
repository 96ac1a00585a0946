"""The table of `compare`: paired changes against local, and who is harmed."""

from __future__ import annotations

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


def test_a_row_a_client_and_method_and_local_is_always_there(parts: tuple) -> None:
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


def test_harm_is_beyond_the_stated_tolerance(parts: tuple) -> None:
    _, test, fits, _ = parts
    for tolerance in (0.0, 0.05, 10.0):
        table = tabulate(fits, test, harm_tolerance=tolerance).set_index(["method", "client"])
        for (method, client), row in table.iterrows():
            local = table.loc[("local", client), "regret"]
            assert row["harmed"] == (row["regret"] > (1 + tolerance) * local + 1e-9), (method, client)


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


def test_the_verdict_is_what_the_interval_says(parts: tuple) -> None:
    *_, table = parts
    for _, row in table.iterrows():
        better, worse = row["change_high"] < 0, row["change_low"] > 0
        assert row["verdict"] == ("better" if better else "worse" if worse else "unclear")
    summary = dffl.summarise(table)
    for verdict in ("better", "worse"):
        counted = (table["verdict"] == verdict).groupby(table["method"]).sum()
        assert summary[verdict].to_dict() == counted.to_dict()
    assert set(table["verdict"]) >= {"better", "unclear"}

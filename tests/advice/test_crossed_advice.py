"""`dffl.advise` gives no verdict where others train on a client's held-out rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.advice.display import AdviceShown
from dffl.cli.sources import load
from tests.advice.test_advise import shown

N, D = 60, 5
RNG = np.random.default_rng(4)
MIX = RNG.normal(size=(4, D))
X = RNG.normal(size=(N, 4))
C = 10 + (X @ MIX + 0.7) ** 2 + RNG.normal(size=(N, D))
KIND = dffl.TopK(D, 2)
WARNED = pytest.mark.filterwarnings("ignore:.*are held out while")


def orders() -> list[np.ndarray]:
    return [np.random.default_rng(seed).permutation(N) for seed in range(3)]


def stranger() -> dffl.Client:
    x = np.random.default_rng(9).normal(size=(N, 4))
    return dffl.Client("own", x, 10 + (x @ MIX + 0.7) ** 2 + np.random.default_rng(10).normal(size=(N, D)), KIND)


def with_fees() -> list[dffl.Client]:
    return [dffl.Client(f"fee-{place}", X[own], C[own] + 4.0 * place, KIND) for place, own in enumerate(orders())]


@WARNED
def test_one_price_with_fees_gets_no_verdict_and_a_stranger_does():
    advice = dffl.advise(dffl.Federation([*with_fees(), stranger()]), quick=True, progress=False)
    assert advice.sharing == ""  # neither rows nor costs are equal
    for name in ("fee-0", "fee-1", "fee-2"):
        row = advice[name]
        assert row["recommendation"] == "cannot tell"
        assert row["deploy"] == "local"
        assert row["crossing_rows"] > 0.5 * N
        assert np.isnan([row["gain"], row["gain_low"], row["gain_high"], row["probability"], row["federated"]]).all()
        said = (
            f"{row['crossing_rows']} of your {N} rows are held out while rows of equal features and related costs train 'fee-"
        )
        assert row["reason"].startswith(said)
        assert "; give rows of one moment the same key, such as the date" in row["reason"]
    assert advice["own"]["crossing_rows"] == 0
    assert np.isfinite([advice["own"]["gain"], advice["own"]["federated"]]).all()
    assert advice.crossing.endswith("or leave the copies out")
    plain = json.loads(json.dumps(advice.as_json(), allow_nan=False))
    assert plain["crossing"] == advice.crossing
    page = " ".join(shown(advice).split())
    assert "not judged" in page
    assert "rows of equal features and related costs train" in page


@pytest.mark.parametrize(
    ("given", "settings", "words"),
    [
        (lambda place: {"keys": np.arange(N)}, {}, "rows that are equal train .*the same key"),
        (lambda place: {"times": np.arange(N) + 17.0 * place}, {"split": "time"}, "rows that are equal train .*the same time"),
    ],
    ids=["keys that are row numbers", "times that are shifted"],
)
@WARNED
def test_copies_that_a_rule_misses_get_no_verdict(given, settings, words):
    rows = orders() if "keys" in given(0) else [np.arange(N)] * 3
    sites = [dffl.Client(f"site-{place}", X[own], C[own], KIND, **given(place)) for place, own in enumerate(rows)]
    advice = dffl.advise(dffl.Federation(sites), quick=True, progress=False, **settings)
    assert set(advice.table["recommendation"]) == {"cannot tell"}
    assert advice.table["reason"].str.contains(words).all()


def test_a_file_of_one_price_zone_gets_no_verdict_by_default_and_one_by_costs(tmp_path: Path):
    lines = ["[federation]", 'features = "f_*"', 'costs = "price_*"', "# split"]
    for place, own in enumerate(orders()):
        x = X[own] + 0.3 * np.random.default_rng(20 + place).normal(size=X.shape)
        table = np.column_stack([x, C[own]])
        names = [f"f_{i}" for i in range(4)] + [f"price_{i}" for i in range(D)]
        pd.DataFrame(table, columns=names).to_csv(tmp_path / f"{place}.csv", index=False)
        lines += ["[[client]]", f'name = "s{place}"', f'table = "{place}.csv"', f'set = {{ type = "top-k", k = {2} }}']
    file = tmp_path / "federation.toml"
    for text, crossed in (("# none", True), ('split = "cost"', False)):
        file.write_text("\n".join(lines).replace("# split", text))
        source = load(str(file))
        advice = dffl.advise(source.federation, quick=True, progress=False, **source.settings)
        assert AdviceShown(advice, "", source.notes).as_json()["notes"]
        assert (advice.table["crossing_rows"] > 0).all() == crossed
        assert advice.table["gain"].isna().all() == crossed
        if crossed:
            assert set(advice.table["recommendation"]) == {"cannot tell"}
            assert advice.table["reason"].str.contains('rows of equal costs train .*write split = "cost"').all()


@WARNED
def test_trained_advice_on_copies_deploys_a_model_of_its_own():
    sites = dffl.Federation(with_fees()[:2])
    small = {"rounds": 1, "local_epochs": 1, "hidden": 4, "folds": 3, "finetune.epochs": (0,), "crossfit.epochs": (0,)}
    advice = dffl.advise(sites, progress=False, **small, **{"local-tuned.epochs": (1,)})
    assert set(advice.table["recommendation"]) == {"cannot tell"}
    assert set(advice.table["deploy"]) <= {"local", "local-tuned", "mean-cost"}
    assert advice.table[["federated", "finetuned", "crossfit", "crossfit_gain"]].isna().all(axis=None)
    assert advice.table["cause"].eq("not examined").all()

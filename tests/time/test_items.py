"""Features of items over time: backtests and the choice use them, files keep them, new rows bring them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dffl
from dffl.time import choosing
from dffl.time.chosen import Chosen

ROWS, MORE, DIM = 120, 6, 5
DAYS = np.datetime64("2021-01-04") + np.arange(ROWS + MORE)


def series(name: str, seed: int, brings: bool = True) -> dffl.Client:
    """Costs of tomorrow follow from a feature of each item and from its weight; their past says nothing."""
    rng = np.random.default_rng(seed)
    wind, weight = rng.normal(size=(ROWS + MORE, DIM, 1)), rng.uniform(1, 2, (DIM, 1))
    costs = 30 - 6 * wind[..., 0] + weight[:, 0] + rng.normal(0, 0.5, (ROWS + MORE, DIM))
    more = {"items": wind, "known": weight} if brings else {}
    return dffl.Client(name, rng.normal(size=(ROWS + MORE, 1)), costs, dffl.TopK(DIM, 1), times=DAYS, **more)


def past(brings: bool = True) -> dffl.Federation:
    return dffl.Federation([series(name, seed, brings).rows(slice(0, ROWS)) for name, seed in (("a", 1), ("b", 2))])


@pytest.fixture(scope="module")
def model() -> Chosen:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "final_rules", lambda found, *_: (["ridge"] * 2, "recent"))
        made = dffl.fit(past(), "chosen", candidates=["ridge"], refit=12)
    assert isinstance(made, Chosen)
    return made


def test_a_backtest_decides_by_them() -> None:
    lost = [dffl.backtest(past(brings), ["ridge"], refit=20, start="2021-04-01").means["ridge"] for brings in (True, False)]
    assert lost[0] < 0.3 * lost[1]


def test_new_rows_bring_them_and_a_file_keeps_their_place(model: Chosen, tmp_path: Path) -> None:
    later = series("a", 1).rows(slice(ROWS, ROWS + 1))
    expected = model.predict("a", later.x)
    items, known = later.items[..., :1], later.items[0, :, 1:]
    np.testing.assert_array_equal(model.predict("a", later.x[:, :1], items=items, known=known), expected)
    np.testing.assert_array_equal(model.decide("a", later.x[:, :1], items=items, known=known), model.decide("a", later.x))
    model.save(tmp_path / "m.dffl")
    model.only("a").save(tmp_path / "a.dffl")
    for name in ("m", "a"):
        again = dffl.load(tmp_path / f"{name}.dffl")
        assert isinstance(again, Chosen)
        assert again.kept["a"].item_features == 2
        np.testing.assert_array_equal(again.predict("a", later.x), expected)
    other = model.predict("a", later.x[:, :1], items=items + np.arange(5.0)[:, None], known=known)
    assert (other != expected).any(), "the features of the row itself are used"


def test_no_decision_sees_those_of_later_rows(model: Chosen) -> None:
    rows = series("a", 1).rows(slice(ROWS, ROWS + 3))
    changed = dffl.Client(
        "a", rows.row_features, rows.c, rows.set, times=rows.times,
        items=rows.items + np.array([0.0, 0.0, 9.0])[:, None, None],
    )  # fmt: skip
    before, after = (model.replayed("a", model._rows_of(one)).expected for one in (rows, changed))
    np.testing.assert_array_equal(before[:2], after[:2])


def test_bad_input_is_one_line(model: Chosen) -> None:
    with pytest.raises(ValueError, match="items: must have one item for each of the 5 costs, found 4"):
        model.decide("a", [[0.0]], items=np.ones((1, 4, 2)))
    with pytest.raises(ValueError, match="x must be finite numbers in 11 columns, as in training, found shape"):
        model.decide("a", [[0.0]], items=np.ones((1, 5, 1)))
    with pytest.raises(ValueError, match="network: over time each candidate names its own network"):
        dffl.backtest(past(), ["ridge"], network="items")

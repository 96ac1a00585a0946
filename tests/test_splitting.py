"""Equal rows of several clients are never on both sides of a fold, and a site alone divides its rows as all together do."""

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.randomness import Purpose
from dffl.splitting import Splitting, cost_digests, keys_of, places_of, row_digests
from dffl.training.settings import Settings
from dffl.training.sharing import MEANS, seen_in_training, settled, sharing

RNG = np.random.default_rng(3)
X, C = RNG.normal(size=(120, 3)), RNG.uniform(1, 2, size=(120, 4))


def client(name: str, rows: np.ndarray, **more: object) -> dffl.Client:
    return dffl.Client(name, X[rows], C[rows], dffl.TopK(4, 2), **more)


def overlapping(**more: object) -> dffl.Federation:
    return dffl.Federation([client("a", np.arange(80), **more), client("b", np.arange(119, 39, -1), **more)])


def digests(federation: dffl.Federation) -> list[set[int]]:
    return [set(one.row_keys.tolist()) for one in federation]


@pytest.mark.parametrize("rule", ["row", "cost"])
@pytest.mark.parametrize("seed", [0, 7])
def test_equal_rows_stand_on_one_side_of_every_fold_at_all_clients(rule: str, seed: int) -> None:
    federation, how = overlapping(), Splitting(seed, rule)
    for number in range(5):
        trained, held = map(digests, federation.fold(number, 5, how=how))
        assert held[0] & held[1], "the test must have shared rows in every fold"
        assert not (set.union(*trained) & set.union(*held))
    trained, held = map(digests, federation.split(0.2, how=how))
    assert not (set.union(*trained) & set.union(*held))
    assert held[0] & held[1]


def test_a_draw_of_each_client_puts_equal_rows_on_both_sides() -> None:
    trained, held = map(digests, overlapping().fold(0, 5, seed=0))
    assert set.union(*trained) & set.union(*held)


def test_every_row_is_held_out_once_and_the_parts_have_about_their_size() -> None:
    one = client("a", np.arange(120))
    folds = Splitting(0, "row").folds(one, 5)
    assert np.array_equal(np.sort(np.concatenate(folds)), np.arange(120))
    many = places_of(np.arange(10**5, dtype=np.uint64), 0, Purpose.FOLD)
    assert np.bincount((many * 5).astype(int)) == pytest.approx(np.full(5, 2e4), rel=0.02)
    assert not np.array_equal(folds[0], Splitting(1, "row").folds(one, 5)[0])


def test_places_are_literal_numbers_that_no_version_may_change() -> None:
    # Computed with whole numbers of Python alone; FOLD is purpose 8.
    digest = row_digests(np.array([[1.0, 2.0], [1.0, -0.0], [1.0, 0.0]]))
    assert digest.tolist() == [11542213334918567896, 17327665323145682010, 17327665323145682010]
    assert places_of(digest[:2], 0, Purpose.FOLD).tolist() == [0.08895041523952818, 0.11172435130739178]


def test_a_site_alone_divides_its_rows_as_all_clients_together_do() -> None:
    federation, how = overlapping(), Splitting(5, "row")
    for place in range(2):
        alone = dffl.Federation([federation[place]])
        for number in range(3):
            together, apart = federation.fold(number, 3, how=how)[1][place], alone.fold(number, 3, how=how)[1][0]
            assert np.array_equal(together.c, apart.c)


def test_keys_say_which_rows_belong_together() -> None:
    days = np.arange("2024-01-01", "2024-04-30", dtype="M8[D]")[:80]
    other = RNG.uniform(1, 2, size=(80, 4))
    pair = dffl.Federation([client("a", np.arange(80), keys=days), dffl.Client("b", X[:80], other, dffl.TopK(4, 2), keys=days)])
    for number in range(4):
        held = pair.fold(number, 4, how=Splitting(0, "row"))[1]
        assert np.array_equal(held[0].keys, held[1].keys)
    assert np.array_equal(keys_of(["x", "y", "x"])[[0, 1]], keys_of(["x", "y"]))
    with pytest.raises(ValueError, match=r"^client 'a': keys must have one value for each of the 80 rows, found shape \(3,\)$"):
        client("a", np.arange(80), keys=[1, 2, 3])


def test_time_folds_are_the_same_stretches_at_clients_of_other_days() -> None:
    whole, late = np.arange(100.0), np.arange(40.0, 120.0)
    pair = dffl.Federation([client("a", np.arange(100), times=whole), client("b", np.arange(40, 120), times=late)])
    how = settled(pair, Settings(split="time")).splitting
    assert how.period == (0.0, np.nextafter(119.0, np.inf))
    for number in range(4):
        trained, held = pair.fold(number, 4, how=how)
        inside = [one.times for one in held if one.n]
        assert max(times.max() for times in inside) - min(times.min() for times in inside) < 30
        for one in held:
            if one.n:
                border = one.times.min(), one.times.max()
                assert not any(((border[0] <= other.times) & (other.times <= border[1])).any() for other in trained)
    assert pair.fold(0, 4, how=how)[1][1].n == 0  # it had not begun


def test_a_client_whose_rows_all_fall_into_one_fold_is_refused_by_name() -> None:
    same = dffl.Client("same", np.ones((9, 3)), np.ones((9, 4)), dffl.TopK(4, 2))
    with pytest.raises(ValueError, match=r"^client 'same': all its samples fall into one of 3 folds, .* \(1 of its 9 rows"):
        dffl.Federation([same]).fold(0, 3, how=Splitting(0, "row"))
    with pytest.raises(ValueError, match=r"^client 'a': times must be given with split='time', found none$"):
        settled(overlapping(), Settings(split="time"))
    with pytest.raises(ValueError, match=r"^client 'a': times must not decrease, found an earlier one in row 1; sort"):
        client("a", np.arange(3), times=[2, 1, 3])


def test_sharing_counts_rows_and_names_their_holders() -> None:
    federation = overlapping()
    found = sharing(federation.clients)
    assert [tuple(one) for one in found.rows] == [("a", 40, 80, ("b",)), ("b", 40, 80, ("a",))]
    assert found.rule == "row"
    assert found.words(2) == "2 of 2 clients share rows: 'a' has 40 of its 80 rows in common with 'b'"
    zone = dffl.Client("c", RNG.normal(size=(80, 3)), C[:80], dffl.TopK(4, 2))
    assert sharing([federation[0], zone]).rule == "cost"
    assert sharing([federation[0], client("d", np.arange(80, 120))]).rule == "draw"


def test_few_tariffs_are_not_shared_rows() -> None:
    tariffs = RNG.choice([1.0, 2.0], size=(80, 4))
    pair = [dffl.Client(name, RNG.normal(size=(80, 3)), tariffs, dffl.TopK(4, 2)) for name in "ab"]
    assert sharing(pair).rule == "draw"


def test_fit_switches_where_clients_share_rows_and_says_so() -> None:
    quick = {"rounds": 1, "local_epochs": 1, "progress": False}
    with pytest.warns(UserWarning, match=rf"^2 of 2 clients share rows: .* \(split='row'\), and {MEANS}$"):
        fit = dffl.fit(overlapping(), "local-tuned", folds=3, epochs=1, **quick)
    assert fit.settings.split == "row"
    apart = dffl.Federation([client("a", np.arange(60)), client("b", np.arange(60, 120))])
    assert dffl.fit(apart, "mean-cost", **quick).settings.split == "draw"


def test_test_rows_that_train_elsewhere_are_named() -> None:
    train, test = dffl.Federation([client("a", np.arange(60))]), dffl.Federation([client("a", np.arange(50, 120))])
    assert seen_in_training(test, train) == [("a", 10, 70, ("a",), "rows")]
    zone = dffl.Federation([dffl.Client("a", RNG.normal(size=(70, 3)), C[50:], dffl.TopK(4, 2))])  # by costs alone
    assert seen_in_training(zone, train) == [("a", 10, 70, ("a",), "costs")]


def test_copies_in_another_currency_or_precision_are_shared_rows() -> None:
    for x, c in ((X, 11.3 * C), (X.astype(np.float32).astype(float), C.astype(np.float32).astype(float)), (X, -C)):
        other = dffl.Client("other", x[:80], c[:80], dffl.TopK(4, 2))
        found = sharing([client("a", np.arange(80)), other])
        assert found.rule in ("row", "cost")
        assert (found.costs if found.by_costs else found.rows)[0].rows >= 70


def test_a_site_with_a_few_tariffs_does_not_hide_what_others_share() -> None:
    tariffs = dffl.Client("t", RNG.normal(size=(80, 3)), RNG.choice([1.0, 2.0], size=(80, 4)), dffl.TopK(4, 2))
    zone = [dffl.Client(name, RNG.normal(size=(80, 3)), C[:80], dffl.TopK(4, 2)) for name in "ab"]
    assert sharing([*zone, tariffs]).rule == "cost"


def test_keys_of_any_type_match() -> None:
    days = np.arange("2024-01-01", "2024-01-11", dtype="M8[D]")
    alike = [days, days.astype(str), days.astype("M8[ns]"), [day.item() for day in days], list(pd.DatetimeIndex(days)),
             pd.DatetimeIndex(days).tz_localize("UTC").tz_convert("Europe/Berlin")]  # fmt: skip
    assert all(np.array_equal(keys_of(one), keys_of(days)) for one in alike)
    numbers = [[1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"], np.array([1, 2, 3], np.int32)]
    assert all(np.array_equal(keys_of(one), keys_of([1, 2, 3])) for one in numbers)
    with pytest.raises(ValueError, match=r"^keys must not be empty, found none in row 1$"):
        keys_of(["a", None])
    with pytest.raises(ValueError, match=r"^client 'b': keys must be given for all clients of a federation or for none$"):
        dffl.Federation([client("a", np.arange(9), keys=np.arange(9)), client("b", np.arange(9))])


def test_one_cell_changes_no_other_key() -> None:
    hours = np.arange(20.0)
    for place, value in ((7, 7.5), (7, 2.0**60)):
        other = hours.copy()
        other[place] = value
        assert np.flatnonzero(keys_of(other) != keys_of(hours)).tolist() == [place]
    assert np.flatnonzero(keys_of(["1", "2", "3b", "4"]) != keys_of([1, 2, 3, 4])).tolist() == [2]
    assert np.flatnonzero(
        keys_of(["2024-01-01", "n/a", "2024-01-03"]) != keys_of(pd.date_range("2024-01-01", periods=3))
    ).tolist() == [1]
    assert np.array_equal(keys_of(["1.5", "2", "x"])[:2], keys_of([1.5, 2.0]))
    assert np.array_equal(keys_of([1, "2", 3.0]), keys_of([1, 2, 3]))
    long = [2**60, 2**60 + 1]
    assert np.array_equal(keys_of([*map(str, long), "x"])[:2], keys_of(long))
    assert len(set(keys_of([str(10**30 + number) for number in range(5)]))) == 5


def test_a_day_is_one_day_however_it_is_written() -> None:
    day = keys_of(np.array(["2024-01-05"], "M8[D]"))
    for text in ("2024-01-05", "2024/01/05", "2024-1-5", "2024/1/5", " 2024-01-05 ", "2024-01-05 00:00", "2024-01-05T00:00Z"):
        assert keys_of([text]) == day, text
    assert keys_of(["2024/02/30"]) == keys_of(["2024/02/30 "]) != keys_of(["2024-03-01"])  # no day: a text


def test_keys_are_literal_numbers_that_no_version_may_change() -> None:
    """Stored models and plans record divisions by them (computed by version 0.2.0)."""
    assert keys_of([0, 5, -3]).tolist() == keys_of([0.0, 5.0, -3.0]).tolist() == [0, 5, 2**64 - 3]
    assert keys_of(["2024-01-05"]).tolist() == [1704412800000000000]
    assert keys_of(["x", "y"]).tolist() == [5717441744405258058, 6892360672924705551]
    assert keys_of([1.5, 2.25]).tolist() == [501192881046439246, 10541649747585654051]


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (["2024-01-05"], [20240105], r"be dates, as client 'a' has \('2024-01-05'\), found numbers \('20240105'\); write"),
        (["2024-01-05"], ["2024-01-05 00:00+01:00"], r"with a time zone .* give all moments with their time zone, or none$"),
        (["x"], [3.5], r"keys must be texts, as client 'a' has \('x'\), found numbers \('3.5'\)"),
    ],
)  # fmt: skip
def test_keys_of_other_kinds_are_refused_by_name(mine: list[object], theirs: list[object], words: str) -> None:
    pair = [client("a", np.arange(3), keys=mine * 3), client("b", np.arange(3), keys=theirs * 3)]
    with pytest.raises(ValueError, match=f"^client 'b': .*{words}"):
        dffl.Federation(pair)
    mixed = [*theirs, mine[0], *theirs]
    assert len(dffl.Federation([pair[0], client("b", np.arange(3), keys=np.array(mixed, object))])) == 2


def test_empty_keys_are_refused_in_numbers_too() -> None:
    with pytest.raises(ValueError, match=r"^keys must not be empty, found none in row 1$"):
        keys_of([1.0, np.nan])


def test_rows_that_one_client_repeats_are_held_out_together() -> None:
    """Else its out-of-fold regret, an estimate of what it will lose, would be of samples that trained it."""
    alone = dffl.Federation([client("a", np.repeat(np.arange(20), 4))])
    with pytest.warns(UserWarning, match=r"^20 of the 80 rows of client 'a' are different ones; equal rows are held out"):
        assert settled(alone, Settings()).split == "row"


def test_one_sample_is_one_fold() -> None:
    one = client("a", np.arange(1), times=[3.0])
    assert [len(fold) for fold in Splitting(0, "row").folds(one, 1)] == [1]


def test_settings_of_an_earlier_version_have_their_digest() -> None:
    assert Settings().digest() == Settings(split="draw").digest()
    assert Settings().digest() != Settings(split="row").digest()
    for wrong, text in (({"split": "rows"}, "split must be one of draw, row, cost, time, or None"),
                        ({"period": (0, 1)}, "period belongs to split='time'"),
                        ({"split": "time", "period": (1, 1)}, "period must be two numbers")):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            Settings(**wrong)


def test_costs_that_differ_little_and_costs_beside_a_large_one_are_different_rows() -> None:
    rng = np.random.default_rng(4)
    level = 50_000 + rng.normal(size=(140, 6)).round(2)
    beside = np.column_stack([np.full(140, 1e7), rng.uniform(20, 80, (140, 5)).round(2)])
    for costs in (level, beside):
        assert len(np.unique(cost_digests(costs))) == 140
        for copy in (1.1 * costs, -costs):
            assert (cost_digests(copy) == cost_digests(costs)).mean() > 0.9
    flat = np.full((5, 6), 50_000.0)
    assert len(np.unique(cost_digests(flat * np.array([[1], [1], [1.1], [2], [-1]])))) == 1

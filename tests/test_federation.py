"""What users pass is checked, and a split keeps every sample once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dffl
from tests.federations import client, mixed

GOOD = np.ones((4, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name must be a non-empty text"),
        ({"x": [[1.0, np.nan]] * 4}, "client 'a': x must be finite, found nan in row 0, column 1"),
        ({"c": [[1.0, 2.0], [1.0, np.inf]] * 2}, "client 'a': c must be finite, found inf in row 1, column 1"),
        (
            {"c": [[1.0, 2.0], [1.0, -1e308]] * 2},
            r"client 'a': c must be at most 1e\+100 in size, found -1e\+308 in row 1, column 1",
        ),
        ({"x": [["x", "y"]] * 4}, "client 'a': x must be numbers"),
        ({"x": np.ones((4, 2)) * 1j}, "client 'a': x must be numbers, found complex128"),
        ({"x": np.full((4, 2), np.datetime64("2024-01-01"))}, r"client 'a': x must be numbers, found datetime64\[D\]"),
        ({"x": np.ones(4)}, "client 'a': x must be a table with one row per sample, found 1 axes"),
        ({"x": np.ones((3, 2))}, "client 'a': x and c must have one row per sample, found 3 and 4 rows"),
        ({"x": np.ones((0, 2)), "c": np.ones((0, 2))}, "client 'a': x must have at least one row"),
        ({"c": np.ones((4, 3))}, "found that c has 3 columns and its set 2 decisions"),
        ({"set": "box"}, "client 'a': set must be a feasible set such as dffl.TopK, found str"),
        ({"set": dffl.TopK(2, [1, 2])}, "client 'a': set must be a single set, found a stack"),
        ({"maximize": "yes"}, "client 'a': maximize must be True or False"),
        ({"c_mean": np.ones((4, 1))}, r"client 'a': c_mean must have the shape of c, \(4, 2\), found \(4, 1\)"),
    ],
)
def test_a_bad_client_is_refused_in_one_clear_line(change: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {"name": "a", "x": GOOD, "c": GOOD, "set": dffl.TopK(2, 1)} | change
    with pytest.raises(ValueError, match=message) as caught:
        dffl.Client(**fields)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ([], "at least one client"),
        ([("a", 2, 2), ("a", 2, 2)], "client 'a': name must be unique"),
        ([("a", 2, 2), ("b", 2, 3)], "client 'b': c must have 2 columns, as client 'a' has, found 3"),
        ([("a", 2, 2), ("b", 3, 2)], "client 'b': x must have 2 columns, as client 'a' has, found 3"),
    ],
)
def test_clients_that_do_not_fit_together_are_refused(clients: list[tuple[str, int, int]], message: str) -> None:
    made = [dffl.Client(name, np.ones((4, p)), np.ones((4, d)), dffl.TopK(d, 1)) for name, p, d in clients]
    with pytest.raises(ValueError, match=message):
        dffl.Federation(made)


def test_tables_may_be_data_frames_and_are_kept_read_only() -> None:
    frame = pd.DataFrame({"wind": [1, 2, 3], "sun": [0.5, 0.25, 0.75]})
    made = dffl.Client("a", frame, frame, dffl.TopK(2, 1))
    assert made.x.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        made.x[0, 0] = 5.0


def test_a_split_keeps_every_sample_once_and_depends_on_the_client_alone() -> None:
    fed = mixed()
    train, held = fed.split(0.2, seed=3)
    for whole, kept, out in zip(fed, train, held, strict=True):
        assert out.n == int(0.2 * whole.n + 0.5)
        rows = np.concatenate([kept.c, out.c])
        assert sorted(map(tuple, rows)) == sorted(map(tuple, whole.c))
        np.testing.assert_array_equal(kept.w_star, whole.rows(np.isin(whole.c[:, 0], kept.c[:, 0])).w_star)
    alone = dffl.Federation([fed[4]]).split(0.2, seed=3)[1]
    np.testing.assert_array_equal(alone[0].c, held[4].c)
    assert not np.array_equal(fed.split(0.2, seed=4)[1][4].c, held[4].c)


def test_a_split_in_blocks_holds_out_one_stretch_at_the_same_place_for_all() -> None:
    fed = dffl.Federation([client(name, dffl.TopK(5, 1), n=n) for name, n in (("a", 50), ("b", 50), ("c", 25))])
    places = set()
    for seed in range(12):
        train, held = fed.split(0.2, seed, blocks=True)
        starts = []
        for whole, kept, out in zip(fed, train, held, strict=True):
            rows = [int(np.flatnonzero((whole.c == row).all(axis=1))[0]) for row in out.c]
            assert rows == list(range(rows[0], rows[0] + out.n))
            rest = np.delete(whole.c, rows, axis=0)
            np.testing.assert_array_equal(kept.c, rest)
            starts.append(rows[0] / (whole.n - out.n))
        assert starts[0] == starts[1] == pytest.approx(starts[2], abs=0.06)
        places.add(starts[0])
    assert min(places) < 0.25 < 0.75 < max(places)


def test_too_few_samples_to_split_names_the_client_and_what_is_needed() -> None:
    few = dffl.Federation([client("rich", dffl.TopK(5, 1)), client("poor", dffl.TopK(5, 1), n=2)])
    with pytest.raises(ValueError, match="client 'poor': x must have samples enough to hold out 20% of them, found 2"):
        few.split()


def test_clients_are_found_by_name() -> None:
    fed = mixed()
    assert fed["topk-1"].name == "topk-1"
    with pytest.raises(ValueError, match="no client 'nobody' in this federation; it has 'topk-0'"):
        fed["nobody"]


def test_the_best_decisions_are_solved_for_once_in_float64() -> None:
    fed = mixed()
    for one in fed:
        assert one.w_star.dtype == np.float64
        assert one.w_star is one.w_star
        assert np.asarray(one.set.contains(one.w_star, 1e-5)).all()


def frame_client(name: str, columns: str, **changes: object) -> dffl.Client:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 3)), columns=list(columns))
    return dffl.Client(name, frame.assign(**changes), np.ones((8, 2)), dffl.TopK(2, 1))


def test_columns_that_are_named_must_agree_between_clients() -> None:
    fed = dffl.Federation([frame_client("a", "pqr"), frame_client("b", "pqr")])
    assert fed.feature_names == ("p", "q", "r")
    assert fed.split(0.5)[0].feature_names == ("p", "q", "r")
    with pytest.raises(ValueError, match=r"client 'b': x must have 'q' in column 1, as other clients have, found 'r'; reorder"):
        dffl.Federation([frame_client("a", "pqr"), frame_client("b", "prq")])
    numbered = dffl.Client("d", pd.DataFrame(np.ones((2, 3))), np.ones((2, 2)), dffl.TopK(2, 1))
    assert numbered.feature_names is None
    unnamed = dffl.Client("c", np.ones((2, 3)), np.ones((2, 2)), dffl.TopK(2, 1))
    assert len(dffl.Federation([unnamed, frame_client("a", "pqr")])) == 2


def cost_client(name: str, columns: str, **more: object) -> dffl.Client:
    frame = pd.DataFrame(np.ones((8, 3)), columns=list(columns))
    return dffl.Client(name, np.ones((8, 2)), frame, dffl.TopK(3, 1), **more)  # type: ignore[arg-type]


def test_columns_of_costs_that_are_named_must_agree_between_clients() -> None:
    fed = dffl.Federation([cost_client("a", "uvw"), cost_client("b", "uvw")])
    assert fed.cost_names == ("u", "v", "w")
    assert fed.split(0.5)[0].cost_names == ("u", "v", "w")
    with pytest.raises(ValueError, match=r"client 'b': c must have 'u' in column 0, as other clients have, found 'w'; reorder"):
        dffl.Federation([cost_client("a", "uvw"), cost_client("b", "wvu")])
    unnamed = dffl.Client("c", np.ones((2, 2)), np.ones((2, 3)), dffl.TopK(3, 1))
    assert unnamed.cost_names is None
    assert dffl.Federation([unnamed, cost_client("a", "uvw")]).cost_names == ("u", "v", "w")
    with pytest.raises(ValueError, match=r"client 'b': c must have 'v' in column 1"):  # whoever comes between them
        dffl.Federation([cost_client("a", "uvw"), unnamed, cost_client("b", "uwv")])


def test_mean_costs_have_the_columns_of_the_costs() -> None:
    mean = pd.DataFrame(np.zeros((8, 3)), columns=list("vuw"))
    with pytest.raises(ValueError, match=r"client 'a': c_mean must have 'u' in column 0, as c has, found 'v'; reorder"):
        cost_client("a", "uvw", c_mean=mean)
    assert cost_client("a", "vuw", c_mean=mean).expected.cost_names == ("v", "u", "w")  # type: ignore[union-attr]


def test_names_that_are_given_are_as_many_as_the_columns() -> None:
    given = dffl.Client("a", GOOD, GOOD, dffl.TopK(2, 1), feature_names=["p", "q"], cost_names=["u", "v"])  # type: ignore[arg-type]
    assert (given.feature_names, given.cost_names) == (("p", "q"), ("u", "v"))
    with pytest.raises(ValueError, match=r"client 'a': cost_names must have a name for each column of c, found 1 of 2"):
        dffl.Client("a", GOOD, GOOD, dffl.TopK(2, 1), cost_names=("u",))


def test_a_bad_column_of_a_data_frame_is_named() -> None:
    with pytest.raises(ValueError, match=r"client 'a': x must be numbers, found column 'ward' of type"):
        frame_client("a", "pqr", ward="icu")
    with pytest.raises(ValueError, match=r"client 'a': x must be finite, found nan in row 0, column 'q'"):
        frame_client("a", "pqr", q=np.nan)


def test_membership_is_by_name_or_client() -> None:
    fed = mixed()
    assert "topk-1" in fed
    assert fed[0] in fed
    assert "nobody" not in fed


def test_clients_and_sets_print_briefly() -> None:
    assert repr(client("a", dffl.TopK(5, 2.5))) == "Client('a', n=12, 3 features, TopK(dim=5, k=2.5))"
    assert repr(dffl.Box([0.0, 0.0], [1.0, 1.0])) == "Box(lower=array of shape (2,), upper=array of shape (2,))"

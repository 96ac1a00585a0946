"""Models from MPS and LP files: their text, names, senses, helpers, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.sets import ModelFile, _matching

MPS = """NAME          depot
ROWS
 N  cost
 L  room
 G  demand
COLUMNS
    MARKER    'MARKER'  'INTORG'
    x_1       cost 7    room 2
    x_1       demand 1
    x_10      room 3    demand 1
    x_2       room 1    demand 1
    MARKER    'MARKER'  'INTEND'
    short     cost 5    demand 1
RHS
    RHS       room 4    demand 3
    RHS       cost -2
BOUNDS
 UP BND       x_1 2
 UP BND       x_10 2
 UP BND       x_2 2
ENDATA
"""
LP = """\\ the same as a text that people write
Minimize
 cost: 7 x_1 + 5 short + 2
Subject To
 room: 2 x_1 + 3 x_10 + x_2 <= 4
 demand: x_1 + x_10 + x_2 + short >= 3
Bounds
 0 <= x_1 <= 2
 0 <= x_10 <= 2
 0 <= x_2 <= 2
Generals
 x_1 x_10 x_2
End
"""
NAMES = ("price_1", "price_2", "price_10")


@pytest.fixture
def mps(tmp_path: Path) -> Path:
    path = tmp_path / "depot.mps"
    path.write_text(MPS)
    return path


def test_a_file_with_integers_helpers_and_an_offset(mps: Path) -> None:
    s = ModelFile(mps, predicted="x_*")
    assert (s.dim, s.convex, s.sense) == (3, False, "min")
    assert s.variables == ("x_1", "x_10", "x_2", "short")
    # In the order of the file. The coefficient 7 of x_1 is replaced by the prediction; short keeps its 5, the offset its 2.
    np.testing.assert_array_equal(s.decide([[1.0, 1, 1], [9, 9, 9]]), [[1, 0, 2, 0], [0, 0, 0, 3]])
    with jax.enable_x64(True):
        np.testing.assert_allclose(dffl.optimal_value(np.array([[1.0, 1, 1], [9, 9, 9]]), s), [5.0, 17.0])
    added = ModelFile(mps, predicted="x_*", keep_coefficients=True)
    np.testing.assert_array_equal(added.decide([[1.0, 2, 1]]), [[0, 0, 2, 1]])


def test_text_formats_and_compression_give_one_set(mps: Path, tmp_path: Path) -> None:
    packed, lp = tmp_path / "depot.mps.gz", tmp_path / "depot.lp"
    packed.write_bytes(gzip.compress(MPS.encode()))
    lp.write_text("\ufeff" + LP, encoding="utf-8")
    costs = np.random.default_rng(0).normal(size=(20, 3)) * 5
    expected = ModelFile(mps, predicted="x_*").decide(costs)
    for other in (
        ModelFile(packed, "x_*"),
        ModelFile(lp, ["x_1", "x_10", "x_2"]),
        ModelFile(text=LP, format="lp", predicted="x_*"),
    ):
        order = [other.variables.index(name) for name in ("x_1", "x_10", "x_2", "short")]  # type: ignore[union-attr]
        np.testing.assert_allclose(other.decide(costs)[:, order], expected, atol=1e-12)


def test_named_columns_are_matched_by_the_text_under_the_star(mps: Path) -> None:
    x, c = np.zeros((1, 2)), np.array([[1.0, 2.0, 30.0]])
    named = dffl.Client("south", x, pd.DataFrame(c, columns=NAMES), ModelFile(mps, "x_*"))
    plain = dffl.Client("south", x, c[:, [0, 2, 1]], ModelFile(mps, "x_*"))
    assert named.set.variables == ("x_1", "x_2", "x_10", "short")
    np.testing.assert_array_equal(named.w_star, plain.w_star[:, [0, 2, 1]])
    np.testing.assert_array_equal(named.rows([0]).w_star, named.w_star)
    given = dffl.Client(
        "south", x, pd.DataFrame(c, columns=["c1_eur", "c2_eur", "c10_eur"]), ModelFile(mps, "x_*", costs="c*_eur")
    )
    assert given.set.variables == named.set.variables
    with pytest.raises(ValueError, match="predicted pairs 'x_10' with cost column 'price_1', though the numbers"):
        dffl.Client("south", x, pd.DataFrame(c, columns=NAMES), ModelFile(mps, ["x_10", "x_1", "x_2"]))
    listed = dffl.Client("south", x, pd.DataFrame(c, columns=["a", "b", "c"]), ModelFile(mps, ["x_10", "x_1", "x_2"]))
    assert listed.set.variables == ("x_10", "x_1", "x_2", "short")


def test_matching_by_numbers_and_by_the_only_pattern_that_fits() -> None:
    found = {"01": "x01", "02": "x02", "10": "x10"}
    assert _matching.in_cost_order("m", found, ("p10", "p1", "p2"), None) == ["x10", "x01", "x02"]
    found = {"1": "x_1", "11": "x_11", "111": "x_111"}
    assert _matching.in_cost_order("m", found, ("1_111", "1_1", "1_11"), None) == ["x_111", "x_1", "x_11"]
    assert _matching.in_cost_order("m", {"a": "xa", "": "x"}, ("ya", "y"), None) == ["xa", "x"]
    padded = [f"price_{hour:02d}" for hour in range(24)]
    assert _matching.in_cost_order("m", {str(h): f"x_{h}" for h in range(24)}, padded, None) == [f"x_{h}" for h in range(24)]


def test_a_file_that_maximises(tmp_path: Path) -> None:
    path = tmp_path / "sell.lp"
    path.write_text(
        "Maximize\n profit: 9 y_1 - 3 hours\nSubject To\n work: y_1 + y_2 - hours = 0\n"
        "Bounds\n y_1 <= 4\n y_2 <= 4\n hours <= 5\nEnd\n"
    )
    s = ModelFile(path, "y_*")
    assert s.sense == "max"
    x, c = np.zeros((1, 1)), np.array([[5.0, 4.0]])
    client = dffl.Client("a", x, c, s, maximize=True)
    np.testing.assert_allclose(client.best_objective, [5 * 4 + 4 * 1 - 15])
    np.testing.assert_array_equal(s.decide(c, maximize=True), [[4, 1, 5]])
    with pytest.raises(
        ValueError, match=r"client 'a': ModelFile sell\.lp: its objective maximises known costs; make the client with max"
    ):
        dffl.Client("a", x, c, s)
    cheap = ModelFile(path, "y_*", sense="min")  # hours now cost -3 each, so that they are wanted
    np.testing.assert_array_equal(cheap.decide([[1.0, 4.0]]), [[4, 0, 4]])


def test_a_saved_fit_holds_the_text(mps: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    c = pd.DataFrame(5 + x @ rng.normal(size=(2, 3)), columns=NAMES)
    other = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    fed = dffl.Federation([dffl.Client("south", x, c, ModelFile(mps, "x_*")), dffl.Client("top", *other, dffl.TopK(3, 1))])
    fit = dffl.fit(fed, "fedavg", rounds=1, local_epochs=1, progress=False)
    fit.save(tmp_path / "fit.dffl")
    mps.unlink()
    again = dffl.load(tmp_path / "fit.dffl")
    np.testing.assert_array_equal(again.decide("south", x), fit.decide("south", x))
    assert fit.decide("south", x).shape == (20, 4)
    assert again.members["south"].set.variables == ("x_1", "x_2", "x_10", "short")
    assert str(mps) not in repr(again.members["south"].set.spec())


def test_other_columns_than_in_training_are_refused_wherever_a_client_is_handed_in(mps: Path) -> None:
    rng = np.random.default_rng(0)
    x, c = rng.normal(size=(8, 2)), rng.uniform(1, 9, size=(8, 3))

    def south(name: str, columns: tuple[str, ...] | None) -> dffl.Client:
        costs = c if columns is None else pd.DataFrame(c, columns=columns)
        return dffl.Client(name, x, costs, ModelFile(mps, "x_*"))

    fit = dffl.fit(dffl.Federation([south("south", NAMES)]), "fedavg", rounds=1, local_epochs=1, progress=False)
    for client in (south("south", NAMES[::-1]), south("new", NAMES[::-1])):
        for ask in (lambda one: fit.decide(one, x), fit.regrets, lambda one: fit.predict(one, x)):
            with pytest.raises(ValueError, match=f"client '{client.name}': c must have the columns of training"):
                ask(client)
    with pytest.raises(ValueError, match=r"client 'south': its decisions must be in the order of training \(x_1, x_2, x_10\)"):
        fit.decide(south("south", None), x)
    np.testing.assert_array_equal(fit.decide(south("south", NAMES), x), fit.decide("south", x))


REFUSED = {
    "depot.mps: cannot be read \\(No such file": (None, "depot.mps"),
    "a model file must end in .mps, .lp": (MPS, "depot.txt"),
    "a.mps, line 5: row 'nowhere' is not in ROWS": ("NAME x\nROWS\n N c\nCOLUMNS\n x1 nowhere 1\n", "a.mps"),
    "it has no variables": ("NAME x\nROWS\n N c\nCOLUMNS\nRHS\nENDATA\n", "a.mps"),
    "it has a quadratic objective": (MPS.replace("ENDATA", "QUADOBJ\n    x_1 x_1 2\nENDATA"), "a.mps"),
    "it has quadratic constraints": (MPS.replace("ENDATA", "QCMATRIX room\n    x_1 x_1 2\nENDATA"), "a.mps"),
    "it has special ordered sets": (MPS.replace("ENDATA", "SOS\n S1 s\nENDATA"), "a.mps"),
    "it has names with square brackets, which an LP file cannot have: write it as MPS": (LP.replace("x_1", "x[1]"), "a.lp"),
    "it has indicator constraints": (LP.replace("Bounds", " i: short = 1 -> x_1 <= 1\nBounds"), "a.lp"),
    "it has quadratic terms": (LP.replace("+ 2\n", "+ [ x_1 ^2 ] / 2\n"), "a.lp"),
    "no feasible point: row 'room', the bounds of variable 'x_1'.*cannot hold together": (
        MPS.replace("demand 1\nRHS", "room 9\n    short demand 1\nRHS").replace("room 4", "room -4"),
        "a.mps",
    ),
    "variable 'x_2' has no upper end": (LP.replace(" 0 <= x_2 <= 2\n", "").replace("+ x_2 <= 4", "<= 4"), "a.lp"),
    "its objective has no end": (LP.replace("5 short", "- 5 short"), "a.lp"),
    "no feasible point with whole numbers": (
        LP.replace("room: 2 x_1 + 3 x_10 + x_2 <= 4", "room: 2 x_1 + 2 x_10 + 2 x_2 = 3"),
        "a.lp",
    ),
}


@pytest.mark.parametrize(("message", "text", "name"), [(m, *rest) for m, rest in REFUSED.items()], ids=range(len(REFUSED)))
def test_bad_files_are_one_clear_line(message: str, text: str | None, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    x, c = np.zeros((1, 1)), np.ones((1, 3))
    with pytest.raises(ValueError, match=message) as found:
        dffl.Client("a", x, c, ModelFile(path, "x_*"))
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("message", "given"),
    [
        ("predicted='y_\\*' matches no variable; it has 'x_1', 'x_10'", {"predicted": "y_*"}),
        ("predicted names 'z', which is not a variable", {"predicted": ["x_1", "z"]}),
        ("predicted must have one star", {"predicted": "x*_*"}),
        ("predicted must name one or more different variables", {"predicted": ["x_1", "x_1"]}),
        ("sense must be 'min' or 'max', found 'up'", {"predicted": "x_*", "sense": "up"}),
        ("give the path of a file, or text", {"predicted": "x_*", "text": MPS}),
    ],
)
def test_bad_arguments_are_one_clear_line(message: str, given: dict[str, object], mps: Path) -> None:
    with pytest.raises(ValueError, match=message):
        ModelFile(mps, **given)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["p", "q", "r"], "client 'a': ModelFile depot.mps: the cost columns \\('p', ...\\) do not match the variables"),
        (["price_1", "price_2"], "client 'a': c must have a column for each decision of its set"),
        (["price_1", "price_2", "price_3"], "do not match the variables \\('x_1', ...\\) by name; rename the columns"),
    ],
)
def test_cost_columns_that_do_not_match(columns: list[str], message: str, mps: Path) -> None:
    c = pd.DataFrame(np.ones((1, len(columns))), columns=columns)
    with pytest.raises(ValueError, match=message):
        dffl.Client("a", np.zeros((1, 1)), c, ModelFile(mps, "x_*"))
    if len(columns) == 3:
        with pytest.raises(ValueError, match="its text under the star of 'price_\\*' must be that of a predicted variable"):
            dffl.Client("a", np.zeros((1, 1)), c, ModelFile(mps, "x_*", costs="price_*"))


@pytest.mark.parametrize(
    ("limit", "message"), [({"nodes": 1}, "within 1 nodes; raise nodes"), ({"seconds": 1e-3}, "within 0.001 s")]
)
def test_a_limit_without_any_feasible_point_is_said(limit: dict[str, float], message: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 100, size=(4, 30)).astype(float)  # to split these into equal halves is hard
    with pytest.raises(ValueError, match=f"no feasible point {message}"):
        dffl.MixedInteger(A_eq=a, b_eq=np.floor(a.sum(axis=1) / 2), lower=0, upper=np.ones(30), **limit)


FIXED = """NAME
ROWS
 N  obj
 L  row 1
COLUMNS
    my x      obj                1.0   {}           1.0
    my y      obj                2.0   row 1              1.0
RHS
    rhs       row 1              4.0
BOUNDS
 UP bnd       my x               3.0
 UP bnd       my y               3.0
ENDATA
"""


def test_names_may_have_spaces_in_fixed_format() -> None:
    s = ModelFile(text=FIXED.format("row 1   "), format="mps")
    assert s.variables == ("my x", "my y")
    np.testing.assert_array_equal(s.decide([[-1.0, -2.0]]), [[1, 3]])
    with pytest.raises(ValueError, match=r"model\.mps, line 4: a row must be N, L, G or E and a name, found 'L row 1'"):
        ModelFile(text=FIXED.format("row 2   "), format="mps")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            "line 4: the coefficient of 'y' in row 'c' must be 0 or between 1e-09 and 1e\\+15",
            "st\n c: x + 1e-10 y <= 3\nbounds\n x <= 3\n",
        ),
        ("semi-continuous variable 'x' must have bounds in", "st\n c: x <= 9\nbounds\n 2 <= x <= 1e7\nsemi\n x\n"),
        ("semi-continuous variable 'x' must have bounds in", "st\n c: x <= 9\nbounds\n -2 <= x <= 7\nsemi\n x\n"),
        ("it has names with square brackets, which an LP file cannot have", "st\n c: x[1] + x[2] <= 9\n"),
        ("it has indicator constraints", "st\n c: b = 1 -> x <= 9\nbinary\n b\n"),
    ],
)
def test_what_highs_cannot_use_is_refused(message: str, text: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        ModelFile(text=f"min\n x\n{text}end\n", format="lp", predicted="x")
    assert "\n" not in str(caught.value)


def test_a_damaged_compressed_file_is_one_line(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(b"min\n x\nst\n c: x <= 1\nend\n" * 5))
    content[10] = 7  # a kind of block that does not exist
    (tmp_path / "m.lp.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"m\.lp\.gz: cannot be read as text"):
        ModelFile(tmp_path / "m.lp.gz")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("7 x_1 + 5 short", "7 x_1 + 5 short - 3 x_1", "variable 'x_1' twice in its objective; add up its coefficients"),
        ("room: 2 x_1", "room: 2 x_1 + x_1", "variable 'x_1' twice in one row"),
        ("+ x_2 <= 4", "+ x_2 + 1 <= 4", "a constant on the left side of a row, before '<='; move it to the right"),
        ("End", "Binaries\n x_2\nEnd", "variable 'x_2' is binary and has the bounds 0 and 2; remove these"),
    ],
)
def test_what_highs_would_misread_in_silence_is_refused(before: str, after: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelFile(text=LP.replace(before, after, 1), format="lp", predicted="x_*")


def test_an_lp_text_with_short_headings_and_rows_over_several_lines() -> None:
    rows = "st\n y_1 + y_2 <= 4\n\n c: y_1\n - y_2 >= -1\n y_1 + k <= 3\n"
    text = f"max\n 3 y_1 + 2 y_2 + k\n{rows}bounds\n k <= 1\nbin\n k\nend\n"
    s = ModelFile(text=text, format="lp", predicted="y_*")
    np.testing.assert_array_equal(s.decide([[1.0, 3.0]], maximize=True), [[1.5, 2.5, 1]])


def test_a_large_constant_of_the_objective_costs_no_digits_of_a_regret() -> None:
    # One of two; the first also needs h, which costs 6. Deciding for it costs 10 + 6, and the other one 11.
    text = "min\n x_1 + x_2 + 6 h + {:.0f}\nst\n x_1 + x_2 = 1\n x_1 - h <= 0\nbounds\n h <= 1\nbinaries\n x_1 x_2\nend\n"
    predicted, costs = np.array([[1.0, 20.0], [20.0, 1.0]]), np.array([[10.0, 11.0], [10.0, 11.0]])
    for constant in (0.0, 1e8, 1e9):
        s = ModelFile(text=text.format(constant), format="lp", predicted="x_*")
        np.testing.assert_array_equal(dffl.regret(predicted, costs, s), [5, 0])
        np.testing.assert_array_equal(dffl.spo_plus(predicted, costs, s), [31, 0])
        np.testing.assert_allclose(dffl.relative_regret(predicted, costs, s), 5 / (22 + 2 * constant), rtol=1e-6)


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_comment_goes_to_the_end_of_its_line(mark: str) -> None:
    text = f"min\n x_1 + x_2\nst\n c1: x_1 + x_2 >= 1 \\ page 1{mark} c2: x_1 <= 0.5\nbounds\n x_1 <= 1\n x_2 <= 1\nend\n"
    np.testing.assert_array_equal(ModelFile(text=text, format="lp", predicted="x_*").decide([1.0, 2.0]), [1, 0])
    rows = (
        f"NAME m\nROWS\n N obj\n G c1\n L c2\nCOLUMNS\n x_1 obj 1 c1 1\n* page 1{mark} x_1 c2 5\n x_2 obj 1 c1 1\n x_2 c2 1\n"
    )
    rest = "RHS\n RHS c1 1 c2 1\nBOUNDS\n UP BND x_1 1\n UP BND x_2 1\nENDATA\n"
    np.testing.assert_array_equal(ModelFile(text=rows + rest, format="mps", predicted="x_*").decide([1.0, 2.0]), [1, 0])


def test_two_numbers_in_an_objective_are_named_as_such() -> None:
    with pytest.raises(ValueError, match=r"line 2: a number after a number, '3'; write one before a variable"):
        ModelFile(text="min\n 2 3 x_1\nst\n x_1 <= 1\nend\n", format="lp", predicted="x_*")

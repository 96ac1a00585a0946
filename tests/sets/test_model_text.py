"""MPS and LP texts are read as they are meant, or refused with the line: HiGHS, a reader of its own, is asked for the same."""

from __future__ import annotations

import gzip
import re
import time
import tracemalloc
from pathlib import Path

import highspy
import numpy as np
import pytest

from dffl.sets import model_file
from dffl.sets._model_draft import ReadModel
from dffl.sets.model_file import ModelText, parse, read_text

MPS = """NAME depot
OBJSENSE
    MAX
ROWS
 N  cost
 L  room
 G  demand
 E  level
 N  unused
COLUMNS
    MARKER    'MARKER'  'INTORG'
    x_1       cost 7.5  room 2
    x_1       demand 1  unused 4
    x_10      room 3.25 demand 1
    x_2       room -1e0 level 1
    MARKER    'MARKER'  'INTEND'
    short     cost -5   demand 1
    store     level .5  room 12
RHS
    RHS       room 4    demand 3.5
    RHS       cost -2   level 1
RANGES
    RNG       room 2.5  demand 1
    RNG       level -3
BOUNDS
 UP BND       x_1 2
 LO BND       x_10 -3
 UP BND       x_10 14
 FR BND       short
 MI BND       store
 UP BND       store 22.5
ENDATA
"""
LP = """\\ a text that people write
Maximize
 cost: 7.5 x_1 - 5 short + 2
Subject To
 room: 2 x_1 + 3.25 x_10
   - x_2 <= 4
 demand: x_1 + x_10 + .5 short >= 3.5
 x_2 + 12 store = 1
Bounds
 0 <= x_1 <= 2
 -3 <= x_10 <= 14
 x_2 >= 1.5
 short free
 -inf <= store <= 22.5
Generals
 x_1 x_10
Binaries
 on_1
End
""".replace("x_2 + 12 store", "x_2 + 12 store + on_1")
TEXTS = {"mps": MPS, "lp": LP}


def by_highs(text: str, kind: str, folder: Path) -> dict[str, object] | None:
    """What HiGHS reads; None where it refuses or warns."""
    path, log = folder / f"model.{kind}", folder / "log"
    path.write_text(text)
    log.unlink(missing_ok=True)
    highs = highspy.Highs()
    highs.setOptionValue("log_to_console", False)
    highs.setOptionValue("log_file", str(log))
    status = highs.readModel(str(path))
    highs.setOptionValue("log_file", "")
    if status == highspy.HighsStatus.kError or "WARNING" in log.read_text():
        return None
    lp = highs.getLp()
    matrix = np.zeros((lp.num_row_, lp.num_col_))
    start, index, value = (np.asarray(a) for a in (lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_))
    for column in range(lp.num_col_):
        mine = slice(start[column], start[column + 1])
        matrix[index[mine], column] = value[mine]
    return {
        "columns": tuple(lp.col_names_),
        "matrix": matrix.tolist(),
        "rows": [list(lp.row_lower_), list(lp.row_upper_)],
        "bounds": [list(lp.col_lower_), list(lp.col_upper_)],
        "kind": [int(one) for one in lp.integrality_] or [0] * lp.num_col_,
        "cost": list(lp.col_cost_),
        "offset": lp.offset_,
        "maximize": lp.sense_ == highspy.ObjSense.kMaximize,
    }


def described(read: ReadModel) -> dict[str, object]:
    return {
        "columns": read.columns,
        "matrix": read.matrix.toarray().tolist(),
        "rows": [read.row_lower.tolist(), read.row_upper.tolist()],
        "bounds": [read.lower.tolist(), read.upper.tolist()],
        "kind": read.kind.tolist(),
        "cost": read.cost.tolist(),
        "offset": read.offset,
        "maximize": read.maximize,
    }


def ours(text: str, kind: str) -> dict[str, object]:
    return described(parse(ModelText(text, kind, f"model.{kind}")))


def tried(text: str, kind: str) -> tuple[dict[str, object] | None, str]:
    try:
        return ours(text, kind), ""
    except ValueError as error:
        return None, str(error)


def mutated(text: str, rng: np.random.Generator) -> str:
    lines = text.splitlines(keepends=True)
    place = int(rng.integers(len(lines)))
    how = rng.integers(5)
    if how == 0:  # a line is lost
        del lines[place]
    elif how == 1:  # a line is there twice
        lines.insert(place, lines[place])
    elif how == 2 and "." in text:  # a comma for a point
        dots = [at for at, sign in enumerate(text) if sign == "."]
        at = int(rng.choice(dots))
        return text[:at] + "," + text[at + 1 :]
    else:
        at = int(rng.integers(len(text)))
        sign = str(rng.choice(list("abxMR019.,-+eE:<>=()'* \n_")))
        return text[:at] + sign + (text[at + 1 :] if how == 3 else text[at:])
    return "".join(lines)


@pytest.mark.parametrize("kind", TEXTS)
def test_the_texts_are_read_as_highs_reads_them(kind: str, tmp_path: Path) -> None:
    assert ours(TEXTS[kind], kind) == by_highs(TEXTS[kind], kind, tmp_path)


@pytest.mark.parametrize("kind", TEXTS)
def test_200_mutated_texts_are_refused_with_a_line_or_read_as_highs_reads_them(kind: str, tmp_path: Path) -> None:
    refused = 0
    for seed in range(200):
        text = mutated(TEXTS[kind], np.random.default_rng(seed))
        found, line = tried(text, kind)
        if found is None:
            assert re.fullmatch(rf"model\.{kind}, line \d+: .*", line), line
            refused += 1
            continue
        other = by_highs(text, kind, tmp_path)
        assert other is not None, (seed, text)
        if not any(found["cost"]):  # type: ignore[arg-type]
            other["maximize"] = found["maximize"]  # HiGHS forgets Maximize where no objective follows
        assert found == other, seed
    assert 50 < refused < 200


def test_what_highs_writes_is_read_as_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(12):
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = 5, 3
        dense = np.where(rng.random((3, 5)) < 0.6, np.round(rng.normal(size=(3, 5)), 3), 0.0)
        dense[:, 0] = 1.5
        lp.col_cost_, lp.offset_ = np.round(rng.normal(size=5), 3), 0.0
        lp.col_lower_ = rng.choice([0.0, -np.inf, -2.0, 1.0], 5)
        lp.col_upper_ = rng.choice([np.inf, 3.0, 7.0], 5)
        lp.row_lower_, lp.row_upper_ = np.array([-np.inf, -1.5, 2.0]), np.array([4.0, np.inf, 2.0])
        lp.integrality_ = [highspy.HighsVarType(int(kind)) for kind in rng.integers(0, 2, 5)]
        lp.col_names_, lp.row_names_ = [f"x{j}" for j in range(5)], [f"row{i}" for i in range(3)]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = np.arange(0, 16, 5), np.tile(np.arange(5), 3)
        lp.a_matrix_.value_ = dense.ravel()
        if number % 2:
            lp.sense_ = highspy.ObjSense.kMaximize
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.passModel(lp)
        for kind in TEXTS:
            path = tmp_path / f"written.{kind}"
            highs.writeModel(str(path))
            assert ours(path.read_text(), kind) == by_highs(path.read_text(), kind, tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("room 3.25", "room abc", "line 14: the coefficient of 'x_10' in row 'room' must be a number, found 'abc'"),
        ("room 3.25", "room nan", "line 14: .* must be a number, found 'nan'"),
        ("room 3.25", "room --1", "line 14: .* must be a number, found '--1'"),
        ("room 3.25", "room 1,5", "line 14: .* must be a number, found '1,5'; write decimals with a point"),
        ("room 3.25", "room 1e400", "line 14: .* must be below 1e\\+20"),
        ("room 3.25", "room 1e-10", "line 14: .* must be 0 or between 1e-09 and 1e\\+15"),
        ("demand 3.5", "demand 3,5", "line 20: the number of row 'demand' in RHS must be a number, found '3,5'"),
        ("UP BND       x_1 2", "UP BND       x_l 2", "line 26: 'x_l' is not a variable of the objective or of a row"),
        ("RNG       level -3", "RNG       levle -3", "line 24: row 'levle' is not in ROWS"),
        ("RHS       cost -2", "RHS       cots -2", "line 21: row 'cots' is not in ROWS"),
        ("OBJSENSE\n    MAX\n", "OBJSENSE FOO\n", "line 2: OBJSENSE must be MIN, MINIMIZE, MAX, MAXIMIZE, found 'FOO'"),
        ("    MAX\n", "", "line 3: OBJSENSE must be .*, found nothing"),
        ("BOUNDS\n", "BUONDS\n", "line 25: 'BUONDS' is not a section that can be used"),
        ("UP BND       x_1 2", "UP OTHER     x_1 2\n UP BND       x_2 2", "line 27: BOUNDS has two sets, 'OTHER' and 'BND'"),
        (" UP BND       x_1 2\n", " UP BND       x_1 2\n FX BND       x_1 1\n", "line 27: variable 'x_1' has two upper bounds"),
        (" UP BND       x_1 2\n", " UP BND       x_1 -2\n", "line 26: variable 'x_1' has the bounds 0 and -2"),
        ("    MARKER    'MARKER'  'INTEND'\n", "", "line 18: the marker INTORG has no INTEND in COLUMNS"),
        ("ENDATA\n", "", "line 31: the text ends without a section ENDATA; is it complete"),
    ],
)
def test_mistakes_in_mps_are_refused_with_their_line(before: str, after: str, message: str) -> None:
    assert before in MPS
    with pytest.raises(ValueError, match=f"^model.mps, {message}"):
        ours(MPS.replace(before, after, 1), "mps")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("room: 2 x_1 + 3.25 x_10", "room: 2 (x_1 + x_10)", "line 5: '\\(x_1.*' is neither a number nor a name"),
        ("room: 2 x_1 + 3.25 x_10", "room: 2 x(1 + 3 x_10)", "line 5: 'x\\(1' has a bracket without its other half"),
        ("3.25 x_10", "3,25 x_10", "line 5: ',25 x_10' is neither a number nor a name nor a sign"),
        ("3.25 x_10", "abc x_10", "line 5: \\+ or - must be here, found 'x_10'"),
        ("3.25 x_10", "nan x_10", "line 5: 'nan' is not the name of a variable"),
        ("2 x_1 + 3.25", "2 x_1 + inf", "line 5: 'inf' is not the name of a variable"),
        ("- x_2 <= 4", "- x_2 <= 4 + x_1", "line 6: a new line must be here"),
        ("-3 <= x_10", "-3 <= x_l0", "line 11: 'x_l0' is not a variable of the objective or of a row"),
        ("Bounds\n", "Buonds\n", "line 10: .* must be here"),
        ("End\n", "", "line 18: the text ends without End"),
        (" x_1 x_10\n", " x_1 x_10 9\n", "line 16: a variable must be here, found '9'"),
    ],
)
def test_mistakes_in_lp_are_refused_with_their_line(before: str, after: str, message: str) -> None:
    assert before in LP
    with pytest.raises(ValueError, match=f"^model.lp, {message}"):
        ours(LP.replace(before, after, 1), "lp")


@pytest.mark.parametrize("heading", ["Minimize", "Subject To", "Bounds", "Generals", "End"])
def test_a_colon_behind_a_heading_is_refused_with_its_line(heading: str) -> None:
    text = "Minimize\n x\nSubject To\n c: x + y >= -9\nBounds\n -5 <= x <= 5\nGenerals\n y\nEnd\n"
    line = text.splitlines().index(heading) + 1
    for colon in (":", " : \\ a comment"):
        with pytest.raises(ValueError, match=f"^model.lp, line {line}: a section begins without a colon, found '{heading}"):
            ours(text.replace(heading, heading + colon), "lp")
    assert ours(text.replace(" c: ", " bounds: "), "lp") == ours(text, "lp")  # a row may have this name


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("mps", MPS.replace("room 3.25", f"room {'1' * 100_000}x"), "line 14: .* must be a number, found '1111"),
        ("mps", MPS.replace("room 3.25", f"room {'0' * 400}1"), "line 14: .* must be a number, found '0000"),
        ("lp", LP.replace("3.25 x_10", "a[" * 100_000), "line 5: it has quadratic terms"),
        ("lp", LP.replace("3.25 x_10", "x_10" + " + 1 " * 100_000), "line 6: a constant on the left side"),
    ],
    ids=range(4),
)
def test_long_words_and_lines_are_read_in_time(kind: str, text: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match=f"^model.{kind}, {message}"):
        ours(text, kind)
    assert time.process_time() - start < 3  # it grows with the length, not with its square


def test_rows_without_a_name_take_none_that_another_row_has() -> None:
    text = "min\n x\nst\n x + y >= 1\n x >= 2\n R1: x - y <= 2\n R0: y >= 1\nend\n"
    assert parse(ModelText(text, "lp", "model.lp")).rows == ("R0_", "R1_", "R1", "R0")
    with pytest.raises(ValueError, match="line 7: row 'R1' is there twice"):
        ours(text.replace("R0:", "R1:"), "lp")


def test_a_set_of_right_sides_may_be_called_name() -> None:
    text = "ROWS\n N cost\n L cap\nCOLUMNS\nx_1 cap 1\nx_2 cap 1\nRHS\nNAME cap 4\nBOUNDS\nUP B x_1 3\nUP B x_2 3\nENDATA\n"
    assert parse(ModelText(text, "mps", "a.mps")).row_upper.tolist() == [4.0]
    with pytest.raises(ValueError, match=r"a\.mps, line 4: a row must be N, L, G or E and a name, found 'NAME late'"):
        parse(ModelText(text.replace("COLUMNS", "NAME late\nCOLUMNS", 1), "mps", "a.mps"))
    with pytest.raises(ValueError, match=r"a\.mps, line 2: section NAME is there twice"):
        parse(ModelText("NAME a\nNAME b\n" + text, "mps", "a.mps"))


@pytest.mark.parametrize("name", ["x_1", "cap"])
def test_a_name_that_steers_a_terminal_is_refused(name: str) -> None:
    text = "ROWS\n N cost\n L cap\nCOLUMNS\n x_1 cap 1\nRHS\n RHS cap 4\nENDATA\n"
    with pytest.raises(ValueError, match=r"a\.mps: the name '\\x1b\[2J' has a character that cannot be printed; rename it"):
        parse(ModelText(text.replace(name, "\x1b[2J"), "mps", "a.mps"))


@pytest.mark.parametrize("name", ["bin", "int", "gen", "semi", "end", "General"])
def test_a_heading_that_is_also_a_variable_is_refused(name: str) -> None:
    text = f"Minimize\n x_1 + 2 {name}\nSubject To\n c1: x_1 + {name} >= 2.5\nIntegers\n {name}\n x_1\nEnd\n"
    fix = "or the variable of that name; rename the variable"
    with pytest.raises(ValueError, match=rf"a\.lp, line 6: '{name}' may be a section here, {fix}"):
        parse(ModelText(text, "lp", "a.lp"))
    assert parse(ModelText(text.replace(f"\n {name}\n x_1", f"\n x_1 {name}"), "lp", "a.lp")).kind.tolist() == [1, 1]


def test_lists_of_variables_may_have_parts() -> None:
    text = "min\n x\nst\n x + y >= 1\nGenerals\n x\nGenerals\n y\nend\n"
    assert ours(text, "lp") == ours(text.replace("Generals\n y", " y"), "lp")
    with pytest.raises(ValueError, match="line 7: the section 'rows' is there twice"):
        ours(text.replace("Generals\n y", "st\n y >= 1"), "lp")


def test_rows_may_begin_with_a_number() -> None:
    text = "min\n x + y\nst\n -2 <= x + y <= 5\n q: 5 >= x - y >= 1\n 3 <= x\nend\n"
    assert ours(text, "lp")["rows"] == [[-2.0, 1.0, 3.0], [5.0, 5.0, np.inf]]
    with pytest.raises(ValueError, match="line 4: a range must have two signs of one direction, found '<=' and '>='"):
        ours(text.replace("<= 5", ">= 5"), "lp")


def test_a_small_file_with_a_large_text_is_refused_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "MOST_BYTES", 30_000_000)
    path = tmp_path / "large.mps.gz"
    path.write_bytes(gzip.compress(b"* nothing\n" * 4_000_000, compresslevel=1))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"large\.mps\.gz: its text must have at most 30 MB"):
            read_text(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()

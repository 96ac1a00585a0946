"""Queries to SQLite and DuckDB files as tables: what is read, and that nothing is ever written."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dffl.cells import dates_of, missing_in, numbers_of, texts_of
from dffl.tables import binary_sources
from dffl.tables.binary_sources import DuckdbSource, SqliteSource
from dffl.tables.description import read
from dffl.tables.sources import Source, load
from tests.tables.made import TOML, files, write
from tests.tables.test_description import same

NEEDS_DUCKDB = pytest.mark.skipif(find_spec("duckdb") is None, reason="needs DuckDB: pip install 'dffl[duckdb]'")


def in_sqlite(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as base:
        for statement in statements:
            base.execute(statement)
        base.commit()


def in_duckdb(path: Path, *statements: str) -> None:
    import duckdb

    with duckdb.connect(str(path)) as base:
        for statement in statements:
            base.execute(statement)


MAKE: dict[str, Callable[..., None]] = {"sqlite": in_sqlite, "duckdb": in_duckdb}
OPEN: dict[str, Callable[[Path, str], Source]] = {"sqlite": SqliteSource, "duckdb": DuckdbSource}
KINDS = pytest.mark.parametrize("kind", ["sqlite", pytest.param("duckdb", marks=NEEDS_DUCKDB)])


def federation(folder: Path, kind: str, query: str = "SELECT * FROM days") -> Path:
    """The usual federation; the rows of north are in a database."""
    write(folder, files())
    rows = pd.read_csv(folder / "north.csv")
    columns = ", ".join(f"{name} {'TEXT' if name in ('date', 'weather') else 'DOUBLE'}" for name in rows)
    values = ", ".join(str(tuple(row)) for row in rows.astype(object).to_numpy().tolist())
    (folder / f"north.{kind}").unlink(missing_ok=True)
    MAKE[kind](folder / f"north.{kind}", f"CREATE TABLE days ({columns})", f"INSERT INTO days VALUES {values}")
    return with_query(folder, kind, query)


def with_query(folder: Path, kind: str, query: str) -> Path:
    toml = folder / "federation.toml"
    toml.write_text(TOML.replace('"north.csv"', f'{{ {kind} = "north.{kind}", query = """{query}""" }}'))
    return toml


@KINDS
def test_a_query_gives_the_same_federation_as_the_file(tmp_path: Path, kind: str) -> None:
    before = read(write(tmp_path, files()))
    found = read(federation(tmp_path, kind))
    same(before.train, found.train)
    same(before.test, found.test)
    shuffled = read(with_query(tmp_path, kind, "WITH part AS (SELECT * FROM days) SELECT * FROM part ORDER BY temp_1;"))
    same(before.train, shuffled.train)


@KINDS
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM nights", "the query fails"),
        ("SELEKT * FROM days", "the query fails"),
        ("SELECT nothing FROM days", "the query fails"),
        ("DROP TABLE days", "query must be|the query fails"),
        ("DELETE FROM days", "query must be|the query fails"),
        ("ATTACH 'other.db' AS other", "query must be|the query fails"),
        ("SELECT 1; SELECT 2", "query must be|the query fails"),
        ("-- nothing", "query must be"),
        ("SELECT date FROM days", "no column fits"),
        ("SELECT *, date AS \\\"date \\\" FROM days", "two columns are named 'date'"),
        ("SELECT * FROM days WHERE 1 = 0", "must have at least one row"),
    ],
)  # fmt: skip
def test_a_query_that_fails_or_writes_is_refused(tmp_path: Path, kind: str, query: str, words: str) -> None:
    toml = federation(tmp_path, kind, query)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=rf"north\.{kind}.*({words})") as caught:
        read(toml)
    assert all(f"north.{kind}" in line for line in str(caught.value).split("\n"))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@KINDS
def test_what_is_no_database_is_refused_and_not_made(tmp_path: Path, kind: str) -> None:
    toml = federation(tmp_path, kind)
    (tmp_path / f"north.{kind}").unlink()
    with pytest.raises(ValueError, match=rf"client 'north'.table: .*north\.{kind}: there is no such file"):
        read(toml)
    assert not (tmp_path / f"north.{kind}").exists()
    (tmp_path / f"north.{kind}").write_text("date,weather\n")
    with pytest.raises(ValueError, match=rf"north\.{kind}: (is not an SQLite database|the query fails)"):
        read(toml)
    (tmp_path / f"north.{kind}").unlink()
    (tmp_path / f"north.{kind}").mkdir()
    with pytest.raises(ValueError, match="a folder, not a file"):
        read(toml)


@KINDS
def test_a_cell_that_is_wrong_is_named_with_its_row(tmp_path: Path, kind: str) -> None:
    query = "SELECT * REPLACE (CASE WHEN date = '2024-01-03' THEN 'much' ELSE temp_1::TEXT END AS temp_1) FROM days"
    if kind == "sqlite":
        others = "date, weather, temp_2, price_1, price_2, price_3"
        query = f"SELECT {others}, CASE WHEN date = '2024-01-03' THEN 'much' ELSE temp_1 END AS temp_1 FROM days"
    with pytest.raises(ValueError, match=rf"north\.{kind} \(query\), row 3, column 'temp_1': must be a finite number"):
        read(federation(tmp_path, kind, query))


def test_a_file_that_another_connection_holds_can_be_read(tmp_path: Path) -> None:
    in_sqlite(tmp_path / "a.sqlite", "CREATE TABLE t (x INT)", "INSERT INTO t VALUES (1)")
    with closing(sqlite3.connect(tmp_path / "a.sqlite")):
        assert len(load(SqliteSource(tmp_path / "a.sqlite", "SELECT * FROM t"), ["x"])) == 1


@NEEDS_DUCKDB
def test_types_of_duckdb(tmp_path: Path) -> None:
    in_duckdb(
        tmp_path / "a.duckdb",
        "CREATE TABLE t AS SELECT 1.50::DECIMAL(8, 2) AS money, DATE '2022-01-08' AS day, "
        "TIMESTAMP '2022-01-08 10:30:00' AS at, TRUE AS flag, ' a ' AS word, 7::HUGEINT AS huge, "
        "3::UTINYINT AS small, 2.5::FLOAT AS f, 'k'::ENUM('j', 'k') AS one, "
        "TIME '01:00:00' AS clock, 7 AS number, [1] AS list, INTERVAL 1 DAY AS span, 'x'::BLOB AS bytes",
        "INSERT INTO t SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8, NULL, NULL, NULL",
    )
    source = DuckdbSource(tmp_path / "a.duckdb", "SELECT *, NULL AS nothing FROM t ORDER BY number")
    names = ["money", "day", "at", "flag", "word", "huge", "small", "f", "one", "clock", "number", "nothing"]
    frame = load(source, names).frame
    for name, value in (("money", 1.5), ("flag", 1), ("huge", 7), ("small", 3), ("f", 2.5)):
        np.testing.assert_array_equal(numbers_of(frame[name]), [value, np.nan])
    assert dates_of(frame["day"])[0] == np.datetime64("2022-01-08")
    assert dates_of(frame["at"])[0] == np.datetime64("2022-01-08T10:30:00")
    assert texts_of(frame["word"]).tolist() == ["a", ""]
    assert texts_of(frame["one"]).tolist() == ["k", ""]
    assert texts_of(frame["clock"])[0].startswith("01:00:00")
    assert missing_in(frame["nothing"]).all()
    assert all(missing_in(frame[name]).tolist() == [False, True] for name in names[:10])
    as_texts = load(source, ["flag", "number"], ["flag", "number"]).frame
    assert as_texts.iloc[0].tolist() == ["true", "7"]
    for name, kind in (("list", "list"), ("span", "interval"), ("bytes", "binary")):
        with pytest.raises(ValueError, match=rf"a\.duckdb: column '{name}' must hold one number, .* found .*{kind}"):
            load(source, [name])


@NEEDS_DUCKDB
def test_moments_with_a_zone_do_not_depend_on_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    in_duckdb(tmp_path / "a.duckdb", "CREATE TABLE t AS SELECT TIMESTAMPTZ '2022-01-08 23:30:00+00' AS moment")
    for zone in ("America/New_York", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        found = load(DuckdbSource(tmp_path / "a.duckdb", "SELECT moment FROM t"), ["moment"]).frame["moment"]
        assert dates_of(found)[0] == np.datetime64("2022-01-08T23:30:00")
    monkeypatch.undo()
    time.tzset()


def test_types_of_sqlite(tmp_path: Path) -> None:
    in_sqlite(
        tmp_path / "a.sqlite",
        "CREATE TABLE t (money DECIMAL(8, 2), day DATE, at TIMESTAMP, flag BOOLEAN, key TEXT, bytes BLOB)",
        "INSERT INTO t VALUES (1.50, '2022-01-08', '2022-01-08 10:30:00', TRUE, '007', x'00ff'), "
        "(NULL, NULL, NULL, NULL, NULL, NULL), (2, '2022-01-09', '2022-01-09', FALSE, 'x', x'00')",
    )
    source = SqliteSource(tmp_path / "a.sqlite", "SELECT *, 1 AS row FROM t")
    frame = load(source, source.columns).frame
    np.testing.assert_array_equal(numbers_of(frame["money"]), [1.5, np.nan, 2])
    np.testing.assert_array_equal(numbers_of(frame["flag"]), [1, np.nan, 0])
    assert dates_of(frame["day"])[0] == np.datetime64("2022-01-08")
    assert dates_of(frame["at"])[0] == np.datetime64("2022-01-08T10:30:00")
    assert texts_of(frame["key"]).tolist() == ["007", "", "x"]
    assert np.isnan(numbers_of(frame["bytes"])).all()
    assert all(missing_in(frame[name]).tolist() == [False, True, False] for name in source.columns if name != "row")


@NEEDS_DUCKDB
def test_duckdb_is_opened_for_reading_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    in_duckdb(tmp_path / "a.duckdb", "CREATE TABLE t AS SELECT 1 AS x")
    opened, connect = [], duckdb.connect

    def watched(*words: object, **options: object) -> object:
        opened.append(options)
        return connect(*words, **options)

    monkeypatch.setattr(duckdb, "connect", watched)
    DuckdbSource(tmp_path / "a.duckdb", "SELECT * FROM t")
    assert [one["read_only"] for one in opened] == [True]
    with connect(str(tmp_path / "a.duckdb"), read_only=True), pytest.raises(duckdb.Error):
        connect(str(tmp_path / "a.duckdb"))  # why it matters: others that read may hold the file


@NEEDS_DUCKDB
def test_a_query_to_duckdb_reads_no_other_file(tmp_path: Path) -> None:
    in_duckdb(tmp_path / "a.duckdb", "CREATE TABLE t AS SELECT 1 AS x")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match="the query fails"):
        DuckdbSource(tmp_path / "a.duckdb", f"SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")


def test_without_its_package_duckdb_is_refused_with_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    (tmp_path / "a.duckdb").write_text("")
    with pytest.raises(ValueError, match=r"a\.duckdb: reading DuckDB needs its package: pip install 'dffl\[duckdb\]'"):
        DuckdbSource(tmp_path / "a.duckdb", "SELECT 1")


ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "


@KINDS
def test_a_query_without_an_end_is_stopped(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MAKE[kind](tmp_path / "a.db", "CREATE TABLE days (x INT)", "INSERT INTO days VALUES (1), (2)")
    monkeypatch.setattr(binary_sources, "QUERY_SECONDS", 0.3)
    with pytest.raises(ValueError, match=r"^\S*a.db: the query takes more than .* seconds; [^\n]*$"):
        OPEN[kind](tmp_path / "a.db", ENDLESS + "SELECT sum(n) FROM t")


@KINDS
def test_a_query_gives_no_more_than_fits(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MAKE[kind](tmp_path / "a.db", "CREATE TABLE days (x INT)", "INSERT INTO days VALUES (1), (2), (3), (4)")
    monkeypatch.setattr(binary_sources, "MOST_CELLS", 100_000)
    pairs = ", ".join(f"days d{place}" for place in range(9))  # 4 ** 9 rows
    text = "printf('%9000d', x)" if kind == "sqlite" else "repeat('x', 9000)"
    for query in (f"SELECT d0.x FROM {pairs}", f"SELECT {text.replace('x)', 'd0.x)')} AS y FROM {pairs} LIMIT 9999"):
        with pytest.raises(ValueError, match=r"^\S*a.db: the query gives more than 100,000 cells; [^\n]*$"):
            OPEN[kind](tmp_path / "a.db", query)
    assert len(load(OPEN[kind](tmp_path / "a.db", f"SELECT d0.x FROM {pairs} LIMIT 99999"), ["x"])) == 99_999

"""Clients whose rows stay in Parquet files: the numbers of a federation in memory, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl import batched
from dffl.training import Run, Settings

FEATURES, COSTS = ["x0", "x1", "x2"], ["c0", "c1", "c2", "c3", "c4"]
SET = dffl.TopK(5, 2)


def tables(clients: int = 7) -> dict[str, pd.DataFrame]:
    """Clients of different sizes, whose names are not in the order of their sizes."""
    found = {}
    for place in range(clients):
        rng = np.random.default_rng(place)
        x = rng.normal(size=(9 + 3 * place, 3))
        c = 2 + x @ np.arange(15).reshape(3, 5) / 10 + 0.1 * rng.normal(size=(len(x), 5))
        found[f"site-{place}"] = pd.DataFrame(np.hstack([x, c]), columns=FEATURES + COSTS)
    return found


def in_memory(frames: dict[str, pd.DataFrame], s: Any = SET) -> dffl.Federation:
    return dffl.Federation([dffl.Client(name, t[FEATURES], t[COSTS], s) for name, t in frames.items()])


def a_file_each(folder: Path, frames: dict[str, pd.DataFrame]) -> dict[str, Any]:
    for name, table in frames.items():
        table.to_parquet(folder / f"{name}.parquet")
    return {}


def sorted_by_client(folder: Path, frames: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """Two files in small row groups; one client begins in the first and ends in the second."""
    whole = pd.concat([table.assign(site=name) for name, table in frames.items()], ignore_index=True)
    whole[:50].to_parquet(folder / "a.parquet", row_group_size=7)
    whole[50:].to_parquet(folder / "b.parquet", row_group_size=7)
    return {"client": "site"}


def partitioned(folder: Path, frames: dict[str, pd.DataFrame]) -> dict[str, Any]:
    for name, table in frames.items():
        for part, rows in enumerate(np.array_split(np.arange(len(table)), 2)):
            (folder / f"site={name}").mkdir(exist_ok=True)
            table.iloc[rows].to_parquet(folder / f"site={name}" / f"part-{part}.parquet")
    return {"client": "site"}


def opened(folder: Path, frames: dict[str, pd.DataFrame], layout: Callable[..., Any] = a_file_each) -> dffl.ParquetFederation:
    return dffl.ParquetFederation(folder, features=FEATURES, costs=COSTS, set=SET, **layout(folder, frames))


def same(a: dffl.Fit, b: dffl.Fit, test: Any, other: Any) -> None:
    """Every number of two fits, to the last bit."""
    pd.testing.assert_frame_equal(a.history, b.history, check_exact=True)
    pd.testing.assert_frame_equal(a.evaluate(test), b.evaluate(other), check_exact=True)
    x = np.linspace(-1, 1, 3)
    for name in b.members:
        np.testing.assert_array_equal(a.predict(name, x), b.predict(name, x))
    if b.shared is not None:
        newcomer = dffl.Client("newcomer", np.ones((2, 3)), np.ones((2, 5)), SET, feature_names=tuple(FEATURES))
        np.testing.assert_array_equal(a.predict(newcomer, x), b.predict(newcomer, x))


SETTINGS: dict[str, Any] = {"rounds": 3, "local_epochs": 2, "batch_size": 4, "client_fraction": 0.5, "progress": False}


@pytest.mark.parametrize("layout", [a_file_each, sorted_by_client, partitioned])
def test_the_numbers_are_those_of_a_federation_in_memory(tmp_path: Path, layout: Callable[..., Any]) -> None:
    frames = tables()
    stored, whole = opened(tmp_path, frames, layout), in_memory(frames)
    assert (stored.names, stored.counts, stored.features, stored.dim) == (whole.names, whole.counts, 3, 5)
    same(dffl.fit(stored, "fedavg", **SETTINGS), dffl.fit(whole, "fedavg", **SETTINGS), stored, whole)


@pytest.mark.parametrize("method", ["scaffold", "local"])
def test_methods_keep_their_numbers_where_clients_are_read_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    few_at_a_time(tmp_path, monkeypatch, method)


@pytest.mark.parametrize("method", ["fedprox", "ditto", "apfl", "fedrep", "clustered"])
def test_methods_that_share_a_model_and_keep_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    few_at_a_time(tmp_path, monkeypatch, method)


def few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    frames = tables()
    monkeypatch.setattr(batched, "MOST", 300)  # two or three clients
    stored, whole = opened(tmp_path, frames), in_memory(frames)
    assert len(list(stored.parts())) > 2
    same(dffl.fit(stored, method, **SETTINGS), dffl.fit(whole, method, **SETTINGS), stored, whole)


def test_pooled_units_and_sets_by_name(tmp_path: Path) -> None:
    frames = tables(4)
    a_file_each(tmp_path, frames)

    def set_of(name: str) -> dffl.FeasibleSet:
        return dffl.TopK(5, 1 + int(name[-1]) % 3)

    stored = dffl.ParquetFederation(tmp_path, features=FEATURES, costs=COSTS, set=set_of, maximize=True)
    clients = [dffl.Client(n, t[FEATURES], t[COSTS], set_of(n), True) for n, t in frames.items()]
    how = SETTINGS | {"pooled_units": True, "dtype": "float64"}
    whole = dffl.Federation(clients)
    same(dffl.fit(stored, "fedavg", **how), dffl.fit(whole, "fedavg", **how), stored, whole)


def test_only_the_drawn_clients_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, read = opened(tmp_path, tables()), set()
    client = dffl.ParquetFederation.client
    monkeypatch.setattr(dffl.ParquetFederation, "client", lambda self, place: read.add(place) or client(self, place))
    fit = dffl.fit(stored, "fedavg", **SETTINGS | {"rounds": 1})
    assert len(read - {0}) <= 3  # client 0 is looked at before anything trains
    fit.predict("site-6", np.zeros(3))
    assert 6 in read
    assert len(read) < 7
    assert fit.shared is not None  # the units of all
    assert len(read) == 7


def test_a_fit_is_saved_and_loaded(tmp_path: Path) -> None:
    frames = tables()
    (tmp_path / "data").mkdir()
    stored = opened(tmp_path / "data", frames)
    fit = dffl.fit(stored, "fedavg", **SETTINGS)
    fit.save(tmp_path / "fit")
    same(dffl.load(tmp_path / "fit"), dffl.fit(in_memory(frames), "fedavg", **SETTINGS), in_memory(frames), in_memory(frames))


def test_an_interrupted_fit_continues_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = tables()
    (tmp_path / "data").mkdir()
    stored, saved = opened(tmp_path / "data", frames), tmp_path / "run.checkpoint"
    whole = dffl.fit(stored, "scaffold", **SETTINGS)
    read, client = [0], dffl.ParquetFederation.client

    def failing(self: dffl.ParquetFederation, place: int) -> dffl.Client:
        read[0] += 1
        if read[0] > 8:  # in the third round
            raise KeyboardInterrupt
        return client(self, place)

    with monkeypatch.context() as patch:
        patch.setattr(dffl.ParquetFederation, "client", failing)
        with pytest.raises(KeyboardInterrupt):
            dffl.fit(stored, "scaffold", checkpoint=saved, **SETTINGS)
    assert saved.exists()
    same(dffl.fit(stored, "scaffold", checkpoint=saved, **SETTINGS), whole, stored, stored)
    assert not saved.exists()


def test_a_checkpoint_belongs_to_its_data(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    stored = opened(tmp_path / "data", tables())
    before = stored.fingerprint()
    os.utime(tmp_path / "data/site-3.parquet", ns=(1, 1))
    again = dffl.ParquetFederation(tmp_path / "data", features=FEATURES, costs=COSTS, set=SET)
    assert again.fingerprint() != before
    other = dffl.ParquetFederation(tmp_path / "data", features=FEATURES, costs=COSTS, set=dffl.TopK(5, 3))
    assert other.fingerprint() != again.fingerprint()


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(ValueError, match=r".+") as error:
        call()
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("method", ["crossfit", "finetune", "local-tuned", "interp-spo", "ridge"])
def test_methods_that_need_all_clients_are_refused(tmp_path: Path, method: str) -> None:
    stored = opened(tmp_path, tables(3))
    said = refused(lambda: dffl.fit(stored, method, progress=False))
    assert f"method {method!r}" in said
    assert "needs the clients in memory: dffl.Federation(list(federation))" in said


def test_comparisons_are_refused(tmp_path: Path) -> None:
    stored = opened(tmp_path, tables(3))
    said = refused(lambda: dffl.compare(stored, test=stored))
    assert said == "federation must be in memory here: dffl.Federation(list(federation)) reads all 3 clients"


def test_a_part_that_is_missing_or_has_changed_is_named(tmp_path: Path) -> None:
    stored = opened(tmp_path, tables(3))
    path = tmp_path / "site-1.parquet"
    os.utime(path, ns=(1, 1))
    fix = "the file has changed since the federation was opened; open it again"
    assert refused(lambda: dffl.fit(stored, "fedavg", progress=False)) == f"{path}: client 'site-1': {fix}"
    path.unlink()
    assert refused(lambda: stored["site-1"]) == f"{path}: client 'site-1': the file is missing"


def test_other_columns_are_named(tmp_path: Path) -> None:
    frames = tables(3)
    frames["site-2"] = frames["site-2"].rename(columns={"c3": "d3"})
    said = refused(lambda: opened(tmp_path, frames))
    assert said.startswith(f"{tmp_path / 'site-2.parquet'}: client 'site-2': must have the columns c3; it has x0, x1, x2")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda t: t.assign(c3="a"), "site-1.parquet: column 'c3' must hold numbers, found "),
        (lambda t: t[:0], "site-1.parquet: client 'site-1': must have at least one row"),
        (lambda t: t.assign(c3=np.nan), "site-1.parquet: client 'site-1': c must be finite, found nan in row 0, column 3"),
    ],
)
def test_cells_that_are_no_numbers_are_named(tmp_path: Path, spoil: Callable[..., Any], said: str) -> None:
    frames = tables(3)
    frames["site-1"] = spoil(frames["site-1"])
    assert said in refused(lambda: list(opened(tmp_path, frames)))


def test_rows_of_a_client_that_are_apart_are_refused(tmp_path: Path) -> None:
    frame = pd.concat([table.assign(site=name) for name, table in tables(3).items()], ignore_index=True)
    frame.loc[len(frame) - 1, "site"] = "site-0"
    frame.to_parquet(tmp_path / "all.parquet")
    said = refused(lambda: dffl.ParquetFederation(tmp_path, features=FEATURES, costs=COSTS, set=SET, client="site"))
    assert said == f"{tmp_path / 'all.parquet'}: client 'site-0': its rows must be together; sort the file by column 'site'"


def test_what_is_no_folder_of_parquet_files_is_refused(tmp_path: Path) -> None:
    def at(path: Path, **given: Any) -> str:
        arguments: dict[str, Any] = {"features": FEATURES, "costs": COSTS, "set": SET} | given
        return refused(lambda: dffl.ParquetFederation(path, **arguments))

    assert at(tmp_path / "nowhere") == f"{tmp_path / 'nowhere'}: there is no such file or folder"
    assert at(tmp_path) == f"{tmp_path}: must hold Parquet files with rows, found none"
    (tmp_path / "a.parquet").write_text("no table")
    assert at(tmp_path).startswith(f"{tmp_path / 'a.parquet'}: cannot be read as Parquet (")
    assert at(tmp_path, features="x0") == "features must be a list of names of columns, found 'x0'"
    assert at(tmp_path, set=3) == "set must be a feasible set, or a function from a client's name to one, found int"


def test_it_says_what_it_holds(tmp_path: Path) -> None:
    stored = opened(tmp_path, tables())
    run = Run(stored, Settings(client_fraction=0.5, rounds=1))
    assert run.on_disk
    assert repr(stored) == f"ParquetFederation({str(tmp_path)!r}, 7 clients, 126 samples, 3 features, 5 decisions)"

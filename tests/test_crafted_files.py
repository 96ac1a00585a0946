"""A model file of a stranger is refused in one line before it takes time or memory, and names nothing on this machine."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import math
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dffl
from dffl import archive
from dffl.parquet_pages import extent, text_bytes
from dffl.sets import battery
from dffl.tables.model import OwnModel
from tests.federations import client

FILES = Path(__file__).with_name("files-0.2.0")
SECONDS, MEGABYTES = 1.0, 200
Parts = dict[str, bytes]
Craft = Callable[[Parts, dict[str, Any]], None]
"""Changes the members of an honest file, or its manifest."""


def with_set(family: str, **spec: Any) -> Craft:
    def craft(parts: Parts, manifest: dict[str, Any]) -> None:
        manifest["members"][0]["set"] = {"set": family, "spec": {name: added(parts, value) for name, value in spec.items()}}

    return craft


def added(parts: Parts, value: Any) -> Any:
    """A value as a manifest has it: arrays become members."""
    if not isinstance(value, np.ndarray):
        return value
    name = f"arrays/{1000 + len(parts)}.npy"
    parts[name] = archive.packed(value)
    return {"array": int(Path(name).stem)}


def with_predictor(kind: str, **fields: Any) -> Craft:
    def craft(parts: Parts, manifest: dict[str, Any]) -> None:
        made = {name: added(parts, value) for name, value in fields.items()}
        manifest["members"][0]["predictor"] = {"kind": kind, "fields": made}

    return craft


def with_manifest(**changes: Any) -> Craft:
    return lambda parts, manifest: manifest.update(changes)


def with_member(**changes: Any) -> Craft:
    return lambda parts, manifest: manifest["members"][0].update(changes)


def with_part(name: str, make: Callable[[], bytes]) -> Craft:
    return lambda parts, manifest: parts.update({name: make()})


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def column(value: Any, rows: int, kind: pa.DataType | None = None) -> pa.Table:
    """A column of one value, as a dictionary of one entry."""
    entries = pa.array([value], kind)
    return pa.table({"x": pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), entries)})


def lying_page() -> bytes:
    """A page header that promises 134 megabytes, which a reader would make room for."""
    table = pa.table({"x": pa.array(["abc" * 100] * 20_000)})
    whole = bytearray(parquet(table, use_dictionary=False, write_statistics=False, data_page_size=2**24))
    assert whole[4:7] == b"\x15\x00\x15", "the kind of the first page, and then its unpacked size, a number of four bytes"
    assert [byte >> 7 for byte in whole[7:11]] == [1, 1, 1, 0]
    whole[7:11] = b"\xfe\xff\xff\x7f"
    return bytes(whole)


def nested(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": "ForecastPredictor", "fields": {"costs": 5}}
    for _ in range(levels):
        made = {"kind": "MeanPredictor", "fields": {"models": {"tuple": [made]}}}
    return made


def many_members(parts: Parts, manifest: dict[str, Any]) -> None:
    parts.update({f"x{number}": b"" for number in range(70_000)})


def many_clients(parts: Parts, manifest: dict[str, Any]) -> None:
    first = manifest["members"][0]
    manifest["members"] = [first | {"name": f"c{number}"} for number in range(11_000)]


def many_products(parts: Parts, manifest: dict[str, Any]) -> None:
    ones = added(parts, np.ones(20_000))
    units = {"kind": "Normaliser", "fields": {"x_mean": ones, "x_scale": ones, "c_scale": {"array": 901}}}
    with_predictor("RidgePredictor", normaliser=units, coefficients=np.zeros((3, 5)), degree=2)(parts, manifest)
    manifest["features"] = 20_000


def many_sets(family: str, count: int, each: Callable[[int], dict[str, Any]]) -> Craft:
    """Clients whose sets are each within the limits, and all different."""

    def craft(parts: Parts, manifest: dict[str, Any]) -> None:
        first = manifest["members"][0]
        sets = [{"set": family, "spec": {name: added(parts, value) for name, value in each(k).items()}} for k in range(count)]
        manifest["members"] = [first | {"name": f"c{k}", "set": one} for k, one in enumerate(sets)]

    return craft


UNITS = {"kind": "Normaliser", "fields": {"x_mean": {"array": 900}, "x_scale": {"array": 900}, "c_scale": {"array": 901}}}
HARD = np.random.default_rng(0).integers(1, 10**5, (4, 40)).astype(float)
"""Equations whose 0/1 solutions nobody finds in a day."""
MODEL = "Minimize\n obj: x_0\nSubject To\n c: x_0 + x_1 + x_2 + x_3 + x_4 <= 3\nBounds\n" + "".join(
    f" x_{k} <= 1\n" for k in range(5)
) + "End\n"  # fmt: skip
LIMITS = {"nodes": [2**31 - 1, 2**62, 10**400, 1e308], "seconds": [1e300, float("inf"), 1e7, "1e300"]}
PROGRAMS: dict[str, dict[str, Any]] = {
    "MixedInteger": {"lower": np.zeros(5), "upper": np.ones(5)},
    "Battery": {"hours": 5, "capacity": 1.0, "charge": 1.0},
    "ModelFile": {"text": MODEL, "format": "lp", "name": "m.lp", "predicted": "x_*"},
}
CRAFTED: dict[str, Craft] = {
    **{
        f"{family} with {name}={value!r:.20}": with_set(family, **spec, **{name: value})
        for family, spec in PROGRAMS.items()
        for name, values in LIMITS.items()
        for value in values
    },
    "seconds in an array": with_set("Battery", **PROGRAMS["Battery"], seconds=np.array(1e300)),
    **{
        f"Battery of {hours} hours": with_set("Battery", hours=hours, capacity=1.0, charge=1.0)
        for hours in (3 * 10**6, 10**12, 1e9)
    },
    **{
        f"{family} of {dim}": with_set(family, dim=dim, **more)
        for family, more in (("Simplex", {}), ("TopK", {"k": 1.0}), ("EntropySimplex", {"min_entropy": 0.1}))
        for dim in (10**7, 10**12)
    },
    **{f"ConsecutiveHours of {dim}": with_set("ConsecutiveHours", dim=dim, run=dim // 2) for dim in (10**6, 10**9)},
    **{f"Assignment of {n}": with_set("Assignment", n=n) for n in (3000, 10**6, 10**12)},
    **{
        f"ShortestPath {rows} x {columns}": with_set("ShortestPath", rows=rows, columns=columns)
        for rows, columns in ((30_000, 30_000), (10**9, 1), (2, 10**8), (10**30, 10**30))
    },
    "a stack of balls": with_set("Ball", center=np.zeros((1, 5)), radius=np.ones((1000, 3_000))),
    "balls that are broadcast": with_set("Ball", center=np.zeros((3000, 1, 5)), radius=np.ones((1, 3000))),
    "boxes that are broadcast": with_set("Box", lower=np.zeros((2000, 1, 5)), upper=np.ones((2000, 5))),
    "knapsacks that are broadcast": with_set("ZeroOneKnapsack", weights=np.ones((2000, 1, 5)), budget=np.ones(2000)),
    "schedules that are broadcast": with_set(
        "ConsecutiveHours", dim=5, run=1, first=np.zeros((9000, 1)), last=np.full(9000, 5)
    ),
    "a set in lists": with_set("Ball", center=[0.0] * 5, radius=1.0),
    "a set in tuples": with_set("Ball", center={"tuple": [{"tuple": [0.0] * 5}]}, radius=np.ones((1000, 4000))),
    "many long batteries": many_sets("Battery", 300, lambda k: {"hours": 19_999, "capacity": 1.0 + k, "charge": 1.0}),
    "boxes that are broadcast at many clients": many_sets(
        "Box", 20, lambda k: {"lower": np.zeros((600, 1, 5)), "upper": np.ones((600, 5)) + k}
    ),
    "empty lines at two clients": many_sets(
        "ModelFile", 2, lambda k: PROGRAMS["ModelFile"] | {"text": "\n" * 3_000_000 + MODEL, "nodes": 1 + k}
    ),
    "model files of many clients": many_sets(
        "ModelFile", 400, lambda k: PROGRAMS["ModelFile"] | {"text": MODEL + "\\ " + "x" * 12_000, "nodes": 1 + k}
    ),
    "a path": with_set("ModelFile", path="/etc/hostname", predicted="x_*"),
    "a path and a text": with_set("ModelFile", path="/etc/hostname", **PROGRAMS["ModelFile"]),
    "an internal set": with_set("Lifted", base={"set": "Simplex", "spec": {"dim": 4}}),
    "an unknown set": with_set("Mystery", dim=5),
    "a set in a set in a set": with_set("Shadow", base={"set": "Shadow", "spec": {"base": {"set": "Shadow", "spec": {}}}}),
    "more sets than clients": with_member(choices={"dict": {str(k): {"set": "Simplex", "spec": {"dim": 5}} for k in range(9)}}),
    **{f"dim={dim}": with_manifest(dim=dim) for dim in (10**6, 10**12, 10**30)},
    **{f"features={features}": with_manifest(features=features) for features in (10**6, 10**12, 10**30)},
    **{f"a member that is {value!r:.20}": with_manifest(members=value) for value in (5, "x" * 10**6, [5], {"a": 1}, [[]])},
    "a shared model for nobody": with_manifest(members=[], shared=nested(1), dim=10**9),
    "many clients": many_clients,
    "many members": many_members,
    "a long name": with_member(name="x" * 10**7),
    "long names of features": with_manifest(feature_names=["x" * 10**6] * 4),
    "many names of features": with_manifest(feature_names=["x"] * 400_000),
    "a million empty lists": with_manifest(about={"x": [[]] * 1_000_000}),
    "a million empty objects": with_manifest(about={"x": [{}] * 1_000_000}),
    "deep lists": with_part("manifest.json", lambda: b"[" * 10**6),
    "deep objects": with_part("manifest.json", lambda: b'{"a":' * 10**5 + b"1" + b"}" * 10**5),
    "a long number": with_part("manifest.json", lambda: b'{"version":' + b"9" * 10**6 + b"}"),
    "a deep predictor": with_member(predictor=nested(150)),
    "a predictor of many": with_predictor("MeanPredictor", models={"tuple": [nested(0)] * 40_000}),
    "a predictor that is broadcast": with_predictor("ConstantPredictor", costs=np.zeros((100_000, 1, 5))),
    "a mix that is broadcast": with_predictor(
        "MixedPredictor",
        own={"kind": "ForecastPredictor", "fields": {"costs": 5}},
        shared={"kind": "ForecastPredictor", "fields": {"costs": 5}},
        weight=np.ones((300_000, 2, 5)),
    ),
    "nearest samples that are broadcast": with_predictor(
        "NearestPredictor",
        normaliser=UNITS, z=np.zeros((4000, 1, 3)), costs=np.zeros((1, 4000, 5)), neighbours=np.array(1),
    ),
    "samples that are repeated": with_predictor(
        "NearestPredictor",
        normaliser=UNITS, z=np.zeros((3000, 1)), costs=np.zeros((200, 3000, 5)), neighbours=np.array(1),
    ),
    "products of many features": many_products,
    "trees that are broadcast": with_predictor(
        "TreesPredictor",
        normaliser=UNITS,
        children=np.zeros((20_000, 1, 2), int), feature=np.zeros((20_000, 1), int), threshold=np.zeros((20_000, 1)),
        depth=np.array(2**60), leaf=np.zeros((20_000, 1), int), share=np.ones((1, 20_000)), costs=np.zeros((20_000, 5)),
    ),
    "a setting without an end": with_manifest(settings={"rounds": 10**300, "network": None}),
    "a loss of many samples": with_manifest(
        settings={"loss": {"kind": "loss", "name": "dpo", "samples": 10**12, "sigma": []}, "network": None}
    ),
    "tables of many samples": with_member(out_of_fold={"dict": {"predicted": {"array": 0}}}, n=10**9),
    "an array that claims more": with_part("arrays/0.npy", lambda: claim((10**12,))),
    "an array of objects": with_part("arrays/0.npy", lambda: claim((1,), "|O")),
    "an array of long texts": with_part("arrays/0.npy", lambda: claim((1,), "<U1000000000")),
    "an array of many axes": with_part("arrays/0.npy", lambda: claim((1,) * 5000)),
    **{
        f"a history of {rows:,} times {value!r:.9}": with_part("history.parquet", lambda v=value, n=rows: parquet(column(v, n)))
        for value, rows in ((1, 12_000_000), ("x" * 10**5, 100_000), ("x" * 10**4, 1_000_000), (b"\0" * 10**6, 10_000))
    },
    "a history of lists": with_part("history.parquet", lambda: parquet(pa.table({"x": pa.array([[None] * 3 * 10**6])}))),
    "a history of wide cells": with_part(
        "history.parquet", lambda: parquet(pa.table({"x": pa.array([None] * 10, pa.binary(10**6))}))
    ),
    "a history of shared beginnings": with_part(
        "history.parquet",
        lambda: parquet(
            pa.table({"x": ["x" * 10**4] * 2_000}), use_dictionary=False, column_encoding={"x": "DELTA_BYTE_ARRAY"},
        ),
    ),
    **{
        f"a history by {codec}": with_part(
            "history.parquet",
            lambda c=codec: parquet(pa.table({"x": np.zeros(9 * 10**6)}), compression=c, use_dictionary=False),
        )
        for codec in ("gzip", "zstd", "brotli")
    },
    "a page that lies": with_part("history.parquet", lying_page),
    "a history cut short": with_part("history.parquet", lambda: parquet(column(1, 1000))[:-30] + b"PAR1"),
    "a feature without a name": with_manifest(feature_names=[None, 1, 2.5]),
    "a part with a path": with_part("../../x", lambda: b""),
    "a part of an unknown name": with_part("pad", lambda: b""),
    "a history that is none": with_part("history.parquet", lambda: b"PAR1" * 1000),
}  # fmt: skip


def claim(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": kind, "fortran_order": False, "shape": shape})
    return out.getvalue() + b"\0" * 64


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("honest") / "model.dffl"
    dffl.fit(dffl.Federation([client("a", dffl.TopK(5, 2))]), "mean-cost").save(path)
    dffl.load(path)  # what JAX and Parquet need is imported
    return path


def written(honest: Path, craft: Craft, path: Path) -> Path:
    parts = archive.read(honest, "manifest.json", "a fit").members
    parts |= {"arrays/900.npy": archive.packed(np.ones(3)), "arrays/901.npy": archive.packed(np.ones(()))}
    manifest = json.loads(parts["manifest.json"])
    before = copy.deepcopy(manifest)
    craft(parts, manifest)
    settings = before["settings"] | manifest["settings"]  # a setting that a craft does not name stays as it was
    if manifest != before:
        parts["manifest.json"] = json.dumps(manifest | {"settings": settings}).encode()
    archive.write(path, parts)
    return path


def test_there_are_a_hundred() -> None:
    assert len(CRAFTED) >= 100


def memory(what: str) -> int:
    """VmRSS is what this process holds, VmHWM the most that it has held; in bytes, and 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(what)), 0)


def forget_peak() -> int:
    """Let VmHWM begin again at what is held now, which is returned."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return max(memory("VmRSS"), memory("VmHWM"))


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused_at_once(name: str, honest: Path, tmp_path: Path) -> None:
    path = written(honest, CRAFTED[name], tmp_path / "crafted.dffl")
    before = forget_peak()
    begun = time.process_time()
    with pytest.raises(ValueError, match=r"^[^\n]*crafted\.dffl: [^\n]*$"):
        dffl.load(path)
    assert time.process_time() - begun < 5 * SECONDS, "on a busy machine; the slow test measures more exactly"
    assert memory("VmHWM") - before < MEGABYTES * 2**20


MEASURE = """
import resource, sys, time
import dffl
dffl.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[2:]:
    begun = time.process_time()
    try:
        dffl.load(path)
    except ValueError as error:
        assert str(error).startswith(path + ": ") and "\\n" not in str(error), error
    else:
        raise SystemExit(f"{path} was read")
    print(time.process_time() - begun, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def measured(honest: Path, paths: list[Path]) -> list[tuple[float, float]]:
    """For each file the seconds until it was refused, and the largest megabytes so far above those of an honest file."""
    code = [sys.executable, "-c", MEASURE, str(honest), *map(str, paths)]
    done = subprocess.run(code, capture_output=True, text=True, env=os.environ | {"JAX_PLATFORMS": "cpu"}, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return [(float(a), float(b)) for a, b in (line.split() for line in done.stdout.splitlines())]


def test_those_of_before_take_no_memory_in_a_process_of_their_own(honest: Path, tmp_path: Path) -> None:
    names = ["MixedInteger with nodes=2147483647", "Battery of 3000000 hours", "ShortestPath 30000 x 30000"]
    names += ["a history of 12,000,000 times 1", "a history by gzip", "a page that lies", "a million empty lists"]
    paths = [written(honest, CRAFTED[name], tmp_path / f"{number}.dffl") for number, name in enumerate(names)]
    for name, (seconds, megabytes) in zip(names, measured(honest, paths), strict=True):
        assert seconds < SECONDS, name
        assert megabytes < MEGABYTES, name


def test_an_array_that_many_clients_name_is_held_once(honest: Path, tmp_path: Path) -> None:
    def craft(parts: Parts, manifest: dict[str, Any]) -> None:
        one, n = manifest["members"][0], 100_000
        tables = {"predicted": np.ones((n, 5)), "objective": np.ones(n), "regret": np.ones(n)}
        out_of_fold = {"dict": {name: added(parts, table) for name, table in tables.items()}}
        manifest["members"] = [one | {"name": f"c{k}", "n": n, "out_of_fold": out_of_fold} for k in range(200)]

    path = written(honest, craft, tmp_path / "crafted.dffl")  # 1.1 GB, if each client had its own
    before = forget_peak()
    assert len(dffl.load(path).members) == 200
    assert memory("VmHWM") - before < MEGABYTES * 2**20


@pytest.mark.slow
def test_each_takes_no_memory_in_a_process_of_its_own(honest: Path, tmp_path: Path) -> None:
    for number, (name, craft) in enumerate(CRAFTED.items()):
        ((seconds, megabytes),) = measured(honest, [written(honest, craft, tmp_path / f"{number}.dffl")])
        assert seconds < SECONDS, name
        assert megabytes < MEGABYTES, name


WEIGHTS = np.zeros(3 * 64 + 64 + 64 * 5 + 5)


def with_network(weights: np.ndarray = WEIGHTS, tau: Any = 10.0, **units: np.ndarray) -> Craft:
    def craft(parts: Parts, manifest: dict[str, Any]) -> None:
        made = {name: added(parts, value) for name, value in units.items()}
        fields = {"network": {"network": added(parts, weights)["array"]}, "tau": added(parts, np.asarray(tau))}
        fields |= {"normaliser": {"kind": "Normaliser", "fields": UNITS["fields"] | made}}  # type: ignore[operator]
        manifest["members"][0]["predictor"] = {"kind": "NetworkPredictor", "fields": fields}

    return craft


NAN, INF = float("nan"), float("inf")
MEANINGLESS: dict[str, tuple[Craft, str]] = {
    **{
        f"{value} among the weights": (with_network(np.append(WEIGHTS[1:], value)), f"a network must be finite, found {value}")
        for value in (NAN, INF)
    },
    **{
        f"{name} {value}": (
            with_network(**{name: np.full(3 if name == "x_scale" else (), value)}),
            f"{name} of a {kind} must be finite and above 0, found {value:g}",
        )
        for name, kind in (("x_scale", "Normaliser"), ("c_scale", "Normaliser"), ("tau", "NetworkPredictor"))
        for value in (NAN, INF, 0.0, -1.0)
    },
    "a mean of NaN": (with_network(x_mean=np.full(3, NAN)), "x_mean of a Normaliser must be finite, found nan"),
    "a cost of NaN": (
        with_predictor("ConstantPredictor", costs=np.full(5, NAN)),
        "costs of a ConstantPredictor must be finite",
    ),
    "a number that is none": (with_predictor("ConstantPredictor", costs=NAN), "costs of a ConstantPredictor must be finite"),
    **{
        f"a mean of the type {kind}": (with_network(x_mean=np.zeros(3, kind)), f"must be numbers .*, found the type {kind}$")
        for kind in ("<U1", ">f8", "complex128")
    },
    "more samples than there are": (with_member(n=10**30), "n must be a whole number from 1 to 1,000,000,000,000, found"),
    "a mean of dates": (with_network(x_mean=np.zeros(3, "M8[s]")), r"found the type datetime64\[s\]"),
}


@pytest.mark.parametrize("name", MEANINGLESS)
def test_a_model_whose_predictions_mean_nothing_is_refused_with_its_client(name: str, honest: Path, tmp_path: Path) -> None:
    craft, words = MEANINGLESS[name]
    path = written(honest, craft, tmp_path / "crafted.dffl")
    with pytest.raises(ValueError, match=rf"^[^\n]*crafted\.dffl: client 'a': [^\n]*{words}[^\n]*$"):
        dffl.load(path)


def test_a_network_of_usable_numbers_is_read(honest: Path, tmp_path: Path) -> None:
    fit = dffl.load(written(honest, with_network(), tmp_path / "model.dffl"))
    np.testing.assert_array_equal(fit.predict("a", np.zeros((2, 3))), np.zeros((2, 5)))


def test_no_decision_follows_from_costs_that_are_not_finite(honest: Path) -> None:
    fit = dffl.load(honest)
    costs = np.ones((4, 5))
    costs[2, 1] = NAN
    with pytest.raises(ValueError, match=r"^client 'a': expected costs must be finite, found nan in row 2$"):
        fit.decide_at("a", costs)

    class Breaks(dffl.predictor.Predictor):
        def __call__(self, x: Any) -> Any:
            return jnp.log(x[..., :1]) * jnp.ones(5)

    fit.members["a"] = dataclasses.replace(fit.members["a"], predictor=Breaks())
    for ask in (fit.predict, fit.decide):
        assert np.isfinite(ask("a", np.ones((2, 3)))).all()
        with pytest.raises(ValueError, match=r"^client 'a': expected costs must be finite, found -inf in row 1$"):
            ask("a", np.array([[1.0] * 3, [0.0] * 3]))


def test_a_battery_is_not_built_before_a_decision(honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program takes fifty times the room of what describes it, and a file may describe many."""
    path = written(honest, with_set("Battery", hours=5, capacity=1.25, charge=1.0, wear=0.5), tmp_path / "model.dffl")
    monkeypatch.setattr(battery, "_program", lambda *spec: pytest.fail("built"))
    fit = dffl.load(path)
    monkeypatch.undo()
    fresh = dffl.Battery(5, 1.25, 1.0, wear=0.5)
    np.testing.assert_array_equal(fit.members["a"].set.solve(np.arange(5.0)), fresh.solve(np.arange(5.0)))


@pytest.mark.parametrize(("shapes", "together"), [
    ([[None] * 29, [None] * 39, [[None] * 49, None]], 119),  # of different sizes
    ([[[None, None], None], [[None], None, None]], 8),  # of one size
])  # fmt: skip
def test_predictors_of_different_forms_count_together(shapes: Any, together: int, honest: Path, tmp_path: Path) -> None:
    """One of every form is traced when the file is read."""

    def craft(parts: Parts, manifest: dict[str, Any]) -> None:
        first = manifest["members"][0]

        def predictor(shape: Any) -> Any:
            if shape is None:
                return first["predictor"]
            return {"kind": "MeanPredictor", "fields": {"models": {"tuple": [predictor(part) for part in shape]}}}

        twice = [predictor(shape) for shape in shapes] * 2
        manifest["members"] = [first | {"name": f"c{k}", "predictor": own} for k, own in enumerate(twice)]

    path = written(honest, craft, tmp_path / "forms.dffl")
    line = rf"forms.dffl: it asks for {together} parts of all different predictors, .* limits={{'models': {together}}}"
    with pytest.raises(ValueError, match=line):
        dffl.load(path, limits={"models": together - 1})
    assert len(dffl.load(path, limits={"models": together}).members) == 2 * len(shapes)


def test_a_long_model_needs_a_limit_of_its_own(honest: Path, tmp_path: Path) -> None:
    text = MODEL + "\\" * 4_000_000  # a comment
    path = written(honest, with_set("ModelFile", **PROGRAMS["ModelFile"] | {"text": text}), tmp_path / "long.dffl")
    with pytest.raises(ValueError, match=rf"long.dffl: it asks for {len(text)} characters .* at most 4,000,000 are allowed"):
        dffl.load(path)
    assert len(dffl.load(path, limits={"texts": len(text)}).members) == 1


def test_equal_sets_of_clients_are_one_and_count_once(honest: Path, tmp_path: Path) -> None:
    same = many_sets("ModelFile", 3, lambda k: PROGRAMS["ModelFile"])
    fit = dffl.load(written(honest, same, tmp_path / "same.dffl"), limits={"texts": len(MODEL)})
    assert len({id(member.set) for member in fit.members.values()}) == 1
    other = many_sets("ModelFile", 2, lambda k: PROGRAMS["ModelFile"] | {"nodes": 1 + k})
    path = written(honest, other, tmp_path / "other.dffl")
    with pytest.raises(ValueError, match=rf"other.dffl: it asks for {2 * len(MODEL)} characters .*'texts': {2 * len(MODEL)}"):
        dffl.load(path, limits={"texts": len(MODEL)})
    assert len(dffl.load(path, limits={"texts": 2 * len(MODEL)}).members) == 2


def test_a_hard_search_does_not_begin_before_a_decision_and_ends(honest: Path, tmp_path: Path) -> None:
    """Within its limits a file may ask for a search, which the reader does not do."""
    craft = with_set(
        "MixedInteger", A_eq=np.c_[HARD], b_eq=np.floor(HARD.sum(axis=1) / 2), lower=np.zeros(40), upper=np.ones(40),
        helpers=35, nodes=10**5, seconds=1.0,
    )  # fmt: skip
    path = written(honest, craft, tmp_path / "hard.dffl")
    begun = time.process_time()
    fit = dffl.load(path)
    assert time.process_time() - begun < SECONDS
    with pytest.raises(ValueError, match="MixedInteger: no feasible point within"):
        fit.decide("a", np.zeros((1, 3)))


def test_a_large_model_that_is_trusted_is_read(honest: Path, tmp_path: Path) -> None:
    path = written(honest, with_set("TopK", dim=5, k=2.0), tmp_path / "model.dffl")
    for limit in ("bytes", "parts", "values", "dim", "cells"):
        with pytest.raises(ValueError, match=rf"model.dffl: it asks for .* at most 1 are allowed; .*limits=\{{'{limit}': "):
            dffl.load(path, limits={limit: 1})
    assert dffl.load(path, limits={name: float("inf") for name in ("bytes", "parts", "values", "clients", "dim")}).dim == 5
    long = written(honest, with_set("Battery", **PROGRAMS["Battery"], seconds=1e5), tmp_path / "long.dffl")
    assert dffl.load(long, limits=dffl.Limits(seconds=1e5)).members["a"].set.spec()["seconds"] == 1e5
    with pytest.raises(ValueError, match="limits must be a mapping of some of bytes, parts"):
        dffl.load(path, limits={"speed": 1})
    with pytest.raises(ValueError, match="limits: dim must be above 0, found 'many'"):
        dffl.load(path, limits={"dim": "many"})  # type: ignore[dict-item]


def test_a_model_of_own_data_is_refused_in_one_line(tmp_path: Path) -> None:
    honest, path = FILES / "own_data" / "model.dffl", tmp_path / "crafted.dffl"

    def craft(change: Callable[[dict[str, Any]], None]) -> Craft:
        return lambda parts, manifest: change(manifest["about"]["own_data"])

    def wide(about: dict[str, Any]) -> None:
        line = {"intercept": 0.0, "slopes": [0.0], "least": [[[0.0]]] * 1000, "most": [1.0]}
        guide = {"middle": line, "log_stray": line, "low": 0.0, "median": 0.0, "high": 0.0}
        about["ranges"]["north"]["guide"] = guide

    steering = "\x1b]0;renamed\x07"
    for change in (
        wide,
        *(
            lambda about, wrong=wrong: about["ranges"]["north"].update(wrong)
            for wrong in (
                {"why": steering},
                {"why": {}},
                {"rows": steering},
                {"low": None},
                {"low": 10**400},
                {"share": "1"},
                {"high": math.nan},
            )
        ),
        lambda about: about["ranges"]["north"]["guide"].update(low="a"),
        lambda about: [about["ranges"]["north"]["guide"]["middle"][part].pop() for part in ("slopes", "least", "most")],
        *(
            lambda about, wrong=wrong: about.update(wrong)
            for wrong in (
                {"units": None},
                {"units": {"north": steering}},
                {"order": 5},
                {"order": steering},
                {"evaluation": "x"},
                {"costs": None},
                {"costs": ["a"]},
                {"costs": [steering, "b", "c", "d"]},
                {"costs": [["a"], "b", "c", "d"]},
            )
        ),
        lambda about: about.pop("order"),
        lambda about: about.update(encoding=None),
        lambda about: about.pop("encoding"),
        lambda about: about.update(ranges=[1]),
        lambda about: about["encoding"].update(columns=[{"kind": "category", "name": "x", "categories": 5}]),
    ):
        with pytest.raises(ValueError, match=r"crafted.dffl: what it says of its columns or ranges is damaged \([^\n]*\)$"):
            OwnModel.load(written(honest, craft(change), path))


def test_an_extent_is_that_of_the_table() -> None:
    names = [f"client {k}" for k in range(50)] * 40
    frame = pd.DataFrame({"client": names, "round": np.arange(2000), "loss": np.linspace(0, 1, 2000, dtype=np.float32)})
    for options in (
        {},
        {"row_group_size": 300},
        {"data_page_version": "2.0"},
        {"use_dictionary": False},
        {"compression": "none"},
    ):
        content = parquet(pa.Table.from_pandas(frame), **options)
        found = extent(content)
        assert (found.rows, found.columns, found.texts) == (2000, 3, ["client"])
        chunks = pq.read_metadata(io.BytesIO(content))
        wanted = sum(
            chunks.row_group(g).column(c).total_uncompressed_size for g in range(chunks.num_row_groups) for c in range(3)
        )
        assert 0.6 * wanted < found.unpacked <= wanted, "all but the headers"
        assert text_bytes(content, ["client"]) == sum(map(len, names))


def test_a_zip_file_of_another_compression_is_refused(honest: Path, tmp_path: Path) -> None:
    parts = archive.read(honest, "manifest.json", "a fit").members
    with zipfile.ZipFile(tmp_path / "lzma.dffl", "w", zipfile.ZIP_LZMA) as old:
        for name, content in parts.items():
            old.writestr(name, content)
    with pytest.raises(ValueError, match=r"lzma.dffl: it is compressed in another way than files of dffl"):
        dffl.load(tmp_path / "lzma.dffl")

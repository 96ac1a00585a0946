"""Saved fits decide as before; foreign, damaged and newer files are refused in one line."""

from __future__ import annotations

import collections
import contextlib
import io
import json
import math
import tracemalloc
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import dffl
from dffl import archive
from dffl.sets import FeasibleSet
from tests.federations import client, feasible_sets, mixed

QUICK = {"rounds": 2, "local_epochs": 2}


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    return dffl.Federation(
        [client(family, feasible_sets()[family], maximize=family == "topk") for family in ("topk", "polytope")]
    )


def test_every_family_of_sets_is_saved(tmp_path: Path) -> None:
    fed = mixed(families=feasible_sets())
    dffl.fit(fed, "mean-cost").save(tmp_path / "all.dffl")
    loaded = dffl.load(tmp_path / "all.dffl")
    for one in fed:
        again = loaded.members[one.name]
        assert (type(again.set), again.maximize, again.n) == (type(one.set), one.maximize, one.n)
        for mine, theirs in zip(again.set.spec().values(), one.set.spec().values(), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("method", ["mean-cost", "nearest", "ridge-pooled", "trees", "fedavg", "interp-spo", "finetune"])
def test_a_loaded_fit_is_the_fit(method: str, federation: dffl.Federation, tmp_path: Path) -> None:
    options = {"epochs": (0, 2)} if method == "finetune" else {}
    fit = dffl.fit(federation, method, **options, **QUICK)  # type: ignore[arg-type]
    fit.save(tmp_path / "model.dffl")
    loaded = dffl.load(tmp_path / "model.dffl")
    assert (loaded.method, loaded.settings, list(loaded.members)) == (fit.method, fit.settings, list(fit.members))
    assert json.dumps(loaded.options) == json.dumps(fit.options)
    for one in federation:
        np.testing.assert_array_equal(loaded.predict(one.name, one.x), fit.predict(one.name, one.x))
        np.testing.assert_array_equal(loaded.decide(one.name, one.x), fit.decide(one.name, one.x))
    pd.testing.assert_frame_equal(loaded.evaluate(federation), fit.evaluate(federation))
    pd.testing.assert_frame_equal(loaded.history, fit.history, check_dtype=False)
    if fit.shared is not None:
        stranger = client("stranger", dffl.TopK(5, 1))
        np.testing.assert_array_equal(loaded.predict(stranger, stranger.x), fit.predict(stranger, stranger.x))


def test_a_network_shared_by_all_is_stored_once(tmp_path: Path) -> None:
    fit = dffl.fit(dffl.synthetic.knapsack(clients=30, samples=5), "fedavg", rounds=1)
    fit.save(tmp_path / "model.dffl")
    with zipfile.ZipFile(tmp_path / "model.dffl") as archive:
        large = [i for i in archive.infolist() if i.filename.startswith("arrays/") and i.file_size > 3000 * 4]
    assert len(large) == 1


def test_a_network_of_ones_own_needs_its_factory(tmp_path: Path) -> None:
    def tiny(key: jax.Array, p: int, d: int) -> eqx.Module:
        return eqx.nn.MLP(p, d, width_size=4, depth=1, activation=jnp.tanh, key=key)

    fed = dffl.Federation([client("a", dffl.TopK(5, 2))])
    fit = dffl.fit(fed, "fedavg", network=tiny, **QUICK)
    fit.save(tmp_path / "own.dffl")
    with pytest.raises(ValueError, match=r"trained with the network '.*tiny'; pass its factory: load\(path, network=...\)"):
        dffl.load(tmp_path / "own.dffl")
    with pytest.raises(ValueError, match="its network has 41 numbers, the given factory makes one of 20"):
        dffl.load(tmp_path / "own.dffl", network=lambda key, p, d: eqx.nn.Linear(p, d, key=key))
    loaded = dffl.load(tmp_path / "own.dffl", network=tiny)
    np.testing.assert_array_equal(loaded.predict("a", fed[0].x), fit.predict("a", fed[0].x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_another_network_of_the_same_shapes_is_refused(dtype: str, tmp_path: Path) -> None:
    def made(activation: Any) -> Any:
        return lambda key, p, d: eqx.nn.MLP(p, d, width_size=4, depth=1, activation=activation, key=key)

    path = tmp_path / "own.dffl"
    fed = dffl.Federation([client("a", dffl.TopK(5, 2))])
    fit = dffl.fit(fed, "local", network=made(jnp.tanh), dtype=dtype, **QUICK)
    fit.save(path)
    with pytest.raises(ValueError, match=r"own\.dffl: the given network .* computes something else .*; pass the factory"):
        dffl.load(path, network=made(jax.nn.relu))
    for wide in (False, True):  # the program around may use either precision
        with jax.enable_x64(wide):
            loaded = dffl.load(path, network=made(jnp.tanh))
        np.testing.assert_array_equal(loaded.predict("a", fed[0].x), fit.predict("a", fed[0].x))


def test_a_network_is_compared_only_where_the_file_can_tell(saved: Path, tmp_path: Path) -> None:
    def made(activation: Any) -> Any:
        return lambda key, p, d: eqx.nn.MLP(p, d, width_size=4, depth=1, activation=activation, key=key)

    assert "computes" not in json.loads(archive.read(saved, "manifest.json", "a fit", dffl.Limits()).members["manifest.json"])
    path = tmp_path / "own.dffl"
    dffl.fit(dffl.Federation([client("a", dffl.TopK(5, 2))]), "local", network=made(jnp.tanh), **QUICK).save(path)
    for told in (None, {"jax": "0.0.1", "digest": "of other words"}):  # of 0.2.0; of another JAX
        dffl.load(changed(path, {"computes": told}, tmp_path), network=made(jax.nn.relu))


def test_float64_models_keep_their_precision(tmp_path: Path) -> None:
    fed = dffl.Federation([client("a", dffl.TopK(5, 2))])
    fit = dffl.fit(fed, "local", dtype="float64", **QUICK)
    fit.save(tmp_path / "wide.dffl")
    np.testing.assert_array_equal(dffl.load(tmp_path / "wide.dffl").predict("a", fed[0].x), fit.predict("a", fed[0].x))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.dffl"
    dffl.fit(dffl.Federation([client("a", dffl.TopK(5, 2))]), "mean-cost").save(path)
    return path


def test_foreign_and_truncated_files_are_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file"):
        dffl.load(tmp_path / "nothing.dffl")
    (tmp_path / "text.dffl").write_text("hello")
    with pytest.raises(ValueError, match=r"text.dffl: not a dffl fit, or cut short"):
        dffl.load(tmp_path / "text.dffl")
    whole = saved.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 5):
        (tmp_path / "cut.dffl").write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cut.dffl: not a dffl fit, or cut short"):
            dffl.load(tmp_path / "cut.dffl")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme", "x")
    with pytest.raises(ValueError, match=r"other.zip: a zip file, but not a dffl fit"):
        dffl.load(tmp_path / "other.zip")


def flipped(saved: Path, bits: Iterable[int], folder: Path) -> collections.Counter[str]:
    """What loading says after each bit alone was flipped. Equal fits are saved as equal files."""
    dffl.load(saved).save(folder / "as-read.dffl")
    whole, expected, counts = saved.read_bytes(), (folder / "as-read.dffl").read_bytes(), collections.Counter[str]()
    path = folder / "flipped.dffl"
    for bit in bits:
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        try:
            dffl.load(path).save(folder / "again.dffl")
        except ValueError as error:
            counts["refused" if clear(error, path) else f"unclear: {error}"] += 1
        else:
            counts["same" if (folder / "again.dffl").read_bytes() == expected else "different"] += 1
    return counts


def clear(error: ValueError, path: Path) -> bool:
    """Whether a message is one line that names the file."""
    return str(error).startswith(f"{path}: ") and "\n" not in str(error)


def unsealed(saved: Path) -> Path:
    """The same fit as dffl 0.1.0 wrote it: compressed and without a digest."""
    members = archive.read(saved, "manifest.json", "a fit").members
    members["manifest.json"] = json.dumps(json.loads(members["manifest.json"]) | {"version": 1}).encode()
    target = saved.with_suffix(".old")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as old:
        for name, content in members.items():
            old.writestr(name, content)
    return target


def test_no_flipped_bit_is_read(saved: Path, tmp_path: Path) -> None:
    size = 8 * saved.stat().st_size
    bits = [*range(0, size, 23), *range(size - 8 * (archive.WIDTH + 22), size)]  # the end tells that there is a digest
    assert flipped(saved, bits, tmp_path) == {"refused": len(bits)}


def test_no_flipped_bit_of_an_old_file_changes_the_fit(saved: Path, tmp_path: Path) -> None:
    old = unsealed(saved)
    bits = range(0, 8 * old.stat().st_size, 23)
    counts = flipped(old, bits, tmp_path)
    assert counts["refused"] + counts["same"] == len(bits)
    assert counts["refused"] > len(bits) / 2
    whole = old.read_bytes()
    for bit in bits:
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        (tmp_path / "flipped.dffl").write_bytes(content)
        with contextlib.suppress(ValueError):  # zipfile alone raises zlib.error, RuntimeError and others
            archive.read(tmp_path / "flipped.dffl", "manifest.json", "a fit")


@pytest.mark.slow
def test_no_flipped_bit_at_all_is_read(saved: Path, tmp_path: Path) -> None:
    size = 8 * saved.stat().st_size
    assert flipped(saved, range(size), tmp_path) == {"refused": size}
    old = unsealed(saved)
    counts = flipped(old, range(8 * old.stat().st_size), tmp_path)
    assert set(counts) == {"refused", "same"}
    dffl.fit(dffl.synthetic.knapsack(clients=100, samples=5), "local", rounds=1).save(tmp_path / "large.dffl")
    bits = np.random.default_rng(0).integers(8 * (tmp_path / "large.dffl").stat().st_size, size=10_000).tolist()
    assert flipped(tmp_path / "large.dffl", bits, tmp_path) == {"refused": len(bits)}


def test_old_files_are_read_and_new_ones_need_their_digest(saved: Path, tmp_path: Path) -> None:
    dffl.load(unsealed(saved)).save(tmp_path / "again.dffl")
    assert (tmp_path / "again.dffl").read_bytes() == saved.read_bytes()
    with pytest.raises(ValueError, match="format 1 with a digest"):
        dffl.load(changed(saved, {"version": 1}, tmp_path))
    (tmp_path / "cut.dffl").write_bytes(saved.read_bytes()[: -archive.WIDTH])
    with pytest.raises(ValueError, match=r"cut.dffl: not a dffl fit, or cut short \(format 2 without a digest\)"):
        dffl.load(tmp_path / "cut.dffl")


def test_a_network_that_is_too_large_is_refused_before_it_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dffl.fit(dffl.Federation([client("a", dffl.TopK(5, 2))]), "fedavg", rounds=1).save(tmp_path / "model.dffl")
    settings = dffl.Settings(rounds=1, hidden=10**6).described()
    path = changed(tmp_path / "model.dffl", {"settings": settings}, tmp_path)
    monkeypatch.setattr(jax.random, "uniform", lambda *_, **__: pytest.fail("its weights were drawn"))
    monkeypatch.setattr(dffl.storage, "Template", lambda network: pytest.fail("it was built"))
    with pytest.raises(ValueError, match="its network has 581 numbers, the given factory makes one of 9000005"):
        dffl.load(path)


def test_what_would_fill_the_memory_is_refused_before(saved: Path, tmp_path: Path) -> None:
    rows = 4 * 10**7
    table, claim = io.BytesIO(), io.BytesIO()
    pd.DataFrame({"round": np.zeros(rows, np.int8)}).to_parquet(table)
    np.lib.format.write_array_header_1_0(claim, {"descr": "<f8", "fortran_order": False, "shape": (rows,)})
    for name, bomb in (("sealed", {"manifest.json": b"0" * rows}), ("member", {"more": b"0" * rows, "manifest.json": b"{}"})):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archived:
            for member, content in bomb.items():
                archived.writestr(member, content)
            archived.comment = bytes(archive.WIDTH if name == "sealed" else 0)
    body = (tmp_path / "sealed").read_bytes()[: -archive.WIDTH]
    (tmp_path / "sealed").write_bytes(body + archive._seal(body))
    lying = bytearray((tmp_path / "member").read_bytes())  # its headers promise one byte
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = lying.index(signature) + offset
        lying[place : place + 4] = (1).to_bytes(4, "little")
    (tmp_path / "lying").write_bytes(lying)
    for path, message in (
        (changed(saved, {}, tmp_path, {"history.parquet": table.getvalue()}), "a history of 40,000,000 rows"),
        (changed(saved, {}, tmp_path, {"arrays/0.npy": claim.getvalue()}), "is not what its size says"),
        (tmp_path / "sealed", "it unpacks to far more than its size"),
        (tmp_path / "member", "it unpacks to far more than its size"),
        (tmp_path / "lying", "not a dffl fit, or cut short .*Bad CRC"),
    ):
        tracemalloc.start()
        with pytest.raises(ValueError, match=message):
            dffl.load(path)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < rows / 10, path


NASTY = [
    None, [], {}, -1, 0, 0.5, 1e308, math.nan, math.inf, 2**63, 10**30, "", "x", "x" * 10**5, True, [[1]], "a\nb", "\ud800",
    {"array": 0}, {"array": -1}, {"array": []}, {"network": 0}, {"dict": 5}, {"dict": {"a": [1]}}, {"set": [], "spec": {}},
    {"set": "Simplex", "spec": {"dim": 10**12}}, {"kind": "ConstantPredictor", "fields": {"costs": "a"}},
    {"kind": "ForecastPredictor", "fields": {"costs": "a"}}, {"kind": "loss", "name": []}, "deep",
]  # fmt: skip


def places(value: Any) -> Iterable[tuple[Any, Any]]:
    """Every dictionary or list inside, with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


@pytest.mark.parametrize(("method", "every"), [("mean-cost", 3), ("nearest", 9), ("trees", 12), ("interp-spo", 15)])
def test_a_manifest_that_was_edited_is_refused_or_decides(
    method: str, every: int, federation: dffl.Federation, tmp_path: Path
) -> None:
    dffl.fit(federation, method, rounds=1, local_epochs=1, hidden=2).save(tmp_path / "model.dffl")
    members, path = archive.read(tmp_path / "model.dffl", "manifest.json", "a fit").members, tmp_path / "edited.dffl"
    manifest = json.loads(members["manifest.json"])
    counts = collections.Counter[str]()
    for number, (inside, key) in enumerate(places(manifest)):
        kept = inside[key]
        for nasty in NASTY[number % every :: every]:
            inside[key] = nasty
            text = json.dumps(manifest).replace('"deep"', "[" * 10**4 + "]" * 10**4)
            archive.write(path, members | {"manifest.json": text.encode()})
            try:
                fit = dffl.load(path)
            except ValueError as error:
                counts["refused" if clear(error, path) else f"unclear: {error}"] += 1
                continue
            counts["read"] += 1
            for one in federation:
                with contextlib.suppress(ValueError):  # another number of features, say
                    assert fit.decide(one.name, one.x).shape == one.c.shape
        inside[key] = kept
    assert set(counts) == {"refused", "read"}
    assert counts["refused"] > 150
    archive.write(path, members | {"manifest.json": json.dumps(manifest).encode()})
    dffl.load(path)  # what was refused was the edits


def test_two_classes_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"feasible set 'Box' is there already \(dffl.sets.box.Box\).*tests.test_storage\."):
        type("Box", (dffl.Box,), {"__module__": __name__, "__qualname__": "Box"})
    with pytest.raises(ValueError, match=r"'ConstantPredictor' is there already \(dffl.predictor.*\).*tests.test_storage\."):
        type("ConstantPredictor", (dffl.Predictor,), {"__module__": __name__})
    assert FeasibleSet.families["Box"] is dffl.Box
    cells = [type("Cell", (dffl.Box,), {"__module__": "__main__", "__qualname__": "Cell"}) for _ in range(2)]
    assert FeasibleSet.families.pop("Cell") is cells[1], "a cell of a notebook that is run again"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "written by a newer dffl"),
        ({"version": 0}, "version must be a whole number >= 1, found 0"),
        ({"version": -5}, "version must be a whole number >= 1, found -5"),
        ({"version": True}, "version must be a whole number >= 1, found True"),
        ({"format": "something"}, "not a dffl fit \\(its format is 'something'\\)"),
        (
            {"members": [{"name": "a", "n": 1, "set": {"set": "Mystery", "spec": {}}}]},
            "a set of class 'Mystery', which is not loaded",
        ),
        ({"settings": {"network": None, "speed": 5}}, "unknown setting 'speed'"),
    ],
)
def test_other_versions_and_unknown_classes_are_named(
    change: dict[str, object], message: str, saved: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        dffl.load(changed(saved, change, tmp_path))


def changed(saved: Path, change: dict[str, object], folder: Path, members: dict[str, bytes] | None = None) -> Path:
    """The file with another manifest and other members, sealed."""
    contents = archive.read(saved, "manifest.json", "a fit").members | (members or {})
    contents["manifest.json"] = json.dumps(json.loads(contents["manifest.json"]) | change).encode()
    target = folder / f"changed-{len(list(folder.iterdir()))}.dffl"
    archive.write(target, contents)
    return target


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("mean-cost", {}),
        ("finetune", {"epochs": [0, 7], "refit": False}),
        ("interp-mse", {"lambda_step": 0.1}),
        ("oracle-interp-spo", {"lambda_step": 0.1}),
    ],
)
def test_settings_of_version_0_1_0_that_are_now_options_are_read(
    method: str, options: dict[str, object], saved: Path, tmp_path: Path
) -> None:
    old = {"network": None, "rounds": 3, "finetune_epochs": [0, 7], "finetune_refit": False, "lambda_step": 0.1}
    loaded = dffl.load(changed(saved, {"method": method, "settings": old}, tmp_path))
    assert (loaded.method, loaded.options, loaded.settings) == (method, options, dffl.Settings(rounds=3))


def test_a_file_of_version_0_1_0_knows_no_names_of_costs(saved: Path, tmp_path: Path) -> None:
    members = archive.read(saved, "manifest.json", "a fit").members
    manifest = json.loads(members["manifest.json"])
    del manifest["cost_names"], manifest["about"], manifest["options"]
    archive.write(tmp_path / "old.dffl", members | {"manifest.json": json.dumps(manifest).encode()})
    assert dffl.load(tmp_path / "old.dffl").cost_names is None


def test_saving_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = dffl.fit(dffl.Federation([client("a", dffl.TopK(5, 2))]), "mean-cost")
    target = tmp_path / "model.dffl"
    fit.save(target)
    before = target.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="no space left"):
        fit.save(target)
    assert target.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.dffl"]
    with pytest.raises(ValueError, match="must name a file in a folder that exists"):
        fit.save(tmp_path)

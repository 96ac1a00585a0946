"""Saved fits decide as before; foreign, damaged and newer files are refused in one line."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import dffl
from tests.federations import client, feasible_sets, mixed

QUICK = {"rounds": 2, "local_epochs": 2}


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    return dffl.Federation(
        [client(family, feasible_sets()[family], maximize=family == "topk") for family in ("topk", "polytope")]
    )


def test_every_family_of_sets_is_saved(tmp_path: Path) -> None:
    fed = mixed()
    dffl.fit(fed, "mean-cost").save(tmp_path / "all.dffl")
    loaded = dffl.load(tmp_path / "all.dffl")
    for one in fed:
        again = loaded.members[one.name]
        assert (type(again.set), again.maximize, again.n) == (type(one.set), one.maximize, one.n)
        for mine, theirs in zip(again.set.spec().values(), one.set.spec().values(), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("method", ["mean-cost", "fedavg", "interp-spo", "finetune"])
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
    with pytest.raises(ValueError, match=r"trained with the network '.*tiny'; hand in its factory: load\(path, network=...\)"):
        dffl.load(tmp_path / "own.dffl")
    with pytest.raises(ValueError, match="its network has 41 numbers, the given factory makes one of 20"):
        dffl.load(tmp_path / "own.dffl", network=lambda key, p, d: eqx.nn.Linear(p, d, key=key))
    loaded = dffl.load(tmp_path / "own.dffl", network=tiny)
    np.testing.assert_array_equal(loaded.predict("a", fed[0].x), fit.predict("a", fed[0].x))


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


def test_a_flipped_byte_is_noticed(saved: Path, tmp_path: Path) -> None:
    whole = bytearray(saved.read_bytes())
    with zipfile.ZipFile(saved) as archive:
        info = archive.getinfo("arrays/0.npy")
    whole[info.header_offset + 30 + len("arrays/0.npy") + 5] ^= 0xFF
    (tmp_path / "flipped.dffl").write_bytes(bytes(whole))
    with pytest.raises(ValueError, match=r"flipped.dffl: (damaged at|not a dffl fit, or cut short)"):
        dffl.load(tmp_path / "flipped.dffl")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "written by a newer dffl"),
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


def changed(saved: Path, change: dict[str, object], folder: Path) -> Path:
    """The file with another manifest."""
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(folder / "changed.dffl", "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, json.dumps(json.loads(content) | change) if name == "manifest.json" else content)
    return folder / "changed.dffl"


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
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(tmp_path / "old.dffl", "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "manifest.json":
                content = json.dumps({key: value for key, value in json.loads(content).items() if key != "cost_names"}).encode()
            target.writestr(name, content)
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

"""Fits on disk: one zip file with a manifest in JSON, arrays as .npy and the history as Parquet. Nothing is pickled.

A predictor is stored as the tree of its fields. A network is stored as its vector of numbers and rebuilt by the factory that
made it, so a fit with a network of one's own is loaded with ``load(path, network=factory)``.
"""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import dffl
from dffl.files import write_whole
from dffl.fitting import Fit, Member
from dffl.named import plain, rebuilt
from dffl.predictor import NetworkFactory, Normaliser, Predictor, Template
from dffl.sets import FeasibleSet
from dffl.training import METHODS, Settings
from dffl.training.settings import MOVED

FORMAT, VERSION = "dffl-fit", 1


def save(fit: Fit, path: str | PathLike[str]) -> None:
    """Write a fit to ``path``: first beside it, then moved into place, so that no half-written file is left."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise ValueError(f"{target}: must name a file in a folder that exists")
    writer = _Writer()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "dffl": dffl.__version__,
        "method": fit.method,
        "options": {name: plain(value) for name, value in fit.options.items()},
        "settings": fit.settings.described(),
        "features": fit.features,
        "feature_names": fit.feature_names,
        "cost_names": fit.cost_names,
        "dim": fit.dim,
        "members": [{f.name: writer.encode(getattr(m, f.name)) for f in dataclasses.fields(m)} for m in fit.members.values()],
        "shared": writer.encode(fit.shared),
        "about": fit.about,
    }

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("manifest.json", json.dumps(manifest))
            archive.writestr("history.parquet", _parquet(fit.history))
            for number, array in enumerate(writer.arrays):
                buffer = io.BytesIO()
                np.save(buffer, array, allow_pickle=False)
                archive.writestr(f"arrays/{number}.npy", buffer.getvalue())

    write_whole(target, write, mode=0o600)  # a model may tell of data that stay home


def load(path: str | PathLike[str], network: NetworkFactory | None = None) -> Fit:
    """Read a fit that `Fit.save` wrote. ``network`` is the factory of a network of one's own."""
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"{source}: {'a folder, not a saved fit' if source.is_dir() else 'no such file'}")
    try:
        with zipfile.ZipFile(source) as archive:
            broken = archive.testzip()
            contents = {} if broken else {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
        raise ValueError(f"{source}: not a dffl fit, or cut short ({error})") from None
    if broken:
        raise ValueError(f"{source}: damaged at {broken}; save the fit again")
    if "manifest.json" not in contents:
        raise ValueError(f"{source}: a zip file, but not a dffl fit (no manifest.json)")
    try:
        manifest = json.loads(contents["manifest.json"])
        named, version = manifest["format"], manifest["version"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{source}: not a dffl fit (its manifest cannot be read)") from None
    if named != FORMAT or not isinstance(version, int):
        raise ValueError(f"{source}: not a dffl fit (its format is {named!r})")
    if version > VERSION:
        raise ValueError(f"{source}: written by a newer dffl (format {version}, this one reads up to {VERSION}); upgrade dffl")
    try:
        return _rebuild(manifest, contents, network)
    except KeyError as missing:
        raise ValueError(f"{source}: incomplete, {missing} is missing; save the fit again") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: {error}") from None


def _rebuild(manifest: dict[str, Any], contents: dict[str, bytes], network: NetworkFactory | None) -> Fit:
    values, options = dict(manifest["settings"]), {k: rebuilt(v) for k, v in manifest.get("options", {}).items()}
    for old, (option, _) in MOVED.items():  # version 0.1.0 had these options among the settings
        if old in values:
            value = values.pop(old)
            if manifest["method"] in METHODS and option in METHODS[manifest["method"]].options:
                options[option] = value
    wanted = values.pop("network")
    if wanted is not None and network is None:
        raise ValueError(f"trained with the network {wanted!r}; hand in its factory: load(path, network=...)")
    settings = Settings.read(values, network if wanted is not None else None)
    features, dim = manifest["features"], manifest["dim"]
    reader = _Reader(contents, settings, features, dim)
    members = [Member(**{name: reader.decode(value) for name, value in row.items()}) for row in manifest["members"]]
    history = pd.read_parquet(io.BytesIO(contents["history.parquet"]))
    names, cost_names = manifest["feature_names"], manifest.get("cost_names")  # version 0.1.0 knew none of costs
    return Fit(
        method=manifest["method"],
        settings=settings,
        features=features,
        feature_names=None if names is None else tuple(names),
        cost_names=None if cost_names is None else tuple(cost_names),
        dim=dim,
        members={member.name: member for member in members},
        shared=reader.decode(manifest["shared"]),
        history=history,
        about=manifest.get("about", {}),
        options=options,
    )


class _Writer:
    """Turns a tree of fields into JSON, with arrays and networks by number; one that is shared is written once."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # an id is only good while its object lives

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.bool_ | np.integer | np.floating):
            return value.item()
        if isinstance(value, np.ndarray | jax.Array):
            return {"array": self._number(value, value)}
        if isinstance(value, FeasibleSet):
            return {"set": type(value).__name__, "spec": self._fields(value.spec())}
        if isinstance(value, Predictor | Normaliser):
            own = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return {"kind": type(value).__name__, "fields": self._fields(own)}
        if isinstance(value, eqx.Module):
            return {"network": self._number(value, lambda: Template(value).vector(value))}
        if isinstance(value, dict):
            return {"dict": self._fields(value)}
        raise ValueError(f"cannot save a {type(value).__name__}; predictors hold arrays, numbers, predictors and networks")

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: self.encode(value) for name, value in fields.items()}

    def _number(self, owner: Any, content: Any) -> int:
        if id(owner) not in self._numbers:
            self._numbers[id(owner)] = len(self.arrays)
            self._alive.append(owner)
            with jax.enable_x64(True):
                self.arrays.append(np.asarray(content() if callable(content) else content))
        return self._numbers[id(owner)]


class _Reader:
    """Turns the JSON tree back into objects."""

    def __init__(self, contents: dict[str, bytes], settings: Settings, features: int, dim: int):
        self._contents = contents
        self._settings, self._features, self._dim = settings, features, dim
        self._template: Template | None = None
        self._networks: dict[int, Any] = {}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self._array(value["array"])
        if "network" in value:
            return self._network(value["network"])
        if "dict" in value:
            return self._fields(value["dict"])
        if "set" in value:
            return _known(FeasibleSet.families, value["set"], "set")(**self._fields(value["spec"]))
        kinds: dict[str, Any] = {"Normaliser": Normaliser, **Predictor.kinds}
        return _known(kinds, value["kind"], "predictor")(**self._fields(value["fields"]))

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: self.decode(value) for name, value in fields.items()}

    def _array(self, number: int) -> np.ndarray:
        return np.asarray(np.load(io.BytesIO(self._contents[f"arrays/{number}.npy"]), allow_pickle=False))

    def _network(self, number: int) -> Any:
        if number not in self._networks:
            vector = self._array(number)
            with jax.enable_x64(vector.dtype == np.float64):
                if self._template is None:
                    key = jax.random.key(0)
                    self._template = Template(self._settings.factory(key, self._features, self._dim))
                if self._template.size != vector.size:
                    raise ValueError(
                        f"its network has {vector.size} numbers, the given factory makes one of {self._template.size}"
                    )
                self._networks[number] = self._template.network(jnp.asarray(vector))
        return self._networks[number]


def _known(kinds: dict[str, Any], name: str, what: str) -> Any:
    if name not in kinds:
        raise ValueError(f"it holds a {what} of class {name!r}, which is not loaded; import the module that defines it first")
    return kinds[name]


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()

"""Fits on disk: one sealed zip file with a manifest in JSON, arrays as .npy and the history as Parquet. Nothing is pickled.

A predictor is stored as the tree of its fields. A network is stored as its vector of numbers and rebuilt by the factory that
made it, so a fit with a custom network is loaded with ``load(path, network=factory)``; a digest of what that network
computes tells another one of the same shapes. A black-box solver is stored by its name, and passed again: ``load(path,
solvers={name: function})``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.extend.core import jaxprs_in_params

import dffl
from dffl.archive import Archive, in_one_line, packed, read, unpacked, write
from dffl.checks import require_whole
from dffl.feature_range import normalisers
from dffl.files import require_target, special, write_whole
from dffl.fitting import Fit, Member
from dffl.limits import Asked, Limits
from dffl.named import plain, rebuilt
from dffl.parquet_pages import extent, text_bytes
from dffl.predictor import NetworkFactory, NetworkPredictor, Normaliser, Predictor, Template
from dffl.sets import FeasibleSet, Solver
from dffl.sets._host import built_later
from dffl.sets.solver import handed_in
from dffl.tiles import Flat, is_array, places_by
from dffl.training import METHODS, Settings
from dffl.training.checkpoint import computation
from dffl.training.settings import MOVED, NETWORKS

FORMAT, VERSION = "dffl-fit", 2
"""Version 1, of dffl 0.1.0, had no seal."""
LONGEST_NAME = 1000
"""The most characters of a client's name."""
MOST_SAMPLES = 10**12
"""The largest number of samples of a client in a file."""
PARTS = re.compile(r"manifest\.json|history\.parquet|arrays/[0-9]{1,9}\.npy")
"""The names of a file's members."""
POSITIVE: dict[type, tuple[str, ...]] = {Normaliser: ("x_scale", "c_scale"), NetworkPredictor: ("tau",)}
"""The fields by which predictions are divided or clipped."""
ASKED = {
    "dim": "decisions",
    "cells": "numbers",
    "texts": "characters",
    "nodes": "nodes of branch and bound",
    "seconds": "seconds of search",
}
"""The words of messages for the requests of a set."""


def save(fit: Fit, path: str | PathLike[str]) -> None:
    """Write a fit to ``path``: first next to it, then moved into place, so that no incomplete file is left."""
    target = Path(path)
    require_target(target, "the path of a fit")
    members = members_of(fit)
    write_whole(target, lambda where: write(where, members), mode=0o600)  # a model may reveal its training data


def members_of(fit: Fit) -> dict[str, bytes]:
    """The members of a fit's file."""
    writer = Writer()
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
    if fit.settings.network is not None:
        manifest["computes"] = {"jax": jax.__version__, "digest": _computes(fit.settings, fit.features, fit.dim)}
    arrays = {f"arrays/{number}.npy": content for number, content in enumerate(writer.arrays)}
    return {"manifest.json": json.dumps(manifest).encode(), "history.parquet": fit.history.to_parquet(index=False)} | arrays


def load(
    path: str | PathLike[str],
    network: NetworkFactory | None = None,
    solvers: Mapping[str, Any] | None = None,
    limits: Limits | Mapping[str, float] | None = None,
) -> Fit:
    """Read a fit that `Fit.save` wrote. ``network`` is the factory of a custom network.

    - ``solvers``: by name, the functions of `dffl.Solver` sets, or these sets themselves, which keep their options; for
      `dffl.sets.pyepo` also PyEPO's models.
    - ``limits``: raises limits for a large model of a known origin, such as ``{"clients": 50_000}`` (see `dffl.Limits`).

    The file may come from a stranger: it contains no code and no paths, and its requests are bounded before anything is
    built.
    """
    source, bounds = Path(path), Limits.of(limits)
    if not source.is_file():
        what = "a folder" if source.is_dir() else special(source)
        raise ValueError(f"{source}: {f'{what}, not a saved fit' if what else 'no such file'}")
    try:
        fit = fit_from(read(source, "manifest.json", "a dffl fit", bounds), Asked(bounds), network, solvers)
    except ValueError as error:
        raise ValueError(f"{source}: {in_one_line(error)}") from None
    except Exception as error:  # an edited manifest can cause any error
        raise ValueError(f"{source}: cannot be read ({in_one_line(error)})") from error
    return fit


def fit_from(
    archive: Archive, asked: Asked, network: NetworkFactory | None = None, solvers: Mapping[str, Any] | None = None
) -> Fit:
    """The fit of these members, checked."""
    for name in archive.members:
        if not PARTS.fullmatch(name):
            raise ValueError(f"it holds a part {name!r:.80}, which no dffl fit has")
    fit = _rebuild(_manifest(archive), archive.members, network, solvers or {}, asked)
    _check(fit, asked)
    return fit


def _manifest(archive: Archive) -> dict[str, Any]:
    try:
        manifest = json.loads(archive.members["manifest.json"])
        named, version = manifest["format"], manifest["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("not a dffl fit (its manifest cannot be read)") from None
    if named != FORMAT:
        raise ValueError(f"not a dffl fit (its format is {named!r:.80})")
    require_whole("version", version, least=1)
    if version > VERSION:
        raise ValueError(f"written by a newer dffl (format {version}, this one reads up to {VERSION}); upgrade dffl")
    if archive.sealed != (version > 1):
        raise ValueError(f"not a dffl fit, or cut short (format {version} with{'' if archive.sealed else 'out'} a digest)")
    return manifest


def _rebuild(
    manifest: dict[str, Any],
    contents: dict[str, bytes],
    network: NetworkFactory | str | None,
    solvers: Mapping[str, Any],
    asked: Asked,
) -> Fit:
    limits = asked.limits
    method, features, dim = manifest["method"], manifest["features"], manifest["dim"]
    about, options = manifest.get("about", {}), manifest.get("options", {})
    if not isinstance(method, str) or not isinstance(about, dict):
        raise ValueError(f"method must be a name and about a dictionary, found {method!r:.80} and {about!r:.80}")
    require_whole("features", features, least=1)
    require_whole("dim", dim, least=1)
    limits.check("dim", features, "features")
    limits.check("dim", dim, "decisions")
    limits.check("clients", len(manifest["members"]), "clients")
    _count_texts(manifest["members"], asked)  # before the first is parsed
    values, options = dict(manifest["settings"]), {name: rebuilt(value) for name, value in options.items()}
    for old, (option, _) in MOVED.items():  # version 0.1.0 had these options among the settings
        if old in values:
            value = values.pop(old)
            if method in METHODS and option in METHODS[method].options:
                options[option] = value
    wanted = values.pop("network")
    if network is None and wanted in NETWORKS:
        network = wanted
    if wanted is not None and network is None:
        raise ValueError(f"trained with the network {wanted!r:.80}; pass its factory: load(path, network=...)")
    settings = Settings.read(values, network if wanted is not None else None)
    if dim * (settings.item_features + bool(settings.forecast)) > features:
        raise ValueError(f"{settings.item_features} features of each of {dim} items must be among its {features} features")
    reader = Reader(contents, settings, features, dim, solvers, asked, len(manifest["members"]))
    members = [reader.member(row) for row in manifest["members"]]
    shared = reader.shared(manifest["shared"])
    if reader.has_networks:
        _require_same_network(manifest, settings)
    by_name = {member.name: member for member in members}
    if len(by_name) < len(members) or not (members or manifest["shared"]):
        raise ValueError(
            f"members must be clients of different names, one or more without a shared model, found {len(members)}"
        )
    return Fit(
        method=method,
        settings=settings,
        features=features,
        feature_names=_names("feature_names", manifest["feature_names"], features),
        cost_names=_names("cost_names", manifest.get("cost_names"), dim),  # version 0.1.0 had none
        dim=dim,
        members=by_name,
        shared=shared,
        history=_history(contents["history.parquet"], asked),
        about=about,
        options=options,
    )


def _require_same_network(manifest: dict[str, Any], settings: Settings) -> None:
    """Refuse a factory whose network has the right shapes but computes something else."""
    told = manifest.get("computes")
    if settings.network is None or not isinstance(told, dict) or told.get("jax") != jax.__version__:
        return  # 0.2.0 stored no digest, and another JAX may write the same steps differently
    if told.get("digest") != _computes(settings, manifest["features"], manifest["dim"]):
        wanted = manifest["settings"]["network"]
        fix = f"pass the factory that it was trained with, {wanted!r:.80}"
        raise ValueError(f"the given network has the right shapes, but computes something else than the saved one; {fix}")


def _computes(settings: Settings, features: int, dim: int) -> str:
    """A digest of what a custom network computes."""
    with jax.enable_x64(settings.dtype == "float64"):  # as in training, whatever settings the calling program has
        return hashlib.blake2b(computation(settings, features, dim).encode(), digest_size=16).hexdigest()


def _names(field: str, value: Any, count: int) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != count or not all(type(name) in (str, int) for name in value):
        raise ValueError(f"{field} must be {count} texts, or whole numbers, found {value!r:.80}")
    return tuple(value)


def _history(content: bytes, asked: Asked) -> pd.DataFrame:
    try:
        about = extent(content)
    except IndexError:
        raise ValueError("its history is cut short") from None
    asked.limits.check("cells", about.rows * about.columns, f"cells of a history of {about.rows:,} rows")
    asked.add("cells", about.rows * about.columns, "cells of all histories")
    asked.add("cells", about.unpacked // 8, "cells of a history, unpacked")
    asked.add("cells", text_bytes(content, about.texts) // 8, "cells of a history with long texts")
    return pd.read_parquet(io.BytesIO(content))


def _parts(predictor: Predictor) -> int:
    """The number of predictors inside a predictor, including itself."""
    inner = jax.tree.leaves(predictor, is_leaf=lambda node: isinstance(node, Predictor) and node is not predictor)
    return 1 + sum(_parts(part) for part in inner if isinstance(part, Predictor))


def _check(fit: Fit, asked: Asked) -> None:
    """Refuse members that could not predict and decide: a manifest may contain anything."""
    for member in fit.members.values():
        who = f"client {member.name!r:.80}"
        if not isinstance(member.name, str) or not member.name or not member.name.isprintable():
            raise ValueError(f"{who}: its name must be a non-empty text without control characters")
        if len(member.name) > LONGEST_NAME:
            raise ValueError(f"{who}: its name must have at most {LONGEST_NAME:,} characters, found {len(member.name):,}")
        require_whole(f"{who}: n", member.n, least=1, most=MOST_SAMPLES)
        if not isinstance(member.set, FeasibleSet) or member.set.batch_shape or member.set.dim != fit.dim:
            raise ValueError(f"{who}: set must be a single set of {fit.dim} decisions, found {member.set!r:.80}")
        if not isinstance(member.maximize, bool):
            raise ValueError(f"{who}: maximize must be true or false, found {member.maximize!r:.80}")
        if not isinstance(member.choices, dict) or any(isinstance(value, dict | list) for value in member.choices.values()):
            raise ValueError(f"{who}: choices must be named numbers, found {member.choices!r:.80}")
        if member.out_of_fold is not None and not _is_out_of_fold(member.out_of_fold, member.n, fit.dim):
            raise ValueError(f"{who}: out_of_fold must be tables of {member.n} samples, found {member.out_of_fold!r:.80}")
    predictors = [member.predictor for member in fit.members.values()] + ([] if fit.shared is None else [fit.shared])
    for predictor in predictors:
        if not isinstance(predictor, Predictor):
            raise ValueError(f"a predictor must be one of dffl, found {predictor!r:.80}")
        for unit in normalisers(predictor):
            if not np.shape(unit.x_mean) == np.shape(unit.x_scale) == (fit.features,):
                raise ValueError(f"the units of a predictor must be of {fit.features} features, found {unit!r:.80}")
    forms = places_by(Flat(predictor).form for predictor in predictors)
    inside = sum(_parts(predictors[alike[0]]) - 1 for alike in forms)
    asked.add("models", inside, "parts of all different predictors")
    for alike in forms:  # one of each form is traced, with shapes only
        arrays, rest = eqx.partition(predictors[alike[0]], is_array)
        with jax.enable_x64(True):
            rows = jax.ShapeDtypeStruct((2, fit.features), np.float64)
            steps, outputs = jax.make_jaxpr(lambda traced, x, rest=rest: eqx.combine(traced, rest)(x), return_shape=True)(
                arrays, rows
            )
        asked.limits.check("cells", _largest(steps.jaxpr), "numbers in one step of a prediction")
        if outputs.shape != (2, fit.dim) or not jnp.isdtype(outputs.dtype, ("integral", "real floating")):
            raise ValueError(f"a predictor must give {fit.dim} costs for a row of features, found {outputs}")


def _largest(steps: Any) -> int:
    """The most numbers that one step of a computation returns, also inside its loops."""
    sizes = [math.prod(out.aval.shape) for step in steps.eqns for out in step.outvars]
    inner = [_largest(equations) for step in steps.eqns for equations in jaxprs_in_params(step.params)]
    return max(sizes + inner, default=0)


def _is_out_of_fold(value: Any, n: int, dim: int) -> bool:
    shapes = {"predicted": (n, dim), "objective": (n,), "regret": (n,)}
    return isinstance(value, dict) and {name: np.shape(array) for name, array in value.items()} == shapes


class Writer:
    """Converts a tree of fields to JSON, with arrays and networks by number; equal ones are written once."""

    def __init__(self) -> None:
        self.arrays: dict[bytes, int] = {}
        self._networks: dict[int, int] = {}  # by id: they exist as long as the fit
        self._solvers: dict[str, Solver] = {}

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.bool_ | np.integer | np.floating):
            return value.item()
        if isinstance(value, np.ndarray | jax.Array):
            return {"array": self._number(value)}
        if isinstance(value, FeasibleSet):
            if isinstance(value, Solver) and self._solvers.setdefault(value.name, value) != value:
                fix = "give each its own name=, by which it is passed when the fit is loaded"
                raise ValueError(f"cannot save: two different solvers are named {value.name!r}; {fix}")
            return {"set": type(value).__name__, "spec": self._fields(value.spec())}
        if isinstance(value, Predictor | Normaliser):
            values = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return {"kind": type(value).__name__, "fields": self._fields(values)}
        if isinstance(value, eqx.Module):
            if id(value) not in self._networks:
                with jax.enable_x64(True):
                    self._networks[id(value)] = self._number(Template(value).vector(value))
            return {"network": self._networks[id(value)]}
        if isinstance(value, dict):
            return {"dict": self._fields(value)}
        if isinstance(value, tuple):
            return {"tuple": [self.encode(item) for item in value]}
        raise ValueError(f"cannot save a {type(value).__name__}; predictors hold arrays, numbers, predictors and networks")

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: self.encode(value) for name, value in fields.items()}

    def _number(self, array: Any) -> int:
        with jax.enable_x64(True):
            return self.arrays.setdefault(packed(np.asarray(array)), len(self.arrays))


class Reader:
    """Converts the JSON tree back to objects, once their size is known to be bounded."""

    def __init__(
        self,
        contents: dict[str, bytes],
        settings: Settings,
        features: int,
        dim: int,
        solvers: Mapping[str, Any],
        asked: Asked,
        clients: int,
    ):
        self._contents, self._solvers, self._limits, self._asked = contents, dict(solvers), asked.limits, asked
        self._settings, self._features, self._dim = settings, features, dim
        self._sets_left, self._models, self._deep = clients, 0, 0
        self._sizes = set[int]()
        """Sizes of parts of the predictors: parts of different sizes have different forms."""
        self._template: Template | None = None
        self._networks: dict[int, Any] = {}
        self._arrays: dict[int, np.ndarray] = {}
        self._digests: dict[int, str] = {}
        self._who = ""

    @property
    def has_networks(self) -> bool:
        """Whether a network was built."""
        return bool(self._networks)

    def member(self, row: dict[str, Any]) -> Member:
        self._who = f"client {row.get('name')!r:.80}"
        return Member(**self._fields(row))

    def shared(self, value: Any) -> Any:
        self._who = "the shared model"
        return self.decode(value)

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            raise ValueError(f"it holds a list where a fit has none, {value!r:.80}")
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self._array(value["array"])
        if "network" in value:
            return self._network(value["network"])
        if "dict" in value:
            return self._fields(value["dict"])
        if "tuple" in value:
            return tuple(self.decode(item) for item in value["tuple"])
        if "set" in value:
            return self._set(_family(value["set"]), value["spec"])
        return self._predictor(_predictor_kind(value["kind"]), value["fields"])

    def _set(self, family: type[FeasibleSet], fields: dict[str, Any]) -> FeasibleSet:
        self._sets_left -= 1
        if self._sets_left < 0:
            raise ValueError("it holds more sets than clients")
        if family.internal or any(name in fields for name in family.local):
            raise ValueError(f"it holds a set {family.__name__} of {', '.join(fields):.80}, which no fit does")
        if family is Solver:
            return self._solver(**self._fields(fields))
        key = family, hashlib.blake2b(json.dumps(self._content(fields)).encode(), digest_size=32).digest()
        if key not in self._asked.sets:  # equal sets of many clients are one
            self._asked.sets[key] = self._new_set(family, self._fields(fields))
        feasible_set: FeasibleSet = self._asked.sets[key]
        return feasible_set

    def _content(self, value: Any) -> Any:
        """A description with a digest of each array in place of its number, by which equal ones of several parts are told."""
        if isinstance(value, list):
            return [self._content(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return {"array": self._digest(value["array"])}
        return {name: self._content(inner) for name, inner in value.items()}

    def _digest(self, number: int) -> str:
        if number not in self._digests:
            self._digests[number] = hashlib.blake2b(self._contents[f"arrays/{number}.npy"], digest_size=32).hexdigest()
        return self._digests[number]

    def _new_set(self, family: type[FeasibleSet], spec: dict[str, Any]) -> FeasibleSet:
        asked = family.asked(spec)
        for name, value in asked.items():
            self._limits.check(name, value, f"{ASKED[name]} of a set {family.__name__}")
        self._asked.add("numbers", _count(asked.get("cells")) + _count(asked.get("dim")), "numbers or more of all sets")
        self._asked.add("texts", _count(asked.get("texts")), "characters or more of all model files")
        with built_later(self._limits.seconds):
            return family(**spec)

    def _predictor(self, kind: Any, fields: dict[str, Any]) -> Any:
        self._models, self._deep = (self._models if self._deep else 0) + 1, self._deep + 1
        self._limits.check("models", self._models, "parts of one predictor")
        try:
            predictor = self._fields(fields)
            for name, value in predictor.items():
                if isinstance(value, np.ndarray | int | float):
                    _require_usable(f"{self._who}: {name} of a {kind.__name__}", value, name in POSITIVE.get(kind, ()))
            if self._deep == 1:
                self._sizes.add(self._models)
                self._limits.check("models", sum(size - 1 for size in self._sizes), "parts of all different predictors")
            return kind(**predictor)
        finally:
            self._deep -= 1

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: self.decode(value) for name, value in fields.items()}

    def _solver(self, name: str, dim: int) -> Solver:
        if not isinstance(name, str) or name not in self._solvers:
            fix = f"hand it in: load(path, solvers={{{name!r:.80}: function}})"
            raise ValueError(f"it needs the solver {name!r:.80}, whose code is not in the file; {fix}")
        # From now on the set, not the function: all clients that share it share one set.
        self._solvers[name] = handed_in(name, dim, self._solvers[name])
        return self._solvers[name]

    def _array(self, number: int) -> np.ndarray:
        """An array of the file: the same object wherever it stands, since a few bytes can name it any number of times."""
        if number not in self._arrays:
            self._arrays[number] = unpacked(self._contents[f"arrays/{number}.npy"])
            self._arrays[number].flags.writeable = False
        return self._arrays[number]

    def _network(self, number: int) -> Any:
        if number not in self._networks:
            vector = self._array(number)
            if vector.dtype not in (np.float32, np.float64) or vector.ndim != 1:
                raise ValueError(f"a network must be a vector of numbers, found shape {vector.shape} of {vector.dtype}")
            _require_usable(f"{self._who}: a network", vector)
            with jax.enable_x64(vector.dtype == np.float64):
                self._template = self._template or self._built(vector.size)
                if self._template.size != vector.size:
                    raise ValueError(_other_size(vector.size, self._template.size))
                self._networks[number] = self._template.network(jnp.asarray(vector))
        return self._networks[number]

    def _built(self, size: int) -> Template:
        make = (self._settings.factory, jax.random.key(0), self._features, self._dim)
        shapes = None
        try:  # first with shapes only: a manifest may ask for a network that fills the memory
            shapes = eqx.filter_eval_shape(*make)
            leaves = [leaf for leaf in jax.tree.leaves(shapes) if hasattr(leaf, "dtype")]
            trained = [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact)]
            built_size = sum(math.prod(leaf.shape) for leaf in trained)
        except Exception:
            if not callable(self._settings.network):
                raise
            built_size = size  # a custom factory need not work on shapes
        if built_size != size:
            raise ValueError(_other_size(size, built_size))
        if shapes is not None and len(trained) == len(leaves):  # its form is all that is needed: no random start is compiled
            return Template(jax.tree.map(_zeros, shapes))
        return Template(make[0](*make[1:]))


def _zeros(leaf: Any) -> Any:
    """Zeros in the place of an array of which only the shape is known."""
    return jnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf


def _count_texts(members: Any, asked: Asked) -> None:
    """Count the characters of the different model files of all clients."""
    for row in members:
        described = row.get("set") if isinstance(row, dict) else None
        spec = described.get("spec") if isinstance(described, dict) else None
        if not isinstance(spec, dict) or not isinstance(spec.get("text"), str) or (key := json.dumps(spec)) in asked.texts:
            continue
        asked.texts.add(key)
        asked.add("texts", len(spec["text"]), "characters of all model files")


def _count(value: Any) -> float:
    """The request of a set; None if it is not a number, which its constructor refuses."""
    return float(value) if isinstance(value, int | float | np.number) and value > 0 else 0.0


def _require_usable(what: str, value: Any, positive: bool = False) -> None:
    """Refuse values of a predictor that are not numbers, or with which all predictions would be meaningless."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or not array.dtype.isnative:
        raise ValueError(f"{what} must be numbers in the order of bytes of this machine, found the type {array.dtype}")
    bad = ~np.isfinite(array) | (array <= 0 if positive else False)
    if bad.any():
        raise ValueError(f"{what} must be finite{' and above 0' if positive else ''}, found {array[bad][0]:g}; train it again")


def _other_size(mine: int, theirs: int) -> str:
    return f"its network has {mine} numbers, the given factory makes one of {theirs}"


def _family(name: Any) -> type[FeasibleSet]:
    family = FeasibleSet.family_of(name) if isinstance(name, str) else None
    if family is None:
        fix = "install the package that brings it, or import the module that defines it first"
        raise ValueError(f"it holds a set of class {name!r:.80}, which is not loaded; {fix}")
    return family


def _predictor_kind(name: Any) -> Any:
    kinds: dict[str, Any] = {"Normaliser": Normaliser, **Predictor.kinds}
    if not isinstance(name, str) or name not in kinds:
        raise ValueError(
            f"it holds a predictor of class {name!r:.80}, which is not loaded; import the module that defines it first"
        )
    return kinds[name]

"""Models of `chosen` over time on disk: one sealed file with each client's last rows, and a fit for each part of the rules.

The file of a stranger is bounded like that of a fit. Networks are those of `dffl.time.network`, named in the manifest.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import dffl
from dffl.archive import Archive, in_one_line, read, write
from dffl.checks import require_whole
from dffl.federation import Client
from dffl.files import require_target, write_whole
from dffl.fitting import Fit
from dffl.items import of_items
from dffl.limits import Asked, Limits
from dffl.predictor import NetworkFactory
from dffl.storage import Reader, Writer, fit_from, members_of
from dffl.storage import load as load_fit
from dffl.time.bases import FORECAST, STEADY
from dffl.time.chosen import Chosen, parts_of
from dffl.time.network import FACTORIES
from dffl.time.own import features_of_past
from dffl.time.past import Past
from dffl.time.ranges import AdaptiveRange
from dffl.training import Settings

FORMAT, VERSION = "dffl-chosen", 2
"""Version 2 may contain models of a client's own features. Files without them have version 1."""
PART = re.compile(r"parts/([0-9]{1,3})/(.+)")
FURTHEST = 2.0
"""The size of a miss rate of a range: it moves by small steps, and back when it has left 0 to 1."""
ROWS = ("x", "c", "times", "feature_names", "cost_names", "maximize")
"""The saved arrays of a client, in addition to its name and its set."""


def save(model: Chosen, path: str | PathLike[str]) -> None:
    """Write a model to ``path``: first next to it, then moved into place, so that no incomplete file is left."""
    target, writer = Path(path), Writer()
    require_target(target, "the path of a model")
    clients = [
        {"name": value.name, "set": writer.encode(value.set), "brings": value.forecast is not None}
        | ({"item_features": value.item_features} if value.item_features else {})
        | {name: writer.encode(getattr(value, name)) for name in ROWS}
        for value in model.kept.values()
    ]
    manifest = {
        "format": FORMAT,
        "version": VERSION if model.own else 1,
        "dffl": dffl.__version__,
        **{name: getattr(model, name) for name in ("base", "weight", "dates", "share", "trained", "evidence", "about")},
        **({"own": list(model.own)} if model.own else {}),
        "rules": dict(model.rules),
        "past": dataclasses.asdict(model.past),
        "ranges": {name: dataclasses.asdict(value) for name, value in model.ranges.items()},
        "kept": clients,
        "parts": [{"name": name, "network": _described(fit)} for name, fit in model.parts.items()],
    }
    members = {"manifest.json": json.dumps(manifest).encode()}
    members |= {f"arrays/{number}.npy": content for number, content in enumerate(writer.arrays)}
    for number, fit in enumerate(model.parts.values()):
        members |= {f"parts/{number}/{name}": content for name, content in members_of(fit).items()}
    write_whole(target, lambda where: write(where, members), mode=0o600)  # it contains rows


def load(
    path: str | PathLike[str],
    network: NetworkFactory | None = None,
    solvers: Mapping[str, Any] | None = None,
    limits: Limits | Mapping[str, float] | None = None,
) -> Fit | Chosen:
    """Read a model that `Fit.save` or `Chosen.save` wrote; see `dffl.storage.load`."""
    source, bounds = Path(path), Limits.of(limits)
    if not source.is_file() or not _is_chosen(source, bounds):
        return load_fit(path, network, solvers, limits)
    try:
        archive = read(source, "manifest.json", "a dffl model", bounds)
        return _rebuilt(archive, bounds, solvers or {})
    except ValueError as error:
        raise ValueError(f"{source}: {in_one_line(error)}") from None
    except Exception as error:  # an edited manifest can cause any error
        raise ValueError(f"{source}: cannot be read ({in_one_line(error)})") from error


def _is_chosen(path: Path, bounds: Limits) -> bool:
    """Whether a file contains a model over time. Unreadable files are left to `dffl.storage`."""
    try:
        return bool(json.loads(read(path, "manifest.json", "a dffl fit", bounds).members["manifest.json"])["format"] == FORMAT)
    except Exception:
        return False


def _described(fit: Fit) -> dict[str, Any] | None:
    """The network factory of a fit, by name and fields."""
    factory = fit.settings.network
    if factory is None:
        return None
    if FACTORIES.get(type(factory).__name__) is not type(factory):
        raise ValueError(f"cannot save a model over time with networks of {type(factory).__name__}")
    return {"kind": type(factory).__name__, "fields": dataclasses.asdict(factory)}


def _rebuilt(archive: Archive, bounds: Limits, solvers: Mapping[str, Any]) -> Chosen:
    manifest = json.loads(archive.members["manifest.json"])
    require_whole("version", manifest["version"], least=1)
    if manifest["version"] > VERSION:
        raise ValueError(
            f"written by a newer dffl (format {manifest['version']}, this one reads up to {VERSION}); upgrade dffl"
        )
    if not archive.sealed:
        raise ValueError("cut short: it has no digest")
    bounds.check("clients", len(manifest["kept"]), "clients")
    bounds.check("models", len(manifest["parts"]), "trained parts")
    members, contents = _by_part(archive)
    asked = Asked(bounds)  # by the last rows and all parts together: each part alone may be within the limits
    reader = Reader(members, Settings(), 1, 1, solvers, asked, len(manifest["kept"]))
    clients = {row["name"]: _client(row, reader, asked) for row in manifest["kept"]}
    parts = {row["name"]: _part(contents[number], row, asked, solvers) for number, row in enumerate(manifest["parts"])}
    past: dict[str, Any] = {
        name: tuple(entry) if isinstance(entry, list) else entry for name, entry in manifest["past"].items()
    }
    model = Chosen(
        rules=manifest["rules"],
        base=manifest["base"],
        weight=float(manifest["weight"]),
        past=Past(**past),
        dates=bool(manifest["dates"]),
        share=float(manifest["share"]),
        trained=tuple(manifest["trained"]),
        own=tuple(manifest.get("own", ())),
        parts=parts,
        kept=clients,
        ranges={name: AdaptiveRange(**fields) for name, fields in manifest["ranges"].items()},
        evidence=manifest["evidence"],
        about=manifest["about"],
    )
    _check(model, bounds)
    return model


def _client(row: Mapping[str, Any], reader: Reader, asked: Asked) -> Client:
    """A client with its last rows."""
    decoded = {name: reader.decode(row[name]) for name in (*ROWS, "set")}
    asked.add("bytes", sum(np.asarray(decoded[name]).nbytes for name in ROWS), "bytes of the last rows of all clients")
    x, dim, width, brings = decoded["x"], decoded["c"].shape[1], row.get("item_features", 0), bool(row["brings"])
    require_whole("item_features", width, least=0)
    if dim * (width + brings) > x.shape[1]:
        raise ValueError(f"{width} features of each of {dim} items must be among its {x.shape[1]} features")
    decoded["forecast"] = x[:, -dim:] if brings else None
    decoded["items"] = of_items(x, dim, width, brings) if width else None
    return Client(row["name"], decoded.pop("x"), decoded.pop("c"), decoded.pop("set"), **decoded)


def _by_part(archive: Archive) -> tuple[dict[str, bytes], dict[int, dict[str, bytes]]]:
    """The members of a file that are its own, and those of each of its parts."""
    shared_members: dict[str, bytes] = {}
    contents: dict[int, dict[str, bytes]] = {}
    for name, content in archive.members.items():
        match = PART.fullmatch(name)
        members = shared_members if match is None else contents.setdefault(int(match[1]), {})
        members[name if match is None else match[2]] = content
    return shared_members, contents


def _part(members: dict[str, bytes], row: Mapping[str, Any], asked: Asked, solvers: Mapping[str, Any]) -> Fit:
    """One of the fits that the rules use."""
    asked.add("values", sum(members["manifest.json"].count(mark) for mark in (b",", b"[", b"{")), "values of all parts")
    network = row["network"] and FACTORIES[row["network"]["kind"]](**row["network"]["fields"])
    return fit_from(Archive(members, sealed=True), asked, network, solvers)


def _check(model: Chosen, bounds: Limits) -> None:
    """Refuse a model that could not decide, or would need too many resources: a manifest may contain anything."""
    names, told = set(model.kept), model.evidence
    of_clients = [told["inside"], *told["rules"].values()] if told else []
    if not isinstance(model.about, dict) or any(names - set(entry) for entry in of_clients):
        raise ValueError("about must be a dictionary, and evidence must be of all its clients")
    longest = max((client.n for client in model.kept.values()), default=0)
    for name, part in model.parts.items():
        asked = features_of_past(part, model.past, model.dim)
        if asked > part.features:  # they are made before a part is asked
            raise ValueError(f"its past asks for {asked} features, and {name!r:.60} was trained on {part.features}")
        bounds.check("cells", longest * part.features, f"features of {longest} rows")
    if not names or names != set(model.rules) or names != set(model.ranges):
        raise ValueError("it must hold rules, ranges and last rows of the same clients")
    if model.base not in (STEADY, FORECAST) or not 0 < model.weight <= 1:
        raise ValueError(f"its base must be {STEADY} or {FORECAST} with a weight in (0, 1], found {model.base!r:.40}")
    for name, rule in model.rules.items():
        needed = {*parts_of(rule, model.trained, model.base, model.own), model.base}
        client, fitted = model.kept[name], {*model.trained, *model.own}
        if lacking := [part for part in needed & fitted if name not in getattr(model.parts.get(part), "members", {})]:
            raise ValueError(f"client {name!r}: its rule {rule!r:.60} needs {lacking[0]!r:.60}, which the file does not hold")
        if FORECAST in needed and client.forecast is None:
            raise ValueError(f"client {name!r}: its rule {rule!r:.60} needs a forecast, and the client brings none")
        if client.times is None or not np.all(np.diff(client.times) > 0) or client.n < 2:
            raise ValueError(f"client {name!r}: its last rows must be two or more in ascending order")
        state = model.ranges[name]
        if not np.isfinite(state.errors).all() or not (np.abs([state.low_rate, state.high_rate]) <= FURTHEST).all():
            raise ValueError(f"client {name!r}: the state of its range must be finite numbers, its rates at most {FURTHEST:g}")

"""examples/plugin is installed as users install it, and each of its five extensions is used by its name alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dffl
from dffl import plugins
from dffl.cli import app
from dffl.report.styles import known
from dffl.tables.description import read
from dffl.training import METHODS

ROOT = Path(__file__).parent.parent
TOML = """\
[federation]
features = "x_*"
costs = "price_*"

[training]
method = "half-shared"
share = 0.25
loss = { name = "huber", threshold = 2.0 }
aggregate = "equal-mean"
rounds = 1
local_epochs = 1
hidden = 4

[[client]]
name = "mill"
table = "mill.csv"
set = { type = "stretch", width = 2 }

[[client]]
name = "kiln"
table = "kiln.csv"
set = { type = "top-k", k = 2 }
"""
USE = """
import json, sys
import numpy as np
from typer.testing import CliRunner
import dffl, dffl.losses, dffl.sets, dffl.training
from dffl.cli import app
from dffl.tables.description import read

brought = lambda: sorted(name for name in sys.modules if name.startswith("dffl_example."))
before = brought()
found = read("federation.toml")
fit = dffl.fit(found.train, found.method, progress=False, **found.keywords)
after = brought()
fit.save("model.dffl")
x = found.test["mill"].x
np.save("x.npy", x)
try:
    dffl.fit(found.train, loss="hubert")
except ValueError as error:
    unknown = str(error)
print(json.dumps({
    "before": before,
    "after": after,
    "decisions": fit.decide("mill", x).tolist(),
    "command": CliRunner().invoke(app, ["clients", "federation.toml"]).output,
    "unknown": unknown,
}))
"""
LOAD = """
import json
import numpy as np
import dffl

fit = dffl.load("model.dffl")
print(json.dumps({
    "decisions": fit.decide("mill", np.load("x.npy")).tolist(),
    "loss": repr(fit.settings.loss),
    "aggregate": repr(fit.settings.aggregate),
    "set": repr(fit.members["mill"].set),
}))
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the package is installed: without a network where hatchling is there."""
    folder = tmp_path_factory.mktemp("installed")
    alone = ["--no-build-isolation"] if find_spec("hatchling") is not None else []
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *alone]
    subprocess.run([*command, "--target", str(folder), str(ROOT / "examples" / "plugin")], check=True)
    return folder


def run(code: str, folder: Path, target: Path) -> dict[str, Any]:
    """What a script prints as JSON, in a process of its own that sees the installed package."""
    paths = os.pathsep.join([str(target), *(path for path in [os.environ.get("PYTHONPATH")] if path)])
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder with a federation.toml that names extensions, and its tables."""
    rng = np.random.default_rng(0)
    for name in ("mill", "kiln"):
        table = {f"x_{n}": rng.normal(size=20) for n in (1, 2)} | {f"price_{n}": rng.normal(size=20) for n in (1, 2, 3, 4)}
        pd.DataFrame(table).to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "federation.toml").write_text(TOML)
    return tmp_path


def test_the_installed_package_is_found_without_importing_it(target: Path, tmp_path: Path) -> None:
    code = """
import json, sys
from dffl.plugins import GROUPS, plugins
found = [name for group in GROUPS for name, plugin in plugins(group).usable.items() if plugin.package == "dffl-example"]
print(json.dumps({"found": found, "imported": [name for name in sys.modules if name.startswith(("jax", "dffl_example"))]}))
"""
    names = ["stretch", "huber", "half-shared", "equal-mean", "clients"]
    assert run(code, tmp_path, target) == {"found": names, "imported": []}


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package as if it were installed in this process; what it registers is removed afterwards."""
    listed = tomllib.loads((ROOT / "examples" / "plugin" / "pyproject.toml").read_text())["project"]["entry-points"]
    entries = [EntryPoint(name, value, group) for group, some in listed.items() for name, value in some.items()]
    monkeypatch.syspath_prepend(ROOT / "examples" / "plugin" / "src")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [one for one in entries if one.group == group])
    catalogues: list[dict[str, Any]] = [dffl.Loss.known, dffl.Aggregator.known, METHODS]
    catalogues += [dffl.FeasibleSet.by_toml_name, dffl.FeasibleSet.families]
    before = [dict(one) for one in catalogues]
    yield
    for catalogue, names in zip(catalogues, before, strict=True):
        catalogue.clear()
        catalogue.update(names)
    for module in [name for name in sys.modules if name.split(".")[0] == "dffl_example"]:
        del sys.modules[module]


@pytest.mark.usefixtures("brought")
def test_each_extension_is_found_by_its_name(tables: Path) -> None:
    found = read(tables / "federation.toml")
    assert (found.method, found.options) == ("half-shared", {"share": 0.25})
    assert repr(found.settings["loss"]) == "Huber(threshold=2.0)"
    assert repr(dffl.Aggregator.of(found.settings["aggregate"])) == "EqualMean()"
    assert known("half-shared").what == "a fixed mix of the own and the shared model"
    s = found.train["mill"].set
    assert repr(s) == "Stretch(dim=4, width=2)"
    np.testing.assert_array_equal(s.solve([3.0, 1.0, 1.0, 1.0]), [0, 1, 1, 0])
    np.testing.assert_array_equal(s.contains([[0, 1, 1, 0], [1, 0, 0, 1]]), [True, False])
    with pytest.raises(ValueError, match=r"^bounds: client 'mill': Stretch has no diameter; define _diameter\(\)"):
        dffl.bounds(found.train)
    fit = dffl.fit(found.train, "mean-cost", progress=False)
    fit.save(tables / "model.dffl")
    del dffl.FeasibleSet.families["Stretch"], dffl.FeasibleSet.by_toml_name["stretch"], sys.modules["dffl_example.stretch"]
    assert repr(dffl.load(tables / "model.dffl").members["mill"].set) == "Stretch(dim=4, width=2)"
    shown = CliRunner().invoke(app, ["clients", str(tables / "federation.toml")], catch_exceptions=False).output
    assert shown == "mill: 16 samples, 2 neighbours of 4\nkiln: 17 samples, choose 2 of 4\n"


def test_each_extension_works_by_its_name_in_an_installed_package(target: Path, tables: Path) -> None:
    used = run(USE, tables, target)
    assert used["before"] == []
    assert used["after"] == [f"dffl_example.{name}" for name in ("equal_mean", "half_shared", "huber", "stretch")]
    assert used["command"] == "mill: 16 samples, 2 neighbours of 4\nkiln: 17 samples, choose 2 of 4\n"
    assert used["unknown"].startswith("unknown loss 'hubert'; did you mean 'huber'? (allowed: mse, ")
    assert used["unknown"].endswith(", huber)")
    stretches = ([1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1])
    assert all(decision in stretches for decision in used["decisions"])
    # A process that has imported nothing of the package loads the model.
    loaded = run(LOAD, tables, target)
    assert loaded["decisions"] == used["decisions"]
    assert loaded["loss"] == "Huber(threshold=2.0)"
    assert loaded["aggregate"] == "EqualMean()"
    assert loaded["set"] == "Stretch(dim=4, width=2)"

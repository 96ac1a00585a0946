"""Models, checkpoints and federation folders of version 0.2.0 are read, and lead to the bits that 0.2.0 computed.

How they were made: `tests/files-0.2.0/README.md`. On another processor or another version of JAX the last bits of a sum differ,
in 0.2.0 as well; the numbers must then be close.
"""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.deploy.credentials import Kit
from dffl.deploy.federation_plan import read_plan
from dffl.deploy.ledger import read_ledger
from dffl.deploy.participant import Participant
from dffl.deploy.run_state import RunState
from dffl.deploy.site_state import SiteState
from dffl.tables.decisions import decide
from dffl.tables.model import OwnModel
from dffl.training import Settings
from dffl.training.engines.site import Site
from tests.deploy.in_memory import Wires
from tests.deploy.simulated import LOG, Stage, honest, simulated_time

FILES = Path(__file__).with_name("files-0.2.0")
LONGER: dict[str, Any] = {"rounds": 4, "local_epochs": 2, "hidden": 4, "progress": False}
"""As in `make.py`; its tau of 20 is the default for so few costs."""


@pytest.fixture(scope="module")
def exact() -> bool:
    """Whether this machine computes the bits of the machine that wrote the files."""
    here = runpy.run_path(str(FILES / "machine.py"))["machine"]()
    return bool(here == json.loads((FILES / "machine.json").read_text()))


def same(found: Any, wanted: np.ndarray, exact: bool, close: float, what: str) -> None:
    found = np.asarray(found)
    assert found.dtype == wanted.dtype, what
    if exact:
        np.testing.assert_array_equal(found, wanted, err_msg=what, strict=True)
    else:
        np.testing.assert_allclose(found, wanted, rtol=close, atol=close, err_msg=what)


@pytest.mark.parametrize("name", ["families", "crossfit", "interp", "trees", "nearest", "forecast", "solver"])
def test_a_fit_predicts_and_decides_the_same(name: str, exact: bool) -> None:
    def cheapest(c: np.ndarray) -> np.ndarray:
        return np.eye(c.size)[np.argmin(c)]

    fit = dffl.load(FILES / "fits" / f"{name}.dffl", solvers={"cheapest": cheapest})
    with np.load(FILES / "fits" / "expected.npz") as expected:
        wanted = {key: expected[key] for key in expected.files if key.startswith(f"{name}|")}
    x = wanted.pop(f"{name}|x")
    assert {key.split("|")[1] for key in wanted} == set(fit.members)
    for who in fit.members:
        predicted = wanted[f"{name}|{who}|predicted"]
        same(fit.predict(who, x), predicted, exact, 1e-9, f"{name}, {who}: predicted")
        # At the costs of 0.2.0, so that a decision is compared by itself.
        same(fit.decide_at(who, predicted), wanted[f"{name}|{who}|decided"], exact, 1e-6, f"{name}, {who}: decided")


def test_an_interrupted_fit_continues_to_the_same_bits(exact: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with np.load(FILES / "checkpoint" / "expected.npz") as expected:
        clients = [dffl.Client(name, expected[f"{name}|x"], expected[f"{name}|c"], dffl.TopK(4, 2.5)) for name in "abc"]
        rows, wanted = expected["rows"], {name: expected[f"{name}|predicted"] for name in "abc"}
    calls, train = [], Site.train
    monkeypatch.setattr(Site, "train", lambda self, *args, **more: calls.append(0) or train(self, *args, **more))
    path = tmp_path / "run.checkpoint"
    shutil.copy(FILES / "checkpoint" / "run.checkpoint", path)
    fit = dffl.fit(dffl.Federation(clients), "fedavg", aggregate="momentum", checkpoint=path, **LONGER)
    assert len(calls) == 2, "the two rounds that were left, of one call each"
    for name, predicted in wanted.items():
        same(fit.predict(name, rows), predicted, exact, 1e-4, name)
    assert not path.exists()


def test_the_digest_of_settings_is_that_of_0_2_0() -> None:
    """Checkpoints, and the noise of private trainings, are bound to it."""
    wanted = json.loads((FILES / "checkpoint" / "digests.json").read_text())
    assert Settings(tau=20.0).digest() == wanted["defaults"]  # the default for at most 50 costs
    assert Settings(seed=3, tau=20.0, forecast=True, aggregate="momentum", privacy="client").digest() == wanted["changed"]


@pytest.mark.parametrize("name", ["model", "south", "forecast"])
def test_a_model_of_own_data_decides_the_same(name: str, exact: bool) -> None:
    model = OwnModel.load(FILES / "own_data" / f"{name}.dffl")
    expected = json.loads((FILES / "own_data" / "expected.json").read_text())
    wanted = {key.split("|")[1]: value for key, value in expected.items() if key.startswith(f"{name}|")}
    assert set(model.fit.members) == set(wanted)
    for who, old in wanted.items():
        found = decide(model, who, FILES / "own_data" / "new.csv").as_json()
        assert (found["unit"], found["keys"], found["decisions"]) == (old["unit"], old["keys"], old["decisions"]), who
        for key in ("low", "median", "high"):
            same([row[key] for row in found["ranges"]], np.array([row[key] for row in old["ranges"]]), exact, 1e-9, who)
            assert found["expected"][key] == old["expected"][key], who
        assert found["expected"]["share"] == old["expected"]["share"], who


def test_a_coordinator_continues_its_run_to_the_same_model(exact: bool, tmp_path: Path) -> None:
    folder = tmp_path / "coordinator"
    shutil.copytree(FILES / "federation" / "coordinator", folder)
    plan, run = read_plan(folder / "plan.toml"), folder / "runs" / "1"
    state = RunState.read(run / "state.dffl").state
    assert state is not None
    assert (state.round, len(read_ledger(run / "rounds.jsonl"))) == (2, 3)
    with np.load(FILES / "federation" / "expected.npz") as expected:
        assert plan.digest == str(expected["digest"])
        with simulated_time() as clock:
            (final,) = Stage.of(plan, clock, honest).train(run).finals
        same(final.shared, expected["shared"], exact, 1e-5, "shared")
        for name, array in final.memory.items():
            same(array, expected[f"memory|{name}"], exact, 1e-5, name)
        assert final.round == int(expected["round"])
    assert [record.round for record in read_ledger(run / "rounds.jsonl")] == [0, 1, 2, 3]


def test_a_kit_is_read() -> None:
    folder = FILES / "federation" / "coordinator"
    kit = Kit.parse(folder / "kits" / "north.kit")  # whatever the date is
    assert kit.plan == (folder / "plan.toml").read_text()
    assert json.loads((folder / "keys.json").read_text())["believed"] == {"north": kit.fingerprint}


def test_a_site_makes_its_model_from_the_rounds_that_are_over(exact: bool, tmp_path: Path) -> None:
    shutil.copytree(FILES / "federation" / "site", tmp_path / "site")
    with np.load(FILES / "federation" / "expected.npz") as expected:
        client = dffl.Client("north", expected["x"], expected["c"], dffl.TopK(4, 2.5))
        link: Any = Wires().link("north")
        plan = read_plan(FILES / "federation" / "site-plan.toml")
        fit = Participant(plan, client, link, SiteState(tmp_path / "site"), LOG).unfinished()
        assert fit is not None
        same(fit.predict("north", expected["rows"]), expected["predicted"], exact, 1e-4, "north")

"""What `dffl federation init --example` writes can be provisioned and checked as it is; `sign` takes several requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dffl.cli import app
from dffl.deploy.federation_plan import read_plan

pytest.importorskip("cryptography")
pytest.importorskip("nvflare")


def typed(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done.output


def test_each_site_of_the_example_fits_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = json.loads(typed("federation", "init", "try-it", "--example", "--address", "localhost:9443", "--json"))["files"]
    assert all(Path(path).is_file() for path in written)
    plan = read_plan(tmp_path / "try-it/coordinator/plan.toml")
    assert (plan.address, plan.listen) == ("localhost:9443", "0.0.0.0:9443")
    typed("federation", "create", "try-it/coordinator/plan.toml")
    for name in plan.sites:
        typed("site", "request", name, "--folder", f"try-it/{name}/own")
    requests = [f"try-it/{name}/own/{name}.request" for name in plan.sites]
    signed = json.loads(typed("federation", "sign", "try-it/coordinator", *requests, "--json"))["signed"]
    assert [one["site"] for one in signed] == list(plan.sites)
    for name, one in zip(plan.sites, signed, strict=True):
        found = json.loads(typed("site", "check", one["kit"], "--client", f"try-it/{name}/site.toml", "--json"))
        assert (found["inputs"], found["dimension"], found["plan"]) == (plan.inputs, plan.dimension, plan.digest)


def test_nothing_of_an_example_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "bakery").mkdir()
    (tmp_path / "bakery/new.csv").write_text("mine")
    assert "new.csv: already exists" in typed("federation", "init", str(tmp_path), "--example", code=3)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["new.csv"]


def test_the_plan_alone_is_one_that_can_be_read(tmp_path: Path) -> None:
    typed("federation", "init", str(tmp_path), "--address", "coordinator.example.org:443")
    assert read_plan(tmp_path / "plan.toml").settings.rounds == 50
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]
    assert "host:port" in typed("federation", "init", str(tmp_path / "other"), "--address", "nowhere", code=3)
    assert not (tmp_path / "other").exists()

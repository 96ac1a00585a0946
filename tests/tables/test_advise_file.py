"""`dffl advise FILE` trains as the file says; options that are typed override it, and what cannot be used is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dffl.advice
from dffl.cli import app
from dffl.cli.sources import load, unused_if_quick

TRAINING = """[training]
method = "crossfit"
epochs = [1]
folds = 4
rounds = 7
local_epochs = 3
loss = "mse"
seed = 11
"""


def file(folder: Path, training: str = TRAINING) -> Path:
    text = '[federation]\nfeatures = "f_*"\ncosts = "price_*"\n' + training
    for place, name in enumerate("ab"):
        rng = np.random.default_rng(place)
        columns = {"f_0": rng.normal(size=30)} | {f"price_{i}": rng.normal(size=30) for i in range(3)}
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)
        text += f'[[client]]\nname = "{name}"\ntable = "{name}.csv"\nset = {{ type = "top-k", k = 1 }}\n'
    path = folder / "federation.toml"
    path.write_text(text)
    return path


def asked(monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def spy(_: object, **given: Any) -> None:
        seen.update(given)
        raise ValueError("far enough")

    monkeypatch.setattr(dffl.advice, "advise", spy)
    assert "far enough" in CliRunner().invoke(app, ["advise", *words]).output
    return seen


def test_the_settings_of_a_file_reach_the_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(file(tmp_path))
    seen = asked(monkeypatch, path)
    wanted = {"rounds": 7, "local_epochs": 3, "loss": "mse", "seed": 11, "split": "row", "crossfit.epochs": [1]}
    assert {name: seen[name] for name in wanted} == wanted
    assert seen["blocks"] is False
    assert "validation_blocks" not in seen
    typed = asked(monkeypatch, path, "--rounds", "2", "--seed", "0")
    assert (typed["rounds"], typed["seed"], typed["local_epochs"]) == (2, 0, 3)
    named = asked(monkeypatch, "knapsack")
    assert "rounds" not in named  # the usual ones


def test_what_advice_cannot_use_is_named(tmp_path: Path) -> None:
    source = load(str(file(tmp_path)))
    assert source.notes == [f"{tmp_path}/federation.toml: training.folds: advice has folds of its own, see --folds"]
    said = "a quick answer trains nothing, and does not use rounds, local_epochs, loss, crossfit.epochs of [training]"
    assert unused_if_quick(source.settings) == [said]
    assert unused_if_quick({"seed": 1, "split": "row"}) == []
    other = load(str(file(tmp_path, '[training]\nmethod = "ditto"\npull = 0.2\n')))
    assert other.notes[-1].endswith("finetune, crossfit; ditto with its options is not used")
    assert not any("." in name for name in other.settings)

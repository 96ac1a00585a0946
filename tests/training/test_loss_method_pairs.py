"""Every loss trains with every kind of method, and every method with a random loss. One small shape: few programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dffl
from dffl.losses import Loss
from dffl.losses.perturbed import FenchelYoung
from dffl.training import METHODS
from tests.federations import client

D = 4
FEDERATION = dffl.Federation([client(f"c{i}", dffl.TopK(D, 2), 10) for i in range(3)])
SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 1, "batch_size": 8, "hidden": 4, "progress": False}
SHORT: dict[str, dict[str, Any]] = {
    "finetune": {"epochs": (0, 1)},
    "finetune-mix": {"epochs": (0, 1)},
    "crossfit": {"epochs": (0, 1), "folds": 2},
    "local-tuned": {"epochs": (0, 1), "folds": 2},
    "interp-refit": {"folds": 2},
    "clustered": {"clusters": 2, "epochs": (0, 1)},
}
"""Options of methods that would train for long."""
OURS = [name for name, one in METHODS.items() if one.fit.__module__.startswith("dffl.")]
LOSSES = [name for name, kind in Loss.known.items() if kind.trains and kind.__module__.startswith("dffl.")]
NOT_TRAINED = {"mean-cost", "forecast", "nearest", "ridge", "ridge-pooled", "trees", "fedrspo"}
"""Methods that train no network, and one that is its own loss."""


def predicted(method: str, loss: Any) -> np.ndarray:
    """What all clients predict; the validation federation is for the oracles."""
    validation = FEDERATION if method.startswith("oracle") else None
    fit = dffl.fit(FEDERATION, method, loss=loss, validation=validation, **SHORT.get(method, {}), **SMALL)
    found = np.array([fit.predict(one.name, one.x) for one in FEDERATION])
    assert np.isfinite(found).all()
    return found


def test_there_are_as_many_as_there_should_be() -> None:
    assert set(LOSSES) >= {"spo+", "mse", "spo+mse", "fenchel-young", "dpo"}
    assert set(OURS) >= {"local", "fedavg", "finetune", "apfl", "clustered", "scaffold", *NOT_TRAINED}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", ["fedavg", "finetune"])
def test_every_loss_trains_with_a_shared_and_with_a_personal_model(method: str, loss: str) -> None:
    other = "mse" if loss != "mse" else "spo+"
    assert np.abs(predicted(method, loss) - predicted(method, other)).max() > 1e-5


@pytest.mark.parametrize("method", [name for name in OURS if name not in NOT_TRAINED])
def test_every_method_trains_with_a_random_loss(method: str) -> None:
    one, again, other = (predicted(method, loss) for loss in (FenchelYoung(3), FenchelYoung(3), "mse"))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-6

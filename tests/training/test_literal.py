"""What training gives, as literal numbers: the default network in float64. Whoever changes them changes what a seed means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dffl
from dffl.predictor import Template

PLACES = [0, 1, 100, 319, 320, 500, -6, -1]
SETTINGS: dict[str, Any] = {"rounds": 3, "local_epochs": 2, "batch_size": 8, "dtype": "float64", "seed": 7}


# family, method: the numbers of the second client's vector at PLACES, and the sum of its absolute values.
TRAINED = {
    ("knapsack", "local"): (
        [-0.0206580758903, 0.0143984714201, -0.0613684594835, 0.131690176526,
         0.240102364953, 0.291729625652, 0.0118744998236, 0.000818207421754], 102.0302414794,
    ),
    ("knapsack", "fedavg"): (
        [-0.0141355444062, 0.0142810483764, -0.0526072725197, 0.139748739823,
         0.242386666379, 0.293960639161, 0.0145410068577, 0.0105272630759], 102.3267287035,
    ),
    ("portfolio", "local"): (
        [-0.0105130896697, 0.0215185248866, -0.0519575385473, 0.133510728055,
         0.224205411276, 0.287525322752, 0.00994990060135, -0.00503974028652], 101.5278981518,
    ),
    ("portfolio", "fedavg"): (
        [-0.0149938020388, 0.0130339107452, -0.0542846431905, 0.139861007584,
         0.223373642724, 0.279383586161, 0.00199665480269, -0.00102122802435], 101.5129641666,
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["vector", "loop"])
@pytest.mark.parametrize(("family", "method"), TRAINED)
def test_trained_vectors_are_as_ever(family: str, method: str, engine: str) -> None:
    federation = getattr(dffl.synthetic, family)(seed=3, clients=3, dim=6, features=5, samples=[20, 9, 14])
    fit = dffl.fit(federation, method, engine=engine, **SETTINGS)
    network = list(fit.members.values())[1].predictor.network
    vector = np.asarray(Template(network).vector(network))
    some, size = TRAINED[family, method]
    assert vector.shape == (64 * 5 + 64 + 6 * 64 + 6,)
    assert vector[PLACES] == pytest.approx(some, rel=1e-9)
    assert np.abs(vector).sum() == pytest.approx(size, rel=1e-11)

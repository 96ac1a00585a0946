"""Privacy of samples: each gradient is clipped inside the update, noise has its size, and what stays is not touched."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.randomness import NoiseSource
from dffl.training import FedAvg, Settings
from dffl.training.engines.vector import LoopEngine
from tests.federations import client

CLIP = 5.0
RATE = 0.1
FIXED: dict[str, Any] = {"scale_features": False, "scale_costs": False}
STEPS: dict[str, Any] = {
    **FIXED, "rounds": 2, "local_epochs": 1, "hidden": 6, "dtype": "float64", "optimiser": "sgd", "learning_rate": RATE,
    "gradient_clip": 1e12,
}  # fmt: skip
ONE = client("a", dffl.TopK(5, 2), 10)
FEDERATION = dffl.Federation([client(name, dffl.TopK(5, 2), n) for name, n in zip("abcd", (12, 30, 9, 15), strict=True)])


def change(own: dffl.Client, noise: NoiseSource | None = None, **settings: Any) -> np.ndarray:
    """What one round changes at one client."""
    engine = LoopEngine(dffl.Federation([own]), Settings.of(**STEPS | settings), noise=noise)
    [(_, fields)] = engine.ask(FedAvg(), round=0, shared=engine.initial, rate=1.0)
    return fields["vector"][0] - engine.initial


def alone(own: dffl.Client, row: int) -> dffl.Client:
    return dffl.Client(own.name, own.x[[row]], own.c[[row]], own.set, own.maximize)


def test_a_step_is_the_mean_of_the_samples_gradients_each_clipped_by_itself() -> None:
    gradients = np.stack([-change(alone(ONE, row)) / RATE for row in range(ONE.n)])
    norms = np.linalg.norm(gradients, axis=1)
    assert (norms > CLIP).any()
    assert (norms < CLIP).any()
    expected = -RATE * (gradients * np.minimum(1, CLIP / norms)[:, None]).mean(axis=0)
    found = change(ONE, privacy={"level": "sample", "clip": CLIP, "noise": 0.0}, batch_size=16)  # 10 rows in a shape of 12
    np.testing.assert_allclose(found, expected, atol=1e-12)
    loose = change(ONE, privacy={"level": "sample", "clip": 1e6, "noise": 0.0}, batch_size=16)
    np.testing.assert_allclose(loose, change(ONE, batch_size=16), atol=1e-12)


def test_one_samples_influence_on_a_step_is_bounded() -> None:
    wild = dffl.Client(ONE.name, np.concatenate([1e4 * ONE.x[:1], ONE.x[1:]]), ONE.c, ONE.set)
    privacy = {"level": "sample", "clip": CLIP, "noise": 0.0}
    apart = np.linalg.norm(change(wild, privacy=privacy, batch_size=16) - change(ONE, privacy=privacy, batch_size=16))
    most = 2 * RATE * CLIP / ONE.n
    assert 0 < apart <= most + 1e-12
    assert np.linalg.norm(change(wild, batch_size=16) - change(ONE, batch_size=16)) > 3 * most


def test_noise_in_a_step_has_the_promised_size_and_a_step_of_its_own() -> None:
    def noise(source: NoiseSource | None = None, **settings: Any) -> np.ndarray:
        quiet, loud = ({"level": "sample", "clip": CLIP, "noise": noise} for noise in (0.0, 1e6))
        both = [change(ONE, source, privacy=privacy, **settings) for privacy in (quiet, loud)]
        return (both[1] - both[0]) / (RATE * CLIP * 1e6 / ONE.n)

    one = noise(batch_size=16)
    assert one.std() == pytest.approx(1, abs=5 / math.sqrt(2 * one.size))
    two = noise(batch_size=5)  # two steps of five samples each: variances add up
    assert two.std() == pytest.approx(2 * math.sqrt(2), rel=5 / math.sqrt(2 * two.size))
    np.testing.assert_array_equal(one, noise(batch_size=16))
    secret, bound = NoiseSource(b"0123456789abcdef"), 5 / math.sqrt(one.size)
    for other in (noise(secret, batch_size=16), noise(batch_size=16, seed=1), noise(batch_size=16, learning_rate=0.2)):
        assert abs(np.corrcoef(one, other)[0, 1]) < bound
    np.testing.assert_array_equal(noise(secret, batch_size=16), noise(secret, batch_size=16))


def test_other_rows_have_other_noise() -> None:
    loud = {"level": "sample", "clip": CLIP, "noise": 1e6}
    other = dffl.Client(ONE.name, ONE.x + 1e-3, ONE.c, ONE.set)
    one, two = (change(own, privacy=loud, batch_size=16) for own in (ONE, other))
    assert abs(np.corrcoef(one, two)[0, 1]) < 5 / math.sqrt(one.size)


def test_engines_agree_and_folds_are_counted() -> None:
    settings = {**STEPS, "privacy": {"level": "sample", "clip": CLIP, "noise": 0.5}, "batch_size": 8, "progress": False}
    one, other = (dffl.fit(FEDERATION, "fedavg", engine=engine, **settings) for engine in ("vector", "loop"))
    np.testing.assert_array_equal(one.predict("a", np.ones(3)), other.predict("a", np.ones(3)))
    assert one.spending().uses == 2  # rounds x local_epochs
    folds = dffl.fit(FEDERATION, "crossfit", folds=3, epochs=1, **settings | {"local_epochs": 2})
    assert folds.spending().uses == 8  # 2 rounds of 2 epochs, in two of three folds


def test_what_stays_with_a_client_has_no_noise() -> None:
    privacy = {"level": "sample", "clip": CLIP, "noise": 5.0}
    one, other = (dffl.fit(FEDERATION, "local", privacy=own, progress=False, **STEPS) for own in (None, privacy))
    np.testing.assert_array_equal(one.predict("a", np.ones(3)), other.predict("a", np.ones(3)))


def test_a_random_loss_is_trained_sample_by_sample() -> None:
    settings = {**STEPS, "loss": "fenchel-young", "privacy": {"level": "sample", "clip": CLIP, "noise": 0.1}}
    assert np.isfinite(dffl.fit(FEDERATION, "fedprox", progress=False, **settings).predict("a", np.ones(3))).all()


@pytest.mark.parametrize("method", ["fedrep", "fedrspo", "crossfit-turned"])
def test_methods_whose_steps_nobody_has_counted_are_refused(method: str) -> None:
    with pytest.raises(ValueError, match=f"method '{method}' is not covered at the level of samples"):
        dffl.fit(FEDERATION, method, progress=False, privacy="sample", **FIXED)

"""APFL against a rewrite of Algorithm 1 of Deng et al. (2020) in NumPy, and at both ends of its weight."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dffl.predictor import Network, Template
from dffl.randomness import Purpose
from dffl.training import ALL, Run, Settings
from dffl.training.methods.apfl import APFLTrainer, mixed_form
from tests.training.numpy_update import OPTIMISERS, Site, spo_plus_gradient, weighted_mean
from tests.training.test_proof_methods import (
    FEDERATION,
    Literature,
    cases,
    chosen,
    close,
    fitted,
    optimisers,
    personal,
    shared,
    trained,
)

pytestmark = pytest.mark.filterwarnings("ignore:training predictions are clipped")  # a small tau, to test the clip too


def train_own(
    site: Site, v: np.ndarray, w: np.ndarray, alpha: float, epochs: Iterable[int], factor: float, adaptive: bool
) -> tuple[np.ndarray, float]:
    """Steps of v and alpha on the loss of the network alpha v + (1 - alpha) w."""
    own = site.settings
    optimiser = OPTIMISERS[own.optimiser.name](own.learning_rate)  # type: ignore[union-attr]
    both = np.append(v, alpha)
    for epoch in epochs:
        for rows in site.minibatches(epoch, Purpose.TUNE):
            v, alpha = both[:-1], both[-1]
            mixed = alpha * v + (1 - alpha) * w
            at = spo_plus_gradient(mixed, site.x[rows], site.c[rows], site.client.sense, site.k, own.hidden, own.tau)
            gradient = np.append(alpha * at, np.dot(v - w, at) if adaptive else 0.0)
            norm = float(np.linalg.norm(gradient))
            both = both + factor * optimiser.step(gradient * min(1.0, own.gradient_clip / max(norm, 1e-300)))
    return both[:-1], float(np.clip(both[-1], 0, 1))


@pytest.mark.parametrize("options", [{}, {"alpha": 0.25, "adaptive": False, "own_epochs": 3}], ids=["adaptive", "fixed"])
@optimisers
@cases
def test_apfl(optimiser: str, case: str, options: dict[str, Any]) -> None:
    fit = fitted("apfl", optimiser, case, **options)
    world = Literature(fit)
    count, adaptive = options.get("own_epochs", fit.settings.local_epochs), options.get("adaptive", True)
    w, v, alpha = world.start, dict[str, np.ndarray](), dict.fromkeys(world.sites, options.get("alpha", 0.5))
    for r, (sites, epochs, factor) in enumerate(world.rounds()):
        for one in sites:
            name = one.client.name
            own = range(count * r, count * (r + 1))
            v[name], alpha[name] = train_own(one, v.get(name, w), w, alpha[name], own, factor, adaptive)
        w = weighted_mean([one.train(w, epochs, factor=factor)[0] for one in sites], [one.count for one in sites])
    close(trained(fit.shared), w)
    assert set(v) == set(world.sites)
    for name, vector in personal(fit).items():
        close(vector, alpha[name] * v[name] + (1 - alpha[name]) * w)
        assert fit.members[name].choices["alpha"] == pytest.approx(alpha[name], abs=1e-12)
    moved = [abs(one - options.get("alpha", 0.5)) for one in alpha.values()]
    assert min(moved) > 1e-4 if adaptive else max(moved) == 0


def test_a_weight_of_nothing_is_fedavg_to_the_bit() -> None:
    fit, plain = fitted("apfl", "adam", alpha=0, adaptive=False), fitted("fedavg", "adam")
    for vector in (trained(fit.shared), *personal(fit).values()):
        np.testing.assert_array_equal(vector, shared(plain))


def test_a_weight_of_everything_is_a_client_alone() -> None:
    """Its own numbers train as those of the common start do, in rounds with a fresh optimiser."""
    fit = fitted("apfl", "adam", alpha=1, adaptive=False)
    world = Literature(fit)
    for name, vector in personal(fit).items():
        alone = world.start
        for _, epochs, _ in world.rounds():
            alone, _ = world.sites[name].train(alone, epochs, purpose=Purpose.TUNE)
        close(vector, alone)


def test_a_client_that_never_took_part_has_the_shared_model() -> None:
    fit = fitted("apfl", "sgd", client_fraction=0.34)
    seen = set(fit.history["client"])
    never = set(FEDERATION.names) - seen
    assert never
    for name, vector in personal(fit).items():
        gap = np.abs(vector - trained(fit.shared)).max()
        assert gap < 1e-15 if name in never else gap > 1e-4


def test_the_weight_stays_between_0_and_1() -> None:
    fit = fitted("apfl", "sgd", alpha=0.999, own_epochs=20)
    found = np.array([member.choices["alpha"] for member in fit.members.values()])
    assert ((found >= 0) & (found <= 1)).all()


def test_the_form_of_a_mix_is_one_for_a_network_that_is_equal_to_itself_only() -> None:
    """Otherwise a program would be compiled in every round."""

    class Offset(eqx.Module):
        inner: Any
        fixed: np.ndarray

        def __call__(self, x: Any) -> Any:
            return self.inner(x) + self.fixed

    network = Offset(Network(jax.random.key(0), 3, 2, (4,)), np.arange(2))
    template = Template(network)
    form = mixed_form(template)
    assert mixed_form(template) is form
    vector = template.vector(network)
    mixed = form.network(jnp.concatenate([2 * vector, vector, jnp.array([0.25])]))
    np.testing.assert_allclose(mixed(jnp.ones(3)), template.network(1.25 * vector)(jnp.ones(3)), rtol=1e-6)


def test_its_own_numbers_and_weight_stay_at_home() -> None:
    """In a round the server sees FedAvg's vector and nothing else."""
    engine = Run(FEDERATION, Settings(**chosen("sgd"))).engine(ALL)
    for answer in engine.ask(APFLTrainer(), scope="here", round=0, shared=engine.initial, rate=1.0):
        assert set(answer.fields) == {"vector"}
    assert {name for kept in engine.kept("here").values() for name in kept} == {"vector", "alpha"}

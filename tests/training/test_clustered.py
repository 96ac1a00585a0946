"""Clusters: one is FedAvg, clients that differ find each other, and each step is what its description says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dffl
from dffl.losses import Loss
from dffl.randomness import Purpose, stream
from dffl.training import ALL, SPLIT, Run, Settings
from dffl.training.engines.vector import VectorEngine
from dffl.training.methods.clustered import ClusteredTrainer
from tests.federations import P
from tests.training.numpy_update import Site, cheapest, output, weighted_mean

D, HIDDEN = 4, 6
SMALL: dict[str, Any] = {
    "rounds": 5, "local_epochs": 2, "batch_size": 8, "hidden": HIDDEN, "dtype": "float64", "learning_rate": 1e-2,
}  # fmt: skip


def two_groups(clients: int = 6, n: int = 16) -> dffl.Federation:
    """Clients a0, b1, a2, ...: the costs of an ``a`` are those of a ``b`` with the other sign. Sizes differ."""
    loading = np.random.default_rng(0).normal(size=(P, D))
    members = []
    for place in range(clients):
        rng = np.random.default_rng(place)
        x = rng.normal(size=(n + place, P))
        name, sign = ("a", 1) if place % 2 == 0 else ("b", -1)
        members.append(dffl.Client(f"{name}{place}", x, sign * x @ loading, dffl.TopK(D, 2)))
    return dffl.Federation(members)


FEDERATION = two_groups()


def clusters_of(fit: dffl.Fit) -> dict[str, int]:
    return {name: int(member.choices["cluster"]) for name, member in fit.members.items()}


def numbers(predictor: Any) -> np.ndarray:
    return np.concatenate([np.asarray(a).ravel() for a in (*predictor.network.weights, *predictor.network.biases)])


@pytest.mark.parametrize(
    "more", [{}, {"client_fraction": 0.5, "aggregate": "momentum", "schedule": "cosine"}], ids=["plain", "more"]
)
def test_one_cluster_is_fedavg_to_the_bit(more: dict[str, Any]) -> None:
    one, plain = (
        dffl.fit(FEDERATION, method, **SMALL, **more, **options)
        for method, options in (("clustered", {"clusters": 1}), ("fedavg", {}))
    )
    for name in FEDERATION.names:
        np.testing.assert_array_equal(numbers(one.members[name].predictor), numbers(plain.members[name].predictor))
    np.testing.assert_array_equal(numbers(one.shared), numbers(plain.shared))


def test_one_cluster_that_is_tuned_is_finetune_to_the_bit() -> None:
    tuned, plain = (
        dffl.fit(FEDERATION, method, epochs=(0, 2, 5), **SMALL, **options)
        for method, options in (("clustered", {"clusters": 1}), ("finetune", {}))
    )
    for name, member in tuned.members.items():
        assert member.choices["epochs"] == plain.members[name].choices["epochs"]
        np.testing.assert_array_equal(numbers(member.predictor), numbers(plain.members[name].predictor))


@pytest.mark.parametrize("judge", ["spo+", "regret"])
def test_two_groups_with_opposite_costs_are_separated(judge: str) -> None:
    fit = dffl.fit(FEDERATION, "clustered", clusters=2, judge=judge, **SMALL | {"rounds": 15})
    found = clusters_of(fit)
    first, second = ({found[name] for name in found if name[0] == group} for group in "ab")
    assert len(first) == len(second) == 1
    assert first != second
    plain = dffl.fit(FEDERATION, "fedavg", **SMALL | {"rounds": 15})
    lost, alike = (one.evaluate(FEDERATION)["relative_regret"].mean() for one in (fit, plain))
    assert lost < 0.5 * alike


def spo_plus_mean(model: np.ndarray, site: Site) -> float:
    """A model's mean SPO+ loss on all samples of a client."""
    c_hat = site.client.sense * output(model, site.x, HIDDEN, D, site.settings.tau)
    moved = 2 * c_hat - site.c
    return float(np.mean(np.sum(moved * (cheapest(site.c, site.k) - cheapest(moved, site.k)), axis=1)))


def test_the_algorithm_in_numpy() -> None:
    """Random at first, then the model with the least loss on the own samples; a mean in each cluster."""
    settings = Settings(**SMALL, seed=2).at(D)
    run = Run(FEDERATION, settings)
    models, cluster = run.trained(ClusteredTrainer(clusters=4))
    sites = [Site(one, settings) for one in FEDERATION]
    drawn = [int(stream(2, Purpose.FIRST_CLUSTER, name).integers(4)) for name in FEDERATION.names]
    current = [run.engine(ALL).initial] * 4
    for round in range(settings.rounds):
        where = drawn if round == 0 else [int(np.argmin([spo_plus_mean(model, one) for model in current])) for one in sites]
        after = list(current)
        for number in set(where):
            members = [one for one, its in zip(sites, where, strict=True) if its == number]
            vectors = [one.train(current[number], range(2 * round, 2 * round + 2))[0] for one in members]
            after[number] = weighted_mean(vectors, [one.count for one in members])
        assert 1 < len(set(where)) < 4  # several clusters, and an empty one that stays as it is
        current = after
    np.testing.assert_allclose(models, current, rtol=0, atol=1e-10)
    assert cluster.tolist() == [int(np.argmin([spo_plus_mean(model, one) for model in current])) for one in sites]


def test_a_site_judges_on_the_samples_that_train() -> None:
    run = Run(FEDERATION, Settings(**SMALL))
    engine = run.engine(SPLIT)
    assert isinstance(engine, VectorEngine)
    rng = np.random.default_rng(0)
    models = engine.initial + rng.normal(size=(2, engine.initial.size))
    kept, _ = FEDERATION.split(0.2, 0)
    assert engine.counts.tolist() == kept.counts != FEDERATION.counts
    for site in engine.sites():
        with engine.precision():
            [found] = site.judge(
                np.broadcast_to(models, (len(site), *models.shape)), np.eye(2), [Loss.of("spo+")], training=True
            )
        wanted = [[spo_plus_mean(model, Site(kept[name], run.settings)) for model in models] for name in site.names]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)


def test_a_cluster_has_an_aggregators_memory_of_its_own() -> None:
    """Two clusters of clients that never change: each is as the momentum of its own clients alone."""
    trainer = ClusteredTrainer(clusters=2, aggregate="momentum")
    run = Run(FEDERATION, Settings(**SMALL | {"rounds": 15}))
    state = trainer.begin(run.engine(ALL))
    for _ in range(3):
        state = trainer.next(run, ALL, state)
    assert {name for name in state.memory if name.startswith("aggregate/")} == {"aggregate/0/velocity", "aggregate/1/velocity"}
    assert state.shared.shape == (2, run.engine(ALL).initial.size)
    assert np.abs(state.memory["aggregate/0/velocity"] - state.memory["aggregate/1/velocity"]).max() > 1e-6


def test_tuning_starts_from_each_clients_own_cluster() -> None:
    plain, none, some = (
        dffl.fit(FEDERATION, "clustered", clusters=2, epochs=epochs, **SMALL | {"rounds": 8}) for epochs in (None, 0, 3)
    )
    assert len(set(clusters_of(plain).values())) == 2
    assert clusters_of(plain) == clusters_of(none) == clusters_of(some)
    for name, member in none.members.items():
        start = numbers(plain.members[name].predictor)
        np.testing.assert_array_equal(numbers(member.predictor), start)
        wanted, _ = Site(FEDERATION[name], some.settings).train(start, range(3), purpose=Purpose.TUNE)
        np.testing.assert_allclose(numbers(some.members[name].predictor), wanted, rtol=0, atol=1e-10)


def test_a_newcomer_has_the_model_of_the_cluster_with_the_most_samples() -> None:
    fit = dffl.fit(FEDERATION, "clustered", clusters=2, **SMALL | {"rounds": 15})
    samples = {group: sum(one.n for one in FEDERATION if one.name[0] == group) for group in "ab"}
    assert samples["b"] > samples["a"]
    np.testing.assert_array_equal(numbers(fit.shared), numbers(fit.members["b1"].predictor))
    assert np.abs(numbers(fit.shared) - numbers(fit.members["a0"].predictor)).max() > 1e-3

"""The vectorised engine, the loop engine and a plain NumPy re-implementation give the same numbers."""

from __future__ import annotations

import subprocess
import sys

import jax
import numpy as np
import pytest

import dffl
from dffl.randomness import Purpose
from dffl.training import Run, Settings
from dffl.training.engines.vector import VectorEngine
from dffl.training.update import BLOCK, in_blocks
from tests.federations import client, feasible_sets, mixed


def vectors(fed: dffl.Federation, **settings: object) -> tuple[np.ndarray, np.ndarray]:
    """The federated and the local models."""
    run = Run(fed, Settings.of(**settings))
    return run.trained(dffl.FedAvg()), run.trained(dffl.Local())


def test_engines_agree_to_1e_9_after_50_rounds_in_float64() -> None:
    fed = dffl.synthetic.knapsack(seed=1, clients=4, samples=[40, 40, 7, 100])
    entropy = dffl.synthetic.portfolio(seed=1, clients=2, samples=[40, 100])
    members = list(fed) + [dffl.Client(f"p{c.name}", c.x, c.c, c.set, c.maximize) for c in entropy]
    both = dffl.Federation(members)
    settings = {"rounds": 50, "local_epochs": 1, "batch_size": 32, "dtype": "float64"}
    for a, b in zip(vectors(both, engine="vector", **settings), vectors(both, engine="loop", **settings), strict=True):
        assert a.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


def test_engines_agree_for_every_kind_of_oracle_sense_size_and_sampling() -> None:
    settings = {"rounds": 6, "local_epochs": 2, "batch_size": 8, "client_fraction": 0.5, "dtype": "float64"}
    for a, b in zip(vectors(mixed(), **settings), vectors(mixed(), engine="loop", **settings), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


def test_engines_agree_to_1e_5_after_2_rounds_in_float32() -> None:
    fed = dffl.synthetic.knapsack(seed=2, clients=8)
    for a, b in zip(vectors(fed, rounds=2), vectors(fed, rounds=2, engine="loop"), strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def test_chunks_do_not_change_the_numbers() -> None:
    fed = dffl.Federation([client(f"c{i}", dffl.TopK(5, 2), n=12 + i % 2) for i in range(7)])
    whole = vectors(fed, rounds=3, dtype="float64", chunk_size=100)
    for size in (1, 3):
        for a, b in zip(whole, vectors(fed, rounds=3, dtype="float64", chunk_size=size), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


def test_the_same_seed_gives_the_same_bits_and_another_seed_other_ones() -> None:
    fed = dffl.Federation([client(f"c{i}", dffl.TopK(5, 2)) for i in range(3)])
    first, again, other = (vectors(fed, rounds=2, seed=s)[0] for s in (4, 4, 5))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("clip", [0.5, 1e6])
def test_one_round_is_algorithm_1_and_2_written_out_in_numpy(clip: float) -> None:
    """Forward, SPO+ subgradient, backward, clipping, Adam and averaging, by hand."""
    s = dffl.TopK(3, 1)
    fed = dffl.Federation([client("a", s, n=5), client("b", s, n=9, maximize=True)])
    settings = Settings(rounds=1, local_epochs=2, batch_size=4, hidden=6, dtype="float64", gradient_clip=clip, tau=1.5)
    run = Run(fed, settings)
    trained = run.trained(dffl.FedAvg())
    engine = run.engine()
    assert isinstance(engine, VectorEngine)
    updated = []
    for number, one in enumerate(fed):
        unit, batches = engine.units[number], engine._layout.batches[number]
        x, c = (one.x - one.x.mean(0)) / one.x.std(0), one.sense * one.c / np.abs(one.c).mean()
        np.testing.assert_allclose(unit.features(one.x), x)
        theta = np.asarray(engine.initial).copy()
        mean, square = np.zeros_like(theta), np.zeros_like(theta)
        step = 0
        for epoch in range(2):
            grid = np.full((batches.steps, batches.rows), -1)
            batches.write(epoch, Purpose.SHUFFLE, grid)
            for batch in grid:
                rows = batch[batch >= 0] - batches.offset
                gradient = numpy_gradient(theta, x[rows], c[rows], one.sense, k=1, tau=1.5)
                gradient *= min(1.0, clip / np.linalg.norm(gradient))
                step += 1
                mean = 0.9 * mean + 0.1 * gradient
                square = 0.999 * square + 0.001 * gradient**2
                theta -= 1e-3 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        updated.append(theta)
    np.testing.assert_allclose(trained, (5 * updated[0] + 9 * updated[1]) / 14, rtol=0, atol=1e-12)


def numpy_gradient(theta: np.ndarray, x: np.ndarray, c: np.ndarray, sense: int, k: int, tau: float) -> np.ndarray:
    """The gradient of the mean SPO+ loss of a 3-6-3 network clipped at tau, over top-k."""
    w1, w2, b1, b2 = theta[:18].reshape(3, 6), theta[18:36].reshape(6, 3), theta[36:42], theta[42:]
    before = x @ w1 + b1
    hidden = np.maximum(before, 0)
    y = hidden @ w2 + b2
    norm = np.linalg.norm(y, axis=1, keepdims=True)
    shrink = np.minimum(1, tau / norm)

    def best(costs: np.ndarray) -> np.ndarray:
        return (np.argsort(np.argsort(costs, axis=1, kind="stable"), axis=1) < k).astype(float)

    outer = sense * 2 * (best(c) - best(2 * sense * y * shrink - c)) / len(x)
    radial = (norm > tau) * y * np.sum(outer * y, axis=1, keepdims=True) / norm**2
    inner = shrink * (outer - radial)
    back = (inner @ w2.T) * (before > 0)
    return np.concatenate([(x.T @ back).ravel(), (hidden.T @ inner).ravel(), back.sum(0), inner.sum(0)])


def test_local_is_one_run_while_a_federated_round_starts_adam_afresh() -> None:
    alone = dffl.Federation([client("a", dffl.TopK(5, 2), n=20)])
    federated, local = vectors(alone, rounds=4, local_epochs=3, dtype="float64")
    assert not np.allclose(federated, local[0], atol=1e-6)  # a federation of one differs only in Adam's memory
    federated, local = vectors(alone, rounds=1, local_epochs=12, dtype="float64")
    np.testing.assert_allclose(federated, local[0], rtol=0, atol=1e-14)


def test_client_sampling_takes_part_of_the_clients_and_weighs_by_samples() -> None:
    fed = dffl.Federation([client(f"c{i}", dffl.TopK(5, 2), n=6 + i) for i in range(10)])
    run = Run(fed, Settings(rounds=30, local_epochs=1, client_fraction=0.35))
    run.trained(dffl.FedAvg())
    seen = run.history.frame()
    assert set(seen.groupby("round").size()) == {3}
    assert set(seen["client"]) == set(fed.names)


def test_a_polytope_that_is_a_knapsack_trains_like_the_knapsack() -> None:
    a = np.linspace(0.5, 1.5, 5)
    closed = dffl.FractionalKnapsack(a, 2.0)
    lp = dffl.Polytope(A_ub=a[None], b_ub=[2.0], lower=np.zeros(5), upper=np.ones(5))
    models = [vectors(dffl.Federation([client("a", s, 30, True)]), rounds=5, dtype="float64")[0] for s in (closed, lp)]
    np.testing.assert_allclose(models[0], models[1], rtol=0, atol=1e-9)


def test_groups_do_not_pad_a_small_client_to_a_large_one() -> None:
    fed = dffl.Federation([client(f"c{i}", dffl.TopK(5, 2), n=500 if i < 3 else 50) for i in range(6)])
    sites = list(VectorEngine(fed, Settings()).sites())
    assert [site.members.tolist() for site in sites] == [[0, 1, 2], [3, 4, 5]]
    # (places, steps, rows): 8 steps of 63 samples, and 1 of 50, in each of 5 epochs, rounded up to few different shapes.
    shapes = [site._minibatches(0, 1, Purpose.SHUFFLE).shape for site in sites]
    assert shapes == [(16, 64, 64), (16, 8, 56)]


def test_normalisers_are_fitted_on_the_rows_that_train() -> None:
    fed = dffl.Federation([client("a", feasible_sets()["topk"], n=40)])
    run = Run(fed, Settings())
    kept, _ = fed.split(0.2, 0)
    np.testing.assert_allclose(run.engine(dffl.SPLIT).units[0].x_mean, kept[0].x.mean(axis=0))
    np.testing.assert_allclose(run.engine().units[0].x_mean, fed[0].x.mean(axis=0))


@pytest.mark.parametrize("engine", ["vector", "loop"])
def test_divergence_stops_and_names_the_client(engine: str) -> None:
    fed = dffl.Federation([client("calm", dffl.TopK(5, 2)), client("wild", dffl.TopK(5, 2))])
    with pytest.raises(dffl.DivergenceError, match=r"client '(calm|wild)': training \(fedavg/all\) diverged in round 0"):
        dffl.fit(fed, "fedavg", rounds=3, learning_rate=1e38, engine=engine)


def test_gradient_norm_is_clipped_for_each_client_alone() -> None:
    fed = dffl.Federation([client(f"c{i}", dffl.TopK(5, 2)) for i in range(3)])
    tiny = vectors(fed, rounds=1, local_epochs=1, gradient_clip=1e-12, dtype="float64")[1]
    start = np.asarray(VectorEngine(fed, Settings(dtype="float64")).initial)
    # Adam divides the clip out again unless the gradient is below its epsilon of 1e-8: then the steps are tiny.
    assert np.abs(tiny - start).max() < 1e-5


def test_a_program_is_traced_once_and_computes_the_blocks_that_are_asked_for() -> None:
    traced = []

    def doubled(row: jax.Array, factor: jax.Array) -> dict[str, jax.Array]:
        traced.append(row.shape)
        return {"first": row[0], "row": factor * row}

    rows = np.arange(4 * BLOCK * 3, dtype=np.float32).reshape(-1, 3)
    found = jax.jit(in_blocks(doubled, shared=1))(np.int32(2), rows, np.float32(2))
    wanted = np.where(np.arange(len(rows)) < 2 * BLOCK, 1, 0)[:, None] * rows
    assert traced == [(3,)]
    np.testing.assert_array_equal(found["row"], 2 * wanted)
    np.testing.assert_array_equal(found["first"], wanted[:, 0])


def test_what_is_slow_to_import_waits_until_it_is_needed() -> None:
    code = "import sys, dffl; dffl.fit; print([name for name in ('scipy.signal', 'scipy.special') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""Rounds of federated averaging in FedJAX: its own algorithm and loop over clients, with our closed form of SPO+ in JAX."""

from __future__ import annotations

import argparse
import itertools
from importlib.metadata import version
from typing import Any

import numpy as np
from benchmarks.peers import workload as work


def run() -> dict[str, Any]:
    """Time the rounds: one local epoch of every client with Adam, then the mean of the changes."""
    import fedjax
    import jax
    import jax.numpy as jnp

    data = work.federation(work.SAMPLES)

    def knapsack(profits: Any, weights: Any) -> Any:
        order = jnp.argsort(-profits / weights, axis=-1)
        sizes, sorted_profits = jnp.take_along_axis(weights, order, -1), jnp.take_along_axis(profits, order, -1)
        room = work.BUDGET - jnp.cumsum(sizes, -1) + sizes
        chosen = jnp.clip(room / sizes, 0, 1) * (sorted_profits > 0)
        return jnp.take_along_axis(chosen, jnp.argsort(order, axis=-1), -1)

    def losses(parameters: Any, batch: Any) -> Any:
        first, first_bias, second, second_bias = parameters
        predicted = jax.nn.relu(batch["x"] @ first + first_bias) @ second + second_bias
        chosen = jax.lax.stop_gradient(knapsack(2 * predicted - batch["c"], batch["weights"]))
        return jnp.sum((2 * predicted - batch["c"]) * chosen, -1) - 2 * jnp.sum(predicted * batch["w"], -1) + batch["z"]

    def gradient(parameters: Any, batch: Any, key: Any) -> Any:
        return jax.grad(lambda own: jnp.mean(losses(own, batch)))(parameters)

    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        gradient,
        fedjax.optimizers.adam(work.LEARNING_RATE),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=work.LOCAL_BATCH, num_epochs=1, drop_remainder=False),
    )
    clients = [
        fedjax.ClientDataset(
            {
                "x": data.features[k],
                "c": data.profits[k],
                "w": data.solutions[k],
                "z": data.objectives[k],
                "weights": np.broadcast_to(data.weights[k], data.profits[k].shape),
            }
        )
        for k in range(work.CLIENTS)
    ]
    state, turns = algorithm.init([jnp.asarray(p) for p in work.initial_parameters()]), itertools.count()

    def play() -> None:
        nonlocal state
        keys = jax.random.split(jax.random.PRNGKey(next(turns)), work.CLIENTS)
        state, _ = algorithm.apply(state, [(str(k).encode(), one, keys[k]) for k, one in enumerate(clients)])
        jax.block_until_ready(state.params)

    def mean_loss() -> float:
        batches = [one.all_examples() for one in clients]
        return float(np.mean([np.mean(losses(state.params, batch)) for batch in batches]))

    before = mean_loss()
    seconds, repeats = work.measure(play)
    return {
        "peer": f"FedJAX {version('fedjax')} + JAX {version('jax')}",
        "case": "rounds",
        "rounds_per_second": 1 / seconds,
        "repeats": repeats,
        "loss_before_and_after": [before, mean_loss()],
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=("rounds",), required=True)
    parser.parse_args()
    work.require("fedjax", "jax")
    with work.reporting() as report:
        report(run())


if __name__ == "__main__":
    main()

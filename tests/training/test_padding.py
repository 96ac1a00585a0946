"""A loss never sees the rows that only fill up a batch without being told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from dffl.losses import Rows
from dffl.training import Run, Settings
from dffl.training.padding import refuse_seen_padding
from tests.federations import client, mixed

SMALL: dict[str, Any] = {"rounds": 1, "local_epochs": 1, "hidden": 4, "progress": False}


@pytest.fixture(autouse=True)
def losses() -> Iterator[None]:
    before = dict(dffl.Loss.known)
    yield
    dffl.Loss.known.clear()
    dffl.Loss.known.update(before)


def relative(mean: Any) -> dffl.Loss:
    """The squared error relative to its mean over the batch, which ``mean`` computes."""

    class Relative(dffl.Loss):
        name = "relative"

        def __call__(self, c_hat: Any, rows: Rows, s: dffl.FeasibleSet, key: Any) -> Any:
            errors = jnp.sum((c_hat - rows.c) ** 2, axis=-1)
            return errors / mean(errors, rows)

    return Relative()


def masked(errors: Any, rows: Rows) -> Any:
    return jnp.sum(errors * rows.present) / jnp.sum(rows.present)


def test_a_loss_over_the_batch_that_sees_padding_is_refused() -> None:
    federation = dffl.Federation([client("a", dffl.TopK(5, 2), 57)])
    wrong = relative(lambda errors, rows: jnp.mean(errors))
    line = (
        r"^loss 'relative': its value of a sample changes with rows that only fill up a batch; compute each row by itself, or"
    )
    with pytest.raises(ValueError, match=line):
        dffl.fit(federation, "fedavg", loss=wrong, **SMALL)
    with pytest.raises(ValueError, match=line):  # also where it only judges
        dffl.fit(federation, "finetune", judge=wrong, **SMALL)


def test_a_loss_that_leaves_padding_out_trains_as_on_the_samples_alone() -> None:
    """With 13 samples in batches for 16; the mean over samples of what is relative to their mean is 1."""
    federation = dffl.Federation([client("a", dffl.TopK(5, 2), 13)])
    fit = dffl.fit(federation, "fedavg", loss=relative(masked), **SMALL)
    np.testing.assert_allclose(fit.history["loss"], 1.0, rtol=1e-5)


OWN = sorted(name for name, kind in dffl.Loss.known.items() if not kind.random and kind.__module__.startswith("dffl."))


@pytest.mark.parametrize("name", OWN)
def test_the_losses_of_dffl_compute_every_row_by_itself(name: str) -> None:
    for one in mixed(6, families=("knapsack", "topk")):  # fits do not try them
        refuse_seen_padding(dffl.Loss.of(name), one)


def test_a_loss_over_the_batch_is_refused_where_each_sample_is_hidden() -> None:
    one = client("a", dffl.TopK(5, 2), 13)
    hidden = {"level": "sample", "clip": 1.0, "noise": 1.0}
    with pytest.raises(ValueError, match=r"changes with the other samples of a batch; privacy at the level of samples"):
        Run(dffl.Federation([one]), Settings(loss=relative(masked), privacy=hidden, scale_features=False, scale_costs=False))

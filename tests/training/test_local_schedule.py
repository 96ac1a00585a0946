"""A schedule applies to `local` too: over parts of its epochs that are as long as rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

import dffl
from dffl.training import Run, Settings
from dffl.training.trainers import Local
from tests.federations import client

HOW: dict[str, Any] = {"rounds": 3, "local_epochs": 2, "batch_size": 8, "hidden": 4}


def test_a_schedule_applies_to_local_over_its_epochs() -> None:
    federation = dffl.Federation([client("a", dffl.TopK(5, 2), 13)])
    with Run(federation, Settings(schedule="linear", **HOW)) as run:
        [site] = run.engine().sites()
        wanted: Any = site.initial
        for first, rate in ((0, 1.0), (2, 2 / 3), (4, 1 / 3)):
            wanted = site.train(wanted, 2, first, rate=rate)
        np.testing.assert_array_equal(run.trained(Local(scheduled=True)), wanted.vectors)
        # Five epochs are two parts of two, and one of one.
        short: Any = site.initial
        for first, count, rate in ((0, 2, 1.0), (2, 2, 2 / 3), (4, 1, 1 / 3)):
            short = site.train(short, count, first, rate=rate)
        np.testing.assert_array_equal(run.trained(Local(5, scheduled=True)), short.vectors)
        # Without it, as methods that mix local models train: one training at the full rate.
        plain = site.train(site.initial, 6).vectors
        np.testing.assert_array_equal(run.trained(Local()), plain)
    x = federation["a"].x
    fits = [dffl.fit(federation, "local", schedule=name, progress=False, **HOW) for name in ("linear", "constant")]
    network = [run.personal(vectors)[0] for vectors in (wanted.vectors, plain)]
    for fit, predictor in zip(fits, network, strict=True):
        np.testing.assert_array_equal(fit.predict("a", x), dffl.judging.predicted(predictor, x))

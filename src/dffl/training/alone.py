"""Models that a client makes of its own samples alone, without an engine: they are not trained in steps.

Such a model chooses one number (neighbours, a penalty, the size of a leaf) by its predictions for samples that it was not
fitted to. `best_of` compares the predictions; `Run.alone` makes the models of all clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dffl.federation import Client
from dffl.judging import regrets_at_each
from dffl.predictor import Predictor

JUDGES = ("regret", "mse")


class Own(NamedTuple):
    """A client's own model, and the named numbers that it chose."""

    predictor: Predictor
    choices: dict[str, float]


def require_judge(judge: str) -> None:
    """Refuse anything but the name of a judge."""
    if judge not in JUDGES:
        raise ValueError(f"judge must be one of {', '.join(JUDGES)}, found {judge!r:.80}")


def best_of(client: Client, guesses: Sequence[np.ndarray], judge: str) -> int:
    """The best table of predicted costs (n, d) for a client: by the regret of its decisions, or by the squared error.

    Each row was predicted without its own sample. A row of NaN could not be predicted and does not count. Among equally good
    tables the first is chosen.
    """
    known = np.isfinite(guesses).all(axis=(0, 2))
    if len(guesses) == 1 or not known.any():
        return 0
    seen, tables = client.rows(known), [table[known] for table in guesses]
    if judge == "mse":
        return int(np.argmin([np.mean((table - seen.c) ** 2) for table in tables]))
    return int(np.argmin([lost.mean() for lost in regrets_at_each([seen] * len(tables), tables)]))

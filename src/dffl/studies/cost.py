"""What a run of the paper's study cost: core-hours, and training samples a second."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dffl.studies.published import CORE_HOURS
from dffl.training import Settings
from dffl.training.methods import options_of
from dffl.training.trainers.tuning import EPOCHS, checked_epochs


def samples_trained(rows: pd.DataFrame, settings: dict[str, Any]) -> float:
    """How many samples the gradient steps of these fits saw, each time that they saw it."""
    tuning, rest = options_of("finetune", settings)
    used, longest = Settings.of(**rest), checked_epochs(tuning.get("epochs", EPOCHS))[-1]
    kept, epochs = 1 - used.validation_fraction, used.rounds * used.local_epochs
    # Local and federated models, each on all the data and on the part that the split keeps; then fine-tuning, on that part
    # with every candidate number of epochs, on all the data with the number that the client chose.
    passes = epochs * (1 + used.client_fraction) * (1 + kept) + kept * longest
    clients = rows[rows["method"] == "finetune"]
    return float((clients["n"].astype(float) * (passes + clients["epochs"])).sum())


def cost_line(jobs: pd.DataFrame, rows: pd.DataFrame, settings: dict[str, Any] | None) -> str:
    """One line for people. Settings are those of all the fits; None where fits differ, which then have no common speed."""
    seconds = float(jobs["cpu_seconds"].sum())
    spent = f"{seconds / 3600:.2f} core-hours" if seconds >= 360 else f"{seconds / 60:.1f} core-minutes"
    speed = (
        f", {samples_trained(rows, settings) / max(seconds, 1e-9):,.0f} training samples a second and core" if settings else ""
    )
    return f"{spent}{speed} (the paper's 2,560: {CORE_HOURS:.0f} core-hours)"

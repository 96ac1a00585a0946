"""How fast a run of the paper's study was: training samples for each second and core."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dffl.cases.paper.published import CORE_HOURS
from dffl.studies.result import StudyRows
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


def speed_line(found: StudyRows) -> str:
    """Training samples for each second and core, and what the paper's own run took."""
    seconds = max(3600 * found.core_hours, 1e-9)
    speed = samples_trained(found.rows, found.study.protocol["settings"]) / seconds
    return f", {speed:,.0f} training samples per second and core (the paper's 2,560: {CORE_HOURS:.0f} core-hours)"

"""Which of a method and its baselines lost least on the test rows, in words: after training, and when the model decides."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dffl.fitting import Fit
from dffl.tables.model import OwnModel
from dffl.time.bases import FORECAST, NAIVE
from dffl.time.chosen import Chosen
from dffl.time.outcome import CHOSEN
from dffl.time.words import keep_or_use, rule_in_words
from dffl.training.methods import METHODS

TINY = 1e-9
"""A smaller difference of relative regrets is rounding."""
TRAINED_ONCE = ("mean-cost", "forecast", "ridge", "local", "local-tuned")
BESIDE = ("mean-cost", *NAIVE, "forecast", "ridge", "local", "local-tuned")
"""Baselines shown next to the method: the naive rules, the clients' forecast, and local models, trained once and tuned. With an
order, the naive rules over time are among them.
"""


def finite_regrets(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The relative regret of each client under each method, and the clients for which one is infinite, which are left out.

    It is infinite if the best possible objective is zero and there is a loss. A mean that includes it has no meaning.
    """
    by = table.pivot_table(index="client", columns="method", values="relative_regret", sort=False)
    finite = np.isfinite(by.to_numpy(np.float64)).all(axis=1)
    return by.loc[finite].clip(lower=0), by.index[~finite].tolist()  # a value below zero is rounding


def winner(by: pd.DataFrame, method: str, average: str) -> str:
    """The first sentence: which of the method and its baselines to use."""
    best = by[method].mean()
    simpler = by[[name for name in BESIDE if name in by and name != method]].mean()
    name = str(simpler.idxmin())
    if len(simpler) and max(abs(simpler - best)) <= TINY:
        return f"All methods lose the same{average} ({100 * best:.2f} %): these rows cannot tell which one to use."
    if not simpler.min() < best - TINY:
        return f"Use {method}: it loses least{average} ({100 * best:.2f} %)."
    where = (
        f", and less than {method} at {int((by[name] < by[method] - TINY).sum())} of {len(by)} clients" if len(by) > 1 else ""
    )
    warned = "" if method == CHOSEN else f" Do not use {method} here yet."  # the choice is based on more than this table
    return f"{keep_or_use(name)}: it loses least{average} ({100 * simpler[name]:.2f} %){where}.{warned}"


def instead_of(fit: Fit | Chosen, table: pd.DataFrame) -> str | None:
    """The rule or method that `dffl fit` recommends because it lost less on the test rows than a fit; else None.

    ``table`` has a row for each client and method.
    """
    if not {"method", "relative_regret"} <= set(table) or table.duplicated(["client", "method"]).any():
        return None
    means = finite_regrets(table.assign(relative_regret=pd.to_numeric(table["relative_regret"], errors="coerce")))[0].mean()
    if isinstance(fit, Chosen):
        rivals = sorted(name for name in means.index if name in METHODS and name != FORECAST)
    elif CHOSEN in fit.about:
        return None  # the choice is based on more than these rows
    else:
        rivals = [name for name in BESIDE if name in means]
    mine = row_of(fit)
    if mine not in means or not (rivals := [name for name in rivals if name != mine]):
        return None
    best = str(means[rivals].idxmin())
    return best if means[best] < means[mine] - TINY else None


def row_of(fit: Fit | Chosen) -> str:
    """The row of a fit in a table of methods; for a choice over time, the rule that is kept, if one is."""
    if not isinstance(fit, Chosen):
        return fit.method
    return next(iter(fit.rules.values())) if fit.evidence.get("why") == "simple" else CHOSEN


def advised_against(model: OwnModel, client: str) -> str | None:
    """What `dffl fit` recommended instead of a model, with the losses of both at a client; None if it was the model."""
    table = pd.DataFrame(model.about["evaluation"])
    best = model.about["instead"] if "instead" in model.about else instead_of(model.fit, table)
    if best is None:
        return None
    mine = row_of(model.fit)
    regrets = {row.get("method"): row.get("relative_regret") for row in model.about["evaluation"] if row["client"] == client}
    advice = f"dffl fit did not recommend this model. {keep_or_use(best)}"
    if not all(isinstance(regrets.get(name), float) for name in (best, mine)):
        return f"{advice}."
    this = "the choice over time" if mine == CHOSEN else rule_in_words(mine)
    return (
        f"{advice}: at {client} it lost {100 * regrets[best]:.2f} % on the test rows, and {this} {100 * regrets[mine]:.2f} %."
    )

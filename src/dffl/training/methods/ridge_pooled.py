"""`ridge-pooled`: one ridge of all clients' samples, from sums: federated learning without rounds.

A client sends two sums over its samples, in its own units: the products of its features with each other and with its costs.
The server adds them up, and their solution is the ridge of all samples. To choose the penalty it sends the ridge of each one
back, and a client answers with the leave-one-out error of each, summed over its samples. So these sums leave the client, and
they say more of its samples than a trained network does: of a client with one sample they are the sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dffl.checks import require_whole
from dffl.training.engines.base import Fields, in_name_order
from dffl.training.methods.registry import method
from dffl.training.methods.ridge import RidgePredictor, checked_penalties
from dffl.training.parts import Part
from dffl.training.ridge import LEAST, expanded
from dffl.training.run import Outcome, Run
from dffl.training.trainers import Trainer

if TYPE_CHECKING:
    from dffl.training.engines.site import Site


class PooledRidge(NamedTuple):
    """The coefficients (1 + q, d) of one ridge for all, and its penalty."""

    coefficients: np.ndarray
    penalty: np.ndarray


@dataclass(frozen=True)
class SummedRidge(Trainer):
    """Two visits: one for the sums, one for the errors of each penalty. A given penalty needs only the first."""

    name: ClassVar[str] = "ridge-pooled"
    needs_all_clients: ClassVar[bool] = True
    degree: int = 1
    penalty: float | None = None

    def train(self, run: Run, part: Part) -> PooledRidge:
        sums = self._added(run, part)
        penalties = checked_penalties(self.penalty)
        free = np.diag([0.0] + [1.0] * (len(sums["gram"]) - 1))  # the intercept is not penalised
        inverses = np.linalg.inv(sums["gram"] + penalties[:, None, None] * free)
        coefficients = inverses @ sums["cross"]
        best = 0
        if len(penalties) > 1:
            best = int(np.argmin(self._added(run, part, inverses=inverses, coefficients=coefficients)["errors"]))
        return PooledRidge(coefficients[best], penalties[best])

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        answers = [self._answer(x, c, sent) for x, c in site.samples()]
        return {name: np.stack([answer[name] for answer in answers]) for name in answers[0]}

    def _answer(self, x: np.ndarray, c: np.ndarray, sent: Mapping[str, Any]) -> Fields:
        design = np.concatenate([np.ones((len(x), 1)), expanded(x, self.degree)], axis=1)
        if not sent:
            return {"gram": design.T @ design, "cross": design.T @ c}
        errors = []
        for inverse, coefficients in zip(sent["inverses"], sent["coefficients"], strict=True):
            leverage = np.sum((design @ inverse) * design, axis=1)
            residuals = (c - design @ coefficients) / np.maximum(1 - leverage, LEAST)[:, None]
            errors.append(np.sum(residuals**2))
        return {"errors": np.array(errors)}

    def _added(self, run: Run, part: Part, **sent: Any) -> Fields:
        """The clients' answers, added up in the order of their names."""
        names = run.engine(part).names
        total: Fields = {}
        for _, fields in in_name_order(run.ask(self, part, **sent), np.arange(len(names)), names):
            total = {name: total.get(name, 0) + value for name, value in fields.items()}
        return total

    def check(self, run: Run, part: Part) -> None:
        if run.settings.privacy is not None:
            raise ValueError("privacy: method 'ridge-pooled' sends sums over a client's samples, which nothing would hide")

    def blank(self, run: Run, part: Part) -> PooledRidge:
        columns = expanded(np.zeros(run.federation.features), self.degree).size
        return PooledRidge(np.zeros((1 + columns, run.federation.dim)), np.zeros(()))


@method("ridge-pooled", label="Ridge of all clients", colour="#A6761D", words="one straight-line model of all clients' costs")
def ridge_pooled(run: Run, *, penalty: float | None = None, degree: int = 1) -> Outcome:
    """One ridge for all, in each client's own units; the penalty is chosen by squared error unless it is given."""
    checked_penalties(penalty)
    require_whole("degree", degree, least=1, most=2)
    summed = run.trained(SummedRidge(degree, None if penalty is None else float(penalty)))
    predictors = [RidgePredictor(unit, summed.coefficients, degree) for unit in run.engine().units]
    chosen = {"penalty": [float(summed.penalty)] * len(predictors)}
    return Outcome(predictors, RidgePredictor(run.pooled_units(), summed.coefficients, degree), chosen)

"""A model for tomorrow: trained on all the days that there are, with what it takes to use it on days that follow.

What SPO+ predicts ranks hours well and is no price forecast. What the chosen hours will cost is therefore estimated apart:
a model of the first half of the days is watched on the second half, where its predicted cost of the chosen hours and what
was paid in the end give each zone a line from one to the other, and the spread around it.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from dffl.data.energy import Panel, Recipe, federation
from dffl.data.energy.lagged import Memory
from dffl.federation import Federation
from dffl.fitting import Fit, fit
from dffl.studies.energy.protocol import Protocol, halves

KIND = "energy"
LIKELY = (0.1, 0.9)
"""The quantiles of a day's cost, around the expected one, that are told."""


class Trained(NamedTuple):
    """The model for tomorrow, and the one of the first half with the half that it was watched on."""

    model: Fit
    first_half: Fit
    test: Federation


def train(
    panel: Panel, protocol: Protocol, method: str = "finetune-mix", seed: int = 0, progress: bool | None = None
) -> Trained:
    """Fit a method to all the days of a panel, and to their first half for telling what decisions will cost."""
    settings = protocol.training(seed)
    early, late, _, _ = halves(panel, protocol)
    first = fit(early, method, progress=progress, **settings)
    recipe = protocol.recipe(panel)
    last = fit(federation(panel, recipe), method, progress=progress, **settings)
    lines = {client.name: cost_line(*paid(first, client)) for client in late}
    return Trained(replace(last, about={KIND: _about(panel, recipe, lines)}), first, late)


def paid(model: Fit, client: Any) -> tuple[np.ndarray, np.ndarray]:
    """What the hours that a model chooses were predicted to cost on each day, and what they cost."""
    hours, expected = model.decide(client.name, client.x), model.predict(client.name, client.x)
    return (hours * expected).sum(axis=1), (hours * client.c).sum(axis=1)


class CostLine(NamedTuple):
    """From the predicted cost of the chosen hours to the expected one, and how far the real one strays from it."""

    start: float
    slope: float
    low: float
    high: float

    def expected(self, predicted: float) -> tuple[float, float, float]:
        """The expected cost, and the range of four days in five."""
        middle = self.start + self.slope * predicted
        return middle, middle + self.low, middle + self.high


def cost_line(predicted: np.ndarray, cost: np.ndarray) -> CostLine:
    """The least-squares line through the days; level where predictions do not differ or would point downwards."""
    spread = predicted.var()
    slope = max(float(np.cov(predicted, cost, bias=True)[0, 1] / spread), 0.0) if spread > 0 else 0.0
    start = float(cost.mean() - slope * predicted.mean())
    low, high = np.quantile(cost - start - slope * predicted, LIKELY)
    return CostLine(start, slope, float(low), float(high))


def _about(panel: Panel, recipe: Recipe, lines: dict[str, CostLine]) -> dict[str, Any]:
    """Everything that decisions need beside the network, as JSON has it."""
    costs = panel.costs(recipe.cost)
    zones: dict[str, Any] = {}
    for zone, start, end in zip(panel, panel.starts[:-1], panel.starts[1:], strict=True):
        demand = float(panel.demands[panel.names.index(zone.name)])
        zones[zone.name] = {"demand": demand, "last_day": str(zone.dates[-1]), "cost_line": lines[zone.name]._asdict()}
        if recipe.weight is not None:
            zones[zone.name]["memory"] = Memory.of(costs[start:end], zone.dates, recipe.weight).as_json()
    return {"recipe": asdict(recipe), "covariates": list(panel.covariate_names), "zones": zones}

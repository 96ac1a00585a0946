"""A model for tomorrow: trained on all days of a panel, and saved with everything that is needed to use it later.

What SPO+ predicts ranks hours well and is no price forecast. What the chosen hours will cost is therefore estimated by the
steady average of past prices, corrected by its recent errors: a model of the first half of the days decides on the last days of
the second half, where what it bought and what that cost are both known.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from dffl.federation import Federation
from dffl.fitting import Fit, fit
from dffl_studies.energy.data import Panel, Sampling, federation
from dffl_studies.energy.data.lagged import Memory, steady_average, weekday
from dffl_studies.energy.naive import tuned_weight
from dffl_studies.energy.setup import Setup, halves

KIND = "energy"
METHOD = "finetune-mix"
"""The default method of a model for tomorrow."""
RECENT_DAYS = 60
"""The last days of the second half whose errors are used: errors of another season do not apply."""
LIKELY = (0.05, 0.95)
"""The quantiles of the recent errors that are reported as a range. About four in five of the days that follow lie inside."""


class Trained(NamedTuple):
    """The model for tomorrow, and the one of the first half with the half that it was tested on."""

    model: Fit
    first_half: Fit
    test: Federation


def train(panel: Panel, setup: Setup, method: str = METHOD, seed: int = 0, progress: bool | None = None) -> Trained:
    """Fit a method to all the days of a panel, and to their first half, for the errors of expected costs."""
    # The options of other methods are for the study.
    settings = {name: value for name, value in setup.training(seed).items() if name.partition(".")[0] in (name, method)}
    early, late, used, first_test = halves(panel, setup)
    first = fit(early, method, progress=progress, **settings)
    sampling = setup.sampling(panel)
    last = fit(federation(panel, sampling), method, progress=progress, **settings)
    weight = used.weight or tuned_weight(panel, setup.cost, first_test)
    ranges = recent_errors(first, late, panel, setup.cost, weight)
    return Trained(replace(last, about={**last.about, KIND: _about(panel, sampling, ranges)}), first, late)


class CostRange(NamedTuple):
    """How far the cost of chosen hours is from what past prices predict, as a share of the prediction."""

    least: float
    """Shares are taken of at least this cost, so that they stay small where prices are near zero."""
    middle: float
    low: float
    high: float

    def around(self, reference: float) -> tuple[float, float, float]:
        """The expected cost, and the range in which four days in five lie."""
        size = max(abs(reference), self.least)
        return reference + size * self.middle, reference + size * self.low, reference + size * self.high


def recent_errors(model: Fit, test: Federation, panel: Panel, cost: str, weight: float) -> dict[str, CostRange]:
    """What each zone's decisions cost recently, compared with what a steady average of this weight predicted for them."""
    found, costs = {}, panel.costs(cost)
    for zone, rows in panel.zones.items():
        client = test[zone].rows(slice(-RECENT_DAYS, None))
        forecast = steady_average(costs[rows], panel.dates[rows], weight)[:-1][-client.n :]
        hours = model.decide(zone, client.x)
        found[zone] = cost_range((hours * forecast).sum(axis=1), (hours * client.c).sum(axis=1))
    return found


def cost_range(reference: np.ndarray, cost: np.ndarray) -> CostRange:
    """The mean and the likely range of the relative errors of these days."""
    least = float(np.median(np.abs(reference))) / 4
    size = np.maximum(np.abs(reference), least)
    errors = np.divide(cost - reference, size, out=np.zeros_like(size), where=size > 0)
    low, high = np.quantile(errors, LIKELY)
    return CostRange(least, float(errors.mean()), float(low), float(high))


def _about(panel: Panel, sampling: Sampling, ranges: dict[str, CostRange]) -> dict[str, Any]:
    """Everything that decisions need in addition to the network, as plain values for JSON."""
    costs, weight = panel.costs(sampling.cost), sampling.weight or tuned_weight(panel, sampling.cost)
    zones: dict[str, Any] = {}
    for (zone, rows), demand in zip(panel.zones.items(), panel.demands, strict=True):
        dates, covariates = panel.dates[rows], panel.covariates[rows]
        zones[zone] = {
            "demand": float(demand),
            "last_day": str(dates[-1]),
            "memory": Memory.of(costs[rows], dates, weight).as_json(),
            "cost_range": ranges[zone]._asdict(),
            "seen": [covariates.min(axis=0).tolist(), covariates.max(axis=0).tolist()],
        }
    names = panel.covariate_names
    # A column that numbers the weekdays in our way need not be given for tomorrow: it follows from the date.
    weekdays = [name for place, name in enumerate(names) if (panel.covariates[:, place] == weekday(panel.dates)).all()]
    return {"recipe": asdict(sampling), "covariates": list(names), "weekdays": weekdays, "zones": zones}

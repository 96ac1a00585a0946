"""`mean-cost` and `forecast`: predictions without any learning."""

from __future__ import annotations

from dffl.predictor import ConstantPredictor, ForecastPredictor
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run


@method(
    "mean-cost",
    label="Mean cost (no features)",
    colour="#999999",
    kind="naive",
    words="the mean of past costs, without features",
)
def mean_cost(run: Run) -> Outcome:
    """Each client's mean training cost, for all features."""
    return Outcome([ConstantPredictor(client.c.mean(axis=0)) for client in run.federation])


@method("forecast", label="Forecast as it is", colour="#BBBBBB", kind="naive", words="the forecast that the client already has")
def forecast(run: Run) -> Outcome:
    """The forecast that each client already has, as it is."""
    if not run.settings.forecast:
        fix = "dffl.Client(..., forecast=...), or forecast under [federation]"
        raise ValueError(f"method 'forecast' needs clients that bring a forecast: {fix}")
    predictor = ForecastPredictor(run.federation.dim)
    return Outcome([predictor] * len(run.federation), predictor)

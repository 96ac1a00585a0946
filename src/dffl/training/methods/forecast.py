"""`forecast`: the forecast that the clients already have, as it is. What a client has without any learning, if it has one."""

from __future__ import annotations

from dffl.predictor import ForecastPredictor
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run


@method("forecast", label="Forecast as it is", colour="#BBBBBB")
def forecast(run: Run) -> Outcome:
    """Each client's own forecast."""
    if not run.settings.forecast:
        raise ValueError("method 'forecast' needs a forecast behind the features: pass forecast=True")
    given = ForecastPredictor(run.federation.dim)
    return Outcome([given] * len(run.federation), given)

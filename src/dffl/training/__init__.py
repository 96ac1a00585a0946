"""Training: one client update, two engines, and the methods built on them."""

# Importing a method's file registers it; their order here is the order in which they are listed.
from dffl.training import mean_cost, forecast, local, fedavg, interp, finetune  # noqa: F401, I001
from dffl.training.engine import Engine
from dffl.training.history import DivergenceError
from dffl.training.methods import METHODS, Method, method
from dffl.training.run import Outcome, Run
from dffl.training.settings import Settings

__all__ = ["METHODS", "DivergenceError", "Engine", "Method", "Outcome", "Run", "Settings", "method"]

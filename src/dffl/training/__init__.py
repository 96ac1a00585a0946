"""Training: one client update, three engines, trainers that are values, and the methods built on them."""

from dffl.training.aggregators import Aggregator, Update
from dffl.training.history import DivergenceError
from dffl.training.methods import METHODS, Method, method
from dffl.training.parts import ALL, SPLIT
from dffl.training.run import Outcome, Run
from dffl.training.settings import Settings
from dffl.training.trainers import FedAvg, Federated, Local, Trainer

__all__ = [
    "ALL", "METHODS", "SPLIT", "Aggregator", "DivergenceError", "FedAvg", "Federated", "Local", "Method", "Outcome", "Run",
    "Settings", "Trainer", "Update", "method",
]  # fmt: skip

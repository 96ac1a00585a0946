"""Trainers: values that define how models are trained. A run trains each of them once for all methods."""

from dffl.training.trainers.base import Trainer
from dffl.training.trainers.federated import FedAvg, Federated, ServerState
from dffl.training.trainers.local import Local
from dffl.training.trainers.mixing import Weights
from dffl.training.trainers.tuning import BestStop, Refit, Stops, Tuned, tuned

__all__ = ["BestStop", "FedAvg", "Federated", "Local", "Refit", "ServerState", "Stops", "Trainer", "Tuned", "Weights", "tuned"]

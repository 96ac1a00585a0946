"""Decision-focused federated learning.

All public names are here. They are imported on first use, so that ``import dffl`` and the command line are fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dffl.discovery import submodules

__version__ = "0.2.0"

if TYPE_CHECKING:
    from dffl import sets as sets
    from dffl import synthetic as synthetic
    from dffl.advice import Advice as Advice
    from dffl.advice import advise as advise
    from dffl.comparing import compare as compare
    from dffl.comparing import fit_all as fit_all
    from dffl.comparing import summarise as summarise
    from dffl.comparing import tabulate as tabulate
    from dffl.federation import Client as Client
    from dffl.federation import Federation as Federation
    from dffl.fitting import Fit as Fit
    from dffl.limits import Limits as Limits
    from dffl.losses import Loss as Loss
    from dffl.losses import mean_of_regret_ratios as mean_of_regret_ratios
    from dffl.losses import mse as mse
    from dffl.losses import optimal_value as optimal_value
    from dffl.losses import regret as regret
    from dffl.losses import relative_regret as relative_regret
    from dffl.losses import rspo_plus as rspo_plus
    from dffl.losses import spo_plus as spo_plus
    from dffl.models import load as load
    from dffl.parquet_federation import ParquetFederation as ParquetFederation
    from dffl.predictor import ConstantPredictor as ConstantPredictor
    from dffl.predictor import MeanPredictor as MeanPredictor
    from dffl.predictor import MixedPredictor as MixedPredictor
    from dffl.predictor import Network as Network
    from dffl.predictor import NetworkPredictor as NetworkPredictor
    from dffl.predictor import Predictor as Predictor
    from dffl.sets import Assignment as Assignment
    from dffl.sets import Ball as Ball
    from dffl.sets import Battery as Battery
    from dffl.sets import Box as Box
    from dffl.sets import Bracket as Bracket
    from dffl.sets import ConsecutiveHours as ConsecutiveHours
    from dffl.sets import Ellipsoid as Ellipsoid
    from dffl.sets import EntropySimplex as EntropySimplex
    from dffl.sets import FeasibleSet as FeasibleSet
    from dffl.sets import FractionalKnapsack as FractionalKnapsack
    from dffl.sets import MixedInteger as MixedInteger
    from dffl.sets import ModelFile as ModelFile
    from dffl.sets import Polytope as Polytope
    from dffl.sets import ShortestPath as ShortestPath
    from dffl.sets import Simplex as Simplex
    from dffl.sets import Solver as Solver
    from dffl.sets import TopK as TopK
    from dffl.sets import ZeroOneKnapsack as ZeroOneKnapsack
    from dffl.sets import hausdorff as hausdorff
    from dffl.sets import shape_distance as shape_distance
    from dffl.theory import LossGap as LossGap
    from dffl.theory import loss_gap_bound as loss_gap_bound
    from dffl.theory.report import Bounds as Bounds
    from dffl.theory.report import bounds as bounds
    from dffl.time.backtest import backtest as backtest
    from dffl.time.outcome import Backtest as Backtest
    from dffl.training import ALL as ALL
    from dffl.training import SPLIT as SPLIT
    from dffl.training import Aggregator as Aggregator
    from dffl.training import DivergenceError as DivergenceError
    from dffl.training import FedAvg as FedAvg
    from dffl.training import Federated as Federated
    from dffl.training import Local as Local
    from dffl.training import Outcome as Outcome
    from dffl.training import Run as Run
    from dffl.training import Settings as Settings
    from dffl.training import Trainer as Trainer
    from dffl.training import Update as Update
    from dffl.training import method as method

_HOMES = {
    "advice": ("Advice", "advise"),
    "comparing": ("compare", "fit_all", "summarise", "tabulate"),
    "federation": ("Client", "Federation"),
    "fitting": ("Fit",),
    "limits": ("Limits",),
    "losses": ("Loss", "mean_of_regret_ratios", "mse", "optimal_value", "regret", "relative_regret", "rspo_plus", "spo_plus"),
    "models": ("fit", "load"),
    "parquet_federation": ("ParquetFederation",),
    "predictor": ("ConstantPredictor", "MeanPredictor", "MixedPredictor", "Network", "NetworkPredictor", "Predictor"),
    "sets": (
        "Assignment", "Ball", "Battery", "Box", "Bracket", "ConsecutiveHours", "Ellipsoid", "EntropySimplex", "FeasibleSet",
        "FractionalKnapsack", "MixedInteger", "ModelFile", "Polytope", "ShortestPath", "Simplex", "Solver", "TopK",
        "ZeroOneKnapsack", "hausdorff", "shape_distance",
    ),
    "theory": ("LossGap", "loss_gap_bound"),
    "theory.report": ("Bounds", "bounds"),
    "time.backtest": ("backtest",),
    "time.outcome": ("Backtest",),
    "training": (
        "ALL", "SPLIT", "Aggregator", "DivergenceError", "FedAvg", "Federated", "Local", "Outcome", "Run", "Settings",
        "Trainer", "Update", "method",
    ),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME, "synthetic", "__version__"])


_STUDIES = "in the package dffl-studies (pip install dffl-studies)"
_MOVED = {
    "studies": f"dffl_studies.running, {_STUDIES}",
    "cases": f"dffl_studies, {_STUDIES}",
    "bench": f"dffl_studies.bench, {_STUDIES}",
    "data": "dffl.tables; synthetic federations are in dffl.synthetic",
    "own": "dffl.tables",
}
"""Names of earlier versions, and where they are now."""


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        raise AttributeError(f"dffl.{name} is now {_MOVED[name]}")
    if name not in _HOME:
        return submodules(__name__)(name)
    home = import_module(f"dffl.{_HOME[name]}")
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

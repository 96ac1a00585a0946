"""Feasible sets: where decisions live."""

from dffl.sets._host import HostSet
from dffl.sets.ball import Ball, Ellipsoid
from dffl.sets.base import Bracket, FeasibleSet, stack
from dffl.sets.box import Box
from dffl.sets.entropy import EntropySimplex
from dffl.sets.geometry.distance import hausdorff, shape_distance
from dffl.sets.knapsack import FractionalKnapsack
from dffl.sets.polytope import Polytope
from dffl.sets.pyepo import pyepo
from dffl.sets.simplex import Simplex
from dffl.sets.solver import Solver
from dffl.sets.topk import TopK

__all__ = [
    "Ball", "Box", "Bracket", "Ellipsoid", "EntropySimplex", "FeasibleSet", "FractionalKnapsack", "HostSet", "Polytope",
    "Simplex", "Solver", "TopK", "hausdorff", "pyepo", "shape_distance", "stack",
]  # fmt: skip

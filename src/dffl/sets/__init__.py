"""Feasible sets: where decisions live. One file for each family; a file that is put here is found."""

from dffl.discovery import import_all
from dffl.sets._host import HostSet
from dffl.sets.assignment import Assignment
from dffl.sets.ball import Ball, Ellipsoid
from dffl.sets.base import Bracket, FeasibleSet, stack
from dffl.sets.battery import Battery
from dffl.sets.box import Box
from dffl.sets.consecutive_hours import ConsecutiveHours
from dffl.sets.entropy import EntropySimplex
from dffl.sets.geometry.distance import hausdorff, shape_distance
from dffl.sets.knapsack import FractionalKnapsack
from dffl.sets.mixed_integer import MixedInteger
from dffl.sets.model_file import ModelFile
from dffl.sets.polytope import Polytope
from dffl.sets.program_set import Lifted, completed
from dffl.sets.pyepo import pyepo
from dffl.sets.shortest_path import ShortestPath
from dffl.sets.simplex import Simplex
from dffl.sets.solver import Solver
from dffl.sets.topk import TopK
from dffl.sets.zero_one_knapsack import ZeroOneKnapsack

import_all(__name__, __path__)

__all__ = [
    "Assignment", "Ball", "Battery", "Box", "Bracket", "ConsecutiveHours", "Ellipsoid", "EntropySimplex", "FeasibleSet",
    "FractionalKnapsack", "HostSet", "Lifted", "MixedInteger", "ModelFile", "Polytope", "ShortestPath", "Simplex", "Solver",
    "TopK", "ZeroOneKnapsack", "completed", "hausdorff", "pyepo", "shape_distance", "stack",
]  # fmt: skip

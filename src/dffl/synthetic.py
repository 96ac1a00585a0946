"""Synthetic federations: the paper's fractional knapsacks and entropy-bound portfolios, and PyEPO's shortest paths.

Features are x ~ N(0, I_p). Cost k of client j is [1 + (1 + B^(j)_k . x / sqrt p)^degree] times noise, with B^(j) = B R_j: a
binary matrix B shared by all, turned by the client's own rotation R_j. ``eta_obj`` sets how far the rotations turn,
``eta_constr`` how far the constraints spread.

Where the paper is silent or its wording cannot give its numbers, the defaults follow what reproduces them, and the literal
wording is an option: ``noise=1`` draws the Uniform(0, 2) noise on every cost, and ``maximize=False`` minimises the portfolio.
Raw costs are an option of training (``scale_costs=False``).

Shortest paths have the costs of PyEPO's generator, [1 + (3 + B^(j)_k . x / sqrt p)^degree] / 3.5^degree times noise, with the
paper's rotations. `Client.c_mean` holds the costs without noise, for all problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dffl.checks import require_whole
from dffl.federation import Client, Federation
from dffl.randomness import Purpose, checked_seed, stream
from dffl.sets import EntropySimplex, FeasibleSet, FractionalKnapsack, ShortestPath

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
SAMPLES: dict[Split, int] = {"train": 100, "validation": 2000, "test": 1000}
"""Samples of a client by split, if ``samples`` is not given."""
CLOSED_SHARE = 0.2
"""The share of its arcs that a client of `shortest_path` may not use, at ``eta_constr=1``."""


def knapsack(
    seed: int = 0,
    split: Split = "train",
    *,
    clients: int = 20,
    dim: int = 50,
    features: int = 8,
    degree: int = 4,
    noise: float = 0.0,
    eta_obj: float = 0.5,
    eta_constr: float = 0.5,
    imbalanced: bool = False,
    samples: int | Sequence[int] | None = None,
    constraint_seed: int | None = None,
) -> Federation:
    """Knapsacks that maximise profit: weights a in [.5, 1.5]^d for all, budget B_j = .6 d exp(eta_constr N(0, 1)).

    With ``imbalanced`` the first half of the clients train on 500 samples and the others on 50, instead of 100 each.
    ``split`` picks independent samples of the same clients. ``constraint_seed`` draws weights and budgets from another seed, so
    that federations of several seeds can share them.
    """
    recipe = _Recipe(
        seed, split, clients, dim, features, degree, noise, eta_obj, eta_constr, imbalanced, samples, constraint_seed
    )
    weights = recipe.shared_constraint("weights").uniform(0.5, 1.5, dim)

    def feasible(name: str) -> FeasibleSet:
        return FractionalKnapsack(weights, 0.6 * dim * math.exp(eta_constr * recipe.constraint(name).normal()))

    return recipe.federation(feasible, maximize=True)


def portfolio(
    seed: int = 0,
    split: Split = "train",
    *,
    clients: int = 20,
    dim: int = 50,
    features: int = 8,
    degree: int = 4,
    noise: float = 0.0,
    eta_obj: float = 0.5,
    eta_constr: float = 0.5,
    imbalanced: bool = False,
    samples: int | Sequence[int] | None = None,
    constraint_seed: int | None = None,
    maximize: bool = True,
) -> Federation:
    """Portfolios with entropy at least h_j = log(d) / 2 + eta_constr Uniform(-1, 1); arguments as for `knapsack`."""
    recipe = _Recipe(
        seed, split, clients, dim, features, degree, noise, eta_obj, eta_constr, imbalanced, samples, constraint_seed
    )
    top = math.log(dim)

    def feasible(name: str) -> FeasibleSet:
        h = top / 2 + eta_constr * recipe.constraint(name).uniform(-1, 1)
        return EntropySimplex(dim, min(max(h, 1e-6), top - 1e-6))

    return recipe.federation(feasible, maximize)


def shortest_path(
    seed: int = 0,
    split: Split = "train",
    *,
    clients: int = 20,
    rows: int = 5,
    columns: int = 5,
    features: int = 5,
    degree: int = 6,
    noise: float = 0.5,
    eta_obj: float = 0.5,
    eta_constr: float = 0.5,
    imbalanced: bool = False,
    samples: int | Sequence[int] | None = None,
) -> Federation:
    """Cheapest paths through a grid of nodes, with PyEPO's costs; clients differ in rotations and in arcs they may not use.

    A client closes eta_constr / 5 of all arcs, rounded, one after the other in a random order of its own. An arc without which
    no path would be left stays open; a large ``eta_constr`` so ends at a single path. What is closed at one ``eta_constr`` is
    closed at every larger one. With ``eta_obj=0`` and ``eta_constr=0`` every client has PyEPO's problem, with the same B.
    Other arguments as for `knapsack`.
    """
    for field, value in (("rows", rows), ("columns", columns)):
        require_whole(field, value, least=2)  # a grid of one row has a single path
    arcs = ShortestPath(rows, columns).arcs
    recipe = _Recipe(seed, split, clients, len(arcs), features, degree, noise, eta_obj, eta_constr, imbalanced, samples)
    if eta_constr < 0:
        raise ValueError(f"eta_constr must be >= 0, found {eta_constr!r}")
    count = round(CLOSED_SHARE * eta_constr * len(arcs))

    def feasible(name: str) -> FeasibleSet:
        return ShortestPath(rows, columns, closed_arcs(recipe.constraint(name).permutation(len(arcs)), arcs, count))

    return recipe.federation(feasible, maximize=False, shift=3.0, unit=3.5)


@dataclass(frozen=True)
class _Recipe:
    seed: int
    split: Split
    clients: int
    dim: int
    features: int
    degree: int
    noise: float
    eta_obj: float
    eta_constr: float
    imbalanced: bool
    samples: int | Sequence[int] | None
    constraint_seed: int | None = None

    def __post_init__(self) -> None:
        checked_seed(self.seed)
        if self.constraint_seed is not None:
            checked_seed(self.constraint_seed, "constraint_seed")
        if self.split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}, found {self.split!r}")
        for field, least in (("clients", 1), ("dim", 2), ("features", 1), ("degree", 1)):
            require_whole(field, getattr(self, field), least)
        if not 0 <= self.noise <= 1:
            raise ValueError(f"noise must be in [0, 1], found {self.noise!r}")
        for field in ("eta_obj", "eta_constr"):
            if not np.isfinite(getattr(self, field)):
                raise ValueError(f"{field} must be finite, found {getattr(self, field)!r}")

    def shared(self, what: str) -> np.random.Generator:
        """A stream for what all clients share; it does not depend on the split."""
        return stream(self.seed, Purpose.SYNTHETIC_PROBLEM, f"shared {what}")

    def turning(self, name: str) -> np.random.Generator:
        """A stream for a client's rotation; it does not depend on the split."""
        return stream(self.seed, Purpose.SYNTHETIC_PROBLEM, name, 0)

    def shared_constraint(self, what: str) -> np.random.Generator:
        """A stream for what all constraints share; it does not depend on the split."""
        return stream(self._of_constraints, Purpose.SYNTHETIC_PROBLEM, f"shared {what}")

    def constraint(self, name: str) -> np.random.Generator:
        """A stream for a client's constraint; it does not depend on the split."""
        return stream(self._of_constraints, Purpose.SYNTHETIC_PROBLEM, name, 1)

    @property
    def _of_constraints(self) -> int:
        return self.seed if self.constraint_seed is None else self.constraint_seed

    def counts(self) -> list[int]:
        if self.samples is not None:
            counts = [self.samples] * self.clients if isinstance(self.samples, int | np.integer) else list(self.samples)
            if len(counts) != self.clients or any(n < 1 for n in counts):
                wanted = f"a number >= 1, or one for each of {self.clients} clients"
                raise ValueError(f"samples must be {wanted}, found {self.samples!r}")
            return [int(n) for n in counts]
        if self.split == "train" and self.imbalanced:
            rich = self.clients // 2
            return [500] * rich + [50] * (self.clients - rich)
        return [SAMPLES[self.split]] * self.clients

    def federation(
        self, feasible: Callable[[str], FeasibleSet], maximize: bool, shift: float = 1.0, unit: float = 1.0
    ) -> Federation:
        """The clients; ``shift`` and ``unit`` as in `PowerCosts`."""
        loading = (self.shared("loading").random((self.dim, self.features)) < 0.5).astype(float)
        members = []
        for number, n in enumerate(self.counts(), start=1):
            name = f"client-{number:0{max(2, len(str(self.clients)))}d}"
            rng = stream(self.seed, Purpose.SYNTHETIC_ROWS, name, SPLITS.index(self.split))
            x = rng.normal(size=(n, self.features))
            turned = loading @ rotation(self.turning(name), self.features, self.eta_obj)
            costs = PowerCosts(turned, self.degree, shift, unit)
            mean = costs(x)
            c = mean * rng.uniform(1 - self.noise, 1 + self.noise, mean.shape) if self.noise else mean
            members.append(Client(name, x, c, feasible(name), maximize, c_mean=mean, cost_at=costs))
        return Federation(members)


@dataclass(frozen=True, eq=False)
class PowerCosts:
    """A client's mean costs at features x: [1 + (shift + loading x / sqrt p)^degree] / unit^degree. The paper has 1 and 1."""

    loading: np.ndarray
    degree: int
    shift: float = 1.0
    unit: float = 1.0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        power = (self.shift + x @ self.loading.T / math.sqrt(self.loading.shape[1])) ** self.degree
        return np.asarray((1 + power) / self.unit**self.degree)


def rotation(rng: np.random.Generator, size: int, angle: float) -> np.ndarray:
    """exp(angle A / |A|_F) for a skew-symmetric Gaussian A: a random rotation whose size the angle sets."""
    from scipy.linalg import expm  # slow to import, and needed only here

    gauss = rng.normal(size=(size, size))
    skew = gauss - gauss.T
    norm = np.linalg.norm(skew)
    return np.asarray(expm(angle * skew / norm)) if norm > 0 else np.eye(size)


def closed_arcs(order: Sequence[int] | np.ndarray, arcs: Sequence[tuple[int, int]], count: int) -> np.ndarray:
    """The first ``count`` arcs in this order that can be closed, as flags: a path from the first to the last node remains.

    ``arcs`` must be ordered so that every arc comes after the arcs that lead to its start, as in `ShortestPath.arcs`.
    """
    closed = np.zeros(len(arcs), bool)
    left = count
    for arc in order:
        if left < 1:
            break
        closed[arc] = True
        if _joined(arcs, closed.tolist()):
            left -= 1
        else:
            closed[arc] = False
    return closed


def _joined(arcs: Sequence[tuple[int, int]], closed: Sequence[bool]) -> bool:
    """Whether open arcs lead from the first to the last node."""
    reached = {arcs[0][0]}
    for (tail, head), shut in zip(arcs, closed, strict=True):
        if not shut and tail in reached:
            reached.add(head)
    return arcs[-1][1] in reached

"""Synthetic federations of many kinds, in which it is known who gains: what the advice is judged on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dffl import synthetic
from dffl.federation import Client, Federation
from dffl.randomness import Purpose, stream
from dffl.sets import TopK
from dffl_studies.running.study import Job, grid

CLIENTS, DIM = 12, 20
SIZES = {"equal": (100,) * 12, "rich and poor": (240,) * 6 + (40,) * 6, "mixed": (30, 60, 120, 240) * 3}
PRICES = {"alike": 0.0, "near": 0.3, "apart": 1.0, "two odd ones": 0.3}
"""How much the clients' prices differ (eta_obj). Two odd ones: 3 for the last two clients of a near federation."""


def configurations(seeds: list[int]) -> list[Job]:
    """Every kind of federation, once for each seed, in mixed order: a part of the study represents all of it."""
    jobs = grid(
        problem=["knapsack", "portfolio", "purchase"],
        prices=list(PRICES),
        eta_constr=[0.0, 1.0],
        sizes=list(SIZES),
        noise=[0.0, 0.5],
        degree=[1, 2, 4],
        seed=seeds,
    )
    return [jobs[place] for place in np.random.default_rng(0).permutation(len(jobs))]


def federation(
    problem: str, prices: str, eta_constr: float, sizes: str, noise: float, degree: int, seed: int, split: synthetic.Split
) -> Federation:
    """A federation of 12 clients and 20 decisions, or its test samples."""
    samples = SIZES[sizes] if split == "train" else None

    def made(eta_obj: float) -> Federation:
        make = synthetic.portfolio if problem == "portfolio" else synthetic.knapsack
        return make(
            seed, split, clients=CLIENTS, dim=DIM, degree=degree, noise=noise, eta_obj=eta_obj, eta_constr=eta_constr,
            samples=samples,
        )  # fmt: skip

    clients = list(made(PRICES[prices]))
    if prices == "two odd ones":
        clients[-2:] = list(made(3.0))[-2:]
    if problem == "purchase":
        clients = [_buyer(client, seed, eta_constr) for client in clients]
    return Federation(clients)


def _buyer(client: Client, seed: int, eta_constr: float) -> Client:
    """The same prices, for a client that buys a number of its own of the cheapest."""
    draw = stream(seed, Purpose.SYNTHETIC_PROBLEM, client.name, 2).normal()
    k = float(np.clip(round(0.3 * DIM * np.exp(eta_constr * draw)), 1, DIM - 1))
    return replace(client, set=TopK(DIM, k), maximize=False)

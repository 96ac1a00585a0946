"""What is judged on: the demo's knapsack clients, in fixed units too, ten times as many, real zones. The search has others."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dffl.federation import Federation
from dffl_studies.leaderboard.federations import NO_AXES, SEARCH_SEED, TEST_SAMPLES, ZONES, Divided
from dffl_studies.leaderboard.federations import divided as on_leaderboard

DEMO, FIXED, MANY, REAL = "demo", "demo in fixed units", "demo with 200 clients", "zones"
CLIENTS = {MANY: 200}
"""The numbers of clients, if not the demo's 20."""
UNIT = 10.0
"""The divisor of the demo's costs if units must not depend on samples; its features are standard normal already."""


@lru_cache(maxsize=2)  # consecutive jobs of a worker have the same federation
def divided(data: str, search: bool, zones: str | None) -> Divided:
    """The training part and the judging part. The search uses clients of another seed, or only the first half of the zones'
    year.
    """
    if data == REAL:
        return on_leaderboard(search, zones, seed=0, problem=ZONES[0], **NO_AXES)
    from dffl import synthetic

    seed = SEARCH_SEED if search else 0
    clients = CLIENTS.get(data, 20)
    train = synthetic.knapsack(seed, clients=clients, imbalanced=True)
    test = synthetic.knapsack(seed, "test", clients=clients, imbalanced=True, samples=TEST_SAMPLES)
    if data == FIXED:
        return Divided(_in_units(train), _in_units(test), {"scale_features": False, "scale_costs": False})
    return Divided(train, test, {})


def _in_units(federation: Federation) -> Federation:
    return Federation([replace(client, c=client.c / UNIT, c_mean=None) for client in federation])

"""`dffl.bounds`: the theory's bounds for a federation, each number marked as certified, estimated or vacuous."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd

from dffl.cache import keep_compiled_programs
from dffl.checks import require_whole
from dffl.federation import Federation
from dffl.fitting import require_federation
from dffl.jsonable import jsonable
from dffl.progress import Progress
from dffl.theory import ascent, heterogeneity, risk
from dffl.theory.definitions import CostNorms
from dffl.theory.heterogeneity import common_points, matrix, pairwise, to_mixture
from dffl.theory.scaled import Scaled, ScaledClient, scaled
from dffl.theory.vectors import norm
from dffl.training import Settings
from dffl.training.keywords import SettingsKeywords


@dataclass(frozen=True, eq=False)
class Bounds:
    """What `dffl.bounds` found, in the units in which the federation trains: standardised features and scaled costs.

    ``pairs`` has one row per pair of clients (see `matrix`), ``clients`` one row per client with the terms of Theorem 2.
    """

    pairs: pd.DataFrame
    clients: pd.DataFrame
    exact: bool
    """Whether costs at common features are known. Where they are modelled, the pairwise columns are estimates, not bounds."""
    delta: float
    tau: float
    hulls: tuple[str, ...] = ()
    """The clients whose sets are not convex: their diameters and distances are those of the convex hull."""
    form: risk.BoundForm = "sharp"
    """Whether the bounds are those that hold, or those that the paper prints."""

    def __repr__(self) -> str:
        return f"Bounds({len(self.clients)} clients, {len(self.pairs)} pairs, {self.label})"

    def matrix(self, column: str = "best") -> pd.DataFrame:
        """A column of ``pairs`` as a table of clients by clients."""
        names = self.clients["client"].tolist()
        if column not in self.pairs.columns[2:]:
            raise ValueError(f"matrix: column must be one of {', '.join(self.pairs.columns[2:])}, found {column!r}")
        return pd.DataFrame(matrix(self.pairs, names, column), index=names, columns=names)

    @property
    def label(self) -> str:
        """How far the pairwise numbers may be trusted."""
        return "certified at known costs" if self.exact else "estimated from cost models, not certified"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        rows = {"pairs": self.pairs.to_dict("records"), "clients": self.clients.to_dict("records")}
        how = {"units": "scaled", "pairwise": self.label, "estimated": not self.exact, "delta": self.delta, "tau": self.tau}
        how |= {"convex_hulls": list(self.hulls), "form": self.form}
        return {**how, **{name: jsonable(table) for name, table in rows.items()}}


def bounds(
    federation: Federation,
    *,
    delta: float = 0.05,
    search: bool | int = True,
    form: risk.BoundForm = "sharp",
    progress: bool | None = None,
    **settings: Unpack[SettingsKeywords],
) -> Bounds:
    """The pairwise heterogeneity of a federation and the terms of Theorem 2 for each client.

    The pairwise bounds hold at the features compared. Those of Theorem 2 hold with probability 1 - ``delta`` if no cost
    vector has a larger norm than those in the data; their discrepancy is estimated by a mean over samples. ``search`` looks
    for lower bounds on the Rademacher complexity and on the discrepancies by gradient ascent (half a minute; a number sets
    its steps). Everything is in scaled units: each client's features standardised, its costs divided by their mean absolute
    value. ``settings`` are those of `dffl.fit`, of which ``tau`` bounds the predictions.

    ``form="paper"`` takes every formula as the paper prints it: no cost is projected, one C_max for all clients, the paper's
    deviation, H and H_SC as they are, and H_jj in the sum that bounds Delta_j. It is for comparison: see docs/theory.md for
    where that is larger than it needs to be, and where it is false.
    """
    require_federation("federation", federation)
    if len(federation) < 2:
        raise ValueError("bounds: a federation of one client has no pairs to compare; at least 2 clients are needed")
    for client in federation:
        if not client.set.has_diameter:
            raise ValueError(f"bounds: client {client.name!r}: {client.set.no_diameter}")
    risk.confidence_share(delta)
    risk.require_form("bounds", form)
    if not isinstance(search, bool):
        require_whole("search", search, least=0)
    training = Settings.of(**settings).for_clients(federation).at(federation.dim)
    keep_compiled_programs()
    clients = scaled(federation, training)
    with Progress(progress) as bar:
        bar.expect(2.0 + (2 * len(clients) if search else 0))
        tau = training.clip(federation.dim)
        common = common_points(clients, tau)
        pairs = pairwise(clients, common, form)
        bar.advance(1, "pairs")
        upper = heterogeneity.by_proposition(clients, common, clients.reach(tau), form)
        bar.advance(1, "pairs")
        searched = _searched(clients, training, ascent.STEPS if search is True else search, bar) if search else None
    table = _table(clients, tau, delta, upper, searched, form)
    table.insert(3, "to_mixture", to_mixture(pairs, clients))
    return Bounds(pairs, table, clients.exact, delta, tau, clients.hulls, form)


@dataclass(frozen=True, eq=False)
class _Search:
    """Lower bounds that ascent found."""

    own: list[float]
    pooled: float
    gaps: ascent.Discrepancy


def _searched(clients: Scaled, settings: Settings, steps: int, bar: Progress) -> _Search:
    dim = clients.dim
    alone = []
    for client in clients:
        alone.append(ascent.rademacher_lower(client.z, dim, settings, steps=steps))
        bar.advance(1, "complexity")
    pooled = ascent.rademacher_lower(np.concatenate([client.z for client in clients]), dim, settings, 2, steps)
    gaps = ascent.discrepancies(clients, settings, steps)
    bar.advance(len(clients), "discrepancy")
    return _Search(alone, pooled, gaps)


def _table(
    clients: Scaled, clip: float, delta: float, proposition: np.ndarray, searched: _Search | None, form: risk.BoundForm
) -> pd.DataFrame:
    tau, m, dim = clients.reach(clip), len(clients), clients.dim
    shares, total = clients.shares, sum(client.n for client in clients)
    norms = [_cost_norms(client, form) for client in clients]
    longest = [max(size.largest for size in norms)] * m if form == "paper" else [size.largest for size in norms]
    largest = np.array([risk.loss_bound(owner.diameter, size, tau) for owner, size in zip(clients, longest, strict=True)])
    widest, ceiling = max(client.diameter for client in clients), risk.rademacher_upper(tau, dim)
    gaps = _discrepancies(clients, proposition, largest, tau, form)
    rows = []
    for place, client in enumerate(clients):
        b, gap = float(largest[place]), float(gaps["discrepancy_high"][place])
        row: dict[str, Any] = {"client": client.name, "n": client.n, "share": shares[place]}
        row |= {"diameter": client.diameter, "cost_norm_least": norms[place].least, "cost_norm": norms[place].largest}
        row |= {"largest_loss": b, "rademacher_high": ceiling} | {name: column[place] for name, column in gaps.items()}
        for name, share in (("", risk.confidence_share(delta)), ("_all", risk.confidence_share(delta, m))):
            alone = risk.uniform_convergence(client.diameter, ceiling, b, client.n, share, form)
            mixed = risk.uniform_convergence(widest, ceiling, float(largest.max()), total, share, form)
            gain = risk.certified_gain(risk.local_bound(alone, b), risk.federated_bound(mixed, gap, b))
            row |= {f"epsilon{name}": alone, f"epsilon_mix{name}": mixed}
            row |= {f"local_bound{name}": gain.local.value, f"federated_bound{name}": gain.federated.value}
            row |= {f"local_vacuous{name}": gain.local.vacuous, f"federated_vacuous{name}": gain.federated.vacuous}
            row |= {f"certified_gain{name}": gain.value, f"gain_vacuous{name}": gain.vacuous}
        if searched is not None:
            row |= _condition(client, b, place, widest, float(largest.max()), total, searched, delta)
        rows.append(row)
    return pd.DataFrame(rows)


def _cost_norms(client: ScaledClient, form: risk.BoundForm) -> CostNorms:
    """C_min and C_max of a client's own samples: as its loss sees them, or as the paper has them, unprojected."""
    sizes = norm(client.c) if form == "paper" else client.norms(client.c)
    return CostNorms(float(sizes.min()), float(sizes.max()))


def _discrepancies(
    clients: Scaled, proposition: np.ndarray, largest: np.ndarray, tau: float, form: risk.BoundForm
) -> dict[str, np.ndarray]:
    """The upper bounds on every client's Delta_j, and the one that counts."""
    if form == "paper":
        return {"discrepancy_high": proposition, "by_proposition": proposition}
    trivial = heterogeneity.by_largest_losses(largest, clients.shares)
    lost = np.array([heterogeneity.entropy_loss(client, tau) for client in clients])
    entropy = heterogeneity.by_largest_losses(lost, clients.shares)
    # At modelled costs the proposition is an estimate, and no upper end.
    proved = proposition if clients.exact else np.full(len(clients), math.inf)
    least = np.min([proved, trivial, entropy], axis=0)
    return {"discrepancy_high": least, "by_proposition": proposition, "by_trivial": trivial, "by_entropy": entropy}


def _condition(
    client: ScaledClient, b: float, place: int, widest: float, largest: float, total: int, searched: _Search, delta: float
) -> dict[str, Any]:
    """The paper's condition at the values that a search attains: every term is then at least this large."""
    share = risk.confidence_share(delta)
    complexity = searched.own[place]
    alone = risk.uniform_convergence(client.diameter, complexity, b, client.n, share)
    mixed = risk.uniform_convergence(widest, searched.pooled, largest, total, share)
    gap = float(searched.gaps.size[place])
    return {
        "rademacher_low": complexity,
        "rademacher_mix_low": searched.pooled,
        "discrepancy_low": gap,
        "oscillation_low": float(searched.gaps.oscillation[place]),
        "epsilon_low": alone,
        "epsilon_mix_low": mixed,
        "paper_condition": risk.federation_condition(gap, alone, mixed),
        "condition_vacuous": 2 * alone >= b and 2 * (mixed + gap) >= b,
    }

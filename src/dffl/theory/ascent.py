"""Lower bounds by search: how large the Rademacher complexity and the client-mixture discrepancies at least are.

A supremum over networks is at least what any network attains. Gradient ascent looks for a good one; what it finds is a
lower bound on the supremum over these samples, never an upper one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from dffl.losses import spo_plus_gap
from dffl.predictor import Template
from dffl.sets import FeasibleSet, stack
from dffl.sets.base import structure
from dffl.shapes import evenly_spaced, round_up
from dffl.theory.scaled import Scaled
from dffl.tiles import places_by
from dffl.training import Settings
from dffl.training.update import NetworkForm

STEPS, DRAWS, RATE = 300, 4, 1e-2
SEARCH_SAMPLES = 32
"""Samples of a client that the search for a discrepancy uses; the result is then evaluated on all samples."""


def _form(settings: Settings, features: int, dim: int) -> tuple[NetworkForm, Any]:
    network: Any = settings.factory(jax.random.key(settings.seed), features, dim)
    template = Template(network)
    return NetworkForm(template, settings.clip(dim)), template.vector(network)


# Rademacher complexity


def rademacher_lower(z: np.ndarray, dim: int, settings: Settings, draws: int = DRAWS, steps: int = STEPS) -> float:
    """The mean over random signs of the largest (1/n) sum_i sigma_i . g(z_i) that ascent finds for networks clipped at tau."""
    n = len(z)
    form, start = _form(settings, z.shape[1], dim)
    signs: np.ndarray = np.random.default_rng(settings.seed).choice([-1.0, 1.0], size=(draws, n, dim))
    room = round_up(n)  # few shapes, few programs: the empty places have no sign, and add nothing
    signs = (np.pad(signs, ((0, 0), (0, room - n), (0, 0))) / n).astype(np.float32)
    rows = np.pad(z, ((0, room - n), (0, 0))).astype(np.float32)
    largest = np.asarray(_climb_signs(form, steps)(start, rows, signs))
    return float(np.maximum(largest, 0).mean())  # the network that predicts nothing attains 0


@lru_cache(maxsize=8)
def _climb_signs(form: NetworkForm, steps: int) -> Any:
    def climb(start: Array, rows: Array, signs: Array) -> Array:
        def value(vector: Array) -> Array:
            return jnp.sum(signs * form.forward(form.template.network(vector), rows)[0])

        return _climb(value, start, steps)[1]

    return jax.jit(jax.vmap(climb, in_axes=(None, None, 0)))


def _climb(value: Any, start: Array, steps: int) -> tuple[Array, Array]:
    """The best vectors of an ascent by Adam after a tenth, a third and all of its steps, and the value of the last.

    What is best on the samples that were climbed on need not be so on others: earlier vectors may generalise better.
    """
    optimiser = optax.adam(RATE)

    def step(carry: Any, _: None) -> tuple[Any, None]:
        vector, state, best, top = carry
        now, gradient = jax.value_and_grad(value)(vector)
        best, top = jnp.where(now > top, vector, best), jnp.maximum(now, top)
        updates, state = optimiser.update(-gradient, state)
        return (optax.apply_updates(vector, updates), state, best, top), None

    carry = (start, optimiser.init(start), start, jnp.asarray(-jnp.inf, start.dtype))
    ends, done = [], 0
    for stop in (-(-steps // 10), -(-steps // 3), steps):
        carry, _ = lax.scan(step, carry, None, length=stop - done)
        ends.append(carry[2])
        done = stop
    return jnp.stack(ends), carry[3]


# The discrepancy of each client from the mixture


class Discrepancy(NamedTuple):
    """The largest and the smallest R_j - R_mix that ascent found, on the given samples."""

    highest: np.ndarray
    lowest: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """A lower bound on Delta_j = sup |R_j - R_mix|."""
        return np.maximum(np.abs(self.highest), np.abs(self.lowest))

    @property
    def oscillation(self) -> np.ndarray:
        """A lower bound on sup - inf of R_j - R_mix."""
        return self.highest - self.lowest


class _Group(NamedTuple):
    """Clients of one family and shape, some of their samples each: z, c, w* of shape (clients, samples, ...)."""

    members: np.ndarray
    sets: FeasibleSet
    signs: np.ndarray
    z: np.ndarray
    c: np.ndarray
    w_star: np.ndarray


def discrepancies(clients: Scaled, settings: Settings, steps: int = STEPS) -> Discrepancy:
    """For each client the largest and the smallest R_j - R_mix that the search finds."""
    m, dim = len(clients), clients.dim
    host = any(client.set.on_host for client in clients)  # solved one by one: search less
    samples, steps = (4, min(steps, 20)) if host else (SEARCH_SAMPLES, steps)
    form, start = _form(settings, clients[0].z.shape[1], dim)
    groups = _grouped(clients, samples)
    order = np.concatenate([group.members for group in groups])
    # Row k of `tilt` is what search k maximises: +-(R_j - R_mix) as a weighted sum of the clients' losses.
    gap = np.eye(m) - clients.shares
    tilt = np.concatenate([gap, -gap])[:, order].astype(np.float32)
    vectors = _climb_tilts(form, steps)(start, [group[1:] for group in groups], jnp.asarray(tilt))
    risks = _risks(form, clients, vectors.reshape(-1, vectors.shape[-1]))
    gaps = risks - (risks @ clients.shares)[:, None]
    # Any network is a candidate for every client, so each takes the best of all that were found.
    return Discrepancy(gaps.max(axis=0), gaps.min(axis=0))


def _grouped(clients: Scaled, samples: int) -> list[_Group]:
    groups = []
    for members in places_by(structure(client.set) for client in clients):
        chosen = [clients[i] for i in members]
        rows = [evenly_spaced(member.n, samples) for member in chosen]
        groups.append(
            _Group(
                np.array(members),
                stack([member.set for member in chosen]).astype(np.float32),
                np.array([member.sense for member in chosen], np.float32),
                *(
                    np.stack([getattr(member, field)[index] for member, index in zip(chosen, rows, strict=True)]).astype(
                        np.float32
                    )
                    for field in ("z", "c", "w_star")
                ),
            )
        )
    return groups


def _mean_losses(form: NetworkForm, vector: Array, part: tuple[Any, ...]) -> Array:
    """The mean SPO+ loss of each client of a group."""
    sets, signs, z, c, w_star = part
    network = form.template.network(vector)
    predicted = jax.vmap(lambda rows: form.forward(network, rows)[0])(z)
    seen = signs[:, None, None] * predicted
    seen = jnp.concatenate([seen, c[..., seen.shape[-1] :]], axis=-1)  # a known cost is the same in both
    return jnp.mean(spo_plus_gap(seen, c, w_star, sets), axis=-1)


@lru_cache(maxsize=8)
def _climb_tilts(form: NetworkForm, steps: int) -> Any:
    def one(start: Array, parts: Any, tilt: Array) -> Array:
        def value(vector: Array) -> Array:
            return tilt @ jnp.concatenate([_mean_losses(form, vector, part) for part in parts])

        return _climb(value, start, steps)[0]

    return jax.jit(lambda start, parts, tilts: lax.map(lambda tilt: one(start, parts, tilt), tilts))


def _risks(form: NetworkForm, clients: Scaled, vectors: Array) -> np.ndarray:
    """The empirical risk of each client, on all its samples, under each vector: (vectors, clients)."""
    risks = np.empty((len(vectors), len(clients)))
    for place, client in enumerate(clients):
        part = tuple(jnp.asarray(a[None], jnp.float32) for a in (client.z, client.c, client.w_star))
        sets = stack([client.set]).astype(np.float32)
        risks[:, place] = np.asarray(_compiled_risks(form)(vectors, (sets, np.array([client.sense], np.float32), *part)))[:, 0]
    return risks


@lru_cache(maxsize=8)
def _compiled_risks(form: NetworkForm) -> Any:
    return jax.jit(lambda vectors, part: lax.map(lambda vector: _mean_losses(form, vector, part), vectors))

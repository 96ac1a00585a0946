"""`dffl.fit` and what it returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from dffl.cache import keep_compiled_programs
from dffl.federation import Client, Federation, keep_optima
from dffl.losses import regret
from dffl.predictor import Predictor
from dffl.progress import Progress
from dffl.sets import FeasibleSet
from dffl.training import Outcome, Run, Settings
from dffl.training.methods import Method, named


@dataclass(frozen=True)
class Member:
    """What a fit knows of a client that took part."""

    name: str
    n: int
    set: FeasibleSet
    maximize: bool
    predictor: Predictor
    choices: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted method: one predictor for each client. It predicts, decides, evaluates and saves."""

    method: str
    settings: Settings
    features: int
    feature_names: tuple[str, ...] | None
    dim: int
    members: dict[str, Member]
    shared: Predictor | None
    """The model for a client that took no part, where the method has one."""
    history: pd.DataFrame
    """What each client saw in training: job, round, client, loss, share of outputs at the clip, norm (scaled units)."""
    about: dict[str, Any] = field(default_factory=dict)
    """Whatever is to be kept and saved with the fit, as JSON has it: how features were made, what units are in use."""

    def __repr__(self) -> str:
        return f"Fit({self.method!r}, {len(self.members)} clients, {self.features} features, {self.dim} decisions)"

    def predict(self, client: str | Client, x: Any) -> np.ndarray:
        """The costs that a client expects at features x (..., p), in raw units.

        A client that took no part is handed in as a `Client` and gets the shared model. Columns of a data frame are found by
        their names, if training knew them.
        """
        return np.asarray(predicted(self._member(client).predictor, self._features(x)))

    def decide(self, client: str | Client, x: Any) -> np.ndarray:
        """The decision that a client takes at features x (..., p), on its set; on the set of a `Client` that is handed in."""
        member, costs = self._member(client), self.predict(client, x)
        with jax.enable_x64(True):
            return np.asarray(member.set.solve(-costs if member.maximize else costs)) + 0.0  # no -0.0

    def regrets(self, client: Client) -> np.ndarray:
        """The regret of each sample of a client, known by its name, on the set and samples that it brings."""
        return regrets_at(client, predicted(self._member(client).predictor, client.x))

    def evaluate(self, test: Federation) -> pd.DataFrame:
        """A row a client: what its decisions lose on a test federation.

        ``regret`` is the mean over samples in raw units, ``relative_regret`` the sum of regrets over the sum of |z*|, both
        at the realised costs. Where the clients know their conditional-mean costs, ``expected_regret`` and
        ``expected_relative_regret`` are the same at those. ``n`` counts the samples that trained it and ``n_test`` those that
        judge it. A client that took no part (``took_part`` is false) has the shared model.
        """
        self.check(test)
        keep_optima(test.clients)
        return pd.DataFrame([self.row(client, self.regrets(client)) for client in test])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fit to one file (no pickle), complete or not at all. `dffl.load` reads it."""
        from dffl.storage import save

        save(self, path)

    def row(self, client: Client, lost: np.ndarray) -> dict[str, Any]:
        """A client's row of `evaluate`, given the regret of each of its samples."""
        member = self.members.get(client.name)
        row: dict[str, Any] = {
            "client": client.name,
            "method": self.method,
            "n": member.n if member else 0,
            "n_test": client.n,
            "took_part": member is not None,
        }
        row |= {"regret": lost.mean(), "relative_regret": relative(lost, client)}
        if client.expected is not None:
            known = lost if client.expected is client else self.regrets(client.expected)
            row |= {"expected_regret": known.mean(), "expected_relative_regret": relative(known, client.expected)}
        return row | (member.choices if member else {})

    def _member(self, client: str | Client) -> Member:
        if isinstance(client, Client):
            if client.name in self.members:
                known = self.members[client.name]
                if client.maximize != known.maximize:
                    raise ValueError(f"client {client.name!r}: maximize must be {known.maximize}, as in training")
                return replace(known, set=client.set)
            if self.shared is None:
                raise ValueError(
                    f"client {client.name!r} took no part, and method {self.method!r} has no shared model to lend it"
                )
            return Member(client.name, 0, client.set, client.maximize, self.shared)
        if client not in self.members:
            names = ", ".join(repr(name) for name in list(self.members)[:5])
            raise ValueError(
                f"no client {client!r} in this fit (it has {names}{', ...' if len(self.members) > 5 else ''}); "
                "hand in a dffl.Client to use the shared model for one that took no part"
            )
        return self.members[client]

    def _features(self, x: Any) -> np.ndarray:
        if hasattr(x, "columns") and self.feature_names is not None:
            missing = [name for name in self.feature_names if name not in x.columns]
            if missing:
                raise ValueError(f"x must have the columns of training, found none named {missing[0]!r}")
            x = x[list(self.feature_names)]
        try:
            array = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"x must be numbers ({error})") from None
        if array.ndim < 1 or array.shape[-1] != self.features:
            raise ValueError(f"x must have {self.features} columns, as in training, found shape {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"x must be finite, found {array[~np.isfinite(array)][0]}")
        return array

    def check(self, test: Federation) -> None:
        """Refuse a test federation that does not fit this one, or whose newcomers cannot be served."""
        same_shape(test, self)
        for client in test:
            self._member(client)


def require_federation(name: str, value: Any) -> None:
    """Refuse what is not a federation."""
    if not isinstance(value, Federation):
        raise ValueError(f"{name} must be a dffl.Federation, found {type(value).__name__}")


def same_shape(test: Federation, like: Federation | Fit) -> None:
    """Refuse a test federation of other features or decisions."""
    require_federation("test", test)
    for name in ("features", "dim"):
        mine, theirs = getattr(test, name), getattr(like, name)
        if mine != theirs:
            raise ValueError(f"test: {name} must be {theirs}, as in training, found {mine}")
    if None not in (test.feature_names, like.feature_names) and test.feature_names != like.feature_names:
        raise ValueError(f"test: x must have the columns of training, {like.feature_names}, found {test.feature_names}")


def fit(
    federation: Federation,
    method: str = "interp-spo",
    *,
    validation: Federation | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Fit:
    """Fit one method to a federation.

    ``settings`` are those of `dffl.Settings`: seed, rounds, local_epochs, batch_size, client_fraction and so on.
    ``validation`` is the separate federation that the oracle methods choose by. ``progress`` switches the bar on or off;
    by default it shows in a terminal.
    """
    chosen, made = checked([method], validation), Settings.of(**settings)
    with Progress(progress) as bar:
        run = prepare(federation, chosen, made, validation, bar)
        return wrap(run, chosen[0], chosen[0].fit(run))


def checked(methods: Iterable[str], validation: Federation | None) -> list[Method]:
    """The methods by name; a missing or useless validation federation is refused."""
    chosen = [named(name) for name in methods]
    for one in chosen:
        if one.validates and validation is None:
            raise ValueError(f"method {one.name!r} chooses on a separate validation federation: pass validation=...")
    if validation is not None and chosen and not any(one.validates for one in chosen):
        names = ", ".join(one.name for one in chosen)
        raise ValueError(f"validation is not used by {names}; oracle-interp-spo and oracle-interp-mse take it")
    return chosen


def prepare(
    federation: Federation, methods: list[Method], settings: Settings, validation: Federation | None, bar: Progress
) -> Run:
    """A run for these methods, with everything that can be refused refused now."""
    require_federation("federation", federation)
    keep_compiled_programs()
    run = Run(federation, settings, validation, bar)
    work: dict[str, float] = {}
    for one in methods:
        work |= one.work(settings)
        if one.splits:
            run.engine("split")
    bar.expect(sum(work.values()) * sum(federation.counts))
    return run


def wrap(run: Run, method: Method, outcome: Outcome) -> Fit:
    """A method's outcome as a fit."""
    if not isinstance(outcome, Outcome):
        raise TypeError(f"method {method.name!r} must return a dffl.Outcome, found {type(outcome).__name__}")
    if len(outcome.predictors) != len(run.federation):
        wanted = f"a predictor for each of {len(run.federation)} clients"
        raise ValueError(f"method {method.name!r} must return {wanted}, found {len(outcome.predictors)}")
    members = {}
    for position, (client, predictor) in enumerate(zip(run.federation, outcome.predictors, strict=True)):
        choices = {name: values[position] for name, values in outcome.choices.items()}
        members[client.name] = Member(client.name, client.n, client.set, client.maximize, predictor, choices)
    history = run.history.frame(only=list(method.work(run.settings)))
    federation = run.federation
    return Fit(
        method=method.name,
        settings=run.settings,
        features=federation.features,
        feature_names=federation.feature_names,
        dim=federation.dim,
        members=members,
        shared=outcome.shared,
        history=history,
    )


def relative(lost: np.ndarray, client: Client) -> float:
    """The sum of regrets over the sum of |z*|; nothing lost of nothing is 0."""
    total, best = float(lost.sum()), float(client.z_star_size.sum())
    return total / best if best > 0 else (np.inf if total > 0 else 0.0)


def predicted(predictor: Predictor, x: np.ndarray) -> Array:
    """A predictor's raw costs at raw features, in float64."""
    with jax.enable_x64(True):
        return _apply(jax.tree.map(_array, predictor), jnp.asarray(x))


def regrets_at(client: Client, costs: Any) -> np.ndarray:
    """What each sample of a client loses by deciding at these costs instead of its own."""
    with jax.enable_x64(True):
        return np.asarray(_regret(client.set, jnp.asarray(costs), client.c, client.maximize, client.w_star))


def _array(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf


@eqx.filter_jit
def _apply(predictor: Predictor, x: Array) -> Array:
    return predictor(x)


@jax.jit
def _regret(s: FeasibleSet, costs: Array, c: Array, maximize: bool, w_star: Array) -> Array:
    return regret(costs, c, s, maximize, w_star)

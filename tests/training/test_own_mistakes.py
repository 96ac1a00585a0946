"""What a user's own loss, aggregator, trainer or method may get wrong is one clear line, never a wrong number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from dffl.named import plain, rebuilt
from dffl.training import METHODS, Run, Settings
from dffl.training.optimisers import Optimiser, Schedule
from tests.federations import client

SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 1, "hidden": 4, "progress": False}


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    return dffl.Federation([client(f"c{i}", dffl.TopK(5, 2), 20) for i in range(3)])


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    kinds: list[Any] = [kind.known for kind in (dffl.Loss, dffl.Aggregator, Optimiser, Schedule, dffl.Trainer)]
    kinds.append(METHODS)
    before = [dict(kind) for kind in kinds]
    yield
    for kind, was in zip(kinds, before, strict=True):
        kind.clear()
        kind.update(was)


def loss(answer: Any) -> dffl.Loss:
    class Wrong(dffl.Loss):
        name = "wrong"

        def __call__(self, c_hat: Any, rows: Any, s: Any, key: Any) -> Any:
            return answer(c_hat)

    return Wrong()


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda c: c**2, r"float32 \(20, 5\)"),
        (lambda c: jnp.sum(c), r"float32 \(\)"),
        (lambda c: None, "NoneType"),
        (lambda c: jnp.argmax(c, axis=-1), r"int32 \(20,\)"),
    ],
)
def test_a_loss_gives_one_value_for_each_row(federation: dffl.Federation, answer: Any, found: str) -> None:
    with pytest.raises(ValueError, match=f"loss 'wrong' must give one value for each of 20 rows, found {found}"):
        dffl.fit(federation, "fedavg", loss=loss(answer), **SMALL)


def aggregator(answer: Any, name_: str = "wrong") -> dffl.Aggregator:
    class Wrong(dffl.Aggregator):
        name = name_

        def aggregate(self, shared: Any, updates: Any) -> Any:
            list(updates)
            return answer(shared)

    return Wrong()


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda v: None, r"must give a vector of shape \(41,\), found object \(\)"),
        (lambda v: v[:-1], r"must give a vector of shape \(41,\), found float32 \(40,\)"),
        (lambda v: v * np.nan, "the shared vector of round 0 is not finite"),
    ],
)
def test_an_aggregator_gives_a_finite_vector(federation: dffl.Federation, answer: Any, found: str) -> None:
    with pytest.raises((ValueError, dffl.DivergenceError), match=f"aggregator 'wrong'( in round 0)?: {found}"):
        dffl.fit(federation, "fedavg", aggregate=aggregator(answer), **SMALL)


def test_a_value_of_ones_own_needs_a_name_and_attributes(federation: dffl.Federation) -> None:
    with pytest.raises(ValueError, match="aggregator Wrong needs a name: set the class attribute name"):
        dffl.fit(federation, "fedavg", aggregate=aggregator(lambda v: v, ""), **SMALL)

    class Renamed(dffl.Loss):
        name = "renamed"

        def __init__(self, delta: float = 1.0):
            self.d = delta

        def __call__(self, c_hat: Any, rows: Any, s: Any, key: Any) -> Any:
            return jnp.sum(c_hat, axis=-1)

    with pytest.raises(ValueError, match="loss 'renamed' cannot be saved: its argument 'delta' must be kept as an attribute"):
        plain(Renamed())
    fix = "install the package that brings it, or import the module that defines it first"
    with pytest.raises(ValueError, match=f"loss 'elsewhere' is not known here; {fix}"):
        rebuilt({"kind": "loss", "name": "elsewhere"})


def trainer(answer: Any) -> dffl.Trainer:
    @dataclass(frozen=True)
    class Wrong(dffl.FedAvg):
        def visit(self, site: Any, sent: Any) -> Any:
            return answer(super().visit(site, sent)["vector"])

    return Wrong()


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda v: None, "must return a dictionary of named arrays, found NoneType"),
        (lambda v: {"vector": v.mean(0)}, r": field 'vector' must have one row for each of the 3 clients of its site"),
        (lambda v: {"vectors": v}, r"must answer with a field 'vector', found \['vectors'\]"),
    ],
)
def test_an_answer_has_one_row_for_each_client(federation: dffl.Federation, answer: Any, found: str) -> None:
    with pytest.raises(ValueError, match=rf"Wrong\.visit ?{found}"):
        Run(federation, Settings(rounds=1, hidden=4)).trained(trainer(answer))


def test_trainers_without_a_name_of_their_own_do_not_share_one(federation: dffl.Federation) -> None:
    @dataclass(frozen=True)
    class One(dffl.FedAvg):
        pass

    @dataclass(frozen=True)
    class Other(dffl.FedAvg):
        label: ClassVar[str] = "fedavg"  # type: ignore[assignment]

    assert One().label == "One"
    run = Run(federation, Settings(rounds=1, hidden=4))
    run.trained(dffl.FedAvg())
    with pytest.raises(ValueError, match="two different trainers are named 'fedavg'; give one of them another name"):
        run.trained(Other())


def outcome(run: Run) -> dffl.Outcome:
    return dffl.Outcome([])


REGISTRIES: list[tuple[str, str, Callable[[str, str], Any]]] = [
    ("loss 'mse'", "dffl.losses.mse.MSE", lambda name, place: made(dffl.Loss, name, place)),
    ("aggregator 'median'", "dffl.training.aggregators.robust.Median", lambda name, place: made(dffl.Aggregator, name, place)),
    ("optimiser 'sgd'", "dffl.training.optimisers.SGD", lambda name, place: made(Optimiser, name, place)),
    ("schedule 'linear'", "dffl.training.optimisers.Linear", lambda name, place: made(Schedule, name, place)),
    ("trainer 'fedavg'", "dffl.training.trainers.federated.FedAvg", lambda name, place: made(dffl.FedAvg, name, place)),
    ("method 'ditto'", "dffl.training.methods.ditto.ditto", lambda name, place: dffl.method(name)(at(outcome, place))),
]


def made(base: type, name: str, place: str) -> Any:
    return type(place, (base,), {"name": name, "__module__": "own_module", "__qualname__": place})


def at(function: Any, place: str) -> Any:
    copy = FunctionType(function.__code__, function.__globals__)
    copy.__module__, copy.__qualname__ = "own_module", place
    return copy


@pytest.mark.parametrize(("taken", "owner", "define"), REGISTRIES)
def test_a_name_belongs_to_one_definition(taken: str, owner: str, define: Callable[[str, str], Any]) -> None:
    name, new = taken.split("'")[1], f"test-{taken.split()[0]}"
    with pytest.raises(
        ValueError, match=rf"{taken} is there already \({owner}\); choose another name for own_module\.Mine"
    ) as no:
        define(name, "Mine")
    assert "\n" not in str(no.value)
    define(new, "Mine")
    define(new, "Mine")  # a module that is loaded again defines the same thing again
    with pytest.raises(ValueError, match=r"is there already \(own_module\.Mine\); choose another name for own_module\.Other"):
        define(new, "Other")


def test_a_trainer_is_a_frozen_data_class(federation: dffl.Federation) -> None:
    class Plain(dffl.FedAvg):
        def __init__(self, decay: float):
            object.__setattr__(self, "decay", decay)

    with pytest.raises(TypeError, match=r"trainer Plain must be a @dataclass\(frozen=True\)"):
        Run(federation, Settings(rounds=1, hidden=4)).trained(Plain(0.1))


def test_methods_are_registered_with_a_name_and_options_of_their_own() -> None:
    with pytest.raises(ValueError, match="register a method with its name"):
        dffl.method(lambda run: None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"option 'rounds' is the name of a setting; read run\.settings instead"):
        dffl.method("swallows")(lambda run, rounds=3: None)
    with pytest.raises(ValueError, match="option 'share' needs a default"):
        dffl.method("needs")(lambda run, share: None)


def test_a_method_returns_predictors_and_choices_for_each_client(federation: dffl.Federation) -> None:
    dffl.method("vectors")(lambda run: dffl.Outcome(run.trained(dffl.Local())))
    with pytest.raises(TypeError, match=r"must return dffl predictors, found ndarray; run.personal\(vectors\)"):
        dffl.fit(federation, "vectors", **SMALL)
    dffl.method("one-choice")(lambda run: dffl.Outcome(run.personal(run.trained(dffl.Local())), choices={"lambda": 0.5}))
    with pytest.raises(ValueError, match=r"choices\['lambda'\] must have one number for each client, found 0.5"):
        dffl.fit(federation, "one-choice", **SMALL)


def test_what_a_client_keeps_has_one_row_for_each(federation: dffl.Federation) -> None:
    @dataclass(frozen=True)
    class Keeps(dffl.FedAvg):
        def visit(self, site: Any, sent: Any) -> Any:
            site.keep("v", 1.0)
            return super().visit(site, sent)

    with pytest.raises(ValueError, match=r"site.keep\('v'\): values must have one row for each of the 3 clients"):
        Run(federation, Settings(rounds=1, hidden=4)).trained(Keeps())

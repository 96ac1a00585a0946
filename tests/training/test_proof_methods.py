"""FedProx, Ditto, SCAFFOLD and FedRep against whole rewrites of the algorithms in NumPy, from the papers.

The federation is small and uneven: three clients of unlike sizes and sets, in no order of names, one of which maximises. Where
outputs and gradients are clipped, some are and some are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import optax
import pytest

import dffl
from dffl.randomness import Purpose
from dffl.training import ALL, FedAvg, Run, Settings
from dffl.training.engines.base import gathered
from dffl.training.methods.fedrep import FedRepTrainer
from dffl.training.methods.scaffold import ScaffoldTrainer
from dffl.training.optimisers import SGD, Optimiser
from tests.federations import P, client
from tests.training.numpy_update import Site, layer, weighted_mean

pytestmark = pytest.mark.filterwarnings("ignore:training predictions are clipped")  # a small tau, to test the clip too

D, HIDDEN, ROUNDS, EPOCHS = 4, 6, 3, 2
ATOL = 1e-11
RATES = {"adam": 3e-3, "sgd": 0.05}
PULL = 0.3
FEDERATION = dffl.Federation(
    [
        client("b", dffl.TopK(D, 1), n=5),
        client("c", dffl.TopK(D, 3), n=6, maximize=True),
        client("a", dffl.TopK(D, 2), n=11),
    ]
)
CASES: dict[str, dict[str, Any]] = {
    "everyone": {},
    "two of three, falling rate": {"client_fraction": 0.7, "schedule": "cosine", "seed": 1},
}
optimisers = pytest.mark.parametrize("optimiser", ["adam", "sgd"])
cases = pytest.mark.parametrize("case", CASES)


def chosen(optimiser: str, **more: Any) -> dict[str, Any]:
    """Settings under which the clips of outputs and of gradients are sometimes active and sometimes not."""
    common = {"rounds": ROUNDS, "local_epochs": EPOCHS, "batch_size": 4, "hidden": HIDDEN, "dtype": "float64"}
    return common | {"gradient_clip": 3.0, "tau": 1.5, "optimiser": optimiser, "learning_rate": RATES[optimiser]} | more


@dataclass
class Literature:
    """What the rewrites share: the sites, the common start, who took part, and the factor on the rate."""

    fit: dffl.Fit

    def __post_init__(self) -> None:
        settings = self.fit.settings
        self.sites = {one.name: Site(one, settings) for one in FEDERATION}
        self.start: np.ndarray = Run(FEDERATION, settings).engine(ALL).initial
        self.falls = settings.schedule.name == "cosine"  # type: ignore[union-attr]
        seen = self.fit.history
        rows = seen[seen["job"].str.endswith("/all")]
        self.taking_part = [sorted(rows[rows["round"] == r]["client"]) for r in range(ROUNDS)]

    def rounds(self) -> Iterator[tuple[list[Site], range, float]]:
        """For each round: the sites that take part, its epochs, and the factor on the rate."""
        for r, names in enumerate(self.taking_part):
            factor = (1 + np.cos(np.pi * r / ROUNDS)) / 2 if self.falls else 1.0
            yield [self.sites[name] for name in names], range(EPOCHS * r, EPOCHS * (r + 1)), factor


def trained(predictor: Any) -> np.ndarray:
    """The numbers of a predictor's network."""
    network = predictor.network
    return np.concatenate([np.asarray(array).ravel() for array in (*network.weights, *network.biases)])


def shared(fit: dffl.Fit) -> np.ndarray:
    vectors = [trained(member.predictor) for member in fit.members.values()]
    assert all(np.array_equal(one, trained(fit.shared)) for one in vectors)
    return vectors[0]


def personal(fit: dffl.Fit) -> dict[str, np.ndarray]:
    return {name: trained(member.predictor) for name, member in fit.members.items()}


def fitted(method: str, optimiser: str, case: str = "everyone", **more: Any) -> dffl.Fit:
    return dffl.fit(FEDERATION, method, **chosen(optimiser, **CASES[case]), **more)


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=0, atol=ATOL)


@cases
def test_the_cases_are_as_uneven_as_they_should_be(case: str) -> None:
    fit = fitted("fedavg", "adam", case)
    world = Literature(fit)
    assert {len(names) for names in world.taking_part} == ({3} if case == "everyone" else {2})
    assert case == "everyone" or len({tuple(names) for names in world.taking_part}) > 1
    for sites, epochs, factor in world.rounds():
        world.start = weighted_mean([one.train(world.start, epochs, factor=factor)[0] for one in sites], _counts(sites))
    norms = [norm for site in world.sites.values() for norm in site.norms]
    assert min(norms) < 2.5 < 3.5 < max(norms)
    assert 0 < fit.history["clipped"].mean() < 1
    close(shared(fit), world.start)


def _counts(sites: list[Site]) -> list[int]:
    return [one.count for one in sites]


# FedProx: Algorithm 2 of Li et al. (2020), with some epochs of the local solver.


@optimisers
@cases
def test_fedprox(optimiser: str, case: str) -> None:
    fit = fitted("fedprox", optimiser, case, pull=PULL)
    world = Literature(fit)
    w = world.start
    for sites, epochs, factor in world.rounds():
        w = weighted_mean([one.train(w, epochs, pull=PULL, anchor=w, factor=factor)[0] for one in sites], _counts(sites))
    close(shared(fit), w)


def test_fedprox_with_a_tiny_pull_is_almost_fedavg() -> None:
    plain = shared(fitted("fedavg", "sgd"))
    near, far = (np.abs(shared(fitted("fedprox", "sgd", pull=pull)) - plain).max() for pull in (1e-9, PULL))
    assert 0 < near < 1e-9
    assert far > 1e-3


# Ditto: Algorithm 1 of Li et al. (2021). The own model is pulled towards what the server sent, not towards the result.


@optimisers
@cases
def test_ditto(optimiser: str, case: str) -> None:
    fit = fitted("ditto", optimiser, case, pull=PULL)
    world = Literature(fit)
    w, v = world.start, dict.fromkeys(world.sites, world.start)
    for sites, epochs, factor in world.rounds():
        for one in sites:
            name = one.client.name
            v[name], _ = one.train(v[name], epochs, purpose=Purpose.TUNE, pull=PULL, anchor=w, factor=factor)
        w = weighted_mean([one.train(w, epochs, factor=factor)[0] for one in sites], _counts(sites))
    close(trained(fit.shared), w)
    for name, vector in personal(fit).items():
        close(vector, v[name])


def test_dittos_own_epochs_are_numbered_on_from_round_to_round() -> None:
    """Three of its own epochs in a round are two calls of the client update (2 + 1), with one optimiser through both."""
    fit = fitted("ditto", "adam", pull=PULL, own_epochs=3)
    world = Literature(fit)
    w, v = world.start, dict.fromkeys(world.sites, world.start)
    for r, (sites, epochs, _) in enumerate(world.rounds()):
        for one in sites:
            name, own = one.client.name, range(3 * r, 3 * r + 3)
            v[name], _ = one.train(v[name], own, purpose=Purpose.TUNE, pull=PULL, anchor=w)
        w = weighted_mean([one.train(w, epochs)[0] for one in sites], _counts(sites))
    for name, vector in personal(fit).items():
        close(vector, v[name])


@optimisers
@cases
def test_dittos_shared_model_is_fedavgs_to_the_bit(optimiser: str, case: str) -> None:
    own, plain = fitted("ditto", optimiser, case, pull=PULL), fitted("fedavg", optimiser, case)
    np.testing.assert_array_equal(trained(own.shared), shared(plain))
    assert all(np.abs(vector - shared(plain)).max() > 1e-4 for vector in personal(own).values())


# SCAFFOLD: Algorithm 1 of Karimireddy et al. (2020) with a server's step of 1, and the weights of federated averaging. The
# control variate is the mean raw gradient: equal to option II of the paper where steps are plain gradient steps.


@optimisers
@cases
def test_scaffold(optimiser: str, case: str) -> None:
    fit = fitted("scaffold", optimiser, case)
    world = Literature(fit)
    x, c = world.start, np.zeros_like(world.start)
    variates = {name: np.zeros_like(c) for name in world.sites}
    for sites, epochs, factor in world.rounds():
        answers, changes = [], []
        for one in sites:
            name = one.client.name
            y, mean_gradient = one.train(x, epochs, correction=c - variates[name], factor=factor)
            answers.append(y)
            changes.append(mean_gradient - variates[name])
            variates[name] = mean_gradient
        x = weighted_mean(answers, _counts(sites))
        total = sum(FEDERATION.counts)
        c = c + sum(one.client.n / total * change for one, change in zip(sites, changes, strict=True))
        # The server's variate is the weighted mean of the clients', also of those that took no part yet.
        expected = sum(FEDERATION[name].n / total * variate for name, variate in variates.items())
        np.testing.assert_allclose(c, expected, rtol=0, atol=1e-14)
    close(shared(fit), x)
    assert np.abs(shared(fit) - shared(fitted("fedavg", optimiser, case))).max() > 1e-4


def test_scaffolds_variate_has_the_papers_form_under_plain_gradient_steps() -> None:
    """Option II: c_i+ = c_i - c + (x - y_i) / (K eta), where no gradient is clipped."""
    settings = Settings(**chosen("sgd", gradient_clip=1e12))
    run, trainer = Run(FEDERATION, settings), ScaffoldTrainer()
    engine = run.engine(ALL)
    x, c = engine.initial, np.zeros_like(engine.initial)
    variates = np.zeros((3, c.size))
    steps = EPOCHS * np.array([len(Site(one, settings).minibatches(0, Purpose.SHUFFLE)) for one in FEDERATION])
    assert sorted(steps) == [4, 4, 6]
    for r in range(ROUNDS):
        order = {"round": r, "shared": x, "rate": 1.0, "control": c}
        answer = gathered(engine.ask(trainer, scope="here", **order), 3)
        assert set(answer) == {"vector", "change"}
        wanted = variates - c + (x - answer["vector"]) / (steps[:, None] * settings.learning_rate)
        close(answer["change"], wanted - variates)
        kept = engine.kept("here")
        for place, one in enumerate(FEDERATION):
            close(kept[one.name]["control"], wanted[place])
        assert np.abs(wanted).max() > 0.1
        variates, x = wanted, weighted_mean(list(answer["vector"]), FEDERATION.counts)
        c = variates.mean(axis=0)


def test_scaffold_of_one_client_is_fedavg() -> None:
    """Alone, a client's variate is the server's: there is no drift to take out."""
    alone = dffl.Federation([FEDERATION["a"]])
    one, other = (dffl.fit(alone, method, **chosen("sgd")) for method in ("scaffold", "fedavg"))
    close(shared(one), shared(other))


# FedRep: Algorithm 1 of Collins et al. (2021), with epochs for steps, and the head trained once more on the final body.

SPLITS = {"last": 1, "*.0": 0}


@pytest.mark.parametrize("split", SPLITS)
@optimisers
@cases
def test_fedrep(split: str, optimiser: str, case: str) -> None:
    fit = fitted("fedrep", optimiser, case, personal=split)
    world = Literature(fit)
    head = layer(SPLITS[split], P, HIDDEN, D)
    body, own = world.start, dict.fromkeys(world.sites, world.start)
    for sites, epochs, factor in world.rounds():
        answers = []
        for one in sites:
            name = one.client.name
            theta = np.where(head, own[name], body)
            theta, _ = one.train(theta, epochs, trains=head, factor=factor)
            theta, _ = one.train(theta, epochs, trains=~head, factor=factor)
            own[name] = theta
            answers.append(theta)
        body = weighted_mean(answers, _counts(sites))
    last = range(EPOCHS * ROUNDS, EPOCHS * (ROUNDS + 1))
    for name, vector in personal(fit).items():
        wanted, _ = world.sites[name].train(np.where(head, own[name], body), last, trains=head)
        close(vector, wanted)
    vectors = np.array(list(personal(fit).values()))
    assert (np.ptp(vectors[:, ~head], axis=0) == 0).all()
    assert np.ptp(vectors[:, head], axis=0).max() > 1e-4


def test_fedreps_head_epochs_are_its_own() -> None:
    fit = fitted("fedrep", "adam", head_epochs=1)
    world = Literature(fit)
    head = layer(1, P, HIDDEN, D)
    body, own = world.start, dict.fromkeys(world.sites, world.start)
    for r, (sites, epochs, _) in enumerate(world.rounds()):
        for one in sites:
            theta, _ = one.train(np.where(head, own[one.client.name], body), [r], trains=head)
            own[one.client.name], _ = one.train(theta, epochs, trains=~head)
        body = weighted_mean([own[one.client.name] for one in sites], _counts(sites))
    for name, vector in personal(fit).items():
        close(vector, world.sites[name].train(np.where(head, own[name], body), [ROUNDS], trains=head)[0])


@pytest.mark.parametrize("split", SPLITS)
def test_fedreps_personal_numbers_stay_at_home(split: str) -> None:
    """The answer has the body's numbers and no others, and the server never holds a longer vector."""
    run, trainer = Run(FEDERATION, Settings(**chosen("sgd"))), FedRepTrainer(personal=(split,))
    engine = run.engine(ALL)
    head = layer(SPLITS[split], P, HIDDEN, D)
    state = trainer.begin(engine)
    np.testing.assert_array_equal(state.shared, engine.initial[~head])
    for answer in engine.ask(trainer, scope="here", round=0, shared=state.shared, rate=1.0):
        assert set(answer.fields) == {"vector"}
        assert answer.fields["vector"].shape == (len(answer.members), np.sum(~head))
        for member, sent in zip(answer.members, answer.fields["vector"], strict=True):
            kept = engine.kept("here")[engine.names[member]]["vector"]
            np.testing.assert_array_equal(sent, kept[~head])
            assert np.abs(kept[head] - engine.initial[head]).max() > 1e-3  # the head has been trained, and stays
            assert not np.isin(sent[sent != 0], kept[head]).any()
    after = trainer.next(run, ALL, state)
    assert after.shared.shape == state.shared.shape
    assert after.memory == {}


def test_fedrep_trains_the_head_of_a_client_that_was_never_sampled() -> None:
    fit = dffl.fit(FEDERATION, "fedrep", **chosen("sgd", client_fraction=0.34, rounds=2))
    seen = fit.history
    sampled = set(seen[seen["job"] == "fedrep/all"]["client"])
    never = set(FEDERATION.names) - sampled
    assert never
    assert set(seen[(seen["job"] == "fedrep/all/head") & (seen["round"] == 2)]["client"]) == set(FEDERATION.names)
    head, vectors = layer(1, P, HIDDEN, D), personal(fit)
    start = Run(FEDERATION, fit.settings).engine(ALL).initial
    for name in never:
        begun = np.where(head, start, vectors[next(iter(sampled))])
        wanted, _ = Site(FEDERATION[name], fit.settings).train(begun, range(2 * EPOCHS, 3 * EPOCHS), trains=head)
        close(vectors[name], wanted)
        assert np.abs(vectors[name][head] - start[head]).max() > 1e-3


def test_fedrep_refuses_to_share_nothing_and_a_layer_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="is the whole network: nothing would be shared; use method 'local'"):
        fitted("fedrep", "sgd", personal="*")
    with pytest.raises(ValueError, match=r"names no layer of the network \(it has weights.0, weights.1, biases.0, biases.1\)"):
        fitted("fedrep", "sgd", personal="*.7")


# The optimiser that the sentences above leave out.


def test_gradient_steps_with_momentum() -> None:
    settings = Settings(**chosen("sgd") | {"optimiser": SGD(0.9)})
    run = Run(FEDERATION, settings)
    w = run.engine(ALL).initial
    for r in range(ROUNDS):
        answers = [Site(one, settings).train(w, range(EPOCHS * r, EPOCHS * (r + 1)), momentum=0.9)[0] for one in FEDERATION]
        w = weighted_mean(answers, FEDERATION.counts)
    close(run.trained(FedAvg()), w)


class Decaying(Optimiser):
    """Gradient steps that also shrink every number, as weight decay does."""

    name = "test-decaying"

    def transformation(self, learning_rate: float) -> optax.GradientTransformation:
        return optax.chain(optax.add_decayed_weights(0.5), optax.sgd(learning_rate))


def test_numbers_that_do_not_train_stay_as_they_are_whatever_the_optimiser() -> None:
    run = Run(FEDERATION, Settings(**chosen("sgd") | {"optimiser": Decaying()}))
    engine: Any = run.engine(ALL)
    head = engine.template.layers("last")
    [site, _] = engine.sites()
    with engine.precision():
        found = site.train(engine.initial, EPOCHS, recipe=replace(site.recipe, trains=head)).vectors
    assert (np.abs(found[:, head.mask] - engine.initial[head.mask]).max(axis=1) > 1e-3).all()
    np.testing.assert_array_equal(found[:, ~head.mask], [engine.initial[~head.mask]] * len(site))

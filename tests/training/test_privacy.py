"""Privacy: what leaves a client is bounded, the noise has the promised size and hides behind a secret, and epsilon is right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.randomness import NoiseSource, Purpose
from dffl.training import ALL, FedAvg, Run, Settings
from dffl.training.aggregators import Moment, Update
from dffl.training.aggregators.server import Momentum
from dffl.training.engines.vector import LoopEngine
from dffl.training.privacy import ClientPrivacy, SamplePrivacy, Spending, epsilon_of, noise_for
from dffl.training.privacy.levels import clipped, protected
from dffl.training.privacy.spending import most_uses
from tests.federations import client

pytestmark = pytest.mark.filterwarnings("ignore:training predictions are clipped")  # a small tau, to test the clip too

FEDERATION = dffl.Federation([client(name, dffl.TopK(5, 2), n) for name, n in zip("abcde", (12, 20, 9, 15, 12), strict=True)])
SETTINGS: dict[str, Any] = {"rounds": 2, "local_epochs": 2, "batch_size": 8, "hidden": 6, "dtype": "float64"}
SOURCE = NoiseSource(b"0123456789abcdef")


def changes(privacy: Any, noise: NoiseSource | None = None, federation: dffl.Federation = FEDERATION) -> dict[str, np.ndarray]:
    """How each client's answer to the first order differs from the vector that it was sent."""
    engine = LoopEngine(federation, Settings.of(privacy=privacy, **SETTINGS), noise=noise)
    sent = {"round": 0, "shared": engine.initial, "rate": 1.0}
    answers = engine.ask(FedAvg(), **sent)
    return {engine.names[some[0]]: fields["vector"][0] - engine.initial for some, fields in answers}


# What leaves a client.


def test_a_change_that_leaves_is_no_longer_than_the_clip_and_keeps_its_direction() -> None:
    plain, bounded = changes(None), changes({"level": "client", "clip": 0.01, "noise": 0.0})
    for name, change in bounded.items():
        assert np.linalg.norm(plain[name]) > 0.01
        np.testing.assert_allclose(change, plain[name] * 0.01 / np.linalg.norm(plain[name]), rtol=1e-9, atol=1e-15)
    loose = changes({"level": "client", "clip": 1e3, "noise": 0.0})
    np.testing.assert_allclose(loose["a"], plain["a"], atol=1e-15)  # a short one stays as it is


def test_noise_at_the_site_has_the_promised_size_and_is_each_clients_own() -> None:
    bounded = changes({"level": "client", "clip": 0.01, "noise": 0.0})
    noisy = changes({"level": "client", "clip": 0.01, "noise": 4.0, "where": "site"})
    noise = {name: (noisy[name] - bounded[name]) / 0.04 for name in noisy}
    every = np.concatenate(list(noise.values()))
    assert every.std() == pytest.approx(1, abs=5 / math.sqrt(2 * every.size))
    assert abs(every.mean()) < 5 / math.sqrt(every.size)
    assert abs(np.corrcoef(noise["a"], noise["b"])[0, 1]) < 5 / math.sqrt(noise["a"].size)


def test_other_data_have_other_noise() -> None:
    loud = {"level": "client", "clip": 0.01, "noise": 1e6, "where": "site"}
    others = dffl.Federation([dffl.Client(one.name, one.x, one.c[::-1], one.set) for one in FEDERATION])
    one, two = changes(loud)["a"], changes(loud, federation=others)["a"]
    assert abs(np.corrcoef(one, two)[0, 1]) < 5 / math.sqrt(one.size)  # the difference of two answers has noise in it


def test_the_servers_noise_is_not_added_at_the_site() -> None:
    one, other = (changes({"level": "client", "clip": 0.01, "noise": noise}) for noise in (0.0, 4.0))
    np.testing.assert_array_equal(one["a"], other["a"])


# A secret.


def test_noise_follows_from_the_secret_and_the_whole_question() -> None:
    asked = SOURCE.normals(1000, Purpose.SITE_NOISE, "a", 0, b"change")
    np.testing.assert_array_equal(asked, SOURCE.normals(1000, Purpose.SITE_NOISE, "a", 0, b"change"))
    others = [
        SOURCE.normals(1000, Purpose.SERVER_NOISE, "a", 0, b"change"),
        SOURCE.normals(1000, Purpose.SITE_NOISE, "b", 0, b"change"),
        SOURCE.normals(1000, Purpose.SITE_NOISE, "a", 1, b"change"),
        SOURCE.normals(1000, Purpose.SITE_NOISE, "a", 0, b"other"),
        SOURCE.normals(1000, Purpose.SITE_NOISE, "a0", b"change"),
        NoiseSource(b"0123456789abcdeX").normals(1000, Purpose.SITE_NOISE, "a", 0, b"change"),
        NoiseSource.fresh().normals(1000, Purpose.SITE_NOISE, "a", 0, b"change"),
    ]
    assert asked.std() == pytest.approx(1, abs=0.1)
    assert max(abs(np.corrcoef(asked, one)[0, 1]) for one in others) < 0.16  # five standard deviations


def test_normal_numbers_are_normal() -> None:
    from scipy.stats import kstest

    assert kstest(SOURCE.normals(50_000, Purpose.SITE_NOISE, "a"), "norm").pvalue > 1e-3


def test_a_site_with_a_secret_of_its_own_answers_what_nobody_can_compute() -> None:
    privacy = {"level": "client", "clip": 0.01, "noise": 4.0, "where": "site"}
    public, again = changes(privacy), changes(privacy)
    secret, restarted, other = changes(privacy, SOURCE), changes(privacy, SOURCE), changes(privacy, NoiseSource.fresh())
    np.testing.assert_array_equal(public["a"], again["a"])
    np.testing.assert_array_equal(secret["a"], restarted["a"])
    for one in (public, other):
        assert abs(np.corrcoef(secret["a"], one["a"])[0, 1]) < 0.7


def test_a_secret_is_never_shown_and_never_short() -> None:
    assert "0123" not in repr(SOURCE)
    assert len(NoiseSource.fresh().secret) == 32
    with pytest.raises(ValueError, match="at least 16 bytes"):
        NoiseSource(b"short")


@pytest.mark.parametrize("where", ["server", "site"])
def test_a_run_may_have_a_secret_of_its_own(where: str) -> None:
    settings = Settings.of(privacy={"level": "client", "clip": 0.1, "noise": 1.0, "where": where}, **SETTINGS)

    def trained(noise: NoiseSource | None) -> np.ndarray:
        with Run(FEDERATION, settings, noise=noise) as run:
            return run.trained(FedAvg(), ALL)

    assert np.array_equal(trained(None), trained(NoiseSource.public(0)))
    assert np.array_equal(trained(SOURCE), trained(SOURCE))
    assert not np.allclose(trained(SOURCE), trained(None))


# The server's sum.


def test_the_private_mean_has_equal_weights_a_fixed_divisor_and_noise_once() -> None:
    start = np.ones(2000)
    updates = [Update("a", 500, start + 3.0), Update("b", 1, start - 0.001)]
    quiet = protected(ClientPrivacy(clip=1.0, noise=0.0), dffl.Aggregator.of("mean"), 4, SOURCE, "job")
    expected = start + (np.full(2000, 3.0) / (3.0 * math.sqrt(2000)) - 0.001) / 4
    np.testing.assert_allclose(quiet.combine(start, updates, {}, Moment(0, 1))[0], expected, rtol=1e-12)
    loud = protected(ClientPrivacy(clip=1.0, noise=2.0), dffl.Aggregator.of("mean"), 4, SOURCE, "job")
    noise = loud.combine(start, updates, {}, Moment(0, 1))[0] - expected
    assert noise.std() == pytest.approx(2.0 * 1.0 / 4, rel=0.08)
    later = loud.combine(start, updates, {}, Moment(1, 2))[0] - expected
    assert abs(np.corrcoef(noise, later)[0, 1]) < 0.12


def test_the_momentum_of_a_server_remembers_changes_with_their_noise() -> None:
    start = np.zeros(500)
    inside = protected(ClientPrivacy(clip=1.0, noise=1.0), Momentum(), 1, SOURCE, "job")
    moved, memory = inside.combine(start, [Update("a", 1, start)], {}, Moment(0, 2))
    assert memory["velocity"].std() == pytest.approx(1.0, rel=0.2)  # nobody changed anything: all of it is noise
    np.testing.assert_array_equal(moved, memory["velocity"])


@pytest.mark.parametrize("where", ["server", "site"])
def test_engines_agree_with_noise(where: str) -> None:
    settings = {**SETTINGS, "privacy": {"level": "client", "clip": 0.1, "noise": 0.5, "where": where}, "client_fraction": 0.6}
    one, other = (dffl.fit(FEDERATION, "fedavg", engine=engine, progress=False, **settings) for engine in ("vector", "loop"))
    x = np.linspace(-1, 1, 3)
    np.testing.assert_array_equal(one.predict("a", x), other.predict("a", x))


# What it is worth.


def test_epsilon_is_the_accountants_and_falls_with_noise() -> None:
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    peer = PLDAccountant()
    peer.compose(SelfComposedDpEvent(GaussianDpEvent(10.0), 50))
    assert epsilon_of({"level": "client", "noise": 10.0}, 50) == pytest.approx(peer.get_epsilon(1e-5), rel=1e-4)
    # A site's own noise hides one change from any other: twice as far apart as a change from none.
    assert epsilon_of({"level": "client", "noise": 20.0, "where": "site"}, 50) == pytest.approx(2.9432, abs=1e-3)
    assert epsilon_of({"level": "sample", "noise": 20.0}, 50) == pytest.approx(2.9432, abs=1e-3)
    assert epsilon_of({"level": "client", "noise": 0.0}, 1) == math.inf
    assert epsilon_of({"level": "client", "noise": 0.0}, 0) == 0


@pytest.mark.parametrize("privacy", [ClientPrivacy(), ClientPrivacy(where="site"), SamplePrivacy()])
def test_the_noise_for_an_epsilon_costs_that_epsilon(privacy: Any) -> None:
    noise = noise_for(3.0, privacy, uses=250, delta=1e-6)
    own = {"where": privacy.where} if isinstance(privacy, ClientPrivacy) else {}
    assert epsilon_of(type(privacy)(noise=noise, **own), 250, 1e-6) == pytest.approx(3.0, rel=1e-6)


def test_a_fit_knows_what_it_released_and_two_fits_cost_more(tmp_path: Any) -> None:
    privacy = {"level": "client", "clip": 0.1, "noise": 30.0}
    settings = {**SETTINGS, "privacy": privacy, "rounds": 4, "progress": False}
    shared, folds = dffl.fit(FEDERATION, "fedavg", **settings), dffl.fit(FEDERATION, "crossfit", folds=3, epochs=2, **settings)
    tuned = dffl.fit(FEDERATION, "finetune", epochs=2, **settings)
    assert shared.spending().uses == 4
    assert folds.spending().trainings == {f"fedavg/fold {number} of 3": 4 for number in (1, 2, 3)}
    assert folds.spending().uses == 12  # a client is in every fold; its own tuning is not counted
    assert tuned.spending().uses == 8  # of the split, to choose, and of all samples
    assert dffl.fit(FEDERATION, "local", **settings).spending().uses == 0
    assert shared.spending().epsilon(1e-5, folds.spending()) == pytest.approx(epsilon_of(privacy, 16))
    folds.save(tmp_path / "kept.dffl")
    kept = dffl.load(tmp_path / "kept.dffl")
    assert kept.spending() == folds.spending()
    assert kept.settings.privacy == ClientPrivacy(0.1, 30.0)
    with pytest.raises(ValueError, match="this fit hides nothing"):
        dffl.fit(FEDERATION, "fedavg", progress=False, **SETTINGS).spending()


def test_who_is_asked_less_often_is_used_less_often() -> None:
    settings = {**SETTINGS, "privacy": "client", "rounds": 20, "client_fraction": 0.4, "progress": False}
    uses = dffl.fit(FEDERATION, "fedavg", **settings).spending().uses
    assert 8 <= uses < 20  # 2 of 5 in each of 20 rounds: the most frequent has 8 at least


def test_a_sample_is_not_used_by_the_fold_that_holds_it_out() -> None:
    assert most_uses([(0, 3, 4), (1, 3, 5), (2, 3, 6)], [7]) == 7 + 5 + 6
    assert most_uses([(0, 3, 4), (1, 3, 5)], []) == 9  # the third fold may hold it out
    assert most_uses([], [3, 4]) == 7


def test_spending_survives_json() -> None:
    spent = Spending(ClientPrivacy(0.5, 2.0, "site"), {"fedavg/all": 3}, 3)
    assert Spending.of(spent.as_json()) == spent


# Bad input.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"privacy": "clients"}, "unknown privacy 'clients'; did you mean 'client'"),
        ({"privacy": 3}, "privacy must be a name or a privacy object, found 3"),
        ({"privacy": {"clip": 1.0}}, "privacy: a table must say its level"),
        ({"privacy": {"level": "client", "nose": 1}}, "privacy 'client' has no argument 'nose'; did you mean 'noise'"),
        ({"privacy": {"level": "client", "clip": 0}}, "privacy: clip must be > 0 and finite, found 0"),
        ({"privacy": {"level": "client", "noise": -1}}, "privacy: noise must be >= 0 and finite, found -1"),
        ({"privacy": {"level": "client", "where": "cloud"}}, "privacy: where must be one of server, site, found 'cloud'"),
        ({"privacy": "sample"}, "privacy at the level of samples: units from a client's own samples"),
        ({"privacy": "client", "pooled_units": True}, "privacy: with pooled_units every client sends its means"),
        ({"privacy": "client", "method": "scaffold"}, "privacy: method 'scaffold' sends change in addition to its vector"),
        ({"privacy": "client", "method": "clustered"}, "privacy: method 'clustered' sends cluster in addition to its vector"),
        ({"privacy": "client", "method": "ridge-pooled"}, "privacy: method 'ridge-pooled' sends sums"),
        ({"privacy": "client", "aggregate": "median"}, "aggregator 'median' bounds no client's influence"),
        ({"privacy": "client", "aggregate": Momentum(inner="krum")}, "aggregator 'krum' bounds no client's influence"),
    ],
)
def test_what_would_not_hold_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dffl.fit(FEDERATION, given.pop("method", "fedavg"), progress=False, **given)


def test_robust_aggregators_go_with_noise_at_the_sites() -> None:
    privacy = {"level": "client", "clip": 0.1, "noise": 0.1, "where": "site"}
    assert dffl.fit(FEDERATION, "fedavg", progress=False, privacy=privacy, aggregate="median", **SETTINGS).spending().uses == 2


def test_the_clip_of_a_change_of_zero_is_zero() -> None:
    np.testing.assert_array_equal(clipped(np.zeros(3), 1.0), np.zeros(3))

"""Sites that lie: each attack against its definition, and what the aggregators make of it."""

from __future__ import annotations

import numpy as np
import pytest

import dffl
from dffl.training.aggregators import Aggregator, Moment, Update
from dffl_studies.privacy.lies import ATTACKS, Lying, drawn_liars

SHARED = np.full(40, 7.0)
NAMES = [f"c{number:02d}" for number in range(11)]
CHANGES = np.random.default_rng(0).normal(1.0, 0.3, size=(11, 40))
LIARS = tuple(NAMES[1:4])
ROBUST = ("median", "trimmed-mean", "geometric-median", "norm-bound")


def updates() -> list[Update]:
    return [Update(name, 1, SHARED + change) for name, change in zip(NAMES, CHANGES, strict=True)]


class Seen(Aggregator):
    """Keeps what it was given."""

    def aggregate(self, shared: np.ndarray, updates: object) -> np.ndarray:
        self.vectors = {update.client: update.vector - shared for update in updates}  # type: ignore[attr-defined]
        return shared


def lies(attack: str, round: int = 0) -> dict[str, np.ndarray]:
    seen = Seen()
    lying = Lying("mean", attack, LIARS)
    lying.inner = seen
    lying.combine(SHARED, updates(), {}, Moment(round, 2))
    return seen.vectors


def test_honest_clients_are_left_alone_and_liars_lie() -> None:
    for attack in ATTACKS:
        found = lies(attack)
        for name, change in zip(NAMES, CHANGES, strict=True):
            assert np.allclose(found[name], change) == (name not in LIARS)


def test_each_lie_is_what_it_is_called() -> None:
    own = CHANGES[1]
    np.testing.assert_allclose(lies("sign flip")["c01"], -5 * own)
    noise = lies("large noise")["c01"]
    assert np.linalg.norm(noise) == pytest.approx(10 * np.linalg.norm(own))
    assert not np.allclose(noise, lies("large noise", round=1)["c01"])
    same = lies("same value")
    assert np.ptp(same["c01"]) == 0
    assert np.linalg.norm(same["c02"]) == pytest.approx(10 * np.linalg.norm(own))
    honest = np.delete(CHANGES, [1, 2, 3], axis=0)
    # 11 clients, 3 liars: 3 honest ones more make a majority, and 5 of 8 lie nearer to the mean: z = 0.3186.
    np.testing.assert_allclose(lies("a little")["c03"], honest.mean(0) - 0.318639 * honest.std(0), rtol=1e-5)


@pytest.mark.parametrize("attack", ["sign flip", "large noise", "same value"])
def test_robust_aggregators_stay_near_the_honest_and_the_mean_does_not(attack: str) -> None:
    truth = np.delete(CHANGES, [1, 2, 3], axis=0).mean(axis=0)

    def error(inner: Aggregator | str) -> float:
        found, _ = Lying(inner, attack, LIARS).combine(SHARED, updates(), {}, Moment(0, 1))
        return float(np.linalg.norm(found - SHARED - truth) / np.linalg.norm(truth))

    far = error("mean")
    assert far > 1
    for name in ("median", "geometric-median"):
        assert error(name) < 0.35
    table = {"name": "trimmed-mean", "share": 0.3}
    assert error(Aggregator.of(table)) < 0.4
    assert error(Aggregator.of({"name": "krum", "f": 3})) < 0.5
    assert error("norm-bound") < far / 2


def test_liars_of_a_smaller_number_are_among_those_of_a_larger_one() -> None:
    assert set(drawn_liars(NAMES, 2, seed=0)) < set(drawn_liars(NAMES[::-1], 5, seed=0))
    assert len(set(drawn_liars(NAMES, 5, seed=0))) == 5


def test_a_training_goes_on_among_liars() -> None:
    federation = dffl.synthetic.knapsack(clients=5, dim=6, samples=12)
    lying = Lying("median", "sign flip", (federation.names[0],))
    fit = dffl.fit(federation, "fedavg", rounds=2, aggregate=lying, progress=False)
    plain = dffl.fit(federation, "fedavg", rounds=2, aggregate="median", progress=False)
    assert not np.allclose(fit.predict(federation.names[1], np.zeros(8)), plain.predict(federation.names[1], np.zeros(8)))
    with pytest.raises(ValueError, match="unknown attack 'sign-flip'; did you mean 'sign flip'"):
        Lying("mean", "sign-flip", ())

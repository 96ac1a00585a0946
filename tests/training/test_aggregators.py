"""Aggregators: each against its definition, what one wrong client can do to it, and how it takes part in a training."""

from __future__ import annotations

import itertools
import json
import math
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import dffl
from dffl.named import plain, rebuilt
from dffl.training import ALL, FedAvg, Run, Settings
from dffl.training.aggregators import Aggregator, Moment, Update
from dffl.training.aggregators.base import Mean
from dffl.training.aggregators.robust import GeometricMedian, Krum, Median, NormBound, TrimmedMean
from dffl.training.aggregators.server import Momentum, ServerAdam
from dffl.training.engines.base import gathered
from dffl.training.optimisers import Cosine, Linear
from tests.federations import client
from tests.training.numpy_update import Site, weighted_mean
from tests.training.test_proof_methods import EPOCHS, FEDERATION, D, chosen, shared

pytestmark = pytest.mark.filterwarnings("ignore:training predictions are clipped")  # a small tau, to test the clip too

ZERO = np.zeros(4)


def updates(vectors: Any, counts: Iterable[int] | None = None) -> list[Update]:
    vectors = np.atleast_2d(vectors)
    return [Update(f"c{i}", n, v) for i, (v, n) in enumerate(zip(vectors, counts or [1] * len(vectors), strict=True))]


def drawn(seed: int, clients: int, size: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(clients, size))


# Each against its definition.


def test_the_mean_is_weighted_by_samples() -> None:
    vectors = [[1.0, 0, 0, 2], [5.0, 0, 8, 2], [2.0, 4, 0, 2]]
    np.testing.assert_allclose(Mean().aggregate(ZERO, updates(vectors, [1, 2, 5])), [21 / 8, 20 / 8, 2, 2], rtol=1e-15)
    assert not np.allclose(Mean().aggregate(ZERO, updates(vectors, [5, 2, 1])), [21 / 8, 20 / 8, 2, 2])


def most_alive(aggregator: Aggregator, clients: int = 8) -> int:
    """How many of the clients' vectors live at once while an aggregator reads them."""
    alive: list[int] = []
    made: list[weakref.ref] = []

    def coming() -> Iterator[Update]:
        for i in range(clients):
            vector = np.full(4, float(i))
            made.append(weakref.ref(vector))
            alive.append(sum(ref() is not None for ref in made))
            update = Update(f"c{i}", 1, vector)
            del vector
            yield update
            del update

    aggregator.aggregate(ZERO, coming())
    assert len(alive) == clients  # all were read
    return max(alive)


def test_the_mean_reads_updates_one_by_one_and_keeps_none() -> None:
    # The one that is made, and the one before it, which the loop's variable still names.
    assert most_alive(Mean()) <= 2
    assert most_alive(Momentum()) <= 2
    assert most_alive(Median()) == 8  # it needs all at once: the count above can see it


def test_sums_are_in_float64_whatever_the_clients_send() -> None:
    many = [Update(f"c{i}", 1, np.array([2.0**24 if i == 0 else 1.0], np.float32)) for i in range(65)]
    assert Mean().aggregate(np.zeros(1, np.float32), many)[0] == (2**24 + 64) / 65  # in float32 each 1 would be lost
    for one in (Median(), TrimmedMean(), Krum()):
        assert one.aggregate(np.zeros(1, np.float32), many).dtype == np.float64


@pytest.mark.parametrize("clients", [1, 2, 5, 6])
def test_the_median_of_each_number(clients: int) -> None:
    vectors = drawn(0, clients)
    columns = [sorted(column) for column in vectors.T.tolist()]
    wanted = [(column[(clients - 1) // 2] + column[clients // 2]) / 2 for column in columns]
    np.testing.assert_allclose(Median().aggregate(ZERO, updates(vectors, range(1, clients + 1))), wanted, rtol=1e-15)


@pytest.mark.parametrize(
    ("share", "clients", "out"), [(0.0, 5, 0), (0.2, 5, 1), (0.2, 4, 0), (0.1, 10, 1), (0.3, 10, 3), (0.49, 3, 1)]
)
def test_the_trimmed_mean_leaves_out_both_ends(share: float, clients: int, out: int) -> None:
    vectors = drawn(1, clients)
    columns = [sorted(column)[out : clients - out] for column in vectors.T.tolist()]
    wanted = [math.fsum(column) / len(column) for column in columns]
    np.testing.assert_allclose(TrimmedMean(share).aggregate(ZERO, updates(vectors, range(1, clients + 1))), wanted, rtol=1e-13)


@pytest.mark.parametrize("clients", [1, 2, 3, 9])
def test_the_geometric_median_has_the_least_sum_of_distances(clients: int) -> None:
    from scipy.optimize import minimize

    vectors = drawn(5, clients)

    def distances(point: np.ndarray) -> float:
        return float(np.linalg.norm(vectors - point, axis=1).sum())

    found = GeometricMedian(500).aggregate(ZERO, updates(vectors, range(1, clients + 1)))
    others = [minimize(distances, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12}) for start in vectors]
    assert distances(found) <= min(one.fun for one in others) + 1e-6
    # One vector, however far away, moves it by no more than the others are apart.
    wild = [*vectors, *drawn(6, 8), np.full(4, 1e9)]
    assert np.linalg.norm(GeometricMedian().aggregate(ZERO, updates(wild))) < 10


def test_the_geometric_median_of_equal_vectors_is_that_vector() -> None:
    np.testing.assert_array_equal(GeometricMedian().aggregate(ZERO, updates([np.arange(4.0)] * 3)), np.arange(4.0))


def test_a_bound_on_norms_shortens_long_changes_and_leaves_short_ones() -> None:
    start = np.array([1.0, 1, 1, 1])
    changes = np.array([[3.0, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0]])
    fixed = NormBound(1.0).aggregate(start, updates(start + changes, [9, 1, 1]))
    np.testing.assert_allclose(fixed - start, [1 / 3, 0.5 / 3, 1 / 3, 0], rtol=1e-14)
    longer = np.array([[3.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0]])
    median = NormBound().aggregate(start, updates(start + longer))
    np.testing.assert_allclose(median - start, [2 / 3, 2 / 3, 1 / 3, 0], rtol=1e-14)
    np.testing.assert_array_equal(NormBound().aggregate(start, updates([start, start])), start)


@pytest.mark.parametrize("bad", [-1.0, math.inf, True, "1"])
def test_a_bound_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="norm-bound: norm must be >= 0 and finite"):
        NormBound(bad)


def test_a_table_gives_an_aggregator_with_its_arguments() -> None:
    assert Aggregator.of({"name": "trimmed-mean", "share": 0.3}) == TrimmedMean(0.3)
    assert Aggregator.of({"name": "momentum", "inner": {"name": "krum", "f": 2}}) == Momentum(inner=Krum(2))
    with pytest.raises(ValueError, match=r"aggregator 'krum' has no argument 'g' \(allowed: f\)"):
        Aggregator.of({"name": "krum", "g": 2})
    with pytest.raises(ValueError, match="aggregator: a table must say its name"):
        Aggregator.of({"f": 2})


def brute_force_krum(vectors: np.ndarray, f: int) -> int:
    """Blanchard et al.: the least sum of squared distances to m - f - 2 others, over all choices of these others."""
    m = len(vectors)
    scores = []
    for i in range(m):
        squares = [math.fsum((vectors[i] - vectors[j]) ** 2) for j in range(m) if j != i]
        scores.append(min(math.fsum(some) for some in itertools.combinations(squares, m - f - 2)))
    return scores.index(min(scores))


@pytest.mark.parametrize(("clients", "f"), [(3, 0), (5, 0), (5, 1), (6, 1), (7, 2), (9, 3)])
def test_krum_is_its_definition(clients: int, f: int) -> None:
    found = []
    for seed in range(20):
        vectors = drawn(seed, clients)
        place = brute_force_krum(vectors, f)
        np.testing.assert_array_equal(Krum(f).aggregate(ZERO, updates(vectors, range(1, clients + 1))), vectors[place])
        found.append(place)
    assert len(set(found)) > 1


def test_krums_neighbours_depend_on_f() -> None:
    """On a line: two that are close, and three that are less close. With f = 0 three neighbours count, with f = 1 two."""
    line = np.array([[0.0], [0.1], [5.0], [6.0], [7.0]])
    assert [brute_force_krum(line, f) for f in (0, 1)] == [2, 3]
    assert [Krum(f).aggregate(np.zeros(1), updates(line))[0] for f in (0, 1)] == [5.0, 6.0]


def test_krum_takes_the_first_of_equals() -> None:
    """Two pairs of equal distance, mirrored: all four corners of a square score alike, and so do equal vectors."""
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    for turned in range(4):
        corners = np.roll(square, turned, axis=0)
        np.testing.assert_array_equal(Krum(0).aggregate(np.zeros(2), updates(corners)), corners[0])
    np.testing.assert_array_equal(Krum(1).aggregate(ZERO, updates(np.ones((5, 4)))), np.ones(4))


# With a memory.


def in_rounds(aggregator: Aggregator, changes: list[list[float]], rounds: int | None = None) -> list[float]:
    """The shared number after each round, in which clients move away from it by so much."""
    x, memory, found = np.zeros(1), {}, []
    for r, moved in enumerate(changes):
        answers = updates([[x[0] + change] for change in moved])
        x, memory = aggregator.combine(x, answers, memory, Moment(r, rounds or len(changes)))
        found.append(float(x[0]))
    return found


def test_momentum_by_hand() -> None:
    # v = 1, then 0.9 + 2 = 2.9, then 2.61 - 3 = -0.39.
    changes = [[1.0], [2.0], [-3.0]]
    assert in_rounds(Momentum(), changes) == pytest.approx([1.0, 3.9, 3.51], rel=1e-14)
    assert in_rounds(Momentum(rate=0.5), changes) == pytest.approx([0.5, 1.95, 1.755], rel=1e-14)
    assert in_rounds(Momentum(momentum=0.5), changes[:2]) == pytest.approx([1.0, 3.5], rel=1e-14)
    assert in_rounds(Momentum(momentum=0.0), changes) == pytest.approx([1.0, 3.0, 0.0], abs=1e-14)  # is the mean


def test_momentum_with_a_schedule_and_another_aggregator_inside() -> None:
    # A straight line over two rounds: factors 1 and 0.5. Over four: 1, 0.75.
    assert in_rounds(Momentum(schedule="linear"), [[1.0], [2.0]]) == pytest.approx([1.0, 1 + 2.9 / 2], rel=1e-14)
    assert in_rounds(Momentum(schedule=Linear(0.5)), [[1.0], [2.0]], 4) == pytest.approx([1.0, 1 + 2.9 * 0.875], rel=1e-14)
    assert in_rounds(Momentum(schedule=Cosine()), [[1.0], [2.0]]) == pytest.approx([1.0, 1 + 2.9 / 2], rel=1e-14)
    changes = [[0.0, 100.0, 1.0], [2.0, 2.0, -50.0]]
    assert in_rounds(Momentum(inner="median"), changes) == pytest.approx([1.0, 3.9], rel=1e-14)
    assert in_rounds(Momentum(), changes)[0] == pytest.approx(101 / 3)


def test_server_adam_by_hand() -> None:
    # m = 1/2, v = 1/4: step 1/2 / (1/2 + 1/2). Then m = 1/4 + 11/16 = 15/16, v = 3/16 + (11/8)^2 / 4 = (13/16)^2: step 5/7.
    adam = {"beta1": 0.5, "beta2": 0.75, "epsilon": 0.5, "rate": 2.0}
    changes = [[1.0], [1.375]]
    assert in_rounds(ServerAdam(**adam), changes) == pytest.approx([1.0, 17 / 7], rel=1e-14)
    assert in_rounds(ServerAdam(**adam, schedule="linear"), changes) == pytest.approx([1.0, 12 / 7], rel=1e-14)
    both = [[0.0, 9.0, 1.0], [1.375, 1.375, -9.0]]
    assert in_rounds(ServerAdam(**adam, inner="median"), both) == pytest.approx([1.0, 17 / 7], rel=1e-14)
    # The defaults: m = 0.1, v = 0.01, step 0.1 / 0.101; then m = 0.29, v = 0.0499, step 0.29 / (0.22338308 + 0.001).
    wanted = [0.01 * 0.1 / 0.101, 0.01 * (0.1 / 0.101 + 0.29 / 0.22438308)]
    assert in_rounds(ServerAdam(), [[1.0], [2.0]]) == pytest.approx(wanted, rel=1e-7)


def test_memories_of_aggregators_inside_each_other_stay_apart() -> None:
    nested = Momentum(momentum=0.5, inner=Momentum(momentum=0.25))
    # Inside: v = 1, then 0.25 + 2 = 2.25. Outside, on these as changes: 1, then 0.5 + 2.25.
    assert in_rounds(nested, [[1.0], [2.0]]) == pytest.approx([1.0, 1 + 2.75], rel=1e-14)


# One wrong client.


@pytest.mark.parametrize("aggregator", [Median(), TrimmedMean(0.2), Krum(1), Momentum(inner="median")])
@pytest.mark.parametrize("wrong", [1e6, -1e6])
def test_one_wrong_client_cannot_move_a_robust_aggregate_out_of_the_others_range(aggregator: Aggregator, wrong: float) -> None:
    for seed, place in itertools.product(range(5), range(6)):
        vectors = drawn(seed, 6)
        vectors[place] = wrong
        honest = np.delete(vectors, place, axis=0)
        found = aggregator.aggregate(ZERO, updates(vectors, [10**6 if i == place else 1 for i in range(6)]))
        assert (honest.min(axis=0) <= found).all()
        assert (found <= honest.max(axis=0)).all()
        assert np.abs(Mean().aggregate(ZERO, updates(vectors))).min() > 1e5


@dataclass(frozen=True)
class Poisoned(FedAvg):
    """Federated averaging in which client ``e`` sends nonsense."""

    name: ClassVar[str] = "poisoned"

    def visit(self, site: Any, sent: Mapping[str, Any]) -> dict[str, np.ndarray]:
        vectors = super().visit(site, sent)["vector"].copy()
        vectors[site.members == 4] = 1e6
        return {"vector": vectors}


def test_one_wrong_client_in_a_training() -> None:
    five = dffl.Federation([client(name, dffl.TopK(D, 2), n=5 + k % 2) for k, name in enumerate("abcde")])
    run = Run(five, Settings(**chosen("sgd", rounds=1)))
    engine = run.engine(ALL)
    honest = gathered(engine.ask(FedAvg(), round=0, shared=engine.initial, rate=1.0), 5)["vector"][:4]
    for robust in ("median", "trimmed-mean", "krum"):
        found = run.trained(Poisoned(aggregate=robust))
        assert (honest.min(axis=0) <= found).all()
        assert (found <= honest.max(axis=0)).all()
    with pytest.warns(UserWarning, match="client 'e': .* its update is left out"):
        found = run.trained(Poisoned())
    assert (honest.min(axis=0) <= found).all()
    assert (found <= honest.max(axis=0)).all()
    assert Run(five, Settings(**chosen("sgd", rounds=1), change_limit=0)).trained(Poisoned()).min() > 1e5


# In a training.


class Recorded(dffl.Aggregator):
    """The plain mean, which notes whose updates came, in which order."""

    name = "test-recorded"
    seen: ClassVar[list[list[tuple[str, int]]]] = []

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        came = list(updates)
        Recorded.seen.append([(update.client, update.samples) for update in came])
        return np.mean([update.vector for update in came], axis=0)


@pytest.mark.parametrize("engine", ["vector", "loop"])
@pytest.mark.parametrize("fraction", [1.0, 0.7])
def test_updates_come_in_the_order_of_names_with_their_counts(engine: str, fraction: float) -> None:
    Recorded.seen.clear()
    fit = dffl.fit(FEDERATION, "fedavg", aggregate=Recorded(), **chosen("sgd", engine=engine, client_fraction=fraction))
    counts = {one.name: one.n for one in FEDERATION}
    came = [[(name, counts[name]) for name in sorted(rows)] for _, rows in fit.history.groupby("round")["client"]]
    assert Recorded.seen == came
    assert [len(names) for names in came] == [3 if fraction == 1 else 2] * 3
    assert FEDERATION.names != sorted(FEDERATION.names)


def test_the_order_of_the_clients_does_not_change_a_bit() -> None:
    turned = dffl.Federation([FEDERATION[name] for name in "acb"])
    for aggregate in ("mean", "median", Momentum()):
        one, other = (dffl.fit(fed, "fedavg", aggregate=aggregate, **chosen("sgd")) for fed in (FEDERATION, turned))
        np.testing.assert_array_equal(shared(one), shared(other))


def test_one_round_by_the_median_is_numpys_median_of_the_updates() -> None:
    settings = chosen("sgd", rounds=1)
    fit, mean = (dffl.fit(FEDERATION, "fedavg", aggregate=aggregate, **settings) for aggregate in ("median", "mean"))
    start = Run(FEDERATION, fit.settings).engine(ALL).initial
    answers = [Site(one, fit.settings).train(start, range(EPOCHS))[0] for one in FEDERATION]
    np.testing.assert_allclose(shared(fit), np.median(answers, axis=0), rtol=0, atol=1e-11)
    np.testing.assert_allclose(shared(mean), weighted_mean(answers, FEDERATION.counts), rtol=0, atol=1e-11)
    assert np.abs(shared(fit) - shared(mean)).max() > 1e-3


@pytest.mark.parametrize("aggregate", [Momentum(0.5, 0.8, schedule="linear"), ServerAdam(0.05, inner="median", epsilon=0.1)])
def test_a_server_optimiser_remembers_from_round_to_round(aggregate: Aggregator) -> None:
    """Three rounds in NumPy, and the steps of Reddi et al. (2021), Algorithm 2."""
    fit = dffl.fit(FEDERATION, "fedavg", aggregate=aggregate, **chosen("sgd"))
    x: np.ndarray = Run(FEDERATION, fit.settings).engine(ALL).initial
    v, m, square = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for r in range(3):
        answers = [Site(one, fit.settings).train(x, range(EPOCHS * r, EPOCHS * (r + 1)))[0] for one in FEDERATION]
        if isinstance(aggregate, Momentum):
            v = 0.8 * v + weighted_mean(answers, FEDERATION.counts) - x
            x = x + 0.5 * (1 - r / 3) * v
        else:
            change = np.median(answers, axis=0) - x
            m, square = 0.9 * m + 0.1 * change, 0.99 * square + 0.01 * change**2
            x = x + 0.05 * m / (np.sqrt(square) + 0.1)
    np.testing.assert_allclose(shared(fit), x, rtol=0, atol=1e-11)


# Bad input.


@pytest.fixture
def nothing_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("something was trained")

    monkeypatch.setattr("dffl.training.engines.site.compiled_update", refuse)
    monkeypatch.setattr("dffl.training.engines.site.compiled_start", refuse)


@pytest.mark.usefixtures("nothing_trains")
def test_krum_with_too_few_clients_is_refused_before_anything_trains() -> None:
    with pytest.raises(AssertionError, match="something was trained"):
        dffl.fit(FEDERATION, "fedavg", aggregate="median")
    with pytest.raises(ValueError, match="aggregator 'krum' with f=1 needs 5 clients in a round, found 3"):
        dffl.fit(FEDERATION, "fedavg", aggregate="krum")
    with pytest.raises(
        ValueError, match="aggregator 'krum' with f=0 needs 3 clients in a round, found 2; raise client_fraction"
    ):
        dffl.fit(FEDERATION, "scaffold", aggregate=Krum(0), client_fraction=0.7)
    with pytest.raises(ValueError, match="aggregator 'krum' with f=4 needs 11 clients in a round, found 3"):
        dffl.fit(FEDERATION, "finetune", aggregate=Momentum(inner=ServerAdam(inner=Krum(4))))
    with pytest.raises(ValueError, match="needs 5 clients in a round, found 4"):
        Krum(1).aggregate(ZERO, updates(drawn(0, 4)))


def test_what_is_no_aggregator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown aggregator 'medain'; did you mean 'median'\? \(allowed: .*mean.*\)"):
        Settings(aggregate="medain")
    with pytest.raises(ValueError, match="unknown aggregator 'trimmed_mean'; did you mean 'trimmed-mean'"):
        dffl.fit(FEDERATION, "fedavg", aggregate="trimmed_mean")
    with pytest.raises(ValueError, match="aggregator must be a name or an aggregator object, found 3"):
        Settings(aggregate=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="aggregator must be a name or an aggregator object, found Cosine"):
        Settings(aggregate=Cosine())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown aggregator 'krumm'; did you mean 'krum'"):
        Momentum(inner="krumm")
    with pytest.raises(ValueError, match="unknown schedule 'cosin'; did you mean 'cosine'"):
        ServerAdam(schedule="cosin")


@pytest.mark.parametrize("share", [0.5, 0.7, -0.1, math.nan, True])
def test_a_trimmed_share_must_leave_something(share: float) -> None:
    with pytest.raises(ValueError, match=r"trimmed-mean: share, .* must be in \[0, 0.5\), found"):
        TrimmedMean(share)


@pytest.mark.parametrize("f", [-1, 1.5, True, "1"])
def test_krums_f_must_be_a_whole_number(f: Any) -> None:
    with pytest.raises(ValueError, match=r"krum: f, .* must be a whole number >= 0, found"):
        Krum(f)


@pytest.mark.parametrize("kind", [Cosine, Linear])
@pytest.mark.parametrize("last", [-0.1, math.inf, math.nan])
def test_a_schedule_ends_at_a_factor_of_0_or_more(kind: Any, last: float) -> None:
    with pytest.raises(ValueError, match=rf"{kind.name}: last, .* must be >= 0 and finite, found {last}"):
        kind(last)


def test_a_server_optimisers_numbers_are_checked() -> None:
    for make, message in (
        (lambda: Momentum(rate=0.0), "momentum: rate must be > 0 and finite, found 0.0"),
        (lambda: Momentum(momentum=1.0), r"momentum: momentum must be in \[0, 1\), found 1.0"),
        (lambda: ServerAdam(rate=math.inf), "server-adam: rate must be > 0 and finite, found inf"),
        (lambda: ServerAdam(beta2=1.0), r"server-adam: beta2 must be in \[0, 1\), found 1.0"),
        (lambda: ServerAdam(epsilon=0.0), "server-adam: epsilon must be > 0 and finite, found 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_values_with_other_values_inside_are_equal_by_content_and_read_back() -> None:
    one = Momentum(0.5, inner=TrimmedMean(0.1), schedule=Cosine(0.25))
    assert one == Momentum(0.5, 0.9, TrimmedMean(0.1), Cosine(0.25))
    assert hash(one) == hash(Momentum(0.5, 0.9, TrimmedMean(0.1), Cosine(0.25)))
    assert one != Momentum(0.5, inner=TrimmedMean(0.1), schedule=Linear(0.25))
    for value in (one, Momentum(), ServerAdam(schedule="linear"), ServerAdam(inner=Momentum(2.0)), Krum(2), TrimmedMean()):
        assert rebuilt(json.loads(json.dumps(plain(value)))) == value

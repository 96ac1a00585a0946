"""Constraint or prices: exchanging one of the two on held-out samples tells which makes a shared model lose more."""

from dataclasses import replace

import numpy as np
import pytest

import dffl
from dffl.advice import causes as module
from dffl.advice.causes import NONE, Cell, causes, judge
from dffl.advice.evidence import GUESSED, Evidence, Guesses
from dffl.advice.quick import regressed
from dffl.training import Settings
from tests.federations import mixed

STOPS = {"finetune.epochs": (0, 5), "crossfit.epochs": (0, 5), "local-tuned.epochs": (5, 20, 100)}
TRAINED = {"rounds": 20, "learning_rate": 0.005, "hidden": 16, "folds": 3, "progress": False, **STOPS}
WEIGHTS = np.random.default_rng(0).permutation(np.geomspace(1 / 3, 3, 12))
USUAL, TURNED = (dffl.FractionalKnapsack(one, 0.4 * one.sum()) for one in (WEIGHTS, 1 / WEIGHTS))


def fleet(prices: bool = False, constraint: bool = False) -> dffl.Federation:
    """Four alike and an odd one: its prices move otherwise, its weights are reversed, both, or neither."""
    how = {"clients": 5, "dim": 12, "features": 5, "degree": 2, "noise": 0.3, "samples": 80}
    alike, apart = (list(dffl.synthetic.knapsack(0, eta_obj=eta, **how)) for eta in (0.0, 2.0))
    odd = replace((apart if prices else alike)[-1], name="odd", set=TURNED if constraint else USUAL)
    return dffl.Federation([*(replace(one, set=USUAL) for one in alike[:-1]), odd])


@pytest.mark.parametrize(
    ("odd", "cause", "words"),
    [
        ({"constraint": True}, "constraint", "main cause: your constraint ("),
        ({"prices": True}, "prices", "main cause: your prices ("),
        ({"prices": True, "constraint": True}, "both", "causes: your constraint ("),
        ({}, NONE, None),
    ],
)
def test_trained_models_tell_which_of_the_two_is_odd(odd, cause, words):
    advice = dffl.advise(fleet(**odd), **TRAINED)
    row = advice["odd"]
    assert row["cause"] == cause
    assert (advice.table["cause"][:-1] == NONE).all()
    if words is None:
        assert "make" not in row["reason"]
    else:
        assert row["probability"] <= 0.5
        assert words in row["reason"]


def quick(federation: dffl.Federation, **how) -> list[module.Cause]:
    return causes(federation, regressed(federation, Settings(), 3), "local", **how)


def test_quick_sees_prices_and_says_that_it_sees_no_constraint():
    assert [one.cause for one in quick(fleet(prices=True))] == [NONE] * 4 + ["prices"]
    assert [one.cause for one in quick(fleet())] == [NONE] * 5
    assert quick(fleet(constraint=True))[-1].cause == NONE  # closed-form models are not trained for decisions
    row = dffl.advise(fleet(constraint=True, prices=True), quick=True, folds=3)["odd"]
    assert "main cause: your prices (" in row["reason"]
    assert "a quick answer cannot tell" in row["reason"]


def shaped(federation: dffl.Federation, blind: dict[str, np.ndarray]) -> list[Evidence]:
    """Closed-form models know the costs; the shared model knows them but for what ``blind`` adds at some clients."""
    found = []
    for client in federation:
        shared = client.c_mean + blind.get(client.name, 0.0)
        guesses = Guesses(np.arange(client.n), (np.broadcast_to(client.c.mean(axis=0), client.c.shape), client.c_mean, shared))
        found.append(Evidence(client.name, client.n, np.ones(client.n), guesses=guesses))
    return found


def test_the_cells_are_what_they_are_said_to_be():
    # A shared model that is exact at the others' samples and wrong at the odd one's: prices, whatever its set is.
    federation = fleet(constraint=True)
    wrong = np.random.default_rng(1).normal(size=12) * 10
    evidence = [
        replace(one, local=np.zeros(one.n), federated=np.full(one.n, 0.1) + 0.01 * (np.arange(one.n) % 2))
        for one in shaped(federation, {"odd": wrong})
    ]
    found = causes(federation, evidence, "local")[-1]
    assert found.cause == "prices"
    assert found.share <= 0.25


def cells(
    mine: float, other_sets: float, other_prices: float, theirs: float, noise: float = 0.05, seed: int = 0
) -> list[list[Cell]]:
    rng = np.random.default_rng(seed)

    def made(level: float) -> Cell:
        return Cell(level + noise * rng.normal(size=60), np.ones(60))

    empty = Cell(np.empty(0), np.empty(0))
    return [
        [made(mine), made(other_sets), made(other_sets)],
        [made(other_prices), made(theirs), empty],
        [made(other_prices), empty, made(theirs)],
    ]


@pytest.mark.parametrize(
    ("levels", "cause", "share"),
    [
        ((0.5, 0.1, 0.5, 0.1), "constraint", 1.0),  # gone with the others' constraints, there with their prices
        ((0.5, 0.5, 0.1, 0.1), "prices", 0.0),
        ((0.5, 0.5, 0.5, 0.1), "both", 0.5),  # each of them would do
        ((0.5, 0.1, 0.1, 0.1), "both", 0.5),  # only both together
        ((0.5, 0.3, 0.3, 0.1), "both", 0.5),
        ((0.5, 0.5, 0.5, 0.5), "neither", np.nan),  # the others fare no better
        ((0.1, 0.1, 0.1, 0.5), "neither", np.nan),
    ],
)
def test_four_cells_tell_the_cause(levels, cause, share):
    found = judge(cells(*levels), np.random.default_rng(0))
    assert found.cause == cause
    assert found.share == pytest.approx(share, abs=0.1, nan_ok=True)


def test_noise_makes_it_unclear_and_not_wrong():
    named = [judge(cells(0.5, 0.1, 0.5, 0.1, noise=2.0, seed=k), np.random.default_rng(k)).cause for k in range(40)]
    assert named.count("prices") <= 2
    assert named.count("unclear") + named.count("neither") >= 10


def test_what_forgives_is_measured_by_what_is_at_stake():
    # The others' sets lose a tenth of everything: an excess of a tenth there is as large, and the prices are the cause.
    own = cells(0.5, 0.05, 0.1, 0.01, noise=0.001)
    small = [[own[0][0], *(Cell(one.more, one.stake / 10) for one in own[0][1:])]]
    small += [[row[0], *(Cell(one.more, one.stake / 10) for one in row[1:])] for row in own[1:]]
    assert judge(small, np.random.default_rng(0)).cause == "prices"
    assert judge(own, np.random.default_rng(0)).cause == "both"


def test_sets_on_which_nothing_is_at_stake_tell_nothing():
    free = [[own if k == m == 0 else Cell(0 * own.more, 0 * own.stake) for m, own in enumerate(row)]
            for k, row in enumerate(cells(0.5, 0, 0, 0))]  # fmt: skip
    assert judge(free, np.random.default_rng(0)).cause == "unclear"


def test_a_factor_on_all_prices_changes_nothing():
    members = list(fleet(prices=True))
    dear = dffl.Federation([*members[:-1], replace(members[-1], c=100 * members[-1].c, c_mean=None)])
    assert quick(dear)[-1].share == pytest.approx(quick(fleet(prices=True))[-1].share, abs=1e-6)


@pytest.mark.slow
def test_it_is_deterministic_and_bounded(monkeypatch):
    asked = []
    plain = module.regrets_at_each
    monkeypatch.setattr(module, "regrets_at_each", lambda *args: asked.append(args[0]) or plain(*args))
    federation = fleet(prices=True)
    members = [replace(one, name=f"{one.name}-{k}") for k in range(3) for one in federation[:-1]]
    large = dffl.Federation([federation[-1], *members])
    there, back = quick(large)[0], quick(dffl.Federation([*large][::-1]))[-1]
    assert there.cause == back.cause == "prices"
    assert there.share == pytest.approx(back.share, abs=1e-9)
    assert quick(large)[0] == there
    assert all(len({one.name for one in clients}) <= 1 + module.OTHERS for clients in asked)
    assert all(one.n <= GUESSED for clients in asked for one in clients)


def test_other_senses_are_left_out_and_fits_are_not_examined():
    federation = mixed()
    for one in federation:
        kept = module._others(one, [module._Side(other, None) for other in federation if other is not one])
        assert kept
        assert all(side.client.maximize == one.maximize for side in kept)
    plain = [Evidence(one.name, one.n, np.ones(one.n)) for one in federation]
    assert {one.cause for one in causes(federation, plain, "local_tuned")} == {"not examined"}

"""A thousand wrong messages among honest ones: every selected site has one outcome a round, and only honest updates count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dffl.deploy.ledger import ACCEPTED, DEAD, LATE, read_ledger
from dffl.deploy.messages import encode
from tests.deploy.made import a_plan
from tests.deploy.simulated import SimulatedSite, Stage, mean_of, simulated_time

NAMES = ("a", "b", "c", "d", "e")
Fault = Callable[[SimulatedSite, dict[str, Any]], None]


def with_vector(change: Callable[[np.ndarray], np.ndarray]) -> Fault:
    def fault(site: SimulatedSite, order: dict[str, Any]) -> None:
        site.answer(order, fields={"vector": change(site.update(order)["vector"].copy())})

    return fault


def with_one(value: float) -> Fault:
    def put(vector: np.ndarray) -> np.ndarray:
        vector[len(vector) // 2] = value
        return vector

    return with_vector(put)


def with_answer(**changes: Any) -> Fault:
    return lambda site, order: site.answer(order, **changes)


def with_bytes(change: Callable[[bytes], bytes]) -> Fault:
    def fault(site: SimulatedSite, order: dict[str, Any]) -> None:
        site.network.put(site.name, change(encode("answer", **site.answering(order))), 0.05)

    return fault


def also_fields(**more: np.ndarray) -> Fault:
    return lambda site, order: site.answer(order, fields=site.update(order) | more)


REFUSED: dict[str, Fault] = {
    "NaN": with_one(np.nan),
    "infinity": with_one(np.inf),
    "minus infinity": with_one(-np.inf),
    "too large a number": with_one(1e7),
    "a number too few": with_vector(lambda vector: vector[:-1]),
    "one number": with_vector(lambda vector: vector[:1]),
    "none at all": with_vector(lambda vector: vector[:0]),
    "another shape": with_vector(lambda vector: vector[None]),
    "another type": with_vector(lambda vector: vector.astype(np.float64)),
    "whole numbers": with_vector(lambda vector: vector.astype(np.int32)),
    "no field": with_answer(fields={}),
    "a field more": also_fields(code=np.zeros(3)),
    "another field": with_answer(fields={"vectors": np.zeros(3, np.float32)}),
    "another count": with_answer(count=11_000),
    "a count of 0": with_answer(count=0),
    "a count below 0": with_answer(count=-395),
    "a scalar that the plan does not name": with_answer(scalars={"norm": np.asarray(1.0)}),
    "a scalar that is none": with_answer(scalars={"loss": np.zeros(2)}),
    "a loss of NaN": with_answer(scalars={"loss": np.asarray(np.nan)}),
    "a loss beyond any": with_answer(scalars={"loss": np.asarray(1e300)}),
    "cut short": with_bytes(lambda content: content[: len(content) // 2]),
    "one byte short": with_bytes(lambda content: content[:-1]),
    "one byte more": with_bytes(lambda content: content + b"x"),
    "no bytes": with_bytes(lambda content: b""),
    "other bytes": with_bytes(lambda content: bytes(range(256))),
    "the other direction": with_bytes(lambda content: encode("stop", why="x")),
    "trouble": lambda site, order: site.send("trouble", 0.05, **where(order), why="training diverged at the site"),
    "trouble with data in it": lambda site, order: site.send("trouble", 0.05, **where(order), why="row 7: 12.5"),
}
"""Messages in the place of an answer, for which a site is refused in this round."""


def where(order: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {key: order[key] for key in ("run", "job", "round")} | changes


def before_honest(fault: Fault) -> Fault:
    def both(site: SimulatedSite, order: dict[str, Any]) -> None:
        if site.orders[order["job"], order["round"]] == 1:
            fault(site, order)
        site.answer(order, after=0.2)

    return both


def a_join(**changes: Any) -> Fault:
    """An offer that must be refused; the site that is joined stays joined."""
    return before_honest(lambda site, order: site.join(**changes))


def twice(site: SimulatedSite, order: dict[str, Any]) -> None:
    site.answer(order)
    site.answer(order)
    site.answer(order, after=0.1, fields={"vector": site.update(order)["vector"] + 1})


def not_joined(site: SimulatedSite, order: dict[str, Any]) -> None:
    """It leaves, answers all the same, and joins again: the second order gets an honest answer."""
    if site.orders[order["job"], order["round"]] == 1:
        site.send("leave")
        site.answer(order, after=0.0, fields={"vector": site.update(order)["vector"] + 1})
        site.network.at(0.5, lambda: site.join())
    else:
        site.answer(order)


def joins_again(site: SimulatedSite, order: dict[str, Any]) -> None:
    if site.orders[order["job"], order["round"]] == 1:
        site.join()
    else:
        site.answer(order)


def opens_with(**changes: Any) -> Fault:
    """It says other things of its samples in the middle of a run; these are not taken."""

    def fault(site: SimulatedSite, order: dict[str, Any]) -> None:
        site.send("opened", **{"run": order["run"], "counts": {"0": site.count}, "units": {}} | changes)

    return before_honest(fault)


def unknown(site: SimulatedSite, order: dict[str, Any]) -> None:
    site.network.put("stranger", encode("answer", **site.answering(order)))
    site.network.put("stranger", b"x")


def back_in_time(site: SimulatedSite, order: dict[str, Any]) -> None:
    """It is killed in the round and is back before it counts as dead."""
    if site.orders[order["job"], order["round"]] == 1:
        site.vanish(back=3.0)
    else:
        site.answer(order)


HARMLESS: dict[str, Fault] = {
    "twice": twice,
    "a stale round": before_honest(lambda site, order: site.answer(order, round=order["round"] - 1)),
    "a later round": before_honest(lambda site, order: site.answer(order, round=order["round"] + 1)),
    "another training": before_honest(lambda site, order: site.answer(order, job=7)),
    "a stale run": before_honest(lambda site, order: site.answer(order, run="0123456789ab")),
    "not joined": not_joined,
    "joined twice": joins_again,
    "a second process": a_join(instance="second"),
    "other columns": a_join(columns="others", instance="second"),
    "another plan": a_join(plan="other"),
    "another version": a_join(dffl="0.0.1"),
    "another carrier": a_join(carrier="2.6.0"),
    "other messages": a_join(protocol=99),
    "a clock an hour ahead": a_join(time=1.8e9 + 1e3 + 3600),
    "few rows": a_join(rows=1),
    "rows below 0": a_join(rows=-5),
    "an unknown site": before_honest(unknown),
    "back in time": back_in_time,
    "a done before its time": before_honest(lambda site, order: site.send("done", run="x", scalars={})),
    "other counts": opens_with(counts={"0": 99_999}),
    "counts of 0": opens_with(counts={"0": 0}),
    "no counts": opens_with(counts={}),
    "another run opened": opens_with(run="x"),
}
"""Messages after or before which an honest answer counts."""


def late(site: SimulatedSite, order: dict[str, Any]) -> None:
    site.answer(order, after=site.plan.timeouts.round + 1)


def dead(site: SimulatedSite, order: dict[str, Any]) -> None:
    site.vanish(back=site.plan.timeouts.dead + 1.5)


def paused(site: SimulatedSite, order: dict[str, Any]) -> None:
    """Its connection stands, and nothing comes for a while; then it goes on where it was."""
    site.beats = False
    site.network.at(site.plan.timeouts.dead + 2.5, lambda: setattr(site, "beats", True) or site._beat())


LOST: dict[str, tuple[str, Fault]] = {"late": (LATE, late), "dead": (DEAD, dead), "paused": (DEAD, paused)}


@pytest.mark.parametrize("seed", [0, 1])
def test_wrong_messages_never_reach_the_model(seed: int, tmp_path: Path) -> None:
    rounds = 130
    patience = {"quorum": 0.2, "join_seconds": 20, "round_seconds": 12, "dead_seconds": 6, "quorum_seconds": 60}
    plan = a_plan(NAMES, training={"rounds": rounds, "hidden": 2}, rounds=patience)
    rng = np.random.default_rng(seed)
    made: Counter[str] = Counter()
    expected: dict[tuple[str, int], str] = {}
    chosen: dict[tuple[str, int], Fault] = {}

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        key = (site.name, order["round"])
        if key not in chosen:
            kinds: list[Any] = [(ACCEPTED, name, fault) for name, fault in HARMLESS.items()]
            if site.name != "a":  # one honest site in every round, so that the run goes on
                kinds += [("refused", name, fault) for name, fault in REFUSED.items()]
                kinds += [(outcome, name, fault) for name, (outcome, fault) in LOST.items()] if rng.random() < 0.3 else []
            expected[key], name, chosen[key] = kinds[rng.integers(len(kinds))]
            made[name] += 1
        chosen[key](site, order)

    with simulated_time() as clock:
        stage = Stage.of(plan, clock, behaviour)
        run = stage.train(tmp_path / "run")

    records = read_ledger(tmp_path / "run" / "rounds.jsonl")
    assert [record.round for record in records] == list(range(rounds))
    counts = {name: site.count for name, site in stage.sites.items()}
    shared = [stage.sites["a"].seen[0, number] for number in range(rounds)] + [run.finals[0].shared]
    for number, record in enumerate(records):
        assert sorted(record.outcomes) == sorted(NAMES)
        for name in NAMES:
            # A site that was gone when a round began is dead in it, unless it is back before the round has closed.
            wanted = expected.get((name, number), DEAD)
            assert record.outcomes[name].partition(":")[0] == wanted, (name, number, record.outcomes[name])
        accepted = {name: counts[name] for name in record.accepted}
        wanted_model = mean_of(shared[number], 0, number, accepted)
        np.testing.assert_array_equal(shared[number + 1], wanted_model)
        assert record.scalars == {"loss": 0.5}
    assert sum(made.values()) >= 500
    assert set(made) == {*HARMLESS, *REFUSED, *LOST}


@pytest.mark.parametrize("name", REFUSED)
def test_an_update_that_is_refused_is_named_with_its_reason(name: str, tmp_path: Path) -> None:
    plan = a_plan(rounds={"quorum": 0.3})

    def behaviour(site: SimulatedSite, order: dict[str, Any]) -> None:
        (REFUSED[name] if site.name == "south" else lambda one, what: one.answer(what))(site, order)

    with simulated_time() as clock:
        Stage.of(plan, clock, behaviour).train(tmp_path / "run")
    for record in read_ledger(tmp_path / "run" / "rounds.jsonl"):
        kind, colon, why = record.outcomes.pop("south").partition(": ")
        assert (kind, colon) == ("refused", ": ")
        assert 5 < len(why) < 200
        assert "12.5" not in why
        assert set(record.outcomes.values()) == {ACCEPTED}

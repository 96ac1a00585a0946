"""The three sentences say what the numbers say, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dffl.report import ReportData
from dffl.report.data import Change, Client, Result
from dffl.report.styles import known
from dffl.report.verdict import verdict

STANDINGS = {
    "gain": Change("local-tuned", -0.01, -0.02, -0.005, "better", False, False),
    "harm": Change("local-tuned", 0.02, 0.01, 0.03, "worse", True, True),
    "small": Change("local-tuned", 0.0001, 0.00005, 0.0002, "worse", False, False),
    "luck": Change("local-tuned", 0.02, -0.01, 0.03, "unclear", False, True),
    "unknown": Change("local-tuned", -0.02, None, None, "not judged", None, False),
}
SAME = Change("local-tuned", 0.0, 0.0, 0.0, "reference", False, False)


def report(*kinds: str, unit: str = "", naive: float = 0.5) -> ReportData:
    """Clients of these kinds, named by their place: a, b, c. The own model loses 4 % everywhere."""
    names = "abcdefghijklmnopqrst"[: len(kinds)]
    results = []
    for name, kind in zip(names, kinds, strict=True):
        change = STANDINGS[kind]
        results += [
            Result(name, "mean-cost", naive, None, None, 100 * naive),
            Result(name, "local-tuned", 0.04, None, None, 4.0, {}, (SAME,)),
            Result(name, "crossfit", 0.04 + (change.value or 0), None, None, 4 + 100 * (change.value or 0), {}, (change,)),
        ]
    methods = tuple(known(name) for name in ("mean-cost", "local-tuned", "crossfit"))
    clients = tuple(Client(name, 9, 9, unit=unit) for name in names)
    return ReportData("t", "crossfit", methods, clients, tuple(results), ("local-tuned",), 3)


def said(*kinds: str, **more: object) -> list[str]:
    return [sentence.replace("\u00a0", " ") for sentence in verdict(report(*kinds, **more))]  # type: ignore[arg-type]


def test_all_gain() -> None:
    gain, harm, todo = said("gain", "gain")
    assert gain == (
        "Training together (crossfit) makes significantly better decisions "
        "than the client's own model (local-tuned) at all 2 clients; "
        "on average over clients, decisions lose 3.00 % of the best possible result instead of 4.00 %."
    )
    assert harm == "No client is significantly harmed."
    assert todo == "Use crossfit at every client."


def test_some_gain_and_some_are_harmed() -> None:
    gain, harm, todo = said("gain", "gain", "harm", "luck", "luck")
    assert "makes significantly better decisions than the client's own model (local-tuned) at 2 of 5 clients" in gain
    assert harm == (
        "1 client is significantly harmed, by 2.00 % of the best possible result (c); for 2 clients the interval allows both a "
        "gain and a loss."
    )
    assert todo == "Use crossfit at the 2 clients that gain and keep local-tuned at c; at the other 2 either may serve."


def test_few_verdicts_among_many_clients_may_be_chance() -> None:
    """At 95 %, one of 20 equal clients is said to gain or lose."""
    chance = "By chance alone, about 1 of 20 clients without any difference would seem to gain or lose."
    assert chance in said("gain", "harm", *["luck"] * 18)[1]
    assert "By chance" not in " ".join(said(*["gain"] * 3, *["luck"] * 17) + said("gain", *["luck"] * 4))


def test_where_intervals_allow_both_nothing_is_claimed() -> None:
    gain, harm, todo = said("luck", "luck")
    assert gain.startswith("At no client is it shown that training together (crossfit) makes better decisions")
    assert harm == "No client is significantly harmed; for 2 clients the interval allows both a gain and a loss."
    assert todo.startswith("These numbers give no reason to leave local-tuned")


def test_one_start_judges_nobody() -> None:
    gain, harm, todo = said("unknown", "unknown")
    assert gain.startswith(
        "In this one test, training together (crossfit) loses less than the client's own model (local-tuned) at all 2"
    )
    assert harm.startswith("Whether any client is harmed was not judged")
    assert todo.startswith("Train again with three or more random seeds")


def test_harm_alone_and_harm_within_the_tolerance() -> None:
    assert said("harm", "luck")[2] == "Keep local-tuned: crossfit helps no client here significantly."
    assert "1 client is worse off by no more than 1 % (b)" in said("gain", "small")[1]


def test_money_is_named_where_all_have_one_unit() -> None:
    assert said("gain", "gain", unit="EUR")[0].endswith("instead of 4.00 %, which saves 1.00 EUR per sample.")
    assert said("harm", unit="EUR")[0].endswith(", which costs 2.00 EUR more per sample.")
    mixed = report("gain", "gain", unit="EUR")
    mixed = replace(mixed, clients=(mixed.clients[0], replace(mixed.clients[1], unit="US$")))
    assert "EUR" not in verdict(mixed)[0]


def test_a_simpler_rule_that_beats_both_is_named() -> None:
    assert "a simpler rule" not in said("gain", "harm")[2]
    rule = "a simpler rule (mean-cost) lost less than both in this test"
    told = f"Deploy neither crossfit nor local-tuned yet: at every client {rule}."
    assert said("gain", "harm", naive=0.001)[2] == told
    some = report("gain", "harm")
    cheap = tuple(replace(one, regret=0.0) if (one.client, one.method) == ("b", "mean-cost") else one for one in some.results)
    assert f"but at 1 of 2 clients (b) {rule}" in verdict(replace(some, results=cheap))[2]


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_there_are_always_three_sentences(count: int) -> None:
    for kind in STANDINGS:
        found = said(*[kind] * count)
        assert len(found) == 3
        assert all(sentence.endswith(".") for sentence in found)


def test_without_a_reference_nobody_gains() -> None:
    found = verdict(replace(report("gain"), main="local-tuned"))
    assert "cannot say which clients gain or are harmed" in found[1]

"""A choice in words: what to use, why, and what to expect. The first sentence names the best rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dffl.serial import too_alike
from dffl.time.bases import FORECAST, MEANS, STEADY
from dffl.time.gains import CONFIDENCE
from dffl.time.mixtures import HALF, LIGHT
from dffl.time.outcome import CHOSEN, SAME, too_good

TINY = 1e-9
"""A difference of relative regrets below this is rounding."""
FLEET = "fleet"
"""The reason for a choice: sites whose data stay apart have compared the losses of each rule (`dffl.time.fleet`)."""
CORRECTED = {LIGHT: "a quarter", HALF: "a half"}
CHOSEN_BY = "chosen by what each rule has lost in rows that its models had not seen"
"""Not always the rule that lost least: the usual one stays where the others are not better by more than noise."""
ALMOST_NOTHING = "Your forecast loses almost nothing: is it known before each decision?"
SHOWN = 3
"""The most different rules of clients in a sentence."""


def rule_in_words(rule: str) -> str:
    """A rule at the end of a sentence."""
    if rule in MEANS:
        return f"the moving average of {MEANS[rule]} rows ({rule})"
    if rule in CORRECTED:
        return f"your forecast with {CORRECTED[rule]} of the correction that the models have learned ({rule})"
    return {FORECAST: "your forecast", STEADY: "the steady moving average (steady)"}.get(rule, rule)


def keep_or_use(rule: str) -> str:
    """What to do, as the beginning of a sentence."""
    if rule == FORECAST:
        return "Keep your forecast"
    return f"{'Keep to' if rule in MEANS or rule == STEADY else 'Use'} {rule_in_words(rule)}"


def said(
    evidence: Mapping[str, Any], rules: Mapping[str, str], others: Mapping[str, float] | None = None, expected: bool = True
) -> str:
    """What was chosen, why, and its ``expected`` loss.

    ``others``: the mean regrets on the test rows of methods that were fitted once and were not candidates.
    """
    means = {rule: np.nan if value is None else float(value) for rule, value in evidence["means"]}
    parts = [_winner(evidence, rules, means)]
    if expected and evidence["why"] != "simple":
        parts.append(_expected(evidence, means))
    parts += [ALMOST_NOTHING] if too_good(means) else []
    main_rule = next(iter(rules.values())) if evidence["why"] == "simple" else CHOSEN
    return " ".join([*_better(others or {}, means[main_rule]), *parts, _ranges(evidence)]).strip()


def _better(others: Mapping[str, float], chosen: float) -> list[str]:
    """Name the best method if it was not a candidate."""
    best = min(others, key=lambda name: others[name], default=None)
    if best is None or not others[best] < chosen - TINY:
        return []
    what = f"{best} loses least on the test rows ({_percent(others[best])}), fitted once on the rows before"
    return [f'{what}: to deploy it, write method = "{best}". Among the rules over time:']


def _winner(evidence: Mapping[str, Any], rules: Mapping[str, str], means: Mapping[str, float]) -> str:
    names = list(dict.fromkeys(rules.values()))
    if evidence["why"] == FLEET:
        return f"{keep_or_use(names[0])}, the choice of all sites together, by the median of what each says of its own rows."
    if evidence["why"] == "simple":
        [rule] = names
        lost = f"it loses {_percent(means[rule])} on the test rows"
        others = f"{lost}; choosing among all rules again at each refit, also trained ones, loses {_percent(means[CHOSEN])}"
        return f"{keep_or_use(rule)}: {others}."
    if len(names) == 1:
        return f"{keep_or_use(names[0])}: {CHOSEN_BY}."
    some = ", ".join(f"{rule} at {sum(chosen == rule for chosen in rules.values())} clients" for rule in names[:SHOWN])
    return f"Use the rule of each client ({some}{', ...' if len(names) > SHOWN else ''}): {CHOSEN_BY}."


def _expected(evidence: Mapping[str, Any], means: Mapping[str, float]) -> str:
    """The loss of these decisions, compared with what the user has without them."""
    reference = evidence["reference"]
    against = f"{rule_in_words(reference)} ({_percent(means[reference])})"
    rows = f"on the {evidence['rows']} test rows from {evidence['from']} on, each decided with what was known before it"
    how = "Chosen like this, again at each refit, decisions"
    how = "In hindsight, your decisions by it" if evidence["why"] == FLEET else how
    lost = f"{how} lost {_percent(means[CHOSEN])} {rows}"
    if not np.isfinite(means[CHOSEN]):
        return "The best possible objective of all clients is zero on the test rows: no relative regret can be given."
    value, low, high = evidence["gain"]
    if value is None or abs(value) < SAME:
        return f"{lost}, about as much as {against}."
    change = f"{abs(value):.1%} {'less' if value >= 0 else 'more'} than {against}"
    if low is None:
        few = too_alike(evidence["independent"]) if evidence.get("independent") else "that is too few rows"
        return f"{lost}: {change}. How sure this is, one cannot tell: {few}."
    ends = f"{CONFIDENCE:.0%} range: {_signed(low)} to {_signed(high)}"
    unsure = "; it may be noise" if low <= 0 <= high else ""
    return f"{lost}: {change} ({ends} less{unsure})."


def _ranges(evidence: Mapping[str, Any]) -> str:
    shares = [value for value in evidence["inside"].values() if value is not None]
    return f"Ranges of {evidence['share']:.0%} held {np.mean(shares):.0%} of the costs." if shares else ""


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f} %".replace("+", "")

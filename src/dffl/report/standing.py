"""The standing of each client under the main method: gains, harmed, or unclear."""

from __future__ import annotations

from dataclasses import dataclass

from dffl.report.data import Change, Client, ReportData, Result

GAINS, HARMED, WORSE, UNCLEAR, UNJUDGED = "gains", "harmed", "slightly worse", "unclear", "not judged"
MARKS = {GAINS: "\u2713", HARMED: "\u2717", WORSE: "\u2198", UNCLEAR: "?", UNJUDGED: "\u2013"}
"""A sign next to each word, so that colour is not the only cue."""


def standing_of(change: Change | None) -> str:
    """The verdict on a change, in one or two words."""
    if change is None or change.verdict in ("not judged", "reference"):
        return UNJUDGED
    if change.harmed:
        return HARMED
    return {"better": GAINS, "worse": WORSE}.get(change.verdict, UNCLEAR)


@dataclass(frozen=True)
class Standing:
    """One client under the main method, compared with its own model and the best naive rule."""

    client: Client
    main: Result | None
    own: Result | None
    naive: Result | None
    """The naive rule with the smallest loss on the test samples. It is chosen in hindsight, so its result is slightly too good.
    """
    change: Change | None

    @property
    def word(self) -> str:
        """gains, harmed, slightly worse, unclear or not judged."""
        return standing_of(self.change)

    @property
    def saved(self) -> float | None:
        """The saving per sample against the client's own model, in its units; negative for a loss."""
        if self.main is None or self.own is None or self.main.lost is None or self.own.lost is None:
            return None
        return self.own.lost - self.main.lost

    @property
    def naive_wins(self) -> bool:
        """Whether a rule without training loses less than the main method and the client's own model."""
        return _regret(self.naive) < min(_regret(self.main), _regret(self.own))


def standings(data: ReportData) -> list[Standing]:
    """All clients, in the order of the data."""
    naive = [method.name for method in data.methods if method.kind == "naive"]
    rows = []
    for client in data.clients:
        results = (data.result(client.name, name) for name in naive)
        rules = [result for result in results if result is not None and result.regret is not None]
        alone = None if data.reference is None else data.result(client.name, data.reference)
        change = data.change(client.name, data.main, data.reference)
        rows.append(Standing(client, data.result(client.name, data.main), alone, min(rules, key=_regret, default=None), change))
    return rows


def _regret(result: Result | None) -> float:
    return float("inf") if result is None or result.regret is None else result.regret

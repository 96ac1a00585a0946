"""Methods as a report shows them: in the order of their kinds, with their words and colours."""

from __future__ import annotations

from dffl.report.colours import on_both
from dffl.report.data import Method
from dffl.time.bases import MEANS, STEADY
from dffl.time.outcome import CHOSEN
from dffl.training.methods import METHODS, colour_of
from dffl.training.methods.registry import KINDS

ORDER: tuple[str, ...] = KINDS
OVER_TIME = {
    **{rule: ("naive", f"the mean of the last {count} rows", "#C9B37E") for rule, count in MEANS.items()},
    STEADY: ("naive", "a moving average in which an extreme row counts no more than others", "#B0A070"),
    CHOSEN: ("together", "the rule that lost least lately, chosen again at each refit", "#117733"),
}
"""Rules over time, which are no methods: their kind, words and colour."""


def known(title: str) -> Method:
    """A method by its title, which may end in options: ``ditto(pull=0.1)``."""
    name = title.partition("(")[0]
    if name in OVER_TIME:
        kind, words, colour = OVER_TIME[name]
        return Method(title, kind, words, on_both(colour))
    method = METHODS.get(name)
    kind, words = ("together", name) if method is None else (method.kind, method.words)
    return Method(title, kind, words, on_both(colour_of(name)))

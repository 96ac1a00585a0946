"""Methods as a report shows them: in the order of their kinds, with their words and colours."""

from __future__ import annotations

from dffl.report.colours import on_both
from dffl.report.data import Method
from dffl.training.methods import METHODS, colour_of
from dffl.training.methods.registry import KINDS

ORDER: tuple[str, ...] = KINDS


def known(title: str) -> Method:
    """A method by its title, which may end in options: ``ditto(pull=0.1)``."""
    name = title.partition("(")[0]
    method = METHODS.get(name)
    kind, words = ("together", name) if method is None else (method.kind, method.words)
    return Method(title, kind, words, on_both(colour_of(name)))

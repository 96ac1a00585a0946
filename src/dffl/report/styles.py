"""The style of methods in a report: the order of their kinds, their words, and colours for light and dark pages.

The hue of a method is kept, and its brightness is moved to the middle.
"""

from __future__ import annotations

from dffl.report.data import Method
from dffl.time.bases import MEANS, STEADY
from dffl.time.outcome import CHOSEN
from dffl.training.methods import METHODS, colour_of
from dffl.training.methods.registry import KINDS

LEAST, MOST = 0.14, 0.29
"""Luminances with a contrast of at least 3 to 1 against both backgrounds, as accessibility guidelines require for graphics."""


def on_both(colour: str) -> str:
    """The nearest mix of a colour (#rrggbb) with white or black that is neither too dark nor too pale."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    for step in range(101):
        for end, wanted in ((1.0, luminance(parts) < LEAST), (0.0, luminance(parts) > MOST)):
            mixed = [part + (end - part) * step / 100 for part in parts]
            if wanted and LEAST <= luminance(mixed) <= MOST:
                return "#" + "".join(f"{round(255 * part):02x}" for part in mixed)
    return colour.lower()


def luminance(parts: list[float]) -> float:
    """The relative luminance of a colour in sRGB."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


ORDER: tuple[str, ...] = KINDS
OVER_TIME = {
    **{rule: ("naive", f"the mean of the last {count} rows", "#C9B37E") for rule, count in MEANS.items()},
    STEADY: ("naive", "a moving average in which an extreme row counts no more than others", "#B0A070"),
    CHOSEN: ("together", "the rule that lost least lately, chosen again at each refit", "#117733"),
}
"""Rules over time, which are not methods: their kind, words and colour."""


def known(title: str) -> Method:
    """A method by its title, which may end in options: ``ditto(pull=0.1)``."""
    name = title.partition("(")[0]
    if name in OVER_TIME:
        kind, words, colour = OVER_TIME[name]
        return Method(title, kind, words, on_both(colour))
    method = METHODS.get(name)
    kind, words = ("together", name) if method is None else (method.kind, method.words)
    return Method(title, kind, words, on_both(colour_of(name)))

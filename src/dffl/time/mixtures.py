"""The rules that follow from trained methods: each alone, averages of several, and averages with the base.

Averages are safer than their parts: an average with the base changes the base less, and the errors of two networks differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from dffl.time.bases import FORECAST

MIX = "mix"
"""The mean of all trained methods and of the base."""
LIGHT, HALF = "mix-25", "mix-50"
"""Where clients bring a forecast: a quarter, or a half, of the mean correction that all trained methods make of it."""


def mixtures(trained: Sequence[str], base: str, own: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    """Each rule, and the methods (and base) that it is the mean of: methods first, then their averages.

    - ``trained``: methods that correct the base. Of a forecast there are lighter corrections too.
    - ``own``: models that see a client's own features; each is also averaged with another one, with the base, and with all the
      methods that correct the base.
    """
    rules: dict[str, tuple[str, ...]] = {label: (label,) for label in own}
    several = [*combinations(own, 2), *((label, base) for label in own), *((*trained, label) for label in own if trained)]
    rules |= {"+".join(parts): parts for parts in several}
    rules |= {label: (label,) for label in trained}
    rules |= {f"{label}+{base}": (label, base) for label in trained}
    if len(trained) > 1:
        rules |= {"+".join(trained): tuple(trained), MIX: (*trained, base)}
    if trained and base == FORECAST:
        rules[LIGHT] = (*trained, *[base] * (3 * len(trained)))
        rules |= {HALF: (*trained, *[base] * len(trained))} if len(trained) > 1 else {}
    return rules


def usual_rule(trained: Sequence[str], base: str, brought: bool = False) -> str:
    """The usual rule of clients, unless another one is clearly better: the average of all methods that correct the base.

    If they have ``brought`` a forecast, it is this forecast.
    """
    if brought or not trained:
        return base
    return MIX if len(trained) > 1 else f"{trained[0]}+{base}"


def mixed(parts: Sequence[str], tables: Mapping[str, Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The mean of the predictions of these parts, for each client."""
    if len(parts) == 1:
        return list(tables[parts[0]])
    return [np.mean(np.stack(each), axis=0) for each in zip(*(tables[part] for part in parts), strict=True)]

"""What a noise is worth: epsilon, from Google's accountant (`dp-accounting`, extra ``privacy``).

All releases are Gaussian mechanisms, and as many compose to one: ``uses`` sums with noise s are worth as much as one with
s / sqrt(uses). Sampling of clients and of minibatches is not counted in favour: it is not Poisson, and who is sampled follows
from the seed of the plan, which is no secret. What is counted is how often a client, or a sample, really is in a sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dffl.checks import require_number, require_whole
from dffl.training.privacy.levels import Privacy

DELTA = 1e-5


@dataclass(frozen=True)
class Spending:
    """The releases of a fit: a privacy setting, and how often the protected data were used in each training."""

    privacy: Privacy
    trainings: Mapping[str, int]
    uses: int
    """How often at most one client, or one sample, was used in all of them together."""

    def as_json(self) -> dict[str, Any]:
        """The values in a saved fit."""
        return {"level": self.privacy.name, **vars(self.privacy), "uses": self.uses, "trainings": dict(self.trainings)}

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Spending:
        """The inverse of `as_json`."""
        fields_saved = {name: value for name, value in saved.items() if name not in ("uses", "trainings")}
        return cls(Privacy.of(fields_saved), dict(saved["trainings"]), int(saved["uses"]))

    def epsilon(self, delta: float = DELTA, *others: Spending) -> float:
        """Epsilon at this delta of all these fits together, if they are of the same clients' data."""
        return _epsilon(sum(spending.squared for spending in (self, *others)), delta)

    @property
    def squared(self) -> float:
        """The squared distance of the two cases, in standard deviations: it adds up over releases."""
        ratio = self.privacy.sensitivity / self.privacy.noise if self.privacy.noise else math.inf
        return self.uses * ratio**2 if self.uses else 0.0


def epsilon_of(privacy: Any, uses: int, delta: float = DELTA) -> float:
    """Epsilon of a privacy setting whose noise was added ``uses`` times; infinite without noise."""
    require_whole("uses", uses, least=0)
    return Spending(Privacy.of(privacy), {}, uses).epsilon(delta)


def noise_for(epsilon: float, privacy: Any, uses: int, delta: float = DELTA) -> float:
    """The smallest noise with which ``uses`` uses have at most this epsilon. The noise of ``privacy`` does not matter."""
    require_number("epsilon", epsilon, 0.0, math.inf, "> 0 and finite")
    require_number("delta", delta, 0.0, 1.0, "in (0, 1)")
    require_whole("uses", uses, least=1)
    sigma = float(accountant().get_sigma_gaussian(float(epsilon), delta))
    return sigma * Privacy.of(privacy).sensitivity * math.sqrt(uses)


def most_uses(folds: Sequence[tuple[int, int, int]], others: Sequence[int]) -> int:
    """How often at most one sample is used: ``folds`` holds (number, count, uses) of trainings that leave a fold out.

    A sample is in all folds but the one that holds it out; in the others, as in all of ``others``, it may always be.
    """
    total = sum(others) + sum(uses for _, _, uses in folds)
    for count in {fold[1] for fold in folds}:
        by_number = {number: uses for number, of, uses in folds if of == count}
        if len(by_number) == count:
            total -= min(by_number.values())
    return total


def _epsilon(squared: float, delta: float) -> float:
    require_number("delta", delta, 0.0, 1.0, "in (0, 1)")
    if squared == 0:
        return 0.0
    return math.inf if squared == math.inf else float(accountant().get_epsilon_gaussian(1 / math.sqrt(squared), delta))


def accountant() -> Any:
    """The library that computes epsilon."""
    try:
        import dp_accounting
    except ImportError:
        raise ValueError("epsilon needs the extra: pip install 'dffl[privacy]'") from None
    return dp_accounting

"""What sites that are apart must agree on before they train together: the features and costs, by name and order."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from dffl.federation import Client

VERSION = 1


@dataclass(frozen=True)
class Agreement:
    """The columns that a site's rows have after encoding. It holds names and categories, and nothing of any row."""

    features: tuple[str, ...]
    costs: tuple[str, ...]
    forecast: bool = False
    """Whether the last features are a forecast of the costs, in their order."""

    @classmethod
    def of(cls, client: Client) -> Agreement:
        """The columns of a client."""
        return cls(tuple(client.feature_names or ()), tuple(client.cost_names or ()), client.forecast is not None)

    @property
    def digest(self) -> str:
        """The same text at two sites means the same columns in the same order."""
        plain = {"version": VERSION, "features": list(self.features), "costs": list(self.costs)}
        plain |= {"forecast": True} if self.forecast else {}
        return hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=True).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """For messages and programs."""
        pairs = dict(zip(self.costs, self.features[-len(self.costs) :], strict=False)) if self.forecast else None
        return {
            "features": list(self.features), "costs": list(self.costs), "forecast": pairs, "dim": len(self.costs),
            "digest": self.digest,
        }  # fmt: skip

    def difference(self, other: Agreement) -> str | None:
        """How another site's columns differ from these, in one line; nothing where they are the same."""
        for what, mine, theirs in (("features", self.features, other.features), ("costs", self.costs, other.costs)):
            if mine == theirs:
                continue
            if lacking := [name for name in mine if name not in theirs]:
                return f"{what}: it lacks {lacking[0]!r}" + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else "")
            if more := [name for name in theirs if name not in mine]:
                return f"{what}: it has {more[0]!r} too" + (f" and {len(more) - 1} more" if len(more) > 1 else "")
            place = next(place for place, name in enumerate(mine) if theirs[place] != name)
            return f"{what}: another order: {theirs[place]!r} where {mine[place]!r} is expected"
        if self.forecast != other.forecast:
            return "forecast: it has none" if self.forecast else "forecast: it has one"
        return None

"""What sites that are apart must agree on before they train together: the features and costs, by name and order."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

VERSION = 1


@dataclass(frozen=True)
class Agreement:
    """The columns that a site's rows have after encoding. It holds names and categories, and nothing of any row."""

    features: tuple[str, ...]
    costs: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The same text at two sites means the same columns in the same order."""
        plain = {"version": VERSION, "features": list(self.features), "costs": list(self.costs)}
        return hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=True).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """For messages and programs."""
        return {"features": list(self.features), "costs": list(self.costs), "dim": len(self.costs), "digest": self.digest}

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
        return None

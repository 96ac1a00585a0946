"""The loop engine: one client after the other, in the same programs and with the same numbers. For debugging."""

from __future__ import annotations

from typing import Any

from dffl.training.engines.vector import VectorEngine


class LoopEngine(VectorEngine):
    """Visits one client at a time; the other places of its block are idle. What a deployed site runs."""

    def _shape(self, place: int) -> Any:
        return place

"""What the tests of sets share."""

from __future__ import annotations

import pytest

from dffl.sets import FeasibleSet


@pytest.fixture(autouse=True)
def own_families_stay_in_their_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that a test defines is no family of the package."""
    monkeypatch.setattr(FeasibleSet, "families", dict(FeasibleSet.families))

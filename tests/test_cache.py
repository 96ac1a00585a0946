"""Compiled programs are freed before a process holds too many memory maps, and to the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

import dffl
from dffl import cache
from dffl.batched import solve_each
from tests.federations import client

pytestmark = pytest.mark.skipif(not cache.MAPS.exists(), reason="memory maps are counted on Linux")


@pytest.fixture
def freed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often programs were freed, with a look before every computation. They are compiled again, not read from disk."""
    times, forget = [], jax.clear_caches
    keep_on_disk(False)
    monkeypatch.setattr(jax, "clear_caches", lambda: times.append(0) or forget())
    monkeypatch.setattr(cache, "PAUSE", 0.0)
    monkeypatch.setattr(cache._Looks, "others", 0)
    yield times
    keep_on_disk(True)


def keep_on_disk(wanted: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", wanted)
    compilation_cache.reset_cache()  # JAX asks for the setting once


def test_programs_are_freed_before_the_limit_and_answers_stay(freed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFFL_MOST_MAPS", "1000000")
    sets = [dffl.Box(np.zeros(d), np.ones(d)) for d in range(2, 10)]
    costs = [np.linspace(-1, 1, 3 * s.dim).reshape(3, s.dim) for s in sets]
    before = [solve_each([s], [c])[0] for s, c in zip(sets, costs, strict=True)]
    assert not freed
    held = cache._maps()
    monkeypatch.setenv("DFFL_MOST_MAPS", str(int(held / cache.SHARE) - 2))
    after = [solve_each([s], [c])[0] for s, c in zip(sets, costs, strict=True)]
    assert freed, "there were more than half of the allowed maps"
    assert len(freed) < len(sets), "not before each of them: freeing has made room"
    assert cache._Looks.others < held, "what was left then"
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_a_fit_whose_programs_are_freed_all_the_time_has_the_same_bits(
    freed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fed = dffl.Federation([client("a", dffl.TopK(5, 2)), client("b", dffl.TopK(5, 2))])
    small = {"rounds": 2, "local_epochs": 1, "hidden": 3, "loss": "mse", "progress": False}
    monkeypatch.setenv("DFFL_MOST_MAPS", "1000000")
    whole = dffl.fit(fed, "fedavg", **small)  # type: ignore[arg-type]
    monkeypatch.setattr(cache, "_maps", lambda: 2_000_000)
    monkeypatch.setattr(cache._Looks, "others", property(lambda self: 0, lambda self, value: None))
    monkeypatch.setattr(cache, "_Looks", cache._Looks())
    again = dffl.fit(fed, "fedavg", **small)  # type: ignore[arg-type]
    assert len(freed) >= 2, "before each round"
    np.testing.assert_array_equal(again.predict("a", fed[0].x), whole.predict("a", fed[0].x))
    assert again.shared is not None


def test_nothing_is_freed_inside_of_a_traced_computation(freed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFFL_MOST_MAPS", "2")
    s, constant = dffl.Box(np.zeros(3), np.ones(3)), np.arange(3.0)
    jax.jit(lambda x: s.solve(x) + s.solve(constant))(np.ones(3))
    assert not freed
    s.solve(constant)
    assert freed


def test_maps_that_are_not_of_programs_do_not_make_it_free_for_ever(freed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFFL_MOST_MAPS", "1000")
    monkeypatch.setattr(cache, "_maps", lambda: 800)
    for _ in range(5):
        cache.free_programs_in_time()
    assert len(freed) == 1


def test_the_limit_is_that_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DFFL_MOST_MAPS", raising=False)
    (tmp_path / "most").write_text("1234\n")
    monkeypatch.setattr(cache, "MOST_MAPS", tmp_path / "most")
    assert cache._most_maps() == 1234
    monkeypatch.setattr(cache, "MOST_MAPS", tmp_path / "nothing")
    assert cache._most_maps() == 65_530

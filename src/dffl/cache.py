"""Compiled programs: kept on disk between runs, and freed before a process holds too many.

Linux gives a process some 65,000 memory maps (vm.max_map_count). Every compiled program takes a few and keeps them; where no
more are left, XLA ends the process with a segmentation fault. So dffl looks how many there are between its computations, and
lets JAX forget its programs in time. A program that is needed again is compiled again, to the same bits.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp

MAPS, MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
USUAL_MOST = 65_530
SHARE = 0.5
"""The share of the allowed maps at which programs are freed: the rest is for what is compiled until the next look."""
PAUSE = 0.5
"""Seconds between two looks, in which some hundred programs can be compiled at most; to count 30,000 maps takes 0.03."""


class _Looks:
    """When this process looked last, and how many maps are not those of programs."""

    last = 0.0
    others = 0


def free_programs_in_time() -> None:
    """Free all compiled programs if this process holds many memory maps. Not inside of a computation that JAX traces."""
    if time.monotonic() < _Looks.last + PAUSE or not MAPS.exists():
        return
    _Looks.last = time.monotonic()
    most = _most_maps()
    # Where others hold most of them, to free programs again and again would be of no use.
    if _maps() > max(SHARE * most, (_Looks.others + most) / 2) and not isinstance(jnp.zeros(()), jax.core.Tracer):
        jax.clear_caches()
        _Looks.others = _maps()


def _maps() -> int:
    return MAPS.read_bytes().count(b"\n")


def _most_maps() -> int:
    """The maps that a process may have; ``DFFL_MOST_MAPS`` says fewer, for tests."""
    wanted = os.environ.get("DFFL_MOST_MAPS", "")
    if wanted.isdigit():
        return int(wanted)
    try:
        return int(MOST_MAPS.read_text())
    except (OSError, ValueError):
        return USUAL_MOST


def user_cache() -> Path:
    """The user's cache folder for everything of ours."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "dffl"


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs in the user's cache folder, unless the user has chosen otherwise.

    ``DFFL_CACHE_DIR`` names another folder, or is ``off``. A cache directory that JAX has already been given is left alone.
    Programs that call back to the host, as those with polytopes do, cannot be kept.
    """
    wanted = os.environ.get("DFFL_CACHE_DIR", "")
    chosen: str | None = getattr(jax.config, "jax_compilation_cache_dir", None)
    if chosen is not None or wanted == "off":
        return
    folder = Path(wanted) if wanted else user_cache() / "programs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home is no reason not to train
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)

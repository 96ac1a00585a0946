"""Compiled programs: kept on disk between runs, and freed before a process has too many.

Linux allows a process about 65,000 memory maps (vm.max_map_count). Every compiled program takes some and keeps them. If none
are left, XLA ends the process with a segmentation fault. So dffl counts them between computations, and lets JAX free its
programs in time. A program that is needed again is compiled again, to the same bits.
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
"""The share of the allowed maps at which programs are freed. The rest is for programs compiled before the next check."""
PAUSE = 0.5
"""Seconds between two checks. About a hundred programs can be compiled in this time; counting 30,000 maps takes 0.03 s."""


class _Looks:
    """The time of the last check, and the number of maps that do not belong to programs."""

    last = 0.0
    others = 0


def free_programs_in_time() -> None:
    """Free all compiled programs if this process has many memory maps. Not to be called in a computation that JAX traces."""
    if time.monotonic() < _Looks.last + PAUSE or not MAPS.exists():
        return
    _Looks.last = time.monotonic()
    most = _most_maps()
    # If others hold most of the maps, freeing programs again and again does not help.
    if _maps() > max(SHARE * most, (_Looks.others + most) / 2) and not isinstance(jnp.zeros(()), jax.core.Tracer):
        jax.clear_caches()
        _Looks.others = _maps()


def _maps() -> int:
    return MAPS.read_bytes().count(b"\n")


def _most_maps() -> int:
    """The number of maps that a process may have. ``DFFL_MOST_MAPS`` sets a smaller one, for tests."""
    wanted = os.environ.get("DFFL_MOST_MAPS", "")
    if wanted.isdigit():
        return int(wanted)
    try:
        return int(MOST_MAPS.read_text())
    except (OSError, ValueError):
        return USUAL_MOST


def user_cache() -> Path:
    """The cache folder of dffl for this user."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "dffl"


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs in the user's cache folder, unless the user has chosen another one.

    ``DFFL_CACHE_DIR`` names another folder, or is ``off``. A cache folder that JAX already has is not changed. Programs that
    call back to the host, such as those with polytopes, cannot be kept.
    """
    wanted = os.environ.get("DFFL_CACHE_DIR", "")
    chosen: str | None = getattr(jax.config, "jax_compilation_cache_dir", None)
    if chosen is not None or wanted == "off":
        return
    folder = Path(wanted) if wanted else user_cache() / "programs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # training works without the cache, for example with a read-only home
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)

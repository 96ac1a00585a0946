"""Compiled programs kept on disk between runs."""

from __future__ import annotations

import os
from pathlib import Path

import jax


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

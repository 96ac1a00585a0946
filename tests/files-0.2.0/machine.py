"""Which machine this is, as far as the bits of computed numbers depend on it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jax
import numpy as np


def machine() -> dict[str, str]:
    """What the bits of computed numbers depend on, besides dffl."""
    cpu = Path("/proc/cpuinfo")
    flags = next((line for line in cpu.read_text().splitlines() if line.startswith("flags")), "") if cpu.exists() else ""
    return {"jax": jax.__version__, "numpy": np.__version__, "flags": hashlib.sha256(flags.encode()).hexdigest()[:16]}

"""An environment for each peer: packages of one need not fit those of another, nor ours.

They are made once, in ``~/.cache/dffl-peers`` (or where DFFL_PEERS_DIR says), with exact versions, so that a figure names what
it measured. Each holds NumPy and the peer; dffl is not in it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

TORCH = "torch==2.13.0"
ENVIRONMENTS = {
    "pyepo": ("pyepo==2.2.7", "ortools==9.15.6755", "pyomo==6.10.1", TORCH),
    "pytorch": (TORCH, "numpy>=2"),
    "flower": ("flwr[simulation]==1.41.0", TORCH),
    "fedjax": ("fedjax==0.0.17", "dm-haiku==0.0.12", "jax==0.4.30", "jaxlib==0.4.30", "scipy<1.14"),
}
"""By module of this folder."""


def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, which is made where it is missing; OSError says why it cannot be."""
    wanted = ENVIRONMENTS[peer]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.blake2b(repr((version, wanted)).encode(), digest_size=4).hexdigest()
    folder = _home() / f"{peer}-{digest}"
    interpreter = folder / "bin/python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _called(sys.executable, "-m", "venv", str(folder))
        _called(str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
        (folder / "complete").touch()
    return str(interpreter)


def _home() -> Path:
    return Path(os.environ.get("DFFL_PEERS_DIR") or Path.home() / ".cache/dffl-peers")


def _called(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise OSError(f"cannot be installed: {(said or ['pip failed'])[-1][:200]}")

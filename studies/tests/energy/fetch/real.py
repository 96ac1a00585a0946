"""The folder of real files, for tests that need them."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("DFFL_ENERGY_DATA", ""))
needs_real_files = pytest.mark.skipif(
    "DFFL_ENERGY_DATA" not in os.environ, reason="DFFL_ENERGY_DATA does not name the folder of real prices and weather"
)

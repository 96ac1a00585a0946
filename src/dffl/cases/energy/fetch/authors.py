"""The panel that the paper's authors publish: a row a zone and day, prices and covariates together."""

from __future__ import annotations

from pathlib import Path

from dffl.cases.energy.fetch.download import Cache
from dffl.cases.energy.fetch.open_meteo_days import COVARIATES

BASE = "https://raw.githubusercontent.com/kziliask/RSPO_Plus"
FILE = "src/data/exp3/pjm_data.csv"
COLUMNS = (
    "client_id",
    "date",
    *(f"{name}_{hour}" for name in ("total_lmp", "congestion") for hour in range(24)),
    *COVARIATES,
    "day_of_week",
    "bess",
    "client_name",
)
"""What the file must have. ``bess`` is the hours that a zone buys a day."""


def fetch_panel(cache: Cache, branch: str = "main", base: str | None = None, sha256: str | None = None) -> Path:
    """The authors' file in the cache, its header checked. ``branch`` may be a tag or a commit; a commit stays as it is."""
    name = "pjm_data.csv" if branch == "main" else f"pjm_data_{branch.replace('/', '_')}.csv"
    path = cache.fetch(f"{base or BASE}/{branch}/{FILE}", name, sha256=sha256, progress=cache.progress)
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = [name.strip().strip('"') for name in file.readline().split(",")]
    if missing := [name for name in COLUMNS if name not in header]:
        raise ValueError(f"{path}: is not the authors' panel (no column {', '.join(missing[:5])}); remove it and run again")
    return path

"""Panels of electricity markets as a source of `dffl advise` and `dffl bounds` (entry point `dffl.sources`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dffl.cli.sources import FederationSource
from dffl_studies.energy import data
from dffl_studies.energy.data.folder import panel_files


def files(path: Path) -> list[Path]:
    """The files that `load` reads."""
    return panel_files(path)


def load(path: Path, without: Sequence[str] = ()) -> FederationSource:
    """The zones of a panel, ``without`` some, as a federation in the order of time."""
    federation = data.federation(data.open_panel(path, without))
    return FederationSource(federation, f"{len(federation)} zones of {path}", True)

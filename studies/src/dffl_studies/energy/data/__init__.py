"""Zones of an electricity market as clients: each buys some of the next 24 hours at the least cost."""

from dffl_studies.energy.data.clients import Sampling, federation
from dffl_studies.energy.data.example import example_panel
from dffl_studies.energy.data.folder import digest, open_panel
from dffl_studies.energy.data.hourly import build_panel
from dffl_studies.energy.data.panel import HOURS, Panel
from dffl_studies.energy.data.reading import read_panel

__all__ = ["HOURS", "Panel", "Sampling", "build_panel", "digest", "example_panel", "federation", "open_panel", "read_panel"]

"""Zones of an electricity market as clients: each buys some of the next 24 hours at the least cost."""

from dffl.cases.energy.data.clients import Sampling, federation
from dffl.cases.energy.data.example import example_panel
from dffl.cases.energy.data.folder import digest, open_panel
from dffl.cases.energy.data.hourly import build_panel
from dffl.cases.energy.data.panel import HOURS, Panel
from dffl.cases.energy.data.reading import read_panel

__all__ = ["HOURS", "Panel", "Sampling", "build_panel", "digest", "example_panel", "federation", "open_panel", "read_panel"]

"""Zones of an electricity market as clients: each buys some of the next 24 hours at the least cost."""

from dffl.data.energy.clients import Recipe, federation
from dffl.data.energy.example import example_panel
from dffl.data.energy.folder import digest, open_panel
from dffl.data.energy.hourly import build_panel
from dffl.data.energy.panel import HOURS, Panel
from dffl.data.energy.reading import read_panel

__all__ = ["HOURS", "Panel", "Recipe", "build_panel", "digest", "example_panel", "federation", "open_panel", "read_panel"]

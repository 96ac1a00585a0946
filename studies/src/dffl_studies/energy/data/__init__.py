"""Zones of an electricity market as clients: each decides for the periods of the next day."""

from dffl_studies.energy.data.clients import Sampling, federation
from dffl_studies.energy.data.example import example_panel
from dffl_studies.energy.data.folder import digest, open_panel
from dffl_studies.energy.data.hourly import build_panel
from dffl_studies.energy.data.panel import HOURS, Panel
from dffl_studies.energy.data.reading import read_panel

__all__ = ["HOURS", "Panel", "Sampling", "build_panel", "digest", "example_panel", "federation", "open_panel", "read_panel"]

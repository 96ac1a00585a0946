"""Aggregators: one file for each. A file that is put here is found."""

from dffl.discovery import import_all
from dffl.training.aggregators.base import Aggregator, Memory, Moment, Update

import_all(__name__, __path__)

__all__ = ["Aggregator", "Memory", "Moment", "Update"]

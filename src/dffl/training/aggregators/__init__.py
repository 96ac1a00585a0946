"""Aggregators: one file for each, or for similar ones. A new file in this folder is found without a list."""

from dffl.discovery import import_all
from dffl.training.aggregators.base import Aggregator, Around, Memory, Moment, Remembering, Update

import_all(__name__, __path__)

__all__ = ["Aggregator", "Around", "Memory", "Moment", "Remembering", "Update"]

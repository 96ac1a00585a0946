"""The energy case study: zones that buy the cheapest of the next 24 hours."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

"""Users' data: from a federation's file and its tables to a model, its evaluation and decisions."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

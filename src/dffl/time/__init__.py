"""Decisions that are repeated over time: features of the past, base rules, refits, and the choice among rules."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

"""Decisions that are repeated over time: the past of each client, rules to start from, refits, the choice among rules."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

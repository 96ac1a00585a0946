"""Studies of decision-focused federated learning: the paper, electricity, leaderboard, advice, privacy, benchmarks."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

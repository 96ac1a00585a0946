"""`dffl leaderboard`: all methods and losses, each with the same small search, judged on data that the search did not use."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

"""`dffl time-study`: decisions over time, judged on markets with a past and some with a published forecast."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

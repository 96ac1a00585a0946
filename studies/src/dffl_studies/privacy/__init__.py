"""`dffl privacy-study`: the cost of privacy and of lying sites, in regret."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

"""`dffl privacy-study`: what privacy and sites that lie cost, in regret."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

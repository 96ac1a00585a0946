"""Case studies: each with its data, study, tables, figures and command. Nothing of the library imports them."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

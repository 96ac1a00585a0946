"""The paper's synthetic study, with its tables and figures and the paper's own numbers."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

"""Black-box solvers: asked row by row, here or in a process of their own.

A solver's process imports this folder and nothing else of dffl: neither JAX nor HiGHS, which some solvers cannot be beside.
"""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

"""Black-box solvers: called row by row, here or in a separate process.

The process of a solver imports this folder and nothing else of dffl: neither JAX nor HiGHS, which cannot share a process
with some solvers.
"""

from typing import TYPE_CHECKING

from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

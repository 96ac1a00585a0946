"""Whether federating helps a client: evidence from its own samples, and advice that it can act on."""

from typing import TYPE_CHECKING

from dffl.advice.advising import Advice, advise
from dffl.advice.over_time import AdviceOverTime
from dffl.discovery import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

__all__ = ["Advice", "AdviceOverTime", "advise"]

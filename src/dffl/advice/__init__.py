"""Whether federating helps a client: evidence from its own samples, and advice that it can act on."""

from dffl.advice.advising import Advice, advise

__all__ = ["Advice", "advise"]

"""Whether federating helps a client: evidence from its own data, and words that it can act on."""

from dffl.advice.advising import Advice, advise

__all__ = ["Advice", "advise"]

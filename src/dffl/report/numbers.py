"""Numbers in the form of a page: few digits, and the same number of digits for numbers of one size."""

from __future__ import annotations

import math
from typing import Any

MINUS = "\u2212"
"""A minus sign: a hyphen is hard to see in a table."""
NARROW = "\u202f"
UNKNOWN = "\u2013"


def percent(share: float | None, sign: bool = False) -> str:
    """A share in percent, without the percent sign."""
    return UNKNOWN if share is None else amount(100 * share, sign)


def amount(value: float | None, sign: bool = False) -> str:
    """Three digits or so: 1,234, 12.3, 1.23, 0.12, 0.0012."""
    if value is None:
        return UNKNOWN
    size = abs(value)
    if size < 1e-9:
        return "0"
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 3 if size >= 0.01 else 4
    text = f"{size:,.{digits}f}" if size >= 1e-4 else f"{size:.0e}"
    return (MINUS if value < 0 else "+" if sign else "") + text


def sure_digits(value: float, half: float) -> str:
    """A number without digits below its noise: rounded to the second digit of half the width of its interval."""
    if value == 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(half)) - 1) if 0 < half < math.inf else 0.0
    near = round(value / step) * step if step else value
    digits = max(-round(math.log10(step)), 0) if step else 4 if abs(value) < 1 else 2
    text = f"{abs(near):,.{min(digits, 6)}f}"
    return (MINUS if near < 0 and text.strip("0.,") else "") + text


def ends(low: float | None, high: float | None, sign: bool = False) -> str:
    """The ends of an interval, in percent; empty if unknown."""
    return "" if low is None or high is None else f"{percent(low, sign)} to {percent(high, sign)}"


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def listed(names: list[str], most: int = 4) -> str:
    """Some names, and the number of the others."""
    names = [shortened(name) for name in names]
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1] if names else ""]))


def shortened(name: str, most: int = 28) -> str:
    """A name shortened in the middle: its end often distinguishes two names."""
    end = most // 3
    return name if len(name) <= most else f"{name[: most - end - 1]}\u2026{name[-end:]}"


def plain(value: Any) -> float | None:
    """A number for JSON; None if it is unknown or infinite."""
    return None if value is None or isinstance(value, str) or not math.isfinite(value) else float(value)

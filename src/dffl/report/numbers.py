"""Numbers as a page writes them: few digits, and the same number of them for numbers of one size."""

from __future__ import annotations

MINUS = "\u2212"
"""A real minus sign: a hyphen is hard to see in a table."""
NARROW = "\u202f"
UNKNOWN = "\u2013"


def percent(share: float | None, sign: bool = False) -> str:
    """A share in percent, without the sign of percent."""
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


def ends(low: float | None, high: float | None, sign: bool = False) -> str:
    """The ends of an interval, in percent; empty where they are not known."""
    return "" if low is None or high is None else f"{percent(low, sign)} to {percent(high, sign)}"


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def listed(names: list[str], most: int = 4) -> str:
    """Some names, and how many more there are."""
    names = [shortened(name) for name in names]
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1] if names else ""]))


def shortened(name: str, most: int = 28) -> str:
    """A name that leaves room for others: the start, and the end, which often distinguishes two names."""
    end = most // 3
    return name if len(name) <= most else f"{name[: most - end - 1]}\u2026{name[-end:]}"

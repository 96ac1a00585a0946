"""LP files that HiGHS reads in silence, but not as they are meant: found here, and refused.

HiGHS 1.15 keeps the last of two coefficients of a variable in one row, drops a constant on the left side of a row, and leaves
the other bounds of a variable that is also listed as binary.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SECTIONS = {
    "objective": r"(?:max|min)(?:imi[sz]e|imum)?",
    "rows": r"(?:subject\s+to|such\s+that|s\.?\s?t\.?)",
    "bounds": r"bounds?",
    "integers": r"(?:generals?|gen|integers?|int)",
    "binaries": r"(?:binar(?:y|ies)|bin)",
    "others": r"(?:semi(?:-continuous|s)?|sos\d?|end)",
}
_HEADING = re.compile("|".join(f"(?P<{name}>{words})" for name, words in _SECTIONS.items()) + r"(?=\s|:|$)", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|(?P<sign>[<>=]+)|(?P<name>[^\s+\-*:<>=]+)\s*(?P<label>:)?"
)


class Sections(NamedTuple):
    """The words of the sections that are looked at."""

    objective: str
    rows: str
    binaries: list[str]


def sections(text: str) -> Sections:
    """Cut an LP text into its sections; comments are left out."""
    found: dict[str, list[str]] = {name: [] for name in _SECTIONS}
    current = "others"
    for line in text.splitlines():
        words = line.split("\\", 1)[0].strip()
        heading = _HEADING.match(words)
        # A row may be named like a heading: "st: x >= 1" is a row of the section that is under way.
        if heading and not words[heading.end() :].lstrip().startswith(":"):
            current = str(heading.lastgroup)
            words = words[heading.end() :].strip()
        found[current].append(words)
    return Sections(" ".join(found["objective"]), "\n".join(found["rows"]), " ".join(found["binaries"]).split())


def misread(text: str) -> str | None:
    """What HiGHS would read otherwise than it is meant; None where nothing was found."""
    parts = sections(text)
    seen: set[str] = set()
    for token in _TOKEN.finditer(parts.objective):
        name = token["name"]
        if name and not token["label"]:
            if name in seen:
                return f"variable {name!r} twice in its objective; add up its coefficients"
            seen.add(name)
    return _in_rows(parts.rows)


def _in_rows(text: str) -> str | None:
    seen: set[str] = set()
    left, waiting = True, False  # on the left side; a number that may be a coefficient or a constant
    for token in _TOKEN.finditer(text):
        if token["label"]:
            seen, left, waiting = set(), True, False
        elif token["sign"]:
            if waiting and seen:
                return f"a constant on the left side of a row, before {token['sign']!r}; move it to the right"
            left, waiting = not seen, False  # a number before the first sign is the lower end of a range
        elif token["number"]:
            if not left:  # the right side ends the row, unless a second sign follows
                seen, left = set(seen) if _range_follows(text, token.end()) else set(), True
            elif waiting:
                return f"a constant on the left side of a row, {token['number']!r}; move it to the right"
            else:
                waiting = True
        else:
            if token["name"] in seen:
                return f"variable {token['name']!r} twice in one row; add up its coefficients"
            seen.add(token["name"])
            waiting = False
    return None


def _range_follows(text: str, at: int) -> bool:
    return bool(re.match(r"\s*[<>=]", text[at:]))

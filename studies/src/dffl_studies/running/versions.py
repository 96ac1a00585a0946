"""The versions of dffl that made the rows of a folder."""

from __future__ import annotations

import re

import pandas as pd


def count_versions(rows: pd.DataFrame) -> dict[str, int]:
    """For each version the number of configurations with rows of it, the oldest first."""
    counts = rows.groupby("dffl")["job"].nunique()
    return {version: int(counts[version]) for version in sorted(map(str, counts.index), key=_numbers)}


def in_words(counts: dict[str, int]) -> str:
    """Such as ``0.1.0 (1,440 configurations) and 0.2.0 (1,120)``."""
    first, *others = counts.items()
    words = [f"{first[0]} ({first[1]:,} configuration{'s' if first[1] != 1 else ''})"]
    words += [f"{version} ({count:,})" for version, count in others]
    return " and ".join([", ".join(words[:-1]), words[-1]] if others else words)


def _numbers(version: str) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", version)], version

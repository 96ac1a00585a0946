"""The days on which clocks change: of 23 and 25 hours, which become days of 24.

The hour that clocks leave out is filled by a straight line between its neighbours of the same day; the hour that they repeat is
averaged. Both are on a Sunday, in one of the first hours of the day, and in a month in which some country changes its clocks
that way (south of the equator, clocks are turned back in April).
"""

from __future__ import annotations

import numpy as np

SUNDAY, SMALL_HOURS = 6, 4
FORWARD, BACK = (3, 4, 9, 10), (4, 9, 10, 11)


def weekday(dates: np.ndarray) -> np.ndarray:
    """0 for a Monday to 6 for a Sunday."""
    return (dates.astype("datetime64[D]").astype(int) + 3) % 7  # 1970-01-01 was a Thursday


def may_change(dates: np.ndarray, months_of: tuple[int, ...]) -> np.ndarray:
    """Whether clocks may change on these days, in one of these months."""
    months = dates.astype("datetime64[M]").astype(int) % 12 + 1
    return np.asarray((weekday(dates) == SUNDAY) & np.isin(months, months_of))


def is_skipped_hour(date: np.datetime64, missing: np.ndarray) -> bool:
    """Whether these missing periods of a day (a mask) are the hour that clocks leave out."""
    places, hour = np.flatnonzero(missing), len(missing) // 24
    together = len(places) == hour > 0 and len(missing) % 24 == 0 and places[-1] - places[0] == hour - 1
    return bool(together and places[-1] < SMALL_HOURS * hour and may_change(np.array([date]), FORWARD)[0])


def filled(day: np.ndarray) -> np.ndarray:
    """A day whose missing periods are interpolated, from periods of the same day alone.

    A period of the next day is not known when yesterday's prices are used.
    """
    there = np.flatnonzero(~np.isnan(day))
    return np.interp(np.arange(len(day)), there, day[there])

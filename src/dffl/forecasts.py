"""A client's forecast of its costs: which column forecasts which cost, and the place of these columns in x.

Inside dffl the forecast is the last d columns of x, in the order of the costs. Only this module puts it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dffl.sets._matching import order_by, swapped, under_star

SHOWN = 6
"""The most names in a message."""
FEWEST_ROWS, NOTHING_LEFT = 10, 3e-3
"""A column equals the costs if the share of their variance that it does not explain is below this."""


def chosen(owner: str, wanted: str | Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that match a pattern with one star, or those of a list. A name that is not a column is refused."""
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if is_pattern(names, columns):
        [pattern] = names
        if pattern.count("*") != 1:
            raise ValueError(f"{owner}: must have one star, such as 'dnn_*', or be a list of names, found {pattern!r:.80}")
        names = [name for name in columns if under_star(pattern, name) is not None]
        if not names:
            raise ValueError(f"{owner}: no column fits {pattern!r:.80}; there are {_some(columns)}")
    known = set(columns)
    if lacking := [name for name in names if name not in known]:
        raise ValueError(f"{owner}: there is no column {lacking[0]!r:.80}; there are {_some(columns)}")
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"{owner}: {twice!r} is listed twice; every cost needs a forecast column of its own")
    return names


def is_pattern(names: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether this is one pattern rather than names of columns."""
    return len(names) == 1 and "*" in names[0] and names[0] not in columns


def paired(owner: str, names: Sequence[str], cost_names: Sequence[str] | None, dim: int, pattern: str | None) -> list[str]:
    """The forecast columns in the order of the costs.

    With a pattern, they are matched by the text in place of the star. A list has the order of the costs already; it is
    refused if its numbers contradict the names of the costs.
    """
    if len(names) != dim:
        raise ValueError(
            f"{owner}: {len(names)} columns ({_some(names)}) for {dim} costs; every cost needs one forecast column"
        )
    if pattern is None:
        if cost_names is not None and (place := swapped(names, cost_names)) is not None:
            pair = f"{names[place]!r} would forecast the cost {cost_names[place]!r}, though the numbers in their names differ"
            raise ValueError(f"{owner}: {pair}; list the columns in the order of the costs, or use a pattern such as 'dnn_*'")
        return list(names)
    if cost_names is None:
        fix = "pass c as a data frame, or list the columns in the order of the costs"
        raise ValueError(f"{owner}: {pattern!r:.80} is matched with the names of the costs, which have none; {fix}")
    return _matched(owner, {str(under_star(pattern, name)): name for name in names}, cost_names)


def _matched(owner: str, by_text: dict[str, str], cost_names: Sequence[str]) -> list[str]:
    """The names in the order of the costs: each name is matched with a cost by the part in which names differ."""
    if len(cost_names) == 1:
        return list(by_text.values())
    order = order_by(by_text, cost_names, None)
    if order is None:
        fix = "rename them (dnn_3 for price_3), or list the forecast columns in the order of the costs"
        what = f"the columns ({_some(list(by_text.values()))}) and the costs ({_some(cost_names)}) do not match by name"
        raise ValueError(f"{owner}: {what}; {fix}")
    return order


def named_columns(forecast: Any) -> list[str] | None:
    """A pattern, or a list of names, as a list; None for a table of numbers."""
    if isinstance(forecast, str):
        return [forecast]
    if hasattr(forecast, "columns") or np.ndim(forecast) != 1:
        return None
    names = list(forecast)
    return names if names and all(isinstance(name, str) for name in names) else None


def placed_last(
    owner: str, x: np.ndarray, names: tuple[str, ...] | None, columns: list[str], cost_names: Sequence[str] | None, dim: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The features with the forecast columns after the others, and the names in that order."""
    if names is None:
        fix = f"pass x as a data frame, or the forecast as a table of {dim} columns"
        raise ValueError(f"{owner}: {columns[0]!r:.80} is the name of columns of x, which have no names; {fix}")
    forecast_places = chosen(owner, columns, names)
    last = paired(owner, forecast_places, cost_names, dim, columns[0] if is_pattern(columns, names) else None)
    place, moved = {name: number for number, name in enumerate(names)}, set(last)
    order = [*(name for name in names if name not in moved), *last]
    places = [place[name] for name in order]
    return np.ascontiguousarray(x[:, places]), tuple(order)


def table_in_order(
    owner: str, table: np.ndarray, names: tuple[str, ...] | None, cost_names: Sequence[str] | None, shape: tuple[int, int]
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """A table with its columns in the order of the costs, matched by name if both have names; and these names."""
    if table.shape != shape:
        raise ValueError(f"{owner}: must have the shape {shape}, a column for each cost, found {table.shape}")
    if names is None or cost_names is None:
        return table, names
    if len(set(names)) < len(names):
        raise ValueError(f"{owner}: two of its columns have one name; rename one")
    same = set(names) == set(cost_names)
    order = list(cost_names) if same else _matched(owner, _differing_texts(names), cost_names)
    return np.ascontiguousarray(table[:, [names.index(name) for name in order]]), tuple(order)


def _differing_texts(names: Sequence[str]) -> dict[str, str]:
    """The names by the text between their common prefix and their common suffix. Numbers are not cut."""
    before = _alike(names)
    rest = [name[before:] for name in names]
    after = _alike([text[::-1] for text in rest])
    return {text[: len(text) - after]: name for text, name in zip(rest, names, strict=True)}


def _alike(texts: Sequence[str]) -> int:
    """The length of the common prefix of all texts, without digits at its end."""
    low, high = min(texts), max(texts)
    count = next((place for place, (first, other) in enumerate(zip(low, high, strict=False)) if first != other), len(low))
    return len(low[:count].rstrip("0123456789"))


def appended(
    owner: str, x: np.ndarray, names: tuple[str, ...] | None,
    forecast: np.ndarray, columns: tuple[str, ...] | None, cost_names: Sequence[str] | None,
) -> tuple[np.ndarray, tuple[str, ...] | None]:  # fmt: skip
    """The features followed by the forecast in the order of the costs. Nothing changes if it is there already."""
    dim = forecast.shape[1]
    if x.shape[1] >= dim and np.array_equal(x[:, -dim:], forecast):
        return x, names
    if names is None:
        return np.hstack([x, forecast]), None
    if columns is None or set(columns) & set(cost_names or ()):  # otherwise the name of a cost could match a realised cost
        columns = tuple(f"forecast of {name}" for name in cost_names or map(str, range(dim)))
    places = {name: place for place, name in enumerate(columns)}
    features = [place for place, name in enumerate(names) if name not in places]  # a column is either a feature or a forecast
    for place, name in enumerate(names):
        if name in places and not np.array_equal(x[:, place], forecast[:, places[name]]):
            raise ValueError(f"{owner}: x has a column {name!r} too, with other numbers; rename one")
    return np.hstack([x[:, features], forecast]), (*(names[place] for place in features), *columns)


def gives_away(x: np.ndarray, c: np.ndarray) -> tuple[int, int] | None:
    """The first feature that equals a cost, perhaps in another unit or rounded, and that cost; else None.

    A model that sees the costs of its own row decides perfectly in tests, and fails in use.
    """
    if len(x) < FEWEST_ROWS:
        return None
    (x_size, features), (c_size, costs) = _standardised(x), _standardised(c)
    alike = (np.abs(features.T @ costs) > 1 - NOTHING_LEFT**2 / 2) & (x_size[:, None] > 0) & (c_size > 0)
    if not alike.any():
        return None
    feature, cost = np.unravel_index(int(np.argmax(alike)), alike.shape)
    return int(feature), int(cost)


def _standardised(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The standard deviation of each column (0 if it is constant), and the columns with mean 0 and length 1."""
    largest = np.abs(table).max(axis=0)
    scaled = table / np.where(largest > 0, largest, 1.0)
    centred = scaled - scaled.mean(axis=0)
    size = np.linalg.norm(centred, axis=0)
    size = np.where(size > 1e-9 * np.sqrt(len(table)), size, 0.0)
    return size, centred / np.where(size > 0, size, 1.0)


def _some(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")

"""Which variable of a model belongs to which cost column, by the text under the star of two patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence


def under_star(pattern: str, name: str) -> str | None:
    """The text that stands for the star; None where the name does not fit the pattern."""
    before, _, after = pattern.partition("*")
    fits = len(name) >= len(before) + len(after) and name.startswith(before) and name.endswith(after)
    return name[len(before) : len(name) - len(after)] if fits else None


def find(owner: str, field: str, pattern: str, names: Sequence[str]) -> dict[str, str]:
    """The names that fit a pattern with one star, by the text under it, in their own order."""
    if pattern.count("*") != 1:
        raise ValueError(f"{owner}: {field} must have one star, such as 'x_*', or be a list of names, found {pattern!r:.80}")
    by_text = {text: name for name in names if (text := under_star(pattern, name)) is not None}
    if not by_text:
        shown = ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
        raise ValueError(f"{owner}: {field}={pattern!r} matches no variable; it has {shown}")
    return by_text


def in_cost_order(owner: str, by_text: dict[str, str], cost_names: Sequence[str], costs: str | None) -> list[str]:
    """The variables in the order of the cost columns. ``found`` holds them by the text under their own star.

    Without a pattern for the cost columns it is the one that fits all of them: the same text before and behind each text.
    """
    order = order_by(by_text, cost_names, costs)
    if order is None:
        raise ValueError(f"{owner}: {_difference(by_text, cost_names, costs)}")
    return order


def order_by(by_text: dict[str, str], cost_names: Sequence[str], costs: str | None) -> list[str] | None:
    """As `in_cost_order`; None where the names do not match."""
    patterns = [costs] if costs is not None else _candidates(by_text, cost_names)
    for pattern in patterns:
        texts = [under_star(pattern, name) for name in cost_names]
        for known in (by_text, _as_numbers(by_text)):
            keys = texts if known is by_text else [_number(text) for text in texts]
            if None not in keys and set(keys) == set(known):
                return [known[key] for key in keys if key is not None]
    return None


def contradiction(owner: str, variables: Sequence[str], cost_names: Sequence[str]) -> None:
    """Refuse a list of variables whose numbers say that they belong to the cost columns in another order."""
    place = swapped(variables, cost_names)
    if place is None:
        return
    fix = "list the variables in the order of the cost columns, or use a pattern such as 'x_*'"
    pair = f"predicted pairs {variables[place]!r} with cost column {cost_names[place]!r}"
    raise ValueError(f"{owner}: {pair}, though the numbers in their names differ; {fix}")


def swapped(names: Sequence[str], cost_names: Sequence[str]) -> int | None:
    """The first place where a name has another number than the cost, if both lists have the same numbers in other orders."""
    mine, theirs = ([_last_number(name) for name in some] for some in (names, cost_names))
    if None in mine or len(set(mine)) < len(mine) or sorted(map(str, mine)) != sorted(map(str, theirs)) or mine == theirs:
        return None
    return next(place for place, (first, second) in enumerate(zip(mine, theirs, strict=True)) if first != second)


def _last_number(name: str) -> str | None:
    digits = re.findall(r"\d+", name)
    return str(int(digits[-1])) if digits else None


def _candidates(by_text: dict[str, str], cost_names: Sequence[str]) -> list[str]:
    first = cost_names[0]
    texts = set(by_text) | {_number(text) or text for text in by_text} | set(re.findall(r"\d+", first))
    places = [(text, at) for text in texts if text for at in range(len(first)) if first.startswith(text, at)]
    # The longest text first: with x_1 and x_10, price_10 is price_ and 10.
    places.sort(key=lambda place: -len(place[0]))
    return list(dict.fromkeys(f"{first[:at]}*{first[at + len(text) :]}" for text, at in places))


def _number(text: str | None) -> str | None:
    return str(int(text)) if text is not None and text.isdecimal() else None


def _as_numbers(by_text: dict[str, str]) -> dict[str, str]:
    """The same by numbers without leading zeros, where all texts are numbers and stay different."""
    numbers = {_number(text): name for text, name in by_text.items()}
    return {} if None in numbers or len(numbers) < len(by_text) else {str(key): name for key, name in numbers.items()}


def _difference(by_text: dict[str, str], cost_names: Sequence[str], costs: str | None) -> str:
    if len(by_text) != len(cost_names):
        return f"{len(by_text)} predicted variables for {len(cost_names)} cost columns; each cost column needs one variable"
    if costs is not None:
        lacking = [name for name in cost_names if under_star(costs, name) not in by_text]
        some = f"cost column {lacking[0]!r} has no variable" if lacking else "two cost columns have one variable"
        return f"{some}; its text under the star of {costs!r} must be that of a predicted variable"
    sample = next(iter(by_text.values()))
    fix = "rename the columns (price_3 for x_3), give costs='price_*', or pass arrays in the order of the file"
    return f"the cost columns ({cost_names[0]!r}, ...) do not match the variables ({sample!r}, ...) by name; {fix}"

"""Values that are made when they are asked for, where there are too many to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Later(Generic[T]):
    """One value."""

    make: Callable[[], T]


@dataclass(frozen=True)
class EachLater(Sequence[T]):
    """A value for each of ``length`` positions."""

    make: Callable[[int], T]
    length: int

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: Any) -> Any:
        return self.make(range(self.length)[place])


@dataclass(frozen=True)
class NamedLater(Mapping[str, T]):
    """A value for each name; ``places`` are the names' positions."""

    make: Callable[[int], T]
    places: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __getitem__(self, name: str) -> T:
        return self.make(self.places[name])

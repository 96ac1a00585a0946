"""Models in MPS format, free or fixed: read strictly, so that nothing in a file is guessed, cut or left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from dffl.sets._model_draft import LINE_END, Draft, DraftColumn, ReadModel, Refused

REFUSED = {
    "QUADOBJ": "a quadratic objective", "QMATRIX": "a quadratic objective", "QSECTION": "a quadratic objective",
    "QCMATRIX": "quadratic constraints", "CSECTION": "conic constraints", "SOS": "special ordered sets",
    "SOS1": "special ordered sets", "SOS2": "special ordered sets", "INDICATORS": "indicator constraints",
    "GENCONS": "general constraints", "PWLOBJ": "a piecewise linear objective",
}  # fmt: skip
SECTIONS = "NAME", "OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA"
SENSES = {"MIN": False, "MINIMIZE": False, "MAX": True, "MAXIMIZE": True}
WITH_VALUE, WITHOUT_VALUE = ("UP", "LO", "FX", "LI", "UI", "SC", "SI"), ("FR", "MI", "PL", "BV")
FIELDS = (1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61)
"""Where the fields of a line in fixed format are."""
Words = list[str]


def read(text: str, name: str) -> ReadModel:
    """The model of a text; a line that is not understood is refused."""
    try:
        return _Reader(name, str.split).read(text)
    except Refused as error:
        try:  # names with spaces are allowed in fixed format
            return _Reader(name, _fields).read(text)
        except Refused:
            raise error from None


def _fields(line: str) -> Words:
    """The fields of a line in fixed format; what stands between them is a word of its own, which no section takes."""
    line = line.rstrip()
    ends = [0, *(end for _, end in FIELDS)]
    between = [line[a:b] for a, (b, _) in zip(ends, [*FIELDS, (len(line) + 1, 0)], strict=True)]
    if any(part.strip() for part in between):
        return [line] * 7
    return [word for word in (line[a:b].strip() for a, b in FIELDS) if word]


class _Reader:
    def __init__(self, name: str, split: Callable[[str], Words]):
        self._draft, self._split = Draft(name), split
        self._types: dict[str, str] = {}
        self._objective = ""
        self._in_integers = False
        self._column = ""
        self._widths: dict[str, float] = {}
        self._sets: dict[str, str] = {}
        """The name of the set of each section: a second one would be another model."""
        self._seen: set[tuple[str, ...]] = set()

    def read(self, text: str) -> ReadModel:
        draft, section, done = self._draft, "", set[str]()
        takes = {
            "OBJSENSE": self._sense, "ROWS": self._row, "COLUMNS": self._entry, "RHS": self._right,
            "RANGES": self._range, "BOUNDS": self._bound,
        }  # fmt: skip
        for draft.line, line in _lines(text):
            words = line.split()
            heading = words[0].upper() if not line[0].isspace() else ""
            if heading in REFUSED:
                raise draft.not_linear(REFUSED[heading])
            named = heading == "NAME" and not done - {"NAME", "OBJSENSE"}  # later, it is a name in the data
            if named or (heading in SECTIONS[1:] and (len(words) == 1 or heading == "OBJSENSE")):
                if heading in done:
                    raise draft.refused(f"section {heading} is there twice")
                self._left(section, heading, done)
                section = heading
                done.add(section)
                if section == "OBJSENSE" and len(words) > 1:
                    self._sense(words[1:])
                if section == "ENDATA":
                    break
            elif section in takes and (len(words) > 1 or section == "OBJSENSE"):
                takes[section](self._split(line))
            else:
                known = ", ".join(SECTIONS)
                raise draft.refused(f"{words[0]!r:.40} is not a section that can be used; these are {known}")
        for needed in ("ROWS", "COLUMNS", "ENDATA"):
            if needed not in done:
                raise draft.refused(f"the text ends without a section {needed}; is it complete?")
        for row, width in self._widths.items():
            low, high = draft.rows[row]
            kind = self._types[row]
            low = high - abs(width) if kind == "L" else low + min(width, 0.0) * (kind == "E")
            high = low + abs(width) if kind != "L" else high
            draft.rows[row] = [low, high]
        return draft.finished()

    def _left(self, section: str, following: str, done: set[str]) -> None:
        """What must hold where a section ends and the next one begins."""
        needed = {"COLUMNS": "ROWS", "RHS": "COLUMNS", "RANGES": "COLUMNS", "BOUNDS": "COLUMNS"}.get(following)
        if needed and needed not in done:
            raise self._draft.refused(f"section {following} must come after {needed}")
        if following == "COLUMNS" and not self._objective:
            raise self._draft.refused("ROWS has no objective, a row of type N")
        if section == "COLUMNS" and self._in_integers:
            raise self._draft.refused("the marker INTORG has no INTEND in COLUMNS")
        if section == "OBJSENSE" and ("OBJSENSE",) not in self._seen:
            raise self._draft.refused(f"OBJSENSE must be {', '.join(SENSES)}, found nothing")

    def _sense(self, words: Words) -> None:
        if len(words) != 1 or words[0].upper() not in SENSES:
            raise self._draft.refused(f"OBJSENSE must be {', '.join(SENSES)}, found {' '.join(words)!r:.40}")
        self._once("OBJSENSE")
        self._draft.maximize = SENSES[words[0].upper()]

    def _row(self, words: Words) -> None:
        draft = self._draft
        if len(words) != 2 or words[0] not in ("N", "L", "G", "E"):
            raise draft.refused(f"a row must be N, L, G or E and a name, found {' '.join(words)!r:.60}")
        kind, name = words
        if name in self._types:
            raise draft.refused(f"row {name!r:.60} is there twice")
        self._types[name] = kind
        if kind == "N":
            self._objective = self._objective or name  # further ones are not used: that is the rule of the format
        else:
            draft.rows[name] = [-math.inf if kind == "L" else 0.0, math.inf if kind == "G" else 0.0]

    def _entry(self, words: Words) -> None:
        draft = self._draft
        if len(words) == 3 and words[1] == "'MARKER'":
            if words[2] != ("'INTEND'" if self._in_integers else "'INTORG'"):
                raise draft.refused(f"a marker must be 'INTORG' or, after it, 'INTEND', found {words[2]!r:.40}")
            self._in_integers = not self._in_integers
            return
        if len(words) not in (3, 5):
            raise draft.refused(f"a line of COLUMNS must be a variable, a row and a number, found {' '.join(words)!r:.60}")
        name = words[0]
        if name != self._column:
            if name in draft.columns:
                raise draft.refused(f"variable {name!r:.60} was there before, and its lines must follow each other")
            self._column = name
            draft.columns[name] = self._new_column()
        for row, word in zip(words[1::2], words[2::2], strict=True):
            self._once("COLUMNS", name, self._known_row(row))
            value = draft.number(word, f"the coefficient of {name!r} in row {row!r}")
            if row == self._objective:
                draft.cost[name] = value
            elif self._types[row] != "N":
                draft.add_entry(name, row, value)

    def _new_column(self) -> DraftColumn:
        column = DraftColumn()
        column.is_integer = self._in_integers
        if self._in_integers:
            column.usual_upper = 1.0  # the rule of the format for whole numbers without any bound
        return column

    def _right(self, words: Words) -> None:
        draft = self._draft
        for row, value in self._pairs("RHS", words):
            kind = self._types[row]
            if row == self._objective:
                draft.offset = 0.0 - value
            elif kind != "N":
                ends = draft.rows[row]
                draft.rows[row] = [ends[0] if kind == "L" else value, ends[1] if kind == "G" else value]

    def _range(self, words: Words) -> None:
        draft = self._draft
        for row, value in self._pairs("RANGES", words):
            kind = self._types[row]
            if kind == "N":
                raise draft.refused(f"row {row!r:.60} is of type N, which has no range")
            self._widths[row] = value

    def _pairs(self, section: str, words: Words) -> Iterator[tuple[str, float]]:
        """Rows and numbers, after the name of the set, which may be left out."""
        if len(words) not in (2, 3, 4, 5):
            raise self._draft.refused(f"a line of {section} must be a row and a number, found {' '.join(words)!r:.60}")
        if len(words) % 2:
            self._one_set(section, words[0])
            words = words[1:]
        for row, word in zip(words[::2], words[1::2], strict=True):
            self._once(section, self._known_row(row))
            yield row, self._draft.number(word, f"the number of row {row!r} in {section}")

    def _bound(self, words: Words) -> None:
        draft = self._draft
        kind, rest = words[0].upper(), words[1:]
        if kind not in (*WITH_VALUE, *WITHOUT_VALUE):
            raise draft.refused(f"a bound must be {', '.join((*WITH_VALUE, *WITHOUT_VALUE))}, found {words[0]!r:.40}")
        value = ""
        if kind in WITH_VALUE:
            rest, value = rest[:-1], rest[-1] if rest else ""
        elif len(rest) == 3:  # some programs write a number where none is needed
            draft.bound(rest[2], f"the bound {kind} of {rest[1]!r}")
            rest = rest[:2]
        if len(rest) not in (1, 2):
            raise draft.refused(
                f"a line of BOUNDS must be a type, a set, a variable and a number, found {' '.join(words)!r:.60}"
            )
        if len(rest) == 2:
            self._one_set("BOUNDS", rest[0])
        name = rest[-1]
        column = draft.known_column(name)
        self._once("BOUNDS", kind, name)
        number = draft.bound(value, f"the bound {kind} of {name!r}") if kind in WITH_VALUE else math.nan
        column.usual_upper = math.inf
        column.is_integer |= kind in ("LI", "UI", "BV", "SI")
        column.semi |= kind in ("SC", "SI")
        if kind in ("UP", "UI", "SC", "SI"):
            draft.set_ends(name, upper=number)
        elif kind in ("LO", "LI"):
            draft.set_ends(name, lower=number)
        elif kind == "FX":
            draft.set_ends(name, number, number)
        elif kind == "BV":
            draft.set_ends(name, 0.0, 1.0)
        else:
            draft.set_ends(name, -math.inf if kind in ("FR", "MI") else None, math.inf if kind in ("FR", "PL") else None)

    def _known_row(self, name: str) -> str:
        if name not in self._types:
            raise self._draft.refused(f"row {name!r:.60} is not in ROWS")
        return name

    def _one_set(self, section: str, name: str) -> None:
        if self._sets.setdefault(section, name) != name:
            first = self._sets[section]
            raise self._draft.refused(f"{section} has two sets, {first!r:.40} and {name!r:.40}; keep one of them")

    def _once(self, *what: str) -> None:
        if what in self._seen:
            raise self._draft.refused(f"{' '.join(what[1:]) or 'it'!r:.60} is there twice in {what[0]}")
        self._seen.add(what)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither empty nor comments, with their numbers."""
    for number, line in enumerate(LINE_END.split(text), start=1):
        if line.strip() and not line.startswith("*"):
            yield number, line

"""Models in LP format, read strictly, so that nothing in a file is guessed, cut or left out.

HiGHS 1.15 keeps the last of two coefficients of a variable in one row, drops a constant on the left side of a row, takes a
bracket for a part of a name, and leaves the other bounds of a variable that is also listed as binary, all in silence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from dffl.sets._model_draft import ENDLESS, LINE_END, Draft, DraftColumn, ReadModel

_SECTIONS = {
    "minimise": r"min(?:imi[sz]e|imum)?",
    "maximise": r"max(?:imi[sz]e|imum)?",
    "rows": r"subject\s+to|such\s+that|s\.?\s?t\.?",
    "bounds": r"bounds?",
    "integers": r"generals?|gen|integers?|int",
    "binaries": r"binar(?:y|ies)|bin",
    "semis": r"semi(?:-continuous|s)?",
    "end": r"end",
}
_HEADING = re.compile("|".join(f"(?P<{name}>(?:{words})(?=\\s|:|$))" for name, words in _SECTIONS.items()), re.IGNORECASE)
_TOKEN = re.compile(
    r"(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<sense><=|>=|=<|=>|<|>|=)|(?P<sign>[+-])"
    r"|(?P<name>[^\W\d][\w.,!\"#$%&()/?@'`{}~|]*|[!\"#$%&?@'`{}~/][\w.,!\"#$%&()/?@'`{}~|]*)(?P<label>\s*:)?)\s*"
)
_NOT_LINEAR = {
    "SOS": "special ordered sets", "SOS1": "special ordered sets", "SOS2": "special ordered sets",
    "PWLOBJ": "a piecewise linear objective", "GENERAL CONSTRAINTS": "general constraints",
}  # fmt: skip


class _Token(NamedTuple):
    line: int
    kind: str
    """number, sense, sign, name, label, or heading."""
    text: str


def read(text: str, name: str) -> ReadModel:
    """The model of a text; a line that is not understood is refused."""
    draft = Draft(name)
    _Reader(draft, list(_tokens(draft, text))).read()
    return draft.finished()


def _tokens(draft: Draft, text: str) -> Iterator[_Token]:
    names = set[str]()
    for draft.line, line in enumerate(LINE_END.split(text.rstrip("\x1a")), start=1):
        words = line.split("\\", 1)[0].strip()
        _require_linear(draft, words)
        heading = _HEADING.match(words)
        # A row may be named like a heading: "st: x >= 1" is a row of the section that is under way.
        label = heading is not None and words[heading.end() :].lstrip().startswith(":")
        if heading and label and words.endswith(":"):
            fix = "remove the colon, or, for a row of this name, write the row behind it on its line"
            raise draft.refused(f"a section begins without a colon, found {words!r:.40}; {fix}")
        if heading and not label:
            if heading[0] in names:
                raise draft.refused(f"{heading[0]!r} may be a section here, or the variable of that name; rename the variable")
            yield _Token(draft.line, "heading", str(heading.lastgroup))
            words = words[heading.end() :].strip()
        at = 0
        while at < len(words):
            token = _TOKEN.match(words, at)
            if token is None:
                raise draft.refused(f"{words[at:]!r:.40} is neither a number nor a name nor a sign")
            kind = "label" if token["label"] else str(next(k for k in ("number", "sense", "sign", "name") if token[k]))
            word = token["name" if kind == "label" else kind]
            if kind in ("name", "label"):
                _require_name(draft, word)
            if kind == "name":
                names.add(word)
            yield _Token(draft.line, kind, word)
            at = token.end()


def _require_linear(draft: Draft, words: str) -> None:
    if re.search(r"\w\[[^\[\]\s]*\]", words):
        raise draft.refused("it has names with square brackets, which an LP file cannot have: write it as MPS")
    if re.search(r"\^\s*2|\[|\]", words):
        raise draft.not_linear("quadratic terms")
    if "->" in words:
        raise draft.not_linear("indicator constraints")
    if part := _NOT_LINEAR.get(words.rstrip(":").strip().upper()):
        raise draft.not_linear(part)


def _require_name(draft: Draft, name: str) -> None:
    depth = 0
    for sign in name:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            break
    if depth:
        raise draft.refused(f"{name!r:.40} has a bracket without its other half; write sums out, without brackets")
    if name.lower() == "nan":
        raise draft.refused(f"{name!r} is not the name of a variable")


class _Reader:
    def __init__(self, draft: Draft, tokens: list[_Token]):
        self._draft, self._tokens, self._at = draft, tokens, 0
        self._labels = {token.text for token in tokens if token.kind == "label"}
        self._binaries: list[_Token] = []
        self._ended = 0
        """The line on which the last row or bound ended."""

    def read(self) -> None:
        draft, done = self._draft, set[str]()
        if not self._tokens or self._tokens[0].kind != "heading" or self._tokens[0].text not in ("minimise", "maximise"):
            draft.line = self._tokens[0].line if self._tokens else 0
            raise draft.refused("an LP text must begin with Minimize or Maximize")
        draft.maximize = self._tokens[0].text == "maximise"
        takes = {
            "rows": self._row, "bounds": self._bound, "integers": self._integer,
            "binaries": self._binary, "semis": self._semi,
        }  # fmt: skip
        section = "objective"
        self._at = 1
        self._objective()
        while (token := self._peek()) is not None and section != "end":
            if token.kind == "heading":
                section = self._next().text
                draft.line = token.line
                again = section in done and section not in ("integers", "binaries", "semis")  # lists may have parts
                if again or section in ("minimise", "maximise"):
                    raise draft.refused(f"the section {section!r} is there twice")
                if "rows" not in done and section != "rows":
                    raise draft.refused("after the objective, the rows must follow: Subject To")
                done.add(section)
            elif section == "objective":
                self._wrong(token, "Subject To, or + or -,")
            elif section in ("rows", "bounds") and token.line == self._ended:
                self._wrong(token, "a new line")
            else:
                takes[section]()
                self._ended = draft.line
        if token is not None:
            draft.line = token.line
            raise draft.refused(f"nothing may follow End, found {token.text!r:.40}")
        if "end" not in done:
            raise draft.refused("the text ends without End; is it complete?")
        self._set_binaries()

    # Tokens.

    def _peek(self, ahead: int = 0) -> _Token | None:
        return self._tokens[self._at + ahead] if self._at + ahead < len(self._tokens) else None

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at += 1
        self._draft.line = token.line
        return token

    def _is(self, kind: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token is not None and token.kind == kind

    def _wrong(self, token: _Token | None, wanted: str) -> NoReturn:
        if token is not None:
            self._draft.line = token.line
        raise self._draft.refused(f"{wanted} must be here, found {'the end' if token is None else repr(token.text)}")

    # What the sections hold.

    def _objective(self) -> None:
        if self._is("label"):
            self._next()
        terms, constants = self._terms("its objective")
        self._draft.cost.update(terms)
        self._draft.offset = math.fsum(constants)

    def _row(self) -> None:
        draft = self._draft
        name = self._next().text if self._is("label") else self._unused_name()
        if name in draft.rows:
            raise draft.refused(f"row {name!r:.60} is there twice")
        low, high = -math.inf, math.inf
        terms, constants = self._terms("one row")
        if not terms and len(constants) == 1 and self._is("sense"):  # a number before the first sign is an end of a range
            sense = self._next().text
            low, high = _ends(_turned(sense), constants[0])
            terms, constants = self._terms("one row")
            if constants:
                raise draft.refused("a constant next to the variables of a row; move it to the other side")
            closed = not self._is("sense")
        else:
            sense, closed = "", False
        if constants:
            before = self._peek()
            raise draft.refused(
                f"a constant on the left side of a row, before {before.text if before else 'the end'!r}; move it to the right"
            )
        if not terms:
            self._wrong(self._peek(), "a variable")
        if not closed:
            if not self._is("sense"):
                self._wrong(self._peek(), "<=, >= or =")
            second = self._next().text
            if sense and (sense == "=" or sense.strip("=") != second.strip("=")):
                raise draft.refused(f"a range must have two signs of one direction, found {sense!r} and {second!r}")
            value = self._value(f"the right side of row {name!r}", endless=False)
            more_low, more_high = _ends(second, value)
            low, high = max(low, more_low), min(high, more_high)
        if low > high:
            raise draft.refused(f"row {name!r:.60} has the ends {low:g} and {high:g}")
        draft.rows[name] = [low, high]
        for column, value in terms.items():
            draft.add_entry(column, name, value)

    def _unused_name(self) -> str:
        """The name of a row without one."""
        name = f"R{len(self._draft.rows)}"
        while name in self._labels:
            name += "_"
        return name

    def _terms(self, where: str) -> tuple[dict[str, float], list[float]]:
        """Coefficients and constants, up to what is neither."""
        draft = self._draft
        terms: dict[str, float] = {}
        constants: list[float] = []
        while self._is("sign") or self._is("number") or self._is("name"):
            first = not terms and not constants
            sign, signs = 1.0, 0
            while self._is("sign"):
                sign, signs = sign * (-1.0 if self._next().text == "-" else 1.0), signs + 1
            if not first and not signs:
                if constants and self._is("number"):
                    if where == "its objective":
                        raise draft.refused(f"a number after a number, {self._next().text!r}; write one before a variable")
                    raise draft.refused(f"a constant on the left side of a row, {self._next().text!r}; move it to the right")
                self._wrong(self._peek(), "+ or -")
            number = sign * self._number() if self._is("number") else None
            if self._is("name"):
                name = self._next().text
                if ENDLESS.fullmatch(name):
                    raise draft.refused(f"{name!r} is not the name of a variable")
                if name in terms:
                    raise draft.refused(f"it has variable {name!r} twice in {where}; add up its coefficients")
                draft.columns.setdefault(name, DraftColumn())
                terms[name] = sign if number is None else number
            elif number is None:
                self._wrong(self._peek(), "a number or a variable")
            else:
                constants.append(number)
        return terms, constants

    def _number(self) -> float:
        token = self._next()
        return self._draft.number(token.text, "a coefficient")

    def _value(self, what: str, endless: bool) -> float:
        sign = 1.0
        while self._is("sign"):
            sign *= -1.0 if self._next().text == "-" else 1.0
        token = self._peek()
        if token is None or token.kind not in ("number", "name") or (token.kind == "name" and not endless):
            self._wrong(token, f"a number, {what},")
        word = self._next().text
        return sign * (self._draft.bound(word, what) if endless else self._draft.number(word, what))

    def _bound(self) -> None:
        draft = self._draft
        token = self._peek()
        if token is not None and token.kind == "name" and not ENDLESS.fullmatch(token.text):
            name = self._next().text
            follower = self._peek()
            if follower is not None and follower.kind == "name" and follower.text.lower() == "free":
                self._next()
                draft.set_ends(name, -math.inf, math.inf)
                return
            self._limit(name, self._sense(), self._value(f"a bound of {name!r}", endless=True))
            return
        value = self._value("a bound", endless=True)
        sense = _turned(self._sense())
        token = self._peek()
        if token is None or token.kind != "name":
            self._wrong(token, "a variable")
        name = self._next().text
        self._limit(name, sense, value)
        if self._is("sense"):
            self._limit(name, self._sense(), self._value(f"a bound of {name!r}", endless=True))

    def _sense(self) -> str:
        if not self._is("sense"):
            self._wrong(self._peek(), "<=, >= or =")
        return self._next().text

    def _limit(self, name: str, sense: str, value: float) -> None:
        low, high = (None, value) if "<" in sense else (value, None) if ">" in sense else (value, value)
        self._draft.set_ends(name, low, high)

    def _listed(self) -> _Token:
        token = self._peek()
        if token is None or token.kind != "name":
            self._wrong(token, "a variable")
        token = self._next()
        self._draft.known_column(token.text)
        return token

    def _integer(self) -> None:
        self._draft.columns[self._listed().text].is_integer = True

    def _semi(self) -> None:
        self._draft.columns[self._listed().text].semi = True

    def _binary(self) -> None:
        self._binaries.append(self._listed())

    def _set_binaries(self) -> None:
        for token in self._binaries:
            self._draft.line = token.line
            column = self._draft.columns[token.text]
            column.is_integer, column.usual_upper = True, 1.0
            low, high = column.ends
            if low < 0 or high > 1:
                raise self._draft.refused(
                    f"variable {token.text!r} is binary and has the bounds {low:g} and {high:g}; remove these"
                )


def _turned(sense: str) -> str:
    return sense.translate(str.maketrans("<>", "><"))


def _ends(sense: str, value: float) -> tuple[float, float]:
    """The ends of what has this sign before this number."""
    return (-math.inf if "<" in sense else value), (math.inf if ">" in sense else value)

"""The layout of the source: no function is too long to be read at once, and no name means two things."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/dffl"
LONGEST_FUNCTION = 60
LONGEST_FILE = 600


def lengths(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each function with its number of lines; classes that are defined inside count for their own functions alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = [inner for inner in ast.walk(node) if isinstance(inner, ast.ClassDef)]
            classes = {line for inner in inside for line in range(inner.lineno, (inner.end_lineno or 0) + 1)}
            yield node.name, len(set(range(node.lineno, (node.end_lineno or 0) + 1)) - classes)


def test_the_length_of_a_function_is_counted() -> None:
    tree = ast.parse(
        "def f():\n    def g():\n        return 1\n    return g\n\ndef h():\n    class A:\n        x = 1\n    return A"
    )
    assert dict(lengths(tree)) == {"f": 4, "g": 2, "h": 2}


def test_functions_and_files_can_be_read_at_once() -> None:
    long = []
    for path in sorted(SOURCE.rglob("*.py")):
        text, where = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        long += [(where, name, lines) for name, lines in lengths(ast.parse(text)) if lines > LONGEST_FUNCTION]
        long += [(where, "the file", text.count("\n"))] if text.count("\n") > LONGEST_FILE else []
    assert not long, f"more than {LONGEST_FUNCTION} lines in a function, or {LONGEST_FILE} in a file: split them"


SHARED = {
    # what the page shows of them: in their own file of plain values
    "Advice", "Change", "Client", "Curve", "Method",
}  # fmt: skip
"""Public classes that share their name with one of another file, each for a reason."""


def test_a_class_has_its_name_alone() -> None:
    places = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(path.relative_to(SOURCE).as_posix())
    twice = {name: sorted(files) for name, files in places.items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in SHARED} == {}
    assert set(twice) >= SHARED, "the list of exceptions has names that are not shared any more"

"""Every name that documents and docstrings write, such as `dffl.losses.Loss`, works after `import dffl`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dffl
from dffl.plugins import GROUPS

ROOT = Path(__file__).parent.parent
NAME = re.compile(r"(?<![\w./-])dffl(?:\.[A-Za-z_]\w*)+")
WHOLE = ("dffl.sets", "dffl.training", "dffl.training.privacy", "dffl.training.trainers", "dffl.training.methods",
         "dffl.training.engines")  # fmt: skip
"""Packages that import all their modules; `test_packages_that_import_all_their_modules` looks."""


def written() -> dict[str, str]:
    """Each name, and a file that has it."""
    texts = {path: path.read_text(encoding="utf-8") for path in [*ROOT.glob("docs/*.md"), ROOT / "README.md"]}
    texts |= {path: _documentation(path) for path in ROOT.glob("src/**/*.py")}
    found = {}
    for path, text in texts.items():
        # Lines that begin with ::: tell the generator of the reference where a definition is.
        lines = "\n".join(line for line in text.splitlines() if not line.startswith(":::"))
        found |= {name: str(path.relative_to(ROOT)) for name in NAME.findall(lines) if name not in GROUPS}
    return found


def _documentation(path: Path) -> str:
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Expr)]
    values = [node.value.value for node in nodes if isinstance(node.value, ast.Constant)]
    return "\n".join(value for value in values if isinstance(value, str))


def resolved(name: str) -> Any:
    """What a name means in a process that has only imported dffl: no module counts because somebody else imported it."""
    value: Any = dffl
    for part in name.split(".")[1:]:
        outer, value = value, getattr(value, part)
        if isinstance(outer, ModuleType) and isinstance(value, ModuleType) and outer.__name__ not in WHOLE:
            value = outer.__getattr__(part)
    return value


def test_names_of_documents_and_docstrings_work() -> None:
    names = written()
    assert len(names) > 80
    broken = {}
    for name, where in names.items():
        try:
            resolved(name)
        except AttributeError as error:
            broken[name] = f"{where}: {error}"
    assert not broken


def test_a_name_that_is_not_there_is_refused() -> None:
    for name in ("nothing", "theory.nothing", "_private"):
        with pytest.raises(AttributeError, match="has no attribute"):
            resolved(f"dffl.{name}")
    assert not hasattr(dffl, "nothing")


STUDIES = ", in the package dffl-studies"


@pytest.mark.parametrize(
    ("name", "home"),
    [("studies", f"dffl_studies.running{STUDIES}"), ("cases", f"dffl_studies{STUDIES}"),
     ("bench", f"dffl_studies.bench{STUDIES}"), ("own", "dffl.tables"),
     ("data", "dffl.tables; synthetic federations are in dffl.synthetic")],
)  # fmt: skip
def test_what_moved_says_where_it_is(name: str, home: str) -> None:
    with pytest.raises(AttributeError, match=f"dffl.{name} is now {home}"):
        resolved(f"dffl.{name}")


def test_importing_dffl_imports_nothing_else() -> None:
    code = "import sys, dffl\nassert dffl.__version__\nprint([m for m in sys.modules if m.startswith('dffl.') or m == 'jax'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['dffl.discovery']"


def test_packages_that_import_all_their_modules() -> None:
    """In a process of its own, which has imported nothing else: also the names that were missing once."""
    names = [*sorted(name for name in written() if name.startswith(WHOLE)), "dffl.losses.Loss", "dffl.harm"]
    subprocess.run([sys.executable, "-c", "import dffl\n" + "\n".join(names)], check=True)

"""What the documents show runs: the examples, and every Python block of the README and the docs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Figures of the demo's size stay out of CI: blocks that train for long run with fewer rounds.
SHORT = "import dffl, functools\ndffl.compare = functools.partial(dffl.compare, rounds=1)\n"


def run(code: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    run(f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__')", tmp_path)


@pytest.mark.parametrize("page", [p for p in PAGES if "```python" in p.read_text()], ids=lambda p: p.name)
def test_python_blocks_run_in_order(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    blocks = [block for block in blocks if not block.startswith("--8<--")]  # included examples run by themselves
    run(SHORT + "\n".join(blocks), tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

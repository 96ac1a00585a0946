"""Write the examples and tables that pages show into the pages, so that Markdown is complete without a build.

A page marks what it shows with ``<!-- from PATH -->`` and ``<!-- end -->``; PATH is relative to the repository. What stands
between the two is replaced by the file, or by the table that `TABLES` makes of it. What commands of a page print is written by
`docs/consoles.py`, what notebooks show by `docs/notebooks.py`. ``make docs-write-out`` calls all; tests fail if a page or a
notebook differs from what it shows.

    python docs/write_out.py                # everything: the commands of some pages, and notebooks, take a minute
    python docs/write_out.py tutorial.md    # one page or notebook
"""

from __future__ import annotations

import csv
import re
import runpy
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"<!-- from (?P<path>\S+) -->\n.*?<!-- end -->\n", flags=re.DOTALL)


def written_out(page: str) -> str:
    """The page with every marked block as its file is now."""
    return BLOCK.sub(_block, page)


def _block(found: re.Match[str]) -> str:
    path = found["path"]
    if path in TABLES:
        text = TABLES[path]()
    else:
        text = (ROOT / path).read_text(encoding="utf-8").strip("\n")
        if (language := {".py": "python", ".toml": "toml"}.get(Path(path).suffix)) is not None:
            text = f"```{language}\n{text}\n```"
    return f"<!-- from {path} -->\n\n{text}\n\n<!-- end -->\n"


def messages_on_the_wire() -> str:
    """Every kind of message between a site and the coordinator, and every field of it; equal fields are explained once."""
    from dffl.deploy.messages import KINDS, TO_SERVER, TO_SITE

    parts, explained = [], set()
    for direction in (TO_SERVER, TO_SITE):
        lines = []
        for name, kind in KINDS.items():
            if kind.direction != direction:
                continue
            lines.append(f"- **{name}**: {kind.why}")
            for field, known in kind.fields.items():
                again = (field, known) in explained  # `run`, `job` and `round` are in many messages
                lines.append(f"    - `{field}`" if again else f"    - `{field}` ({known.holds}): {known.why}")
                explained.add((field, known))
        parts += [f"**{direction[0].upper()}{direction[1:]}**", "\n".join(lines)]
    return "\n\n".join(parts)


def items_of_the_paper() -> str:
    """Every definition, statement, table and figure of the paper, with its place in the code and a verdict."""
    return str(runpy.run_path(str(ROOT / "docs" / "paper_items.py"))["page"]())


LEADERBOARD = "studies/results/leaderboard/tables"
PROBLEMS = ("knapsack", "portfolio", "shortest-path", "zones-weather", "zones-past-prices")


def leaderboard_in_one_table() -> str:
    """The mean relative regret of every entry on every problem, in percent, ordered by the first problem."""
    means: dict[str, dict[str, str]] = {}
    for problem in PROBLEMS:
        with (ROOT / LEADERBOARD / f"methods-{problem}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["statistic"] == "mean":
                    means.setdefault(row["entry"], {})[problem] = f"{float(row['ours']):.2f}"
    rows = ["| entry | " + " | ".join(name.replace("-", " ") for name in PROBLEMS) + " |", "|---" * (len(PROBLEMS) + 1) + "|"]
    rows += [f"| {entry} | " + " | ".join(mean.get(name, "") for name in PROBLEMS) + " |" for entry, mean in means.items()]
    return "\n".join(rows)


TABLES = {
    "src/dffl/deploy/messages.py": messages_on_the_wire,
    "docs/paper_items.toml": items_of_the_paper,
    LEADERBOARD: leaderboard_in_one_table,
}


def pages() -> list[Path]:
    """The pages that may have such blocks."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


if __name__ == "__main__":
    from consoles import has_commands, run_again
    from notebooks import executed, notebooks

    for path in [*pages(), *notebooks()]:
        if sys.argv[1:] and path.name not in sys.argv[1:]:
            continue
        before = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            if path.suffix == ".ipynb":
                import nbformat

                after = nbformat.writes(executed(path, Path(folder))) + "\n"
            else:
                after = written_out(before)
                after = run_again(after, Path(folder)) if has_commands(after) else after
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"rewrote {path.relative_to(ROOT)}")

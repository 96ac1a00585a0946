"""Run what a page types, so that no output in a page is typed by hand.

A page is followed from top to bottom in an empty folder, beside a copy of ``examples/``:

- a block with a title, as in ```` ```toml title="federation.toml" ````, is written to that file;
- with the title ``federation.toml, continued`` it is added to the file, after an empty line;
- a block of the language ``diff`` with a title changes the file: lines with ``-`` must stand there once and become those with
  ``+``;
- in a block of the language ``console``, every line that begins with ``$ `` is run, and what it prints stands below it. A
  command that fails is followed by ``$ echo $?``: a failure that nobody meant stops the run.

`docs/write_out.py` puts what was printed into the pages; a test compares the two, numbers with a tolerance.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCED = re.compile(r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', flags=re.DOTALL | re.MULTILINE)
CONTINUED = ", continued"
SHOWS_CODE = "echo $?"
SECONDS = 600


class Console:
    """A folder in which the blocks of one page are carried out."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.code = 0
        """How the last command ended."""
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))

    def carried_out(self, block: re.Match[str]) -> str:
        """The block as it should stand in the page."""
        if block["language"] == "console":
            return f"```console\n{self.typed(block['text'])}```"
        if block["title"]:
            self.write(block["language"], block["title"], block["text"])
        return block[0]

    def typed(self, text: str) -> str:
        """Commands with what they print."""
        commands = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
        if not commands:
            raise ValueError(f"a block of the language console has no line that begins with '$ ': {text[:60]!r}")
        shown = ""
        for command, following in zip(commands, [*commands[1:], ""], strict=True):
            shown += f"$ {command}\n{self.run(command)}"
            if self.code and following != SHOWS_CODE:
                raise ValueError(f"a command failed, and no `$ {SHOWS_CODE}` follows:\n{shown}")
        return shown

    def run(self, command: str) -> str:
        """What one command prints; `cd` moves on."""
        if command.startswith("cd "):
            self.folder = (self.folder / command.removeprefix("cd ")).resolve(strict=True)
            return ""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        done = subprocess.run(
            ["sh", "-c", f"(exit {self.code}); {command}"], cwd=self.folder, env=os.environ | {"PATH": path}, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", timeout=SECONDS,
        )  # fmt: skip
        self.code = done.returncode
        printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        return f"{printed}\n" if printed else ""

    def write(self, language: str, title: str, text: str) -> None:
        """Write, continue or change a file."""
        path = self.folder / title.removesuffix(CONTINUED)
        if language == "diff":
            path.write_text(changed(path.read_text(encoding="utf-8"), text, title), encoding="utf-8")
        elif title.endswith(CONTINUED):
            path.write_text(f"{path.read_text(encoding='utf-8')}\n{text}", encoding="utf-8")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def changed(text: str, diff: str, title: str) -> str:
    """A text after a diff of one change: lines with - stand there once, one below the other, and become those with +."""
    old, new = ("".join(f"{line[1:]}\n" for line in diff.splitlines() if line.startswith(sign)) for sign in "-+")
    found = re.compile(f"^{re.escape(old)}", flags=re.MULTILINE)
    if not old or len(found.findall(text)) != 1:
        raise ValueError(f"{title}: must have these lines once: {old!r}")
    return found.sub(lambda _: new, text)


def has_commands(page: str) -> bool:
    """Whether a page types anything."""
    return any(block["language"] == "console" for block in FENCED.finditer(page))


def run_again(page: str, folder: Path) -> str:
    """The page with what its commands print now."""
    console = Console(folder)
    return FENCED.sub(console.carried_out, page)

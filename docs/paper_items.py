"""The page "The paper, item by item", from the list `docs/paper_items.toml`. `docs/write_out.py` puts it into the page."""

from __future__ import annotations

import re
import runpy
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "paper_items.toml"
STUDY = "dffl paper --show --out studies/results/paper"
MARKET = "dffl energy run PANEL --as-published --market pjm"
REPEATED = (STUDY, MARKET)
"""The commands of most figures and tables, which the page shows once."""
CALLS = f"`{STUDY}` writes the results of section 6 and the appendix, `{MARKET}` those of section 6.4. Before the calls:"
AGREES = ("holds", "as printed", "reproduced")
"""Verdicts that need no remark."""
LISTED = ("false as printed", "left open", "not reproduced", "cannot be had here")
"""Verdicts whose items the contents name; of the others they give the number."""
COMMENT = re.compile(r"\s+# (?P<words>.*)$")


def read() -> dict[str, Any]:
    """The list: setup, kinds of verdicts, sections with their items."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def items(listed: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All items, in the order of the paper."""
    for section in listed["section"]:
        yield from section["item"]


def page() -> str:
    """What stands between the markers of the page."""
    listed = read()
    measured: Callable[[str], str] = runpy.run_path(str(ROOT / "docs" / "paper_measured.py"))["sentence"]
    setup = f"```python\n{listed['setup'].strip()}\n```"
    parts = [_index(listed), "## What the calls need", CALLS, setup]
    for section in listed["section"]:
        parts.append(f"## {_heading(section)}")
        parts += [_block(item, measured) for item in section["item"]]
    return "\n\n".join(parts)


def place(name: str) -> tuple[str, str]:
    """The file of an object's full name, and the object's name in it; empty for a module."""
    words = name.split(".")
    for length in range(len(words), 0, -1):
        home = ROOT / "studies" if words[0] == "dffl_studies" else ROOT
        path = home / "src" / Path(*words[:length])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file.relative_to(ROOT).as_posix(), ".".join(words[length:])
    raise ValueError(f"paper_items.toml: no file holds {name!r}")


def slug(heading: str) -> str:
    """The anchor that a heading has in the repository and on the site."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def _index(listed: dict[str, Any]) -> str:
    """The contents by verdict; pages show their sections themselves."""
    verdicts = ["| verdict | means | items |", "|---|---|---|"]
    for kind, meaning in listed["kinds"].items():
        judged = [item["name"] for item in items(listed) if item["verdict"] == kind]
        links = "" if kind not in LISTED else ", ".join(f"[{name}](#{slug(name)})" for name in judged)
        verdicts.append(f"| **{kind}** ({len(judged)}) | {meaning} | {links} |")
    return "\n\n".join(["## By verdict", "\n".join(verdicts)])


def _heading(section: dict[str, Any]) -> str:
    return f"{section['number']} {section['title']}"


def _block(item: dict[str, Any], measured: Callable[[str], str]) -> str:
    """One item: what it says, the verdict with its reason, its place in the code, and how to call it."""
    verdict = f"**[{_sentence(item['verdict'])}]({item['more']})**"
    near = measured(item["measured"]) if "measured" in item else ""
    said = [_plain(item["says"]), verdict, _plain(item.get("note", "")), near, _where(item)]
    calls = item.get("calls", [])
    if one_line := len(calls) == 1:
        said[-1] += f", {_inline(*calls[0])}"
    parts = [f"### {item['name']}", " ".join(filter(None, said))]
    if calls and not one_line:
        parts.append("```python\n" + "\n".join(_shown(call, value) for call, value in calls) + "\n```")
    if (command := item.get("command")) and command not in REPEATED:
        parts.append(f"`{command}`")
    return "\n\n".join(parts)


def _where(item: dict[str, Any]) -> str:
    """Links to an item's code, and to its result."""
    if item.get("pending"):
        return f"Not yet in this version: {', '.join(f'`{name}`' for name in item['code'])}"
    places = [(file, inside or Path(file).stem) for file, inside in map(place, item["code"])]
    where = ", ".join(f"[`{name}`](../{file})" for file, name in places)
    result = item.get("file", "")
    if result.endswith(".png"):  # the site has the figures, and no tables as pages
        return f"{where}, [`{Path(result).name}`](../{result})"
    return where + (f", `{result}`" if result else "")


def _inline(call: str, value: str) -> str:
    """A single call with what it gives, in a sentence."""
    words = COMMENT.search(call)
    return f"`{COMMENT.sub('', call)}`" + (f": {value}" if value else "") + (f" ({words['words']})" if words else "")


def _shown(call: str, value: str) -> str:
    """A call with what it gives."""
    words = COMMENT.search(call)
    said = ": ".join(part for part in (words["words"] if words else "", value) if part)
    return COMMENT.sub("", call) + (f"  # {said}" if said else "")


def _sentence(words: str) -> str:
    """The words as a sentence, unless they begin with a symbol."""
    first = words[0].upper() if re.match(r"[a-z][a-z]|[a-z]\b(?= \w)", words) else words[0]
    return first + words[1:] + ("" if words.endswith((".", "”")) else ".")


def _plain(text: str) -> str:
    """Text in which an asterisk is one, except in code."""
    return "`".join(part if place % 2 else part.replace("*", r"\*") for place, part in enumerate(text.split("`")))

"""The list behind docs/paper-items.md: it covers the paper, calls give what is shown, and every item has a verdict."""

from __future__ import annotations

import os
import re
import runpy
import shlex
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import typer

ROOT = Path(__file__).parent.parent
PAPER_ITEMS = runpy.run_path(str(ROOT / "docs" / "paper_items.py"))
MEASURED = runpy.run_path(str(ROOT / "docs" / "paper_measured.py"))
WRITE_OUT = runpy.run_path(str(ROOT / "docs" / "write_out.py"))
LISTED: dict[str, Any] = PAPER_ITEMS["read"]()
ITEMS: list[dict[str, Any]] = list(PAPER_ITEMS["items"](LISTED))
THERE = [item for item in ITEMS if not item.get("pending")]
PAPER = Path(os.environ.get("DFFL_PAPER", ROOT.parent / "shared" / "paper.tex"))
FIELDS = {
    "name", "labels", "says", "code", "calls", "command", "file", "measured", "verdict", "note", "more", "pending",
}  # fmt: skip


def test_nothing_is_pending() -> None:
    assert not [item["name"] for item in ITEMS if item.get("pending")]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["name"])
def test_every_item_is_complete(item: dict[str, Any]) -> None:
    assert set(item) <= FIELDS
    for field in ("name", "says", "verdict", "more"):
        assert item[field].strip(), field
    assert item["verdict"] in LISTED["kinds"]
    assert item.get("note") or "measured" in item or item["verdict"] in PAPER_ITEMS["AGREES"], "why?"
    assert item["code"]
    assert item.get("calls") or item.get("command")
    if item["verdict"] == "false as printed":
        assert "Counterexample: " in item["note"]
        assert "True" in item["note"]
    if item["verdict"].startswith("reproduced") and item.get("file", "").startswith("studies/results/paper/tables"):
        assert "measured" in item, "how near?"


def test_names_are_anchors_and_occur_once() -> None:
    names = [item["name"] for item in ITEMS]
    assert [name for name, times in Counter(map(PAPER_ITEMS["slug"], names)).items() if times > 1] == []
    assert all(re.fullmatch(r"[A-Za-z0-9 +-]+", name) for name in names)


@pytest.mark.parametrize("name", sorted({name for item in THERE for name in item["code"]}))
def test_every_name_is_where_the_page_says(name: str) -> None:
    file, inside = PAPER_ITEMS["place"](name)
    module = file.removeprefix("studies/").removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    named: Any = import_module(module)
    for part in inside.split(".") if inside else ():
        named = getattr(named, part)
    assert isinstance(named, ModuleType) or named.__module__ == module


def alike(value: Any, shown: Any) -> bool:
    """Whether a value is what the page shows: numbers to four digits, everything else exactly."""
    if isinstance(shown, dict):
        return bool(value == shown)
    if isinstance(shown, list | tuple):
        return len(value) == len(shown) and all(map(alike, value, shown))
    if isinstance(shown, bool | str):
        return type(value) is type(shown) and bool(value == shown)
    return bool(np.isclose(float(value), shown, rtol=2e-4, atol=6e-5))


def test_every_call_gives_what_the_page_shows() -> None:
    names: dict[str, Any] = {}
    exec(LISTED["setup"], names)
    problems = []
    for item in THERE:
        for call, shown in item.get("calls", ()):
            try:
                if re.match(r"\w+ = ", call):
                    exec(call, names)
                elif shown:
                    value = eval(call, names)
                    if not alike(value, eval(shown, {"inf": float("inf")})):
                        problems.append(f"{item['name']}: {call} gives {value}, not {shown}")
                else:
                    eval(call, names)
            except Exception as error:
                problems.append(f"{item['name']}: {call}: {type(error).__name__}: {error}")
    assert problems == []


def test_alike_tells_values_apart() -> None:
    assert alike((np.float32(1.0), [True, "a"]), (1.0, [True, "a"]))
    assert not alike(1.001, 1.0)
    assert not alike([1.0, 2.0], [1.0])
    assert not alike(1.0, True)
    assert not alike(float("inf"), 1.0)


@pytest.mark.parametrize("command", sorted({item["command"] for item in THERE if "command" in item}))
def test_every_command_and_its_options_exist(command: str) -> None:
    from dffl.cli import app

    program, *words = shlex.split(command)
    assert program == "dffl"
    known: Any = typer.main.get_command(app)
    while hasattr(known, "commands"):
        assert words, f"{command}: no command"
        name = words.pop(0)
        known = known.get_command(None, name) or pytest.fail(f"no command {name}")
    known.make_context(known.name, words)  # refuses unknown options and bad values; runs nothing


def test_an_unknown_option_would_be_seen() -> None:
    with pytest.raises(Exception, match="No such option"):
        test_every_command_and_its_options_exist("dffl paper --no-such-option")
    with pytest.raises(pytest.fail.Exception, match="no command papers"):
        test_every_command_and_its_options_exist("dffl papers")


@pytest.mark.parametrize("item", [item for item in THERE if "file" in item], ids=lambda item: item["name"])
def test_every_result_is_there(item: dict[str, Any]) -> None:
    assert (ROOT / item["file"]).is_file()


def test_numbers_that_are_measured_are_not_typed() -> None:
    assert all(MEASURED["sentence"](item["measured"]) for item in ITEMS if "measured" in item)
    with pytest.raises(ValueError, match="measured must be one of"):
        MEASURED["sentence"]("nothing")


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["name"])
def test_links_lead_to_headings(item: dict[str, Any]) -> None:
    for target in [item["more"], *re.findall(r"\]\(([^)]+)\)", item.get("note", ""))]:
        page, _, anchor = target.partition("#")
        text = (ROOT / "docs" / (page or "paper-items.md")).read_text(encoding="utf-8")
        assert not anchor or anchor in map(PAPER_ITEMS["slug"], re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)), target


def test_the_page_is_what_the_list_gives() -> None:
    text = (ROOT / "docs" / "paper-items.md").read_text(encoding="utf-8")
    assert "<!-- from docs/paper_items.toml -->" in text
    assert WRITE_OUT["written_out"](text) == text, "make docs-write-out"


# The paper's own source, where it is at hand


STATEMENTS = ("theorem", "lemma", "corollary", "proposition", "definition", "assumption", "example", "remark")
TOKEN = re.compile(
    r"\\(?P<what>begin|end|caption|captionof|label|section|subsection|subsubsection)(?P<star>\*?)\{(?P<name>[^}]*)\}?"
)


def numbered(source: str) -> tuple[set[str], dict[str, str]]:
    """What LaTeX numbers in a source ("Lemma 1"), and for each label what it belongs to ("section" for a heading)."""
    counts: Counter[str] = Counter()
    labels: dict[str, str] = {}
    names, floats, last = set(), [], ""

    def count(kind: str) -> str:
        counts[kind] += 1
        names.add(f"{kind} {counts[kind]}")
        return f"{kind} {counts[kind]}"

    for token in TOKEN.finditer(re.sub(r"(?<!\\)%.*", "", source)):
        what, name = token["what"], token["name"]
        if what == "begin" and name in STATEMENTS:
            last = count(name.capitalize())
        elif what == "begin" and name in ("equation", "dmath"):
            last = count("Equation")
        elif what == "begin" and name in ("figure", "table", "algorithm", "subfigure"):
            floats.append(name)
        elif what == "end" and floats and name == floats[-1]:
            floats.pop()
        elif what == "caption" and floats[-1] == "subfigure":
            last = f"Figure {counts['Figure'] + 1}"  # of the figure whose caption follows
        elif what == "caption":
            last = count(floats[-1].capitalize())
        elif what == "captionof":
            last = count(name.capitalize())
        elif what.endswith("section"):
            last = "section"
        elif what == "label":
            labels[name] = last
    return names, labels


def test_numbers_are_those_of_latex() -> None:
    source = r"""
\section{One}\label{s} \begin{lemma}\label{a}\end{lemma} \begin{equation}x\label{e}\end{equation} \begin{dmath*}\end{dmath*}
\begin{figure}\begin{subfigure}\caption{i}\label{i}\end{subfigure}\caption{f}\label{f}\end{figure} % \label{no}
\begin{figure}\captionof{table}{t}\label{t}\captionof{figure}{g}\label{g}\end{figure} \begin{lemma}\label{b}\end{lemma}
"""
    names, labels = numbered(source)
    assert names == {"Lemma 1", "Lemma 2", "Equation 1", "Figure 1", "Figure 2", "Table 1"}
    assert labels == {
        "s": "section", "a": "Lemma 1", "e": "Equation 1", "i": "Figure 1", "f": "Figure 1", "t": "Table 1", "g": "Figure 2",
        "b": "Lemma 2",
    }  # fmt: skip


def test_the_list_covers_the_paper() -> None:
    if not PAPER.is_file():
        pytest.skip("needs the paper's LaTeX source: set DFFL_PAPER")
    names, labels = numbered(PAPER.read_text(encoding="utf-8"))
    assert len(names) >= 65
    kinds = {name.split()[0] for name in names}
    assert names == {item["name"] for item in ITEMS if re.fullmatch(rf"({'|'.join(kinds)}) \d+", item["name"])}
    covered = {label: item["name"] for item in ITEMS for label in item.get("labels", ())}
    covered |= {label: "section" for section in LISTED["section"] for label in section.get("labels", ())}
    assert labels == covered

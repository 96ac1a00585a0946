"""What the documents show runs, is what the files hold, and leads somewhere; the rooms that they draw are there."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import dffl
from dffl.tables.description import read
from dffl.tables.sets_by_name import required
from dffl.terminal import Exit

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dffl"
WRITE_OUT = runpy.run_path(str(ROOT / "docs" / "write_out.py"))
CONSOLES = runpy.run_path(str(ROOT / "docs" / "consoles.py"))
NOTEBOOKS = runpy.run_path(str(ROOT / "docs" / "notebooks.py"))
PAGES: list[Path] = WRITE_OUT["pages"]()
LONGEST = 120
NEEDS = {"pyepo_model.py": ("pyepo", "pyomo")}
"""What examples need that not everybody has."""
DATA = os.environ.get("DFFL_ENERGY_DATA", "")
# Figures of the demo's size stay out of CI: blocks that train for long run with fewer rounds.
SHORT = "import dffl, functools\ndffl.compare = functools.partial(dffl.compare, rounds=1)\n"


def run(code: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def own_text(page: Path) -> str:
    """The page without what it shows of other files: examples run by themselves."""
    return WRITE_OUT["BLOCK"].sub("", page.read_text())


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", own_text(page), flags=re.DOTALL)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    for package in NEEDS.get(example.name, ()):
        if find_spec(package) is None:  # not imported here: PyEPO loads OR-Tools, beside which HiGHS cannot be loaded
            pytest.skip(f"needs {package}: pip install 'dffl[pyepo]'")
    run(f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__')", tmp_path)


@pytest.mark.parametrize("page", [p for p in PAGES if python_blocks(p)], ids=lambda p: p.name)
def test_python_blocks_run_in_order(page: Path, tmp_path: Path) -> None:
    code = "\n".join(python_blocks(page))
    if "FOLDER" in code and not DATA:
        pytest.skip("needs the real zones: set DFFL_ENERGY_DATA")
    run(SHORT + code.replace("FOLDER", DATA), tmp_path)


def test_the_checks_of_the_theory_page_hold(tmp_path: Path) -> None:
    run((ROOT / "docs" / "theory_checks.py").read_text(), tmp_path)


NUMBER = re.compile(r"\d+(\.\d+)?")


def assert_alike(shown: str, found: str) -> None:
    """The words are the same; numbers may differ a little, as processors round differently."""
    words = [re.sub(r"[\s─━]+", " ", NUMBER.sub("#", text)) for text in (shown, found)]  # numbers change the width of tables
    assert words[0] == words[1]
    numbers = [[float(number[0]) for number in NUMBER.finditer(text)] for text in (shown, found)]
    assert numbers[1] == pytest.approx(numbers[0], rel=0.05, abs=0.05)


@pytest.mark.parametrize("page", [p for p in PAGES if CONSOLES["has_commands"](p.read_text())], ids=lambda p: p.name)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    assert_alike(text, CONSOLES["run_again"](text, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS["notebooks"](), ids=lambda p: p.name)
def test_notebooks_show_what_their_cells_give(path: Path, tmp_path: Path) -> None:
    import nbformat

    stored, found = (NOTEBOOKS["shown"](one) for one in (nbformat.read(path, 4), NOTEBOOKS["executed"](path, tmp_path)))
    assert any(stored)
    for kept, new in zip(stored, found, strict=True):
        assert_alike(kept, new)


def test_links_of_notebooks_lead_somewhere() -> None:
    for path in NOTEBOOKS["notebooks"]():
        for target in re.findall(r"\]\((\.\.[^)#\s]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_federations_of_data_questions_can_be_trained_on(tmp_path: Path) -> None:
    text = (ROOT / "docs/data-questions.md").read_text()
    console = CONSOLES["Console"](tmp_path)
    for block in (found for found in CONSOLES["FENCED"].finditer(text) if found["title"]):
        console.write(block["language"], block["title"], block["text"])
    files = sorted(tmp_path.glob("*/federation.toml"))
    assert len(files) == text.count("```toml")
    for file in files:
        described = read(file)
        after = text.partition(f'title="{file.parent.name}/federation.toml"')[2].partition("```toml")[0]
        if said := re.search(r"It becomes the features (.*?)\.\n", after, flags=re.DOTALL):
            assert tuple(re.findall(r"`(.*?)`", said[1])) == described.encoding.feature_names
        fit = dffl.fit(described.train, "ridge", **described.settings)
        for client in described.test:
            decisions = fit.decide(client.name, client.x)
            assert client.set.contains(decisions).all()
            if file.parent.name == "whole":
                assert (decisions == decisions.round()).all()
                assert decisions.any()
    assert text.count("It becomes the features") == 3
    whole, units, one = (read(tmp_path / name / "federation.toml") for name in ("whole", "units", "one"))
    assert whole.settings["relax"]
    assert units.units == {"mill": "EUR", "bruk": "SEK"}
    assert [(client.name, client.maximize) for client in one.train] == [("dam", True), ("mill", False)]


def test_advice_finds_the_reversed_prices_of_the_tutorial() -> None:
    def kitchen(name: str, reverse: bool) -> dffl.Client:
        table = pd.read_csv(ROOT / "examples/tutorial" / f"{name}.csv").ffill()
        prices = [column for column in table if column.startswith("price_")]
        x = pd.get_dummies(table[["sky", "temp", "harvest"]], dtype=float)
        return dffl.Client(name, x, table[prices].to_numpy()[:, :: -1 if reverse else 1], dffl.TopK(8, 3))

    for odd in ("none", "office"):
        kitchens = dffl.Federation([kitchen(name, name == odd) for name in ("hospital", "office", "school")])
        table = dffl.advise(kitchens, quick=True, progress=False).table
        named = table["reason"].str.contains("main cause: your prices", regex=False)
        assert table.loc[named, "client"].tolist() == [name for name in kitchens.names if name == odd]


def test_a_page_is_carried_out_from_top_to_bottom(tmp_path: Path) -> None:
    def page(first: str, second: str) -> str:
        return f"""
```text title="in/list.txt"
one
two
```

```console
$ cd in
$ cat list.txt
{first}```

```diff title="list.txt"
-two
+2
```

```text title="list.txt, continued"
four
```

```console
$ cat list.txt; exit 3
{second}$ echo $?
3
```
"""

    typed, right = page("", "wrong\n"), page("one\ntwo\n", "one\n2\n\nfour\n")
    assert CONSOLES["run_again"](typed, tmp_path) == right
    with pytest.raises(AssertionError):
        assert_alike(typed, right)
    with pytest.raises(AssertionError):
        assert_alike("loses 2.23 %", "loses 2.43 %")
    assert_alike("│ 9.98 │\n└──────┘", "│ 10.02 │\n└───────┘")


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("```console\n$ exit 3\n```", "a command failed"),
        ("```console\ndffl init\n```", "no line that begins"),
        ('```text title="a"\none\none\n```\n```diff title="a"\n-one\n+two\n```', "must have these lines once"),
        ('```text title="a"\none\n```\n```diff title="a"\n-on\n+two\n```', "must have these lines once"),
    ],
)
def test_a_page_that_cannot_be_carried_out_is_refused(block: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=problem):
        CONSOLES["run_again"](block, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_shown_files_are_as_their_sources(page: Path) -> None:
    text = page.read_text()
    assert text.count("<!-- from ") == len(WRITE_OUT["BLOCK"].findall(text)), f"{page.name}: a marker without its end"
    assert WRITE_OUT["written_out"](text) == text, f"{page.name} differs from the files that it shows: make docs-write-out"


def test_every_example_is_shown_or_linked_in_a_page() -> None:
    pages = [page.read_text() for page in PAGES]
    shown = {path for text in pages for path in WRITE_OUT["BLOCK"].findall(text)}
    linked = {path for text in pages for path in re.findall(r"\]\(\.\./(examples/[\w.]+)\)", text)}
    assert {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")} <= shown | linked


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_lines_are_short(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", own_text(page), flags=re.DOTALL)
    lines = [line for line in prose.splitlines() if not line.startswith("|")]  # a row of a table is one line
    assert not [line for line in lines if len(line) > LONGEST]


def test_the_table_of_exit_codes_has_every_code() -> None:
    codes = re.findall(r"^\| (\d+) \|", (ROOT / "docs/exit-codes.md").read_text(), flags=re.MULTILINE)
    assert codes == [str(code.value) for code in Exit]


def test_the_readme_is_one_screen_and_a_half() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 75
    assert max(map(len, lines)) <= LONGEST


def drawn_rooms() -> list[str]:
    """The paths in CONTRIBUTING's tree, relative to the package; folders end in a slash."""
    tree = re.search(r"## The rooms.*?```\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)
    assert tree
    paths: list[str] = []
    above: list[str] = []
    for line in tree[1].splitlines():
        name, meaning = line.split(maxsplit=1)
        assert meaning
        above[(len(line) - len(line.lstrip())) // 2 :] = [name]
        paths.append("".join(above))
    return paths


def test_the_table_of_sets_has_every_family_with_its_parameters() -> None:
    rows = [line.split("|") for line in (ROOT / "docs/own-data.md").read_text().splitlines() if line.startswith("| `")]
    shown = {row[1].strip(" `"): row[3] for row in rows if len(row) == 5}
    for name, family in dffl.FeasibleSet.by_toml_name.items():
        if not family.__module__.startswith("dffl."):  # of another test
            continue
        needed, _, optional = shown[name].partition("[")
        assert re.findall("`(\\w+)`", needed) == required(family), name
        assert set(re.findall("`(\\w+)`", optional)) == set(family.toml_parameters) - set(required(family)), name


def test_contributing_draws_the_rooms_that_there_are() -> None:
    folders = {f"{file.parent.relative_to(SOURCE).as_posix()}/" for file in SOURCE.rglob("*/__init__.py")}
    modules = {file.name for file in SOURCE.glob("*.py") if not file.name.startswith("__")}
    drawn = drawn_rooms()
    assert len(drawn) == len(set(drawn))
    assert {path for path in drawn if path.endswith("/")} == folders
    assert {path for path in drawn if not path.endswith("/") and "/" not in path} == modules
    assert all((SOURCE / path).exists() for path in drawn)


def test_contributing_draws_the_rooms_in_the_order_of_their_imports() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    level = {name.strip(): n for n, layer in enumerate(contract["layers"]) for name in layer.split("|")}
    tops = [path for path in drawn_rooms() if "/" not in path.rstrip("/")]
    levels = [level[f"dffl.{path.removesuffix('/').removesuffix('.py')}"] for path in tops]
    assert levels == sorted(levels)


def test_the_table_of_the_start_page_is_what_its_example_prints() -> None:
    printed = subprocess.run(
        [sys.executable, ROOT / "examples/quickstart.py"], capture_output=True, text=True, check=True
    ).stdout
    found = {(words[1], words[2]): 100 * float(words[3]) for line in printed.splitlines() if len(words := line.split()) == 5}
    page = (ROOT / "docs/index.md").read_text()
    [header, _, *rows] = re.search(r"\n\n(\| \| mean-cost .*?)\n\n", page, flags=re.DOTALL)[1].splitlines()  # type: ignore[index]
    methods = [cell.strip() for cell in header.strip("|").split("|")][1:]
    assert len(rows) == 3
    for row in rows:
        client, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        for method, cell in zip(methods, cells, strict=True):
            assert float(cell) == pytest.approx(found[client.split()[0], method], rel=0.02), (client, method)

"""Extensions of other packages: found by entry points, named when they cannot be used, and never in the way of the rest."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import dffl
from dffl import plugins
from dffl.cli import app
from dffl.named import find
from dffl.tables.sets_by_name import make_set
from dffl.training import METHODS

ROOT = Path(__file__).parent.parent


class Package(Distribution):
    """An installed package of this name, version 1, with its requirements."""

    def __init__(self, name: str, *requires: str) -> None:
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {text}" for text in requires)]
        self.text = "\n".join(lines) + "\n"

    def read_text(self, filename: str) -> str | None:
        return self.text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


def entry(package: str, name: str, value: str, group: str = "dffl.commands") -> EntryPoint:
    made = EntryPoint(name, value, group)
    vars(made)["dist"] = Package(package)
    return made


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let these entry points be those of all installed packages."""

    def install(*entries: EntryPoint) -> None:
        monkeypatch.setattr(plugins, "entry_points", lambda group: [one for one in entries if one.group == group])

    return install


def hello(name: str = "you") -> None:
    """Greet NAME."""
    typer.echo(f"hello {name}")


HERE = f"{__name__}:hello"


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_a_command_of_another_package_is_listed_in_its_own_group_and_runs(installed: Any) -> None:
    installed(entry("greetings", "hello", HERE))
    shown = call("--help").output
    assert "Commands of greetings" in shown
    assert "Greet NAME." in shown
    assert call("hello", "--name", "mill").output == "hello mill\n"


def test_one_that_ends_the_program_when_it_is_imported_is_named(
    installed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_that_exits.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    installed(entry("quitter", "quit", "module_that_exits:quit", "dffl.losses"))
    with pytest.raises(
        ValueError, match=r"dffl.losses 'quit' of quitter 1.0 \(module_that_exits:quit\) cannot be imported: 0;"
    ):
        dffl.Loss.of("quit")


def test_one_that_cannot_be_imported_is_named_and_the_rest_works(installed: Any) -> None:
    installed(entry("broken", "bad", "no_such_module_at_all:bad"), entry("greetings", "hello", HERE))
    with pytest.warns(UserWarning, match=r"dffl.commands 'bad' of broken 1.0 \(no_such_module_at_all:bad\) cannot be imported"):
        shown = call("--help").output
    assert "Greet NAME." in shown
    assert "demo" in shown


def test_one_for_another_version_names_the_version(installed: Any) -> None:
    old = entry("old", "bad", "no_such_module_at_all:bad")
    vars(old)["dist"] = Package("old", "dffl-studies", "numpy>=2", "dffl<0.1")
    installed(old, entry("greetings", "hello", HERE))
    wrong = rf"'bad' of old 1.0 .* cannot be imported: .*; update .* \(made for dffl<0.1, this is {dffl.__version__}\)"
    with pytest.warns(UserWarning, match=wrong):
        shown = call("--help").output
    assert "Greet NAME." in shown


def test_a_name_of_dffl_itself_is_not_replaced(installed: Any) -> None:
    installed(entry("greetings", "demo", HERE), entry("greetings", "hello", HERE))
    with pytest.warns(UserWarning, match="dffl.commands 'demo' of greetings 1.0: dffl has this name itself"):
        shown = call("--help").output
    assert "Train 20 knapsack clients" in shown
    assert "Greet NAME." in shown


def test_two_packages_with_one_name_are_both_named(installed: Any) -> None:
    installed(entry("first", "hello", HERE), entry("second", "hello", "elsewhere:hello"))
    found = plugins.plugins("dffl.commands")
    assert not found.usable
    assert found.problems == {
        "hello": "dffl.commands 'hello' of second 1.0 and dffl.commands 'hello' of first 1.0 have one name; "
        "remove one of the packages"
    }


def test_what_is_no_command_is_named(installed: Any) -> None:
    installed(entry("odd", "version", f"{__name__}:HERE"))
    with pytest.warns(UserWarning, match="dffl.commands 'version' of odd 1.0: must be a function or a typer.Typer, found str"):
        assert call("version").exit_code == 2


def test_without_the_studies_a_panel_is_refused_with_what_to_install(installed: Any, tmp_path: Path) -> None:
    installed()
    (tmp_path / "panel.csv").write_text("zone,day\n")
    answer = call("advise", str(tmp_path / "panel.csv"))
    assert answer.exit_code == 3
    assert "panels of electricity markets need the package dffl-studies" in answer.stderr


def test_both_distributions_have_one_version() -> None:
    studies = tomllib.loads((ROOT / "studies" / "pyproject.toml").read_text())["project"]
    assert studies["version"] == dffl.__version__
    assert f"dffl=={dffl.__version__}" in studies["dependencies"]


NAMED = {
    "dffl.losses": (dffl.Loss.known, "loss", "a subclass of Loss with name = \"extra\""),
    "dffl.aggregators": (dffl.Aggregator.known, "aggregator", "a subclass of Aggregator with name = \"extra\""),
    "dffl.methods": (METHODS, "method", "a function with @dffl.method('extra')"),
    "dffl.sets": (dffl.FeasibleSet.by_toml_name, "set", "a subclass of dffl.FeasibleSet with toml_name = \"extra\""),
}  # fmt: skip
groups = pytest.mark.parametrize("group", NAMED)


@groups
def test_a_name_that_is_not_known_lists_what_is_installed_and_imports_nothing(installed: Any, group: str) -> None:
    known, what, _ = NAMED[group]
    installed(entry("more", "extra", "no_such_module_at_all:extra", group))
    with pytest.raises(ValueError, match=rf"unknown {what} 'extras'; did you mean 'extra'\? \(allowed: .*, extra\)$"):
        find(known, "extras", what)
    assert "extra" not in known


@groups
def test_one_of_these_that_cannot_be_imported_is_named_and_the_rest_works(installed: Any, group: str) -> None:
    known, what, _ = NAMED[group]
    installed(entry("broken", "extra", "no_such_module_at_all:extra", group))
    wrong = rf"^{group} 'extra' of broken 1.0 \(no_such_module_at_all:extra\) cannot be imported: No module named .*; update or"
    with pytest.raises(ValueError, match=wrong):
        find(known, "extra", what)
    first = next(iter(known))
    assert find(known, first, what) is known[first]


@groups
def test_one_of_the_wrong_kind_is_named_with_what_it_must_be(installed: Any, group: str) -> None:
    known, what, wanted = NAMED[group]
    installed(entry("odd", "extra", HERE, group))
    place = f"{group} 'extra' of odd 1.0 ({HERE})"
    with pytest.raises(ValueError, match=f"^{re.escape(f'{place}: must be {wanted}, found <function hello')}"):
        find(known, "extra", what)
    assert "extra" not in known


@groups
def test_two_packages_with_one_name_are_refused_when_it_is_asked_for(installed: Any, group: str) -> None:
    known, what, _ = NAMED[group]
    installed(entry("first", "extra", HERE, group), entry("second", "extra", "elsewhere:extra", group))
    with pytest.raises(ValueError, match=f"^{group} 'extra' of second 1.0 and {group} 'extra' of first 1.0 have one name"):
        find(known, "extra", what)


@groups
def test_none_of_these_replaces_a_name_of_dffl(installed: Any, group: str) -> None:
    known, what, _ = NAMED[group]
    first = next(iter(known))
    before = known[first]
    installed(entry("greedy", first, "no_such_module_at_all:extra", group))
    assert find(known, first, what) is before


def test_a_plugin_that_registers_a_name_of_dffl_is_refused_as_a_whole(
    installed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "greedy_losses.py").write_text(
        'import dffl\nclass Extra(dffl.Loss):\n    name = "extra"\nclass Other(dffl.Loss):\n    name = "mse"\n'
    )
    installed(entry("greedy", "extra", "greedy_losses:Extra", "dffl.losses"))
    with pytest.raises(ValueError, match=r"of greedy 1.0 .* cannot be imported: loss 'mse' is there already"):
        dffl.Loss.of("extra")
    assert "extra" not in dffl.Loss.known
    assert dffl.Loss.of("mse").name == "mse"


def test_a_federation_file_names_the_package_of_a_set_that_fails(installed: Any, tmp_path: Path) -> None:
    installed(entry("broken", "extra", "no_such_module_at_all:extra", "dffl.sets"))
    with pytest.raises(ValueError, match=r"^here.type: dffl.sets 'extra' of broken 1.0 .* cannot be imported"):
        make_set({"type": "extra"}, ["a", "b"], tmp_path, "here")
    with pytest.raises(ValueError, match=r"^here.type: unknown type 'extras'; did you mean 'extra'\? \(allowed: .*, extra\)$"):
        make_set({"type": "extras"}, ["a", "b"], tmp_path, "here")

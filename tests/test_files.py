"""Outputs: never an input, never anything but a regular file, and an error of the system names the file."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dffl
from dffl.cli import app
from dffl.deploy.credentials import read_request
from dffl.files import naming, require_target, write_text, write_whole
from dffl.tables.sources import require_file
from tests.tables.made import files, write

READS = "must not be a file that this command reads"


def spellings(folder: Path, name: str) -> dict[str, Path]:
    """An existing file under other paths, and links to it."""
    (folder / "link").symlink_to(folder / name)
    os.link(folder / name, folder / "hard")
    (folder / "again").symlink_to(folder, target_is_directory=True)
    return {
        "itself": folder / name,
        "dots": folder / "again" / ".." / folder.name / name,
        "folder link": folder / "again" / name,
        "link": folder / "link",
        "hard link": folder / "hard",
        "relative": Path(os.path.relpath(folder / name)),
    }


def test_an_input_is_recognised_under_every_path(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a\n")
    for what, path in spellings(tmp_path, "in.csv").items():
        with pytest.raises(ValueError, match=f"--out {READS}, found '.*'; name another file") as caught:
            require_target(path, "--out", [tmp_path / "other", tmp_path / "in.csv"])
        assert str(path) in str(caught.value), what
    require_target(tmp_path / "new", "--out", [tmp_path / "in.csv"])
    for ending in ("-wal", "-shm", "-journal", ".wal"):  # the last changes of a database
        with pytest.raises(ValueError, match=f"--out {READS}"):
            require_target(tmp_path / f"in.db{ending}", "--out", [tmp_path / "in.db"])
    (tmp_path / "old").write_text("")
    require_target(tmp_path / "old", "--out", [tmp_path / "in.csv"])  # a regular file that is no input may be replaced


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("a named pipe", os.mkfifo),
        ("a symbolic link; name the file that it points to", lambda path: path.symlink_to("/dev/null")),
        ("a symbolic link; name the file that it points to", lambda path: path.symlink_to(path.with_name("nothing"))),
        ("a socket", _socket),
        ("a folder", Path.mkdir),
    ],
)
def test_only_regular_files_are_replaced(
    tmp_path: Path, kind: str, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    path = Path("out")
    make(path)
    before = path.lstat()
    with pytest.raises(ValueError, match=f"must be a regular file or a new one, found 'out', which is {kind}"):
        write_text(path, "text")
    with pytest.raises(ValueError, match="--out must "):
        require_target(path, "--out")
    assert path.lstat() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_device_is_refused() -> None:
    with pytest.raises(ValueError, match="--out must be a regular file or a new one, found '/dev/null', which is a device"):
        require_target(Path("/dev/null"), "--out")


def test_errors_of_the_system_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.dffl"

    def full(where: Path) -> None:
        where.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as a write does: without a name

    with pytest.raises(OSError, match=f"No space left on device: '{path}'") as caught:
        write_whole(path, full)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(FileNotFoundError, match=f"No such file or directory: '{tmp_path / 'no' / 'file'}'"):
        write_text(tmp_path / "no" / "file", "")
    with pytest.raises(OSError, match=f"{path}: cannot be written \\(a line of another library\\)"), naming(path):
        raise OSError("a line of\nanother library")
    assert list(tmp_path.iterdir()) == []


def test_a_full_standard_output_is_named() -> None:
    words = [sys.executable, "-c", "from dffl.cli import main; main()", "--version"]
    with open("/dev/full", "w") as full:
        found = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (found.returncode, found.stderr) == (1, "dffl: [Errno 28] No space left on device: 'standard output'\n")


def refused(*words: object) -> str:
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == 3, (found.output, found.exception)
    assert "Traceback" not in found.output
    assert len(found.output.strip().splitlines()) == 1
    return found.output


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A federation and files that are read; none is a real model, because a command refuses its output before it looks."""
    given = files()
    given["federation.toml"] = given["federation.toml"].replace(
        'table = "north.csv"', 'table = { sqlite = "north.db", query = "SELECT 1" }'
    )
    write(tmp_path, given)
    for name in ("north.db", "model.dffl", "new.csv", "prices.csv", "weather.csv", "zones.csv", "panel.csv", "page.html"):
        (tmp_path / name).write_text(f"the content of {name}")
    (tmp_path / "site.toml").write_text('[client]\ntable = "new.csv"\n')
    return tmp_path


FIT = ["fit", "federation.toml", "-o"]
COMMANDS = [
    *([*FIT, name] for name in ("federation.toml", "north.db", "south.csv", "south_test.csv", "items.csv", "east.lp")),
    ["decide", "model.dffl", "new.csv", "-c", "north", "-o", "new.csv"],
    ["decide", "model.dffl", "new.csv", "-c", "north", "-o", "model.dffl"],
    ["export", "model.dffl", "-c", "north", "-o", "model.dffl"],
    ["report", "page.html", "-o", "page.html"],
    ["energy", "panel", "--prices", "prices.csv", "--weather", "weather.csv", "-o", "prices.csv"],
    ["energy", "panel", "--prices", "prices.csv", "--weather", "weather.csv", "-o", "weather.csv"],
    ["energy", "panel", "--prices", "prices.csv", "--weather", "weather.csv", "--zones", "zones.csv", "-o", "zones.csv"],
    ["energy", "train", "panel.csv", "-o", "panel.csv"],
    ["energy", "fetch", "eia", "--year", "2021", "--places", "zones.csv", "-o", "zones.csv"],
    ["energy", "fetch", "eia", "--year", "2021", "--cache", ".", "-o", "panel.csv"],
    ["site", "newcomer", "model.dffl", "--client", "site.toml", "--name", "mill", "-o", "model.dffl"],
    ["site", "newcomer", "model.dffl", "--client", "site.toml", "--name", "mill", "-o", "site.toml"],
    ["site", "newcomer", "model.dffl", "--client", "site.toml", "--name", "mill", "-o", "new.csv"],
    ["federation", "export", ".", "-o", "panel.csv"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_replaces_its_input(place: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    before = {path: path.read_bytes() for path in place.iterdir()}
    assert f"dffl: --out {READS}, found '{words[-1]}'; name another file" in refused(*words)
    assert {path: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "federation.toml", "-o", "other.csv"],
        ["export", "model.dffl", "-c", "north", "-o", "other.csv"],
        ["energy", "train", "panel.csv", "-o", "other.csv"],
        ["site", "newcomer", "model.dffl", "--client", "site.toml", "--name", "mill", "-o", "other.csv"],
        ["federation", "export", "folder", "-o", "other.csv"],
    ],
    ids=" ".join,
)
def test_a_model_replaces_no_table(place: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    (place / "folder").mkdir()
    (place / "other.csv").write_text("the content of other.csv")
    assert "dffl: --out must be a new file or a model, found 'other.csv', which is not" in refused(*words)
    assert (place / "other.csv").read_text() == "the content of other.csv"


def test_pages_and_pictures_replace_no_input_either(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    text = (place / "federation.toml").read_text()
    (place / "federation.toml").write_text(text.replace("east.lp", "page.html").replace("items.csv", "map.png"))
    (place / "map.png").write_text("a table")
    assert f"--report {READS}" in refused("compare", "federation.toml", "--report", "page.html")
    assert f"--figure {READS}" in refused("bounds", "federation.toml", "--figure", "map.png")
    os.link("panel.csv", "hard.html")
    assert f"--report {READS}" in refused("energy", "run", "panel.csv", "--report", "hard.html")
    assert (place / "page.html").read_text() == "the content of page.html"


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "federation.toml", "-o"],
        ["decide", "model.dffl", "new.csv", "-c", "north", "-o"],
        ["export", "model.dffl", "-c", "north", "-o"],
        ["report", "model.dffl", "-o"],
        ["compare", "federation.toml", "--report"],
        ["demo", "--report"],
        ["demo", "--figure"],
        ["bounds", "demo", "--figure"],
        ["federation", "demo", "--figure"],
        ["energy", "train", "panel.csv", "-o"],
        ["energy", "example", "-o"],
        ["energy", "run", "panel.csv", "--report"],
        ["energy", "panel", "--prices", "prices.csv", "--weather", "weather.csv", "-o"],
        ["federation", "export", ".", "-o"],
        ["site", "newcomer", "model.dffl", "--client", "site.toml", "--name", "mill", "-o"],
    ],
    ids=" ".join,
)
def test_no_command_replaces_a_pipe(place: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    name = {"--report": "pipe.html", "--figure": "pipe.png"}.get(words[-1], "pipe.html" if words[0] == "report" else "pipe.csv")
    os.mkfifo(name)
    assert f"{words[-1].replace('-o', '--out')} must be a regular file or a new one" in refused(*words, name)
    assert Path(name).is_fifo()


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "pipe", "-o", "out"],
        ["compare", "pipe"],
        ["init", "pipe", "--client", "north"],
        ["decide", "pipe", "new.csv", "-c", "north"],
        ["federation", "create", "pipe"],
        ["site", "check", "pipe", "--client", "site.toml"],
    ],
    ids=" ".join,
)
def test_no_command_waits_for_a_pipe_that_it_should_read(
    place: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    os.mkfifo("pipe")  # to open it would wait for ever
    line = refused(*words)
    assert "pipe: " in line
    assert "a named pipe, not a" in line


def test_other_readers_refuse_what_may_never_end() -> None:
    zero = Path("/dev/zero")
    with pytest.raises(ValueError, match=r"^/dev/zero: a device, not a regular file$"):
        require_file(zero)
    with pytest.raises(ValueError, match=r"^/dev/zero: cannot be read \(it is a device, not a regular file\)$"):
        read_request(zero)
    with pytest.raises(ValueError, match=r"^/dev/zero: a device, not a saved fit$"):
        dffl.load(zero)


def test_the_checkpoints_of_a_fit_are_looked_at_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    os.mkfifo("m.part-start-2")  # to open it would wait for ever
    assert "found 'm.part-start-2', which is a named pipe" in refused("fit", "federation.toml", "-o", "m", "--starts", "2")


def test_examples_replace_no_dangling_link(tmp_path: Path) -> None:
    for words, name in (
        (["init"], "plant.csv"),
        (["federation", "init"], "plan.toml"),
    ):
        folder = tmp_path / words[0]
        folder.mkdir()
        (folder / name).symlink_to("nothing")
        assert f"{name}: already exists and is not overwritten" in refused(*words, folder)
        assert [path.name for path in folder.iterdir()] == [name]


def test_a_link_to_nothing_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nothing")
    (tmp_path / "file").write_text("")
    for words in (["init"], ["federation", "init"]):
        assert f"{tmp_path / 'link'}: is a symbolic link to nothing; choose" in refused(*words, tmp_path / "link")
        assert f"{tmp_path / 'link'}: is a symbolic link to nothing; choose" in refused(*words, tmp_path / "link" / "below")
        assert f"{tmp_path / 'file'}: is a file; choose" in refused(*words, tmp_path / "file" / "below")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_modes_are_kept_and_new_files_follow_the_umask(tmp_path: Path) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "a")
        write_whole(tmp_path / "secret", lambda where: where.write_text("a"), mode=0o600)
        assert (mode(tmp_path / "new"), mode(tmp_path / "secret")) == (0o640, 0o600)
        for kept in (0o600, 0o644, 0o444):
            (tmp_path / "new").chmod(kept)
            write_text(tmp_path / "new", "b")
            assert mode(tmp_path / "new") == kept
    finally:
        os.umask(before)

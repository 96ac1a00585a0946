"""What all commands share: options, exit codes, and how they answer."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Protocol

import typer

from dffl.files import require_target
from dffl.interrupts import interruptible

if TYPE_CHECKING:
    from rich.console import Console


class Exit(IntEnum):
    """How a command ends; see the docs on exit codes."""

    OK = 0
    FAILED = 1
    USAGE = 2
    BAD_INPUT = 3
    DIVERGED = 4
    QUORUM_LOST = 5
    SOME_UNUSED = 6
    REFIT = 7
    INTERRUPTED = 130


PICTURES = (".png", ".pdf", ".svg", ".jpg")
"""The possible endings of a picture's file name."""

Seed = Annotated[int, typer.Option(help="Fixes everything that is random.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")]
Report = Annotated[
    Path | None, typer.Option(help="Also write a page with charts, tables and a verdict: FILE.html (extra: dffl\\[report]).")
]
Without = Annotated[list[str] | None, typer.Option(help="A zone to leave out; may be repeated.")]


class Answer(Protocol):
    """The result of a command. Some of its jobs may have ``failed``."""

    def show(self, console: Console) -> None: ...

    def as_json(self) -> dict[str, Any]: ...


def settings_of(texts: list[str] | None) -> dict[str, Any]:
    """Settings of training from texts such as ``local_epochs=3``; `dffl.Settings` checks them."""
    settings: dict[str, Any] = {}
    for text in texts or []:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise ValueError(f"--set must be NAME=VALUE, such as local_epochs=3, found {text!r}")
        try:
            settings[name] = ast.literal_eval({"true": "True", "false": "False"}.get(value, value))
        except (ValueError, SyntaxError):
            settings[name] = value  # a text, such as float64
    return settings


def answer(result: Answer, json_: bool) -> None:
    """Print the result of a command, for people or for programs, and fail if a part of it failed."""
    with printing():
        if json_:
            typer.echo(json.dumps(result.as_json()))
        else:
            result.show(console())
    if getattr(result, "failed", None):
        raise typer.Exit(Exit.FAILED)


@contextmanager
def printing() -> Iterator[None]:
    """Name the standard output in an error of writing to it: it may be a file on a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), "standard output") from None


def console() -> Console:
    """The console for people."""
    from rich.console import Console

    # A pipe has no width: allow tables the width that they need. Names of clients may look like markup, so markup is off.
    return Console(width=None if sys.stdout.isatty() else 150, markup=False, highlight=False)


def shown_progress(quiet: bool) -> bool | None:
    """No bar, or a bar in an interactive terminal."""
    return False if quiet else None


def command_name() -> str:
    """The name of this command, for commands to try next: ``dffl``, or its path if it is not on the PATH."""
    called = Path(sys.argv[0])
    if called.name != "dffl":
        return "dffl"
    return "dffl" if shutil.which("dffl") and Path(str(shutil.which("dffl"))).samefile(called) else str(called)


def typed() -> str:
    """The command as it was typed, for a page that says how to repeat it."""
    return shlex.join(["dffl", *sys.argv[1:]])


def require_picture(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before any work, a picture that cannot be written, or that would replace an input."""
    require_target(path, "--figure", inputs)
    if path.suffix not in PICTURES:
        raise ValueError(f"--figure must end in {', '.join(PICTURES)}, found {str(path)!r}")


@contextmanager
def answering() -> Iterator[None]:
    """Turn every error into one clear line and an exit code."""
    try:
        with interruptible() as interrupted:
            try:
                yield
            except KeyboardInterrupt:
                raise
            except Exception as error:
                if interrupted:  # a callback of a compiled program turns Ctrl-C into another error
                    raise KeyboardInterrupt from error
                raise
            if interrupted:
                raise KeyboardInterrupt
        return
    except (typer.Exit, SystemExit):
        raise
    except KeyboardInterrupt as error:
        line, code = str(error) or "interrupted", Exit.INTERRUPTED
    except ValueError as error:
        line, code = str(error), Exit.BAD_INPUT
    except OSError as error:
        line, code = str(error), Exit.FAILED
    except Exception as error:
        if type(error).__name__ != "DivergenceError":  # compared by name: the import would load JAX for --help
            raise
        line, code = str(error), Exit.DIVERGED
    typer.echo(f"dffl: {printable(line)}", err=True)
    raise typer.Exit(code)


def leave(code: int) -> NoReturn:
    """End the process now. After Ctrl-C, compiled programs still run in threads, and Python's usual exit would free their
    memory.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a closed pipe
            stream.flush()
    os._exit(code)


def printable(text: str) -> str:
    """The text without characters that control a terminal: names come from files."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else repr(sign)[1:-1] for sign in text)

"""A command: `dffl clients FILE` lists the clients of a federation.toml."""

from pathlib import Path

import typer

from dffl.terminal import answering


def clients(file: Path) -> None:
    """List the clients of the federation.toml FILE and what they decide."""
    with answering():  # bad input becomes one line and an exit code
        from dffl.tables.description import read  # here: so --help stays quick

        for client in read(file).train:
            typer.echo(f"{client.name}: {client.n} samples, {client.set.in_words()}")

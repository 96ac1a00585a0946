"""Commands of a site: `dffl site ...`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dffl.files import require_target
from dffl.terminal import Json, Quiet, answer, answering

site = typer.Typer(help="Take part in a federation: a site's side.", no_args_is_help=True, rich_markup_mode="markdown")

KitPath = Annotated[Path, typer.Argument(metavar="KIT", help="The kit that the coordinator sent back for the request.")]
ClientPath = Annotated[Path, typer.Option("--client", "-c", help="The site's own file: a [client] with its table and its set.")]
FOLDER = "The site's own folder, with its private key; by default NAME-site."


@site.command()
def request(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The site's name in the plan.")],
    folder: Annotated[Path | None, typer.Option(help=FOLDER)] = None,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Replace an existing key, such as a stolen one; the site's state is kept.")
    ] = False,
    json_: Json = False,
) -> None:
    """Create a private key, which stays here, and a certificate request to send to the coordinator.

    Example: dffl site request harbour
    """
    with answering():
        from dffl.deploy.certificate_request import request as make

        answer(make(name, folder or Path(f"{name}-site"), new_key), json_)


@site.command()
def check(kit: KitPath, client: ClientPath, json_: Json = False) -> None:
    """Check the site's data against the plan; nothing is sent.

    Example: dffl site check harbour.kit --client site.toml
    """
    with answering():
        from dffl.deploy.credentials import Kit
        from dffl.deploy.joining import check as compare

        answer(compare(Kit.read(kit), client), json_)


@site.command()
def join(
    kit: KitPath,
    client: ClientPath,
    folder: Annotated[Path | None, typer.Option(help=FOLDER)] = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take part: wait for rounds, train on the site's rows, and save the site's own model.

    After a crash, the same command resumes from the site's saved state.

    Example: dffl site join harbour.kit --client site.toml
    """
    with answering():
        from dffl.deploy.credentials import Kit
        from dffl.deploy.joining import join as take_part
        from dffl.tables.description import inputs_of

        site_kit = Kit.read(kit)
        home = folder or Path(f"{site_kit.name}-site")
        if home.is_dir():
            require_target(home / "model.dffl", "--folder", [kit, *inputs_of(client)])
        shown = (lambda line: None) if quiet or json_ else (lambda line: typer.echo(line, err=True))
        answer(take_part(site_kit, client, home, shown), json_)


@site.command()
def newcomer(
    shared: Annotated[Path, typer.Argument(metavar="SHARED", help="The file that `dffl federation export` wrote.")],
    client: ClientPath,
    name: Annotated[str, typer.Option(help="The site's name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the site's own model.")],
    json_: Json = False,
) -> None:
    """Tune a shared model on the rows of a site that did not take part; nothing leaves this machine.

    Example: dffl site newcomer shared.dffl --client site.toml --name mill -o model.dffl
    """
    with answering():
        from dffl.archive import require_model_target
        from dffl.tables.description import inputs_of

        require_model_target(out, "--out", [shared, *inputs_of(client)])
        from dffl.deploy.shared_model import newcomer as tune

        answer(tune(shared, name, client, out), json_)

"""Commands of the coordinator: `dffl federation ...`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from dffl.terminal import Exit, Json, Quiet, answer, answering, shown_progress

federation = typer.Typer(
    help="Run a federation across machines: the coordinator's side.", no_args_is_help=True, rich_markup_mode="markdown"
)

FolderPath = Annotated[Path, typer.Argument(metavar="DIR", help="The coordinator's folder, which contains plan.toml.")]


@federation.command()
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The coordinator's folder; it is created if it does not exist.")
    ],
    address: Annotated[str, typer.Option(help="Where sites find the coordinator: HOST:PORT.")] = "localhost:8443",
    example: Annotated[bool, typer.Option("--example", help="Also write folders with data for three example sites.")] = False,
    json_: Json = False,
) -> None:
    """Write a commented plan.toml.

    Example: dffl federation init cold-stores --address coordinator.example.org:8443

    Example: dffl federation init try-it --example
    """
    with answering():
        from dffl.deploy.provisioning import init as write_plan

        answer(write_plan(folder, address, example), json_)


@federation.command()
def create(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan.toml; its folder becomes the coordinator's folder.")],
    json_: Json = False,
) -> None:
    """Check a plan, and create the keys and certificates of the coordinator.

    Example: dffl federation create cold-stores/plan.toml
    """
    with answering():
        from dffl.deploy.provisioning import create as make

        answer(make(plan), json_)


@federation.command()
def sign(
    folder: FolderPath,
    request: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[REQUEST]...", help="Files written by `dffl site request`. Without one, all kits are written again."
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option(help="Sign a new key for a site that already has a kit, and revoke its old key.")
    ] = False,
    json_: Json = False,
) -> None:
    """Sign the requests of sites, and write the kit that each site needs to join.

    Without a request, the kits of all sites are written again with the current plan.

    Example: dffl federation sign cold-stores harbour.request bakery.request
    """
    with answering():
        from dffl.deploy.provisioning import rewrite_kits, sign_requests

        answer(sign_requests(folder, request, replace) if request else rewrite_kits(folder), json_)


@federation.command()
def revoke(
    folder: FolderPath,
    site: Annotated[str, typer.Argument(metavar="NAME", help="The site whose key was lost or stolen.")],
    json_: Json = False,
) -> None:
    """Revoke a site's key, effective immediately; the site needs a new key and a new kit.

    Example: dffl federation revoke cold-stores harbour
    """
    with answering():
        from dffl.deploy.provisioning import revoke as revoke_key

        answer(revoke_key(folder, site), json_)


@federation.command()
def renew(folder: FolderPath, json_: Json = False) -> None:
    """Create a new certificate for the coordinator: for two more years, or for a new address in the plan.

    Example: dffl federation renew cold-stores
    """
    with answering():
        from dffl.deploy.provisioning import renew as make

        answer(make(folder), json_)


@federation.command()
def serve(folder: FolderPath) -> None:
    """Listen for sites and run the rounds; an interrupted run resumes by itself.

    Example: dffl federation serve cold-stores
    """
    with answering():
        from dffl.deploy.run_state import CoordinatorFolder
        from dffl.deploy.server_process import FederationServer, serving_log

        coordinator = CoordinatorFolder(folder)
        FederationServer(coordinator, serving_log(coordinator)).serve(typer.echo)


@federation.command()
def train(
    folder: FolderPath,
    new: Annotated[bool, typer.Option("--new", help="Begin a new run, even if the last one could be resumed.")] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Start a run, or resume the last one, and show each round until it ends. The coordinator must be serving.

    Example: dffl federation train cold-stores
    """
    with answering():
        from dffl.deploy.federation_plan import read_plan
        from dffl.deploy.run_state import LOST, STOPPED, CoordinatorFolder
        from dffl.deploy.run_status import RunResult, begin, follow
        from dffl.deploy.server_process import FAILED

        coordinator, plan = CoordinatorFolder(folder), read_plan(folder / "plan.toml")
        run = begin(coordinator, new)
        result: RunResult = follow(coordinator, run, plan.sites, shown_progress(quiet) is None and not json_)
        answer(result, json_)
        if result.status == LOST:
            raise typer.Exit(Exit.QUORUM_LOST)
        if result.status in (FAILED, STOPPED):
            raise typer.Exit(Exit.FAILED)
        if result.unused:
            raise typer.Exit(Exit.SOME_UNUSED)


@federation.command()
def status(folder: FolderPath, json_: Json = False) -> None:
    """Show the state of the last run, site by site.

    Example: dffl federation status cold-stores
    """
    with answering():
        from dffl.deploy.federation_plan import read_plan
        from dffl.deploy.run_state import CoordinatorFolder
        from dffl.deploy.run_status import RunResult

        plan, run = read_plan(folder / "plan.toml"), CoordinatorFolder(folder).latest()
        if run is None:
            raise ValueError(f"{folder}: has no run yet; type dffl federation train {folder}")
        answer(RunResult.of(run, plan.sites), json_)


@federation.command()
def stop(
    folder: FolderPath,
    server: Annotated[bool, typer.Option("--server", help="Stop the coordinator's process too.")] = False,
) -> None:
    """Stop the run; its state is kept, and `train` resumes from the last round.

    Example: dffl federation stop cold-stores --server
    """
    with answering():
        from dffl.deploy.locks import lock_owner
        from dffl.deploy.run_state import TRAINING, WAITING, CoordinatorFolder, read_status
        from dffl.deploy.server_process import ask

        coordinator = CoordinatorFolder(folder)
        run = coordinator.latest()
        under_way = (coordinator.control / "train").exists() or (
            run is not None and read_status(run)["status"] in (TRAINING, WAITING)
        )
        if not server and lock_owner(coordinator.lock) is not None and not under_way:
            raise ValueError(f"{folder}: no run is under way; --server stops the coordinator's process")
        ask(coordinator, "stop", what="server" if server else "run")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if lock_owner(coordinator.lock) is None if server else not (coordinator.control / "stop").exists():
                typer.echo("stopped; the state is kept")
                return
            time.sleep(0.1)
        raise OSError(f"{folder}: the coordinator did not answer within 30 s; look at {coordinator.log}")


@federation.command()
def logs(folder: FolderPath, lines: Annotated[int, typer.Option(help="Number of lines to print.")] = 40) -> None:
    """Print the last lines of the coordinator's log.

    Example: dffl federation logs cold-stores
    """
    with answering():
        from dffl.deploy.run_state import CoordinatorFolder
        from dffl.terminal import printable

        path = CoordinatorFolder(folder).log
        if not path.exists():
            raise ValueError(f"{path}: there is no such file; the coordinator was never started")
        for line in path.read_text(encoding="utf-8").splitlines()[-lines:]:
            typer.echo(printable(line))


@federation.command()
def export(
    folder: FolderPath,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the shared model.")],
    json_: Json = False,
) -> None:
    """Write the shared model of the last run, for newcomers: `dffl site newcomer`.

    Example: dffl federation export cold-stores -o shared.dffl
    """
    with answering():
        from dffl.archive import require_model_target
        from dffl.deploy.certificate_request import CommandResult
        from dffl.deploy.run_state import CoordinatorFolder
        from dffl.deploy.shared_model import shared_fit

        require_model_target(out, "--out", CoordinatorFolder(folder).files())
        shared_fit(folder).save(out)
        answer(CommandResult([f"wrote {out}: the shared model, without any site's own model"], {"model": str(out)}), json_)


@federation.command()
def demo(
    sites: Annotated[int, typer.Option(help="Number of sites, from 2 to 20.", min=2, max=20)] = 3,
    rounds: Annotated[int, typer.Option(help="Number of rounds.", min=1, max=1000)] = 10,
    method: Annotated[str, typer.Option(help="The method.")] = "finetune",
    kill: Annotated[str | None, typer.Option(help="Kill a site in a round and restart it: SITE@ROUND.")] = None,
    figure: Annotated[Path, typer.Option(help="Where to write the figure of rounds and outcomes.")] = Path(
        "dffl-federation.png"
    ),
    json_: Json = False,
) -> None:
    """Run a whole federation on this machine, with processes and certificates, and compare it with dffl.fit.

    Example: dffl federation demo --sites 3 --rounds 10 --kill site-2@4
    """
    with answering():
        from dffl.terminal import require_picture

        if not json_:
            require_picture(figure)
        from dffl.deploy.local_demo import run

        shown = (lambda line: None) if json_ else typer.echo
        answer(run(sites, rounds, method, kill, None if json_ else figure, shown), json_)

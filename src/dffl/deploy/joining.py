"""A site's steps: check its data against the plan, take part, and save its own model."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from dffl.cache import keep_compiled_programs
from dffl.deploy.credentials import Kit
from dffl.deploy.federation_plan import DESCRIBED, FederationPlan, plan_of
from dffl.deploy.locks import locked
from dffl.deploy.network import Link
from dffl.deploy.participant import Participant
from dffl.deploy.server_process import explaining_full_disk, file_log
from dffl.deploy.site_state import SiteState
from dffl.federation import Client
from dffl.fitting import Fit
from dffl.tables.chosen import ChosenModel, chosen_apart
from dffl.tables.description import Agreement, Description, DescriptionError, parse
from dffl.tables.keys import named_at
from dffl.tables.one_site import described_alone
from dffl.tables.over_time import whole
from dffl.tables.trained_model import GivenFit, TrainedModel, train
from dffl.terminal import command_name
from dffl.time.chosen import Chosen
from dffl.time.own_past import origins_in

FOLDS_OPTION = "folds"


def site_description(plan: FederationPlan, name: str, path: Path) -> Description:
    """A site's client, described by the plan and by the site's own file."""
    content = parse(path)
    entry = content.get("client")
    [client] = entry if isinstance(entry, list) and len(entry) == 1 else [entry]
    if not isinstance(client, Mapping) or len(content) > 1:
        raise ValueError(f"{path}: must have one [client] with table and set, and nothing else; the rest is in the plan")
    if client.get("name", name) != name:
        raise ValueError(f"{path}: client.name: must be {name!r}, as in the kit, found {client['name']!r:.60}")
    merged = {**plan.described, "client": [{**client, "name": name}]}
    try:
        return described_alone(path, name, None, None, merged)
    except DescriptionError as error:
        raise DescriptionError([_in_the_plan(line, path, name) for line in error.problems]) from None


def _in_the_plan(line: str, path: Path, name: str) -> str:
    """Name the plan, not the site's file, in a problem of a section that only the plan has."""
    for section in DESCRIBED:
        line = line.replace(f"{path}: {section}", f"the plan: {section}")
    advice = f"`dffl init {path} --client {name}` writes what the table of this site holds"
    return line.replace(advice, "tell the coordinator the values of this site's column, so that the plan lists them")


def columns_of(description: Description) -> Agreement:
    """The columns of a site's rows, which must be the same at all sites."""
    return Agreement.of(description.train[0])


def require_columns(plan: FederationPlan, description: Description) -> None:
    """Reject data whose columns differ from those of the plan."""
    client, path = description.train[0], description.path
    counts = {"dimension": len(description.costs), "inputs": client.x.shape[1]}
    for key, what, names in (
        ("dimension", "cost columns", description.costs),
        ("inputs", "feature columns, with texts and dates as numbers", client.feature_names or ()),
    ):
        if counts[key] != (wanted := getattr(plan, key)):
            listed = ", ".join(map(str, names[:12])) + (", ..." if len(names) > 12 else "")
            fix = "add or remove columns, or change the plan"
            raise ValueError(f"{path}: the plan requires {wanted} {what}, this site has {counts[key]} ({listed}); {fix}")
    columns = columns_of(description)
    if plan.columns not in ("", columns.digest):
        names = ", ".join([*columns.features[:8], "..." if len(columns.features) > 8 else "", *columns.costs[:4], "..."])
        what = f"this site's features and costs ({names}) differ from those of the plan, or are in another order"
        fix = f'compare them with another site, or change the plan to columns = "{columns.digest}"'
        raise ValueError(f"{path}: {what}; {fix}")


def require_matching_data(plan: FederationPlan, description: Description) -> None:
    """Reject data that do not match the plan, before anything is sent."""
    require_columns(plan, description)
    client, path, asked = taking_part(plan, description), description.path, plan.method_request
    folds = 2 if asked is None else int(asked.options.get(FOLDS_OPTION, asked.method.options.get(FOLDS_OPTION, 2)))
    least = max(plan.min_rows, folds)
    if client.n < least:
        raise ValueError(f"{path}: client.table: has {client.n} training rows, at least {least} are needed to take part")
    if client.n > plan.row_limit:
        allowed = f"the plan allows {plan.row_limit}; leave some out"
        raise ValueError(f"{path}: client.table: has {client.n} training rows, {allowed}")
    if plan.choice is not None:
        with named_at(str(path)):
            origins_in(client, plan.choice)


def taking_part(plan: FederationPlan, description: Description) -> Client:
    """A site's rows of a run: those of training; all rows, where the method decides one after the other."""
    return description.train[0] if plan.choice is None else whole(description)[0]


@dataclass(frozen=True)
class SiteCheck:
    """The result of a check, shown at the site only."""

    description: Description
    plan: FederationPlan
    name: str

    def show(self, console: Console) -> None:
        client = self.description.train[0]
        for line in self.description.notes:
            console.print(line, style="yellow")
        console.print(f"{self.name}: {client.n} training rows, {self.description.test[0].n} test rows")
        console.print(f"inputs = {client.x.shape[1]}  dimension = {client.c.shape[1]}")
        console.print(f'columns = "{columns_of(self.description).digest}"', soft_wrap=True)
        console.print(f"plan {self.plan.digest[:16]} (the same at the coordinator and at all sites)")
        console.print("The data match the plan. Nothing was sent.")

    def as_json(self) -> dict[str, Any]:
        client = self.description.train[0]
        return {"site": self.name, "plan": self.plan.digest,
                "rows": client.n, "inputs": client.x.shape[1], "dimension": client.c.shape[1],
                "columns": columns_of(self.description).digest,
                "features": list(client.feature_names or ()), "costs": list(self.description.costs),
                "forecast": self.description.forecast or None}  # fmt: skip


@dataclass(frozen=True)
class SiteModel:
    """A site's result of a run: its own model, evaluated on its test rows."""

    trained: TrainedModel | ChosenModel
    site: str
    path: Path

    def show(self, console: Console) -> None:
        replace(self.trained, path=None).show(console)
        dffl = command_name()
        console.print(f"\nModel: {self.path} (it has not left this machine)\n\nNext, try:", soft_wrap=True)
        console.print(f"  {dffl} decide {self.path} --client {self.site} NEW.csv -o decisions.csv", soft_wrap=True)
        console.print(f"  {dffl} report {self.path} -o report.html", soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        return {**self.trained.as_json(), "site": self.site, "model": str(self.path)}


def check(kit: Kit, client: Path) -> SiteCheck:
    """Check that a site's data match the plan of its kit."""
    plan = plan_in(kit)
    description = site_description(plan, kit.name, client)
    require_matching_data(plan, description)
    return SiteCheck(description, plan, kit.name)


def plan_in(kit: Kit) -> FederationPlan:
    """The plan in a kit."""
    return plan_of(Path(f"the plan in the kit of {kit.name}"), kit.plan, tomllib.loads(kit.plan))


def join(kit: Kit, client: Path, folder: Path, shown: Callable[[str], None]) -> SiteModel:
    """Take part in a run, and save the site's own model in its folder."""
    checked = check(kit, client)
    credentials = kit.unpack(folder)
    keep_compiled_programs()
    with explaining_full_disk(folder), locked(folder / "site.lock", "another process already takes part from this folder"):
        log = file_log(f"dffl.site.{folder}", folder / "log.txt")
        link = Link(kit.name, checked.plan.address, credentials, checked.plan.max_message_bytes, log)
        path, state = folder / "model.dffl", SiteState(folder / "state")
        if not path.exists():
            state.mark_unfinished()
        participant = Participant(checked.plan, taking_part(checked.plan, checked.description), link, state, log, shown)
        if (fit := participant.unfinished()) is not None:
            trained = _evaluated(checked.description, fit, path, participant, shown)
        else:
            with participant:
                fit = participant.take_part()
                trained = _evaluated(checked.description, fit, path, participant, shown)
                participant.done(fit)
    return SiteModel(trained, kit.name, path)


def _evaluated(
    description: Description, fit: Fit | Chosen, path: Path, participant: Participant, shown: Callable[[str], None]
) -> TrainedModel | ChosenModel:
    """Evaluate the site's model on its test rows, and save it."""
    shown("evaluating the model on the test rows")
    name = description.train[0].name
    command = f"dffl site join {name}.kit --client {description.path.name}"
    trained: TrainedModel | ChosenModel
    if isinstance(fit, Chosen):
        assert participant.backtest is not None, "a site that has chosen has judged its rows"
        trained = chosen_apart(description, fit, participant.backtest, command)
    else:
        trained = train(description, progress=False, fitted=GivenFit(fit, command))
    trained.fit.save(path)
    participant.state.mark_finished()
    return trained

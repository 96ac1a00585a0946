"""What a site does: check its own data against the plan, take part, and keep a model of its own."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from dffl.cache import keep_compiled_programs
from dffl.data.agreement import Agreement
from dffl.data.description import Description, DescriptionError, parse
from dffl.data.one_site import described_alone
from dffl.deploy.credentials import Kit
from dffl.deploy.locks import locked
from dffl.deploy.network import Link
from dffl.deploy.participant import Participant
from dffl.deploy.plan import Plan, plan_of
from dffl.deploy.server import file_log, naming_full_disk
from dffl.deploy.site_state import SiteState
from dffl.fitting import Fit
from dffl.own.training import Given, TrainedModel, train
from dffl.terminal import command_name

FOLDS_OPTION = "folds"


def site_description(plan: Plan, name: str, path: Path) -> Description:
    """One site's own client, described by the plan and by the site's own file."""
    content = parse(path)
    entry = content.get("client")
    [own] = entry if isinstance(entry, list) and len(entry) == 1 else [entry]
    if not isinstance(own, Mapping) or len(content) > 1:
        raise ValueError(f"{path}: must hold one [client] with table and set, and nothing else; the rest is in the plan")
    if own.get("name", name) != name:
        raise ValueError(f"{path}: client.name: must be {name!r}, as in the kit, found {own['name']!r:.60}")
    whole = {"federation": plan.federation, "training": plan.training, "client": [{**own, "name": name}]}
    try:
        return described_alone(path, name, None, None, whole)
    except DescriptionError as error:
        raise DescriptionError([_in_the_plan(line, path, name) for line in error.problems]) from None


def _in_the_plan(line: str, path: Path, name: str) -> str:
    """A problem of a key that stands in the plan, not in the site's own file, which has no such section."""
    for section in ("federation", "training"):
        line = line.replace(f"{path}: {section}", f"the plan: {section}")
    told = f"`dffl init {path} --client {name}` writes what the table of this site holds"
    return line.replace(told, "tell the coordinator what this site's column holds, so that the plan lists it")


def columns_of(description: Description) -> Agreement:
    """The columns of a site's rows, which must be those of all others."""
    return Agreement.of(description.train[0])


def require_columns(plan: Plan, description: Description) -> None:
    """Refuse data of other columns than the plan means."""
    client, path = description.train[0], description.path
    found = {"dimension": len(description.costs), "inputs": client.x.shape[1]}
    for key, what, names in (
        ("dimension", "cost columns", description.costs),
        ("inputs", "feature columns, with texts and dates as numbers", client.feature_names or ()),
    ):
        if found[key] != (wanted := getattr(plan, key)):
            listed = ", ".join(map(str, names[:12])) + (", ..." if len(names) > 12 else "")
            fix = "add or remove columns, or agree on another plan"
            raise ValueError(f"{path}: the plan asks for {wanted} {what}, this site has {found[key]} ({listed}); {fix}")
    own = columns_of(description)
    if plan.columns not in ("", own.digest):
        names = ", ".join([*own.features[:8], "..." if len(own.features) > 8 else "", *own.costs[:4], "..."])
        what = f"this site's features and costs ({names}) are others, or in another order, than the plan means"
        raise ValueError(f'{path}: {what}; compare them with those of a site that fits, or agree on columns = "{own.digest}"')


def require_fitting(plan: Plan, description: Description) -> None:
    """Refuse data that the plan does not mean, before anybody is told of them."""
    require_columns(plan, description)
    client, path = description.train[0], description.path
    least = max(plan.min_rows, int(plan.asked.options.get(FOLDS_OPTION, plan.asked.method.options.get(FOLDS_OPTION, 2))))
    if client.n < least:
        raise ValueError(f"{path}: client.table: has {client.n} training rows, at least {least} are needed to take part")
    if client.n > plan.most_rows:
        allowed = f"the plan allows {plan.most_rows}; leave some out"
        raise ValueError(f"{path}: client.table: has {client.n} training rows, {allowed}")


@dataclass(frozen=True)
class Checked:
    """What a site would bring, for its own eyes."""

    description: Description
    plan: Plan
    name: str

    def show(self, console: Console) -> None:
        client = self.description.train[0]
        for line in self.description.notes:
            console.print(line, style="yellow")
        console.print(f"{self.name}: {client.n} training rows, {self.description.test[0].n} test rows")
        console.print(f"inputs = {client.x.shape[1]}  dimension = {client.c.shape[1]}")
        console.print(f'columns = "{columns_of(self.description).digest}"', soft_wrap=True)
        console.print(f"plan {self.plan.digest[:16]} (all sides must see the same)")
        console.print("The data fit the plan. Nothing was sent.")

    def as_json(self) -> dict[str, Any]:
        client = self.description.train[0]
        return {"site": self.name, "plan": self.plan.digest,
                "rows": client.n, "inputs": client.x.shape[1], "dimension": client.c.shape[1],
                "columns": columns_of(self.description).digest,
                "features": list(client.feature_names or ()), "costs": list(self.description.costs),
                "forecast": self.description.forecast or None}  # fmt: skip


@dataclass(frozen=True)
class SiteModel:
    """What a site has after a run: a model of its own, judged on its own test rows."""

    trained: TrainedModel
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


def check(kit: Kit, client: Path) -> Checked:
    """Whether a site's data fit the plan of its kit."""
    plan = plan_in(kit)
    description = site_description(plan, kit.name, client)
    require_fitting(plan, description)
    return Checked(description, plan, kit.name)


def plan_in(kit: Kit) -> Plan:
    """The plan that a kit carries."""
    return plan_of(Path(f"the plan in the kit of {kit.name}"), kit.plan, tomllib.loads(kit.plan))


def join(kit: Kit, client: Path, folder: Path, shown: Callable[[str], None]) -> SiteModel:
    """Take part in a run, and write the site's own model into its folder."""
    found = check(kit, client)
    credentials = kit.unpack(folder)
    keep_compiled_programs()
    with naming_full_disk(folder), locked(folder / "site.lock", "another process takes part from this folder already"):
        log = file_log(f"dffl.site.{folder}", folder / "log.txt")
        link = Link(kit.name, found.plan.address, credentials, found.plan.most_bytes, log)
        path, state = folder / "model.dffl", SiteState(folder / "state")
        if not path.exists():
            state.forget_model()
        part = Participant(found.plan, found.description.train[0], link, state, log, shown)
        if (fit := part.unfinished()) is not None:
            trained = _judged(found.description, fit, path, part, shown)
        else:
            with part:
                fit = part.take_part()
                trained = _judged(found.description, fit, path, part, shown)
                part.done(fit)
    return SiteModel(trained, kit.name, path)


def _judged(description: Description, fit: Fit, path: Path, part: Participant, shown: Callable[[str], None]) -> TrainedModel:
    """The site's model, judged on its own test rows and saved."""
    shown("judging the model on the test rows")
    name = description.train[0].name
    command = f"dffl site join {name}.kit --client {description.path.name}"
    trained = train(description, progress=False, given=Given(fit, command))
    trained.fit.save(path)
    part.state.finished()
    return trained

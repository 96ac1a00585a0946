"""A newcomer: a site that comes when all rounds are over, with the shared model and a few samples of its own.

The coordinator exports the shared model of a run. The newcomer tunes it on its own rows, without any network and without any
other site, as `Fit.joined_by` does. Units are its own: those of the others never left them.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dffl.deploy.coordinator import STAND_IN_ROWS
from dffl.deploy.joining import SiteModel, require_columns, site_description
from dffl.deploy.plan import Plan, plan_of, read_plan
from dffl.deploy.site_run import federated_jobs, stand_in
from dffl.deploy.state import FINISHED, Folder, RunState, said
from dffl.fitting import Fit
from dffl.own.training import Given, train
from dffl.predictor import MeanPredictor, NetworkPredictor, Normaliser, Predictor
from dffl.storage import load
from dffl.training.history import HISTORY_COLUMNS
from dffl.training.run import Key, Outcome
from dffl.training.unit_prior import UnitPrior

ABOUT = "federation"


def shared_fit(folder: Path) -> Fit:
    """The shared model of the last run of a coordinator's folder, without any site's own model."""
    plan, run = read_plan(folder / "plan.toml"), Folder(folder).latest()
    if run is None or said(run)["status"] != FINISHED:
        raise ValueError(f"{folder}: has no finished run; type dffl federation train {folder}")
    state = RunState.read(run / "state.dffl")
    if state.plan != plan.digest:
        raise ValueError(f"{run}: belongs to another plan than {folder / 'plan.toml'}; put that plan back")
    plan = replace(plan, settings=replace(plan.settings, tau=state.tau))  # as it was trained
    shared = _shared(plan, state)
    if shared is None:
        raise ValueError(
            f"method {plan.asked.method.name!r} has no shared model for a newcomer; crossfit and finetune have one"
        )
    return Fit(
        method=plan.asked.method.name, settings=plan.settings, features=plan.inputs, feature_names=None, dim=plan.dimension,
        members={}, shared=shared, history=pd.DataFrame({name: [] for name in HISTORY_COLUMNS}),
        about={ABOUT: {"plan": plan.text}}, options=dict(plan.asked.options),
    )  # fmt: skip


def _shared(plan: Plan, state: RunState) -> Predictor | None:
    """What the method makes of the shared vectors for a client that took no part, without samples of anybody."""
    rows = dict.fromkeys(plan.sites, max(plan.min_rows, STAND_IN_ROWS))
    with stand_in(rows, plan.settings, plan.inputs, plan.dimension) as run:
        jobs = federated_jobs(run, plan.asked)
        finals = zip(jobs.values(), state.finals, strict=True)
        known: dict[Key, Any] = {(trainer, part): trainer.finish(run, part, final) for (trainer, part), final in finals}
        found: list[Outcome] = []
        run.rehearse([lambda run: found.append(plan.asked(run))], known)
    return found[0].shared


def newcomer(shared: Path, name: str, client: Path, out: Path) -> SiteModel:
    """Tune a shared model on a newcomer's own rows, judge it on its own test rows, and save it."""
    fit = load(shared)
    text = fit.about.get(ABOUT, {}).get("plan")
    if fit.shared is None or not isinstance(text, str):
        raise ValueError(f"{shared}: is no shared model of `dffl federation export`")
    plan = plan_of(Path(f"the plan in {shared}"), text, tomllib.loads(text))
    description = site_description(plan, name, client)
    require_columns(plan, description)
    own = description.train[0]
    in_own_units = replace(
        fit, shared=_in_units(fit.shared, plan.settings.units(own.x, own.c)),
        feature_names=own.feature_names, cost_names=own.cost_names,
    )  # fmt: skip
    joined = in_own_units.joined_by(own, prior=_no_prior(plan.inputs), progress=False)
    command = f"dffl site newcomer {shared.name} --client {client.name} --name {name} -o MODEL"
    trained = train(description, progress=False, given=Given(replace(joined, method=plan.asked.method.name), command))
    trained.fit.save(out)
    return SiteModel(trained, name, out)


def _in_units(shared: Predictor, units: Normaliser) -> Predictor:
    """The shared networks, in the newcomer's own units."""
    models = shared.models if isinstance(shared, MeanPredictor) else (shared,)
    if not all(isinstance(model, NetworkPredictor) for model in models):
        kinds = ", ".join(sorted({type(model).__name__ for model in models}))
        raise ValueError(f"the shared model must be a network, or a mean of networks, found {kinds}")
    made = tuple(NetworkPredictor(model.network, units, model.tau) for model in models)  # type: ignore[attr-defined]
    return MeanPredictor(made) if isinstance(shared, MeanPredictor) else made[0]


def _no_prior(inputs: int) -> UnitPrior:
    """Nothing is known of the units of others, so a newcomer's are its own."""
    return UnitPrior((0.0,) * inputs, (1.0,) * inputs, 1.0, (0.0,) * inputs, 0.0)

"""The shared model of a run for a newcomer: a site that did not take part, with a few samples of its own.

The coordinator exports the shared model. The newcomer tunes it on its own rows, offline, as `Fit.joined_by` does. It uses its
own units, because the units of the other sites were never sent.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dffl.deploy.federation_plan import FederationPlan, plan_of, read_plan
from dffl.deploy.jobs import PLACEHOLDER_ROWS
from dffl.deploy.joining import SiteModel, require_columns, site_description
from dffl.deploy.run_state import FINISHED, CoordinatorFolder, RunState, read_status
from dffl.deploy.site_run import federated_jobs, placeholder_run
from dffl.fitting import Fit
from dffl.predictor import MeanPredictor, NetworkPredictor, Normaliser, Predictor
from dffl.storage import load
from dffl.tables.trained_model import GivenFit, train
from dffl.training.history import HISTORY_COLUMNS
from dffl.training.run import Key, Outcome
from dffl.training.units import UnitPrior

ABOUT = "federation"


def shared_fit(folder: Path) -> Fit:
    """The shared model of the last run in a coordinator's folder, without any site's own model."""
    plan, run = read_plan(folder / "plan.toml"), CoordinatorFolder(folder).latest()
    if plan.choice is not None:
        raise ValueError(f"method {plan.method!r} has no shared model for a newcomer; crossfit and finetune have one")
    if run is None or read_status(run)["status"] != FINISHED:
        raise ValueError(f"{folder}: has no finished run; type dffl federation train {folder}")
    state = RunState.read(run / "state.dffl")
    if state.plan != plan.digest:
        raise ValueError(f"{run}: belongs to another plan than {folder / 'plan.toml'}; restore that plan")
    plan = replace(plan, settings=replace(plan.settings, tau=state.tau))  # as it was trained
    shared = _shared(plan, state)
    if shared is None:
        raise ValueError(f"method {plan.method!r} has no shared model for a newcomer; crossfit and finetune have one")
    return Fit(
        method=plan.method, settings=plan.settings,
        features=plan.inputs, feature_names=None, dim=plan.dimension,
        members={}, shared=shared, history=pd.DataFrame({name: [] for name in HISTORY_COLUMNS}),
        about={ABOUT: {"plan": plan.text}}, options=dict(plan.one_method.options),
    )  # fmt: skip


def _shared(plan: FederationPlan, state: RunState) -> Predictor | None:
    """The method's predictor for a client that did not take part, computed from the shared vectors without samples."""
    rows = dict.fromkeys(plan.sites, max(plan.min_rows, PLACEHOLDER_ROWS))
    with placeholder_run(rows, plan.settings, plan.inputs, plan.dimension) as run:
        jobs = federated_jobs(run, plan.one_method)
        finals = zip(jobs.values(), state.finals, strict=True)
        known: dict[Key, Any] = {(trainer, part): trainer.finish(run, part, final) for (trainer, part), final in finals}
        outcomes: list[Outcome] = []
        run.rehearse([lambda run: outcomes.append(plan.one_method(run))], known)
    return outcomes[0].shared


def newcomer(shared: Path, name: str, client: Path, out: Path) -> SiteModel:
    """Tune a shared model on a newcomer's rows, evaluate it on its test rows, and save it."""
    fit = load(shared)
    text = fit.about.get(ABOUT, {}).get("plan")
    if fit.shared is None or not isinstance(text, str):
        raise ValueError(f"{shared}: is not a shared model of `dffl federation export`")
    plan = plan_of(Path(f"the plan in {shared}"), text, tomllib.loads(text))
    description = site_description(plan, name, client)
    require_columns(plan, description)
    train_client = description.train[0]
    in_own_units = replace(
        fit, shared=_in_units(fit.shared, plan.settings.units(train_client.x, train_client.c)),
        feature_names=train_client.feature_names, cost_names=train_client.cost_names,
    )  # fmt: skip
    joined = in_own_units.joined_by(train_client, prior=_no_prior(plan.inputs), progress=False)
    command = f"dffl site newcomer {shared.name} --client {client.name} --name {name} -o MODEL"
    trained = train(description, progress=False, fitted=GivenFit(replace(joined, method=plan.method), command))
    trained.fit.save(out)
    return SiteModel(trained, name, out)


def _in_units(shared: Predictor, units: Normaliser) -> Predictor:
    """The shared networks in the newcomer's units."""
    models = shared.models if isinstance(shared, MeanPredictor) else (shared,)
    if not all(isinstance(model, NetworkPredictor) for model in models):
        kinds = ", ".join(sorted({type(model).__name__ for model in models}))
        raise ValueError(f"the shared model must be a network, or a mean of networks, found {kinds}")
    networks = tuple(NetworkPredictor(model.network, units, model.tau) for model in models)  # type: ignore[attr-defined]
    return MeanPredictor(networks) if isinstance(shared, MeanPredictor) else networks[0]


def _no_prior(inputs: int) -> UnitPrior:
    """A prior without weight: the units of other sites are unknown, so a newcomer uses its own."""
    return UnitPrior((0.0,) * inputs, (1.0,) * inputs, 1.0, (0.0,) * inputs, 0.0)

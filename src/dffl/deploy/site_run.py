"""The run of one deployed site: the method's code on the site's samples, with rounds over the network.

A method asks a run for trainings. Here, the result of a federated training is the model that the coordinator sent after the
last round. Everything else (tuning, mixing, choosing epochs and weights, folds) is computed at the site, as in a simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dffl.federation import Client, Federation
from dffl.items import of_items
from dffl.predictor import Normaliser
from dffl.progress import Progress
from dffl.randomness import NoiseSource
from dffl.sets import Box
from dffl.splitting import DRAW
from dffl.training.methods import Request
from dffl.training.parts import ALL, Part
from dffl.training.run import Run, job_name
from dffl.training.settings import Settings
from dffl.training.sharing import told_of
from dffl.training.trainers.base import Trainer
from dffl.training.trainers.federated import Federated, ServerState


class SiteRun(Run):
    """One client of a federation of ``clients`` sites."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        clients: int,
        noise: NoiseSource | None = None,
        progress: Progress | None = None,
    ):
        super().__init__(Federation([client]), settings, progress=progress, noise=noise)
        self._clients = clients
        self.finals: dict[str, ServerState] = {}
        """The server's last state of each federated training, by the name of its job."""
        self.shared_units: dict[str, Normaliser] = {}
        """For each part of the samples, the units of all sites together, if the plan pools statistics."""
        self.parts: list[Part] = []
        """The parts of the samples that the method uses."""

    def use_finals(self, finals: Mapping[str, ServerState]) -> None:
        """Take the server's last state of each federated training; what followed from earlier ones is forgotten."""
        self.finals = dict(finals)
        self._trained.clear()

    def use_units(self, units: Mapping[str, Normaliser]) -> None:
        """Train in the units of all sites together, if the settings pool units."""
        self.shared_units = dict(units)
        self._engines.clear()

    @property
    def clients(self) -> int:
        return self._clients

    def pooled_units(self, part: Part = ALL) -> Normaliser:
        """The units of all sites if they are pooled, else the site's own."""
        return self.shared_units.get(str(part)) or self.engine(part).units[0]

    def own_units(self, part: Part) -> tuple[Normaliser, int]:
        """The units of the site's training samples, and the number of these samples."""
        assert isinstance(self.trained_on, Federation), "a site's rows are in memory"
        [client] = part.divide(self.trained_on, self.settings, None).train
        return self.settings.units(client.x, client.c), client.n

    def _units(self, part: Part, train: Federation) -> list[Normaliser]:
        if self.settings.pooled_units and str(part) in self.shared_units:
            return [self.shared_units[str(part)]]
        return super()._units(part, train)

    def _result(self, trainer: Trainer, part: Part) -> Any:
        if isinstance(trainer, Federated):
            return trainer.finish(self, part, self.finals[job_name(trainer, part)])
        return super()._result(trainer, part)


def federated_jobs(run: Run, asked: Request) -> dict[str, tuple[Federated, Part]]:
    """The federated trainings that a method asks for, by name, in order; rejects a method that cannot be deployed."""
    rehearsal = run.rehearse([asked])
    if isinstance(run, SiteRun):
        run.parts = list(dict.fromkeys(part for _, part in rehearsal.blanks))
    if not rehearsal.complete:
        raise ValueError(
            f"method {asked.method.name!r} cannot be deployed: its later trainings depend on the results of earlier ones"
        )
    for trainer, _ in rehearsal.blanks:
        if trainer.needs_all_clients and not isinstance(trainer, Federated):
            raise ValueError(f"method {asked.method.name!r} cannot be deployed: {trainer.name!r} sends more than a model")
    return {job_name(trainer, part): (trainer, part) for trainer, part in rehearsal.blanks if isinstance(trainer, Federated)}


def placeholder_run(names: Mapping[str, int], settings: Settings, features: int, dim: int) -> Run:
    """A run on placeholder samples of the right shape, with which the coordinator, which has no data, rehearses a method."""
    rows = {name: np.random.default_rng(0).normal(size=(count, features)) for name, count in names.items()}
    box = Box(np.zeros(dim), np.ones(dim))
    clients = [
        Client(
            name,
            x,
            np.ones((len(x), dim)),
            box,
            forecast=x[:, -dim:] if settings.forecast else None,
            items=of_items(x, dim, settings.item_features, settings.forecast) if settings.item_features else None,
        )
        for name, x in rows.items()
    ]
    drawn = replace(settings, split=DRAW, period=None)  # only the shapes matter, and a draw always has the same shapes
    federation = Federation(clients)
    told_of(federation)  # placeholder rows are equal at all clients
    return Run(federation, drawn)

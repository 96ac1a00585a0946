"""The interface of a trainer: a small frozen value that defines how models are trained. A run trains each of them once.

Its ``visit`` runs where the clients' samples are (see `dffl.training.engines.base`); everything else runs at the server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dffl.named import register
from dffl.training.engines.base import Fields, gathered
from dffl.training.parts import Part

if TYPE_CHECKING:
    from dffl.training.engines.site import Site
    from dffl.training.run import Run


@dataclass(frozen=True)
class Trainer(ABC):
    """A way to train models on some part of the samples. Subclasses are frozen data classes: equal ones train once."""

    name: ClassVar[str] = ""
    known: ClassVar[dict[str, type[Trainer]]] = {}
    needs_all_clients: ClassVar[bool] = False
    """Whether its server side combines the answers of all clients. Otherwise a deployed site can train by itself."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        register(Trainer.known, cls.name, cls, "trainer")  # the state of clients is stored under this name

    @abstractmethod
    def train(self, run: Run, part: Part) -> Any:
        """The trained models: what `Run.trained` returns."""

    @abstractmethod
    def blank(self, run: Run, part: Part) -> Any:
        """Models of zeros in the form of those that `train` returns, for a rehearsal.

        A trainer that asks for other trainings asks for them here too, so that a rehearsal finds them.
        """

    @abstractmethod
    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        """The work at the clients' site."""

    def check(self, run: Run, part: Part) -> None:  # noqa: B027  most trainers have nothing to refuse
        """Refuse, before anything trains, what cannot be trained."""

    def uses(self, run: Run, part: Part) -> int:
        """How often this training uses a client, or a sample, for something that leaves the client; see `Settings.privacy`."""
        return 0

    def work(self, run: Run, part: Part) -> float:
        """The number of samples that training will see, each as often as it is seen: the unit of the progress bar."""
        return 0.0

    @property
    def label(self) -> str:
        """The name, with the arguments that differ from the defaults, for histories."""
        changed = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        shown = ", ".join(f"{name}={value.label if isinstance(value, Trainer) else value}" for name, value in changed)
        return f"{self.name}({shown})" if shown else self.name


@dataclass(frozen=True)
class Fetch:
    """Collects one vector of each client. A simulation needs it for its predictors; deployed sites keep theirs."""

    name: str

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        return {"vector": site.kept(self.name, site.initial)}


def blank_rows(run: Run, part: Part, *inner: int) -> np.ndarray:
    """Zeros in the form of one vector for each client, or ``inner`` of them."""
    engine = run.engine(part)
    return np.zeros((len(engine.names), *inner, engine.initial.size), engine.initial.dtype)


def fetched(run: Run, trainer: Trainer, part: Part, name: str = "vector") -> np.ndarray:
    """The arrays that clients keep of a training under this name: one row for each client."""
    engine = run.engine(part)
    return gathered(engine.ask(Fetch(name), scope=trainer.label), len(engine.names))["vector"]

"""`clustered`: a few shared models; each client joins the one that is best for it (IFCA, Ghosh et al., 2020; HypCluster,
Mansour et al., 2020).

In each of its rounds a client judges the models of all clusters on the samples that it trains on, by the loss that ``judge``
names, and trains the best one further. The server aggregates each cluster by itself; a model that nobody joined stays as it is.
After the last round every client takes the model that is best for it. With ``epochs`` it then trains that model further, for a
number of epochs that it chooses as in `finetune`.

All models start from the same numbers, and in the first round clients join at random: so the models become different, and each
has been trained when clients begin to choose. With random starts, as in the papers, one start was best for almost all clients,
and the others were never trained. Still, clusters may end empty, most of all if few clients take part in the first round.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dffl.checks import require_whole
from dffl.losses import Loss
from dffl.randomness import Purpose, stream
from dffl.training.aggregators import Aggregator, Memory, Moment, Update
from dffl.training.engines.base import Engine, Fields, gathered
from dffl.training.methods.registry import method
from dffl.training.parts import Part
from dffl.training.run import Outcome, Run
from dffl.training.trainers import BestStop, Federated, ServerState, Stops, tuned
from dffl.training.trainers.federated import checked_aggregate
from dffl.training.trainers.tuning import checked_epochs

if TYPE_CHECKING:
    from dffl.training.engines.site import Site


class Clusters(NamedTuple):
    """One vector for each cluster, and the cluster of each client."""

    models: np.ndarray
    cluster: np.ndarray


@dataclass(frozen=True)
class ClusteredTrainer(Federated):
    """Rounds in which a client trains the model of one cluster. The server's shared array has a row for each cluster."""

    name: ClassVar[str] = "clustered"
    clusters: int = 3
    judge: Loss | str = "spo+"

    def begin(self, engine: Engine) -> ServerState:
        return ServerState(0, np.tile(engine.initial, (self.clusters, 1)), {})

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        models, round, epochs = sent["shared"], sent["round"], site.settings.local_epochs
        cluster = self._drawn(site) if round == 0 else self._best(site, models)
        if round == site.settings.rounds:
            return {"cluster": cluster}
        trained = site.train(
            models[cluster], epochs, round * epochs, recipe=self.recipe(site.recipe), rate=sent["rate"], round=round
        )
        return {"vector": trained.vectors, "cluster": cluster}

    def _drawn(self, site: Site) -> np.ndarray:
        streams = [stream(site.settings.seed, Purpose.FIRST_CLUSTER, name) for name in site.names]
        return np.array([rng.integers(self.clusters) for rng in streams])

    def _best(self, site: Site, models: np.ndarray) -> np.ndarray:
        """The cluster whose model has the least loss on the client's own samples; among equally good ones the first."""
        candidates = np.broadcast_to(models, (len(site), *models.shape))
        [losses] = site.judge(candidates, np.eye(len(models)), [Loss.of(self.judge)], training=True)
        return np.argmin(losses, axis=1)

    def answer_form(self, engine: Engine, state: ServerState) -> Fields:
        return {"vector": np.zeros_like(state.shared[0]), "cluster": np.zeros((), int)}

    def before(self, fields: Fields, state: ServerState) -> np.ndarray:
        return np.asarray(state.shared[int(fields["cluster"])])

    def refusal(self, fields: Mapping[str, np.ndarray], engine: Engine, state: ServerState) -> str | None:
        why = super().refusal(fields, engine, state)
        if why is None and not 0 <= fields["cluster"] < self.clusters:
            return f"cluster must be below {self.clusters}, found {fields['cluster']}"
        return why

    def combined(
        self,
        aggregator: Aggregator,
        state: ServerState,
        updates: Iterator[tuple[Update, Fields]],
        memory: Memory,
        moment: Moment,
    ) -> tuple[np.ndarray, Memory]:
        joined: defaultdict[int, list[Update]] = defaultdict(list)
        for update, fields in updates:
            joined[int(fields["cluster"])].append(update)
        models, after = state.shared.astype(np.float64), dict(memory)
        for cluster, members in joined.items():
            here, prefix = state._replace(shared=state.shared[cluster]), f"{cluster}/"
            mine = {name.removeprefix(prefix): value for name, value in memory.items() if name.startswith(prefix)}
            combined = aggregator.combine(here.shared, iter(members), mine, moment)
            models[cluster], mine = checked_aggregate(aggregator, combined, here)
            after |= {prefix + name: value for name, value in mine.items()}
        return models, after

    def finish(self, run: Run, part: Part, state: ServerState) -> Clusters:
        # One more visit, of all clients: a client may not have taken part for many rounds.
        answers = run.ask(self, part, round=state.round, shared=state.shared)
        return Clusters(state.shared, gathered(answers, len(run.engine(part).names))["cluster"])

    def blank(self, run: Run, part: Part) -> Clusters:
        engine = run.engine(part)
        return Clusters(np.zeros((self.clusters, engine.initial.size), engine.initial.dtype), np.zeros(len(engine.names), int))

    def check(self, run: Run, part: Part) -> None:
        super().check(run, part)
        Loss.of(self.judge)
        if self.clusters > run.clients:
            raise ValueError(f"clusters must be at most the number of clients, {run.clients}, found {self.clusters}")
        if self.clusters > 1:
            try:
                self.aggregator(run.settings).check(1)
            except ValueError as refused:
                raise ValueError(f"clusters: a cluster may have one client in a round ({refused})") from None


@dataclass(frozen=True)
class ClusterStops(Stops):
    """Further training of each client from the model of its cluster."""

    name: ClassVar[str] = "clustered-finetune"

    def begin(self, run: Run, part: Part) -> list[tuple[np.ndarray, np.ndarray]]:
        assert self.start is not None, "there is no cluster without a training of clusters"
        models, cluster = run.trained(self.start, part)
        return [(models[number], np.flatnonzero(cluster == number)) for number in np.unique(cluster)]


@method("clustered", label="Clustered", colour="#CC6677")
def clustered(run: Run, *, clusters: int = 3, epochs: Any = None, judge: Loss | str = "spo+") -> Outcome:
    """The model of each client's cluster; with ``epochs``, trained further at the client.

    A newcomer gets the model of the cluster with the most samples.
    """
    require_whole("clusters", clusters, least=1)
    trainer = ClusteredTrainer(clusters=int(clusters), judge=judge)
    if epochs is None:
        models, cluster = run.trained(trainer)
        vectors, chosen = models[cluster], {}
    else:
        tuning, _ = tuned(run, BestStop(ClusterStops(trainer, checked_epochs(epochs)), judge), refit=True)
        models, cluster = run.trained(trainer)
        vectors, chosen = tuning.vectors, {"epochs": tuning.epochs.tolist()}
    largest = np.argmax(np.bincount(cluster, weights=run.federation.counts))
    return Outcome(run.personal(vectors), run.common(models[largest])[1], {"cluster": cluster.tolist()} | chosen)

"""What parameters reveal: attacks of the literature on the demo's federation, with and without the privacy options.

    python -m benchmarks.attack                  # minutes on two cores
    python -m benchmarks.attack --shadows 8      # fewer fits, wider errors

**Reconstruction.** A server looks at one client's update and computes features of its samples from it. In a network with dense
layers and ReLU, the gradient of a hidden unit's weights, divided by that of its bias, is the mean of the samples that switch
the unit on, each weighted: of a single sample it is the sample itself (Phong et al., 2018). A server that lies sends weights
with which most units are switched on by one sample or none (Boenisch et al., 2023). A sample counts as recovered if some unit
gives its features within 1 %.

**Membership.** Who has the shared model, or a client's update, and a candidate sample wants to know whether it was trained on.
Half of each client's samples train, the other half do not; the score is the SPO+ loss (Yeom et al., 2018), and its likelihood
ratio under models that were trained with and without the sample (LiRA, Carlini et al., 2022), each fit in turn being the target
and all others the shadows. An area under the curve of 0.5 is a guess; TPR is the share of members found at 1 % false alarms.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import norm, rankdata

import dffl
from dffl.files import write_text
from dffl.judging import predicted
from dffl.randomness import NoiseSource
from dffl.training import FedAvg, Settings
from dffl.training.engines.vector import LoopEngine
from dffl.training.privacy import noise_for
from dffl_studies.privacy.federations import DEMO, FIXED, divided
from dffl_studies.running.render import to_markdown
from dffl_studies.running.tables import Cell, Table, Value

ROUNDS, EPOCHS = 50, 5
PLAIN: dict[str, Any] = {"scale_features": False, "scale_costs": False, "rounds": ROUNDS, "local_epochs": EPOCHS}
ONE_STEP: dict[str, Any] = {"optimiser": "sgd", "learning_rate": 0.1, "local_epochs": 1, "batch_size": 512}
WITHIN = 0.01
FEW = 50
"""The samples of the demo's small clients."""


def protections(uses: int, site: bool) -> dict[str, Any]:
    """The privacy options that are tried: each epsilon is that of a whole training of ``uses`` uses."""
    made: dict[str, Any] = {"nothing hidden": None}
    server = {"level": "client", "clip": 1.0}
    made["client, server's noise, epsilon 10"] = server | {"noise": noise_for(10.0, server, uses)}
    for epsilon in (1000.0, 10.0) if site else (1000.0,):
        own = {"level": "client", "clip": 1.0, "where": "site"}
        made[f"client, site's noise, epsilon {epsilon:g}"] = own | {"noise": noise_for(epsilon, own, uses)}
    return made


def sample_protections(uses: int, epsilons: tuple[float, ...] = (1000.0, 10.0)) -> dict[str, Any]:
    """The same for privacy of samples."""
    own = {"level": "sample", "clip": 1.0}
    return {f"sample, epsilon {epsilon:g}": own | {"noise": noise_for(epsilon, own, uses)} for epsilon in epsilons}


# Reconstruction.


def change(client: dffl.Client, shared: Callable[[LoopEngine], np.ndarray] | None = None, **settings: Any) -> list[np.ndarray]:
    """What the server sees of one client's round: the change of each array of the network."""
    made = Settings.of(**PLAIN | settings)
    engine = LoopEngine(dffl.Federation([client]), made, noise=NoiseSource.fresh())
    sent = engine.initial if shared is None else shared(engine)
    [(_, fields)] = engine.ask(FedAvg(), round=0, shared=sent, rate=1.0)
    return engine.template.cut(np.asarray(fields["vector"][0] - sent, np.float64))


def features_in(arrays: list[np.ndarray]) -> np.ndarray:
    """The features that each hidden unit gives away, (units, features)."""
    bias = next(array for array in arrays if np.ndim(array) == 1)
    weights = next(array for array in arrays if np.ndim(array) == 2)
    used = np.abs(bias) > 1e-12
    return (np.asarray(weights)[:, used] / np.asarray(bias)[used]).T


def recovered(client: dffl.Client, found: np.ndarray) -> float:
    """The share of the client's samples whose features were found."""
    if not len(found):
        return 0.0
    apart = np.linalg.norm(client.x[:, None] - found[None], axis=-1).min(axis=1)
    return float(np.mean(apart <= WITHIN * np.linalg.norm(client.x, axis=1)))


def signs(client: dffl.Client, found: np.ndarray) -> float:
    """For a client with one sample: the share of its features whose sign most units give away. 0.5 is a guess."""
    return float(np.mean(np.sign(np.median(np.sign(found), axis=0)) == np.sign(client.x[0])))


def traps(engine: LoopEngine) -> np.ndarray:
    """Weights of a server that lies: each hidden unit is switched on by about one of ``FEW`` samples."""
    network = engine.template.network(jnp.asarray(engine.initial))
    rng = np.random.default_rng(0)
    directions = rng.normal(size=network.weights[0].shape)
    directions /= np.linalg.norm(directions, axis=0)
    network = replace_first(network, directions, np.full(directions.shape[1], ndtri(1 / FEW)))
    return np.asarray(engine.template.vector(network)).astype(engine.initial.dtype)


def replace_first(network: Any, weights: np.ndarray, bias: np.ndarray) -> Any:
    """The network with another first layer."""
    import equinox as eqx

    kind = network.weights[0].dtype
    made = eqx.tree_at(lambda one: one.weights[0], network, jnp.asarray(weights, kind))
    return eqx.tree_at(lambda one: one.biases[0], made, jnp.asarray(bias, kind))


def reconstruction() -> pd.DataFrame:
    """Each attack on each client of the demo, in fixed units."""
    train = divided(FIXED, False, None).train
    ones = [client.rows(slice(0, 1)) for client in train]
    few = [client for client in train if client.n == FEW]
    hidden = protections(ROUNDS, site=True)
    stepped = sample_protections(ROUNDS)
    epochs = sample_protections(ROUNDS * EPOCHS)
    rows = []

    def judge(
        what: str, clients: list[dffl.Client], options: dict[str, Any], score: Any, shared: Any = None, **own: Any
    ) -> None:
        for name, privacy in options.items():
            found = [score(client, features_in(change(client, shared, privacy=privacy, **own))) for client in clients]
            rows.append({"attack": what, "hidden": name, "percent": 100 * float(np.mean(found)), "clients": len(found)})

    judge("1 sample, one SGD step: recovered", ones, hidden | stepped, recovered, **ONE_STEP)
    judge("1 sample, Adam, 5 epochs (the defaults): recovered", ones, {"nothing hidden": None}, recovered)
    judge("1 sample, Adam, 5 epochs (the defaults): signs right", ones, hidden | epochs, signs)
    judge("50 samples, one SGD step: recovered", few, {"nothing hidden": None}, recovered, **ONE_STEP)
    judge("50 samples, one SGD step, a lying server: recovered", few, hidden | stepped, recovered, traps, **ONE_STEP)
    judge("50 samples, Adam, 5 epochs, a lying server: recovered", few, {"nothing hidden": None}, recovered, traps)
    return pd.DataFrame(rows)


# Membership.


def losses(train: dffl.Federation, predict: Callable[[str, np.ndarray], np.ndarray]) -> list[np.ndarray]:
    """The SPO+ loss of every sample of every client."""
    return [
        np.asarray(dffl.spo_plus(predict(one.name, one.x), one.c, one.set, one.maximize)) / np.abs(one.c).mean()
        for one in train
    ]


class Target:
    """One fit on a random half of each client's samples: who was in, and the losses that its models give to all samples."""

    def __init__(self, train: dffl.Federation, privacy: Any, seed: int, settings: dict[str, Any]):
        rng = np.random.default_rng(seed)
        self.members = [np.isin(np.arange(one.n), rng.permutation(one.n)[: one.n // 2]) for one in train]
        inside = dffl.Federation([one.rows(np.flatnonzero(mine)) for one, mine in zip(train, self.members, strict=True)])
        settings = {**settings, "rounds": ROUNDS, "local_epochs": EPOCHS, "privacy": privacy, "seed": seed}
        fit = dffl.fit(inside, "fedavg", progress=False, **settings)
        self.shared = losses(train, fit.predict)
        updated = self._updates(inside, fit, Settings.of(**settings))
        self.update = losses(train, lambda name, x: predicted(updated[name], x, train.dim))

    @staticmethod
    def _updates(inside: dffl.Federation, fit: dffl.Fit, settings: Settings) -> dict[str, Any]:
        """What each client would send in one more round, as a predictor in its own units."""
        engine = LoopEngine(inside, settings)
        network = next(iter(fit.members.values())).predictor.network
        shared = np.asarray(engine.template.vector(network)).astype(engine.initial.dtype)
        out = {}
        for members, fields in engine.ask(FedAvg(), round=ROUNDS - 1, shared=shared, rate=1.0):
            for member, vector in zip(members.tolist(), fields["vector"], strict=True):
                predictor = fit.members[engine.names[member]].predictor
                out[engine.names[member]] = replace(predictor, network=engine.template.network(jnp.asarray(vector)))
        return out


def auc(scores: np.ndarray, members: np.ndarray) -> float:
    """The chance that a member has a higher score than one that is none."""
    ranks, count = rankdata(scores), int(members.sum())
    return float((ranks[members].sum() - count * (count + 1) / 2) / (count * (len(members) - count)))


def found_at(scores: np.ndarray, members: np.ndarray, alarms: float = 0.01) -> float:
    """The share of members above the score that so many non-members reach."""
    return float(np.mean(scores[members] > np.quantile(scores[~members], 1 - alarms)))


def likelihood_ratios(targets: list[Target], which: str, place: int) -> tuple[np.ndarray, np.ndarray]:
    """LiRA's scores of one client's samples under every target, and who was a member."""
    values = np.log(np.stack([getattr(one, which)[place] for one in targets]) + 1e-6)
    inside = np.stack([one.members[place] for one in targets])
    scores = np.empty_like(values)
    for t in range(len(targets)):
        others = np.arange(len(targets)) != t
        likely = [_likelihood(values[t], values[others], inside[others] == kind) for kind in (True, False)]
        scores[t] = likely[0] - likely[1]
    known = np.isfinite(scores)
    return scores[known], inside[known]


def _likelihood(value: np.ndarray, others: np.ndarray, used: np.ndarray) -> np.ndarray:
    """The log likelihood of each sample's value, given its values in other fits where they are used; NaN where none is."""
    count = used.sum(axis=0)
    mean = np.where(used, others, 0.0).sum(axis=0) / np.where(count > 0, count, np.nan)
    # One spread for all samples: with few shadows, a spread of each would be noise (as the paper advises).
    spread = float(np.std((others - mean)[used])) + 1e-9
    return norm.logpdf(value, mean, spread)


def membership(shadows: int) -> pd.DataFrame:
    """Attacks on the shared model and on updates, by the size of the client."""
    rows = []
    units = {DEMO: protections(ROUNDS, site=False), FIXED: sample_protections(ROUNDS * EPOCHS, (1000.0,))}
    for data, options in units.items():
        made = divided(data, False, None)
        for name, privacy in options.items():
            targets = [Target(made.train, privacy, seed, made.settings) for seed in range(shadows)]
            for which, what in (("shared", "the shared model"), ("update", "a client's update")):
                for size in sorted(set(made.train.counts)):
                    places = [place for place, count in enumerate(made.train.counts) if count == size]
                    row = {"seen": what, "hidden": name, "samples": size // 2}
                    pooled = [likelihood_ratios(targets, which, place) for place in places]
                    ratio, member = (np.concatenate(side) for side in zip(*pooled, strict=True))
                    plain = [-getattr(one, which)[place] for one in targets for place in places]
                    inside = [one.members[place] for one in targets for place in places]
                    # A threshold on the loss is set for each client: losses of clients differ in size.
                    simple = float(np.mean([auc(*pair) for pair in zip(plain, inside, strict=True)]))
                    rows.append(row | {"loss": simple, "LiRA": auc(ratio, member), "TPR": 100 * found_at(ratio, member)})
    return pd.DataFrame(rows)


def tables(shadows: int) -> Iterator[Table]:
    """What the attacks found, one table after the other."""
    made = reconstruction()
    cells = [Cell((row["attack"], row["hidden"]), "%", Value(row["percent"])) for _, row in made.iterrows()]
    note = "Of features of samples, in %, means over the clients: 20 with 1 sample, 10 with 50. Fixed units."
    yield Table("reconstruction", "What one update gives away", ("attack", "hidden"), cells, note)
    found = membership(shadows)
    cells = [
        Cell((row["seen"], row["hidden"], str(row["samples"])), column, Value(row[column]))
        for _, row in found.iterrows()
        for column in ("loss", "LiRA", "TPR")
    ]
    note = "Areas under the curve, and the % of members found at 1 % false alarms."
    yield Table("membership", f"Was this sample trained on? {shadows} fits", ("seen", "hidden", "samples"), cells, note)


def main() -> None:
    """Run all attacks, print two tables, and write them if a folder is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shadows", type=int, default=16, help="fits for the attack on membership, at least 4")
    parser.add_argument("--out", type=Path, help="a folder for the tables, as Markdown")
    options = parser.parse_args()
    if options.shadows < 4:
        parser.error(f"--shadows must be at least 4, found {options.shadows}")
    for table in tables(options.shadows):
        print(to_markdown(table), flush=True)
        if options.out is not None:
            write_text(options.out / f"{table.name}.md", to_markdown(table))


if __name__ == "__main__":
    main()

"""The two levels of privacy, as values: what is hidden, who clips and who adds noise.

``clip`` bounds what one client, or one sample, can add to a sum; ``noise`` times ``clip`` is the standard deviation of the
Gaussian noise on that sum. What a noise is worth is computed in `dffl.training.privacy.spending`. `hidden_mean` is the gradient
of a minibatch that hides its samples (DP-SGD, Abadi et al., 2016); `PrivateMean` is the server's side of hiding clients.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from dffl.checks import require_number
from dffl.named import Named
from dffl.randomness import NoiseSource, Purpose
from dffl.training.aggregators import Aggregator, Around, Memory, Moment, Remembering, Update
from dffl.training.aggregators.base import Mean

if TYPE_CHECKING:
    from dffl.training.engines.site import Site
    from dffl.training.settings import Settings


WHERE = ("server", "site")


class Privacy(Named):
    """What is protected in messages of clients. A table has its name under ``level``: {level = "client", noise = 1.0}."""

    what = "privacy"
    key = "level"

    sensitivity: ClassVar[float]
    """The largest distance, in clips, between two answers to one question if the protected data differ."""

    def __init__(self, clip: float = 1.0, noise: float = 1.0):
        require_number("privacy: clip", clip, 0.0, np.inf, "> 0 and finite")
        require_number("privacy: noise", noise, -1e-300, np.inf, ">= 0 and finite")
        self.clip, self.noise = float(clip), float(noise)

    def check(self, settings: Settings) -> None:
        """Refuse settings for which the guarantee does not hold."""
        if settings.pooled_units:
            fix = "leave pooled_units out"
            raise ValueError(f"privacy: with pooled_units every client sends its means and scales, which nothing hides; {fix}")

    def leaving(self, site: Site, sent: Mapping[str, Any], vectors: np.ndarray) -> np.ndarray:
        """The clients' vectors in the form in which they may leave the site, in a round of federated training."""
        return vectors


class ClientPrivacy(Privacy):
    """Whether a client took part, and all of its data. Its change of the shared vector is clipped as a whole.

    All clients weigh the same, and the sum is divided by the number of clients that the round asked, never by numbers of
    samples or of answers. ``where`` is who adds the noise. ``server``: once, to the sum; it hides a client from everyone who
    sees models, and not from the server, which is trusted with the changes. ``site``: each client, to its own change; it hides
    a client's data from the server too, and costs as many times more noise as there are clients in a round.
    """

    name = "client"

    def __init__(self, clip: float = 1.0, noise: float = 1.0, where: str = "server"):
        super().__init__(clip, noise)
        if where not in WHERE:
            raise ValueError(f"privacy: where must be one of {', '.join(WHERE)}, found {where!r:.60}")
        self.where = where

    @property
    def sensitivity(self) -> float:  # type: ignore[override]
        """With the server's noise, a client is in the sum or not; with its own, its change is this one or any other."""
        return 1.0 if self.where == "server" else 2.0

    def leaving(self, site: Site, sent: Mapping[str, Any], vectors: np.ndarray) -> np.ndarray:
        start = np.asarray(sent["shared"], np.float64)
        out = np.empty_like(vectors)
        for place, (name, vector) in enumerate(zip(site.names, vectors, strict=True)):
            change = clipped(vector - start, self.clip)
            if self.where == "site" and self.noise:
                question = (name, int(sent["round"]), start.tobytes(), change.tobytes())
                change += self.noise * self.clip * site.noise.normals(change.size, Purpose.SITE_NOISE, *question)
            out[place] = start + change
        return out


class SamplePrivacy(Privacy):
    """The values of each sample. In every step of a client's training, each sample's gradient is clipped, and the site adds
    noise.

    It protects samples from the server and from everyone else. Numbers of samples are not protected.
    """

    name = "sample"
    sensitivity = 2.0

    def check(self, settings: Settings) -> None:
        super().check(settings)
        if settings.scale_features or settings.scale_costs:
            why = "units from a client's own samples let each of them change all the others"
            fix = "give data in fixed units, and set scale_features and scale_costs to false"
            raise ValueError(f"privacy at the level of samples: {why}; {fix}")


def clipped(change: np.ndarray, clip: float) -> np.ndarray:
    """The change, shortened to the norm ``clip`` if it is longer; in float64."""
    change = np.asarray(change, np.float64)
    norm = float(np.linalg.norm(change))
    return change * (clip / norm) if norm > clip else change.copy()


def hidden_mean(privacy: SamplePrivacy, gradients: Array, present: Array, noise: Array) -> Array:
    """The mean of the present samples' gradients (samples, numbers), each clipped, with noise on their sum.

    ``noise`` are standard normal numbers. The sum is divided by the number of samples of the minibatch, which depends only
    on the client's number of samples.
    """
    norms = jnp.sqrt(jnp.sum(gradients**2, axis=1))
    tiny = jnp.finfo(gradients.dtype).tiny
    shrink = jnp.minimum(1, privacy.clip / jnp.maximum(norms, tiny)) * present
    total = shrink @ gradients + privacy.noise * privacy.clip * noise
    return total / jnp.maximum(jnp.sum(present), 1)


class PrivateMean(Remembering):
    """The mean change over the clients that were asked. It is made for a round, and never saved.

    A client that does not answer counts as one that changes nothing: the number that divides says nothing about anyone. With
    the server's noise changes are clipped again, since a site may not have done it.
    """

    def __init__(self, privacy: ClientPrivacy, asked: int, noise: NoiseSource, job: str):
        self._privacy, self._asked, self._noise, self._job = privacy, asked, noise, job

    def combine(
        self, shared: np.ndarray, updates: Iterable[Update], memory: Memory, moment: Moment
    ) -> tuple[np.ndarray, Memory]:
        privacy, start = self._privacy, np.asarray(shared, np.float64)
        total = np.zeros(start.shape)
        for update in updates:
            change = update.vector - start
            total += clipped(change, privacy.clip) if privacy.where == "server" else change
        if privacy.where == "server" and privacy.noise:
            question = (self._job, moment.round, start.tobytes(), total.tobytes())
            total += privacy.noise * privacy.clip * self._noise.normals(total.size, Purpose.SERVER_NOISE, *question)
        return start + total / self._asked, memory


def protected(privacy: Privacy | None, aggregator: Aggregator, asked: int, noise: NoiseSource, job: str) -> Aggregator:
    """The aggregator of a round: if clients are protected, its mean is the private one. ``asked`` clients were sampled."""
    if not isinstance(privacy, ClientPrivacy):
        return aggregator
    if isinstance(aggregator, Around):  # such as a server optimiser: its memory must include the noise
        outer = copy.copy(aggregator)
        outer.inner = protected(privacy, aggregator.inner, asked, noise, job)
        return outer
    return PrivateMean(privacy, asked, noise, job) if isinstance(aggregator, Mean) else aggregator


def require_mean(privacy: Privacy | None, aggregator: Aggregator) -> None:
    """Refuse an aggregator on whose result one client can have more influence than the server's noise covers."""
    inner = aggregator.inner if isinstance(aggregator, Around) else aggregator
    if isinstance(privacy, ClientPrivacy) and privacy.where == "server" and not isinstance(inner, Mean):
        why = f"aggregator {inner.name!r} bounds no client's influence on its result"
        raise ValueError(f"privacy: the server's noise hides clients in a mean, and {why}; use mean, or where = 'site'")

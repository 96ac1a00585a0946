"""`trees`: a random forest of the costs, at each client alone (extra: dffl[trees]).

scikit-learn grows the trees. What is kept of them are arrays: a fit is saved, loaded and evaluated without it. A forest's
prediction is a weighted mean of the costs that it was grown on, so the arrays hold where each of those samples ends.

The size of a leaf is chosen by the samples out of the bag: each is decided by the trees that have not seen it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dffl.checks import require_whole
from dffl.federation import Client
from dffl.predictor import Normaliser, Predictor
from dffl.randomness import Purpose, stream
from dffl.shapes import round_up
from dffl.training.alone import Own, best_of, require_judge
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run

MIN_LEAF = (1, 3, 10)
"""The candidates for the fewest samples of a leaf."""
ROWS = 64
"""The number of rows that go through the trees at once, to bound the memory."""


class TreesPredictor(Predictor):
    """The mean over trees of the mean cost of the samples that end in the same leaf."""

    normaliser: Normaliser
    children: np.ndarray
    """(trees, nodes, 2): the next nodes of each node; a leaf leads to itself."""
    feature: np.ndarray
    """(trees, nodes): the feature that is compared with ``threshold``."""
    threshold: np.ndarray
    depth: np.ndarray
    """After this many steps, every row is at a leaf."""
    leaf: np.ndarray
    """(trees, n): the leaf of each training sample of the forest."""
    share: np.ndarray
    """(trees, n): its share of the leaf, divided by the number of trees."""
    costs: np.ndarray
    """(n, d): its costs."""

    def __call__(self, x: Array) -> Array:
        # scikit-learn compares features of single precision with thresholds of double precision.
        z = jnp.reshape(self.normaliser.features(x), (-1, x.shape[-1])).astype(np.float32)
        return jax.lax.map(self._at, z, batch_size=ROWS).reshape(*x.shape[:-1], -1)

    def _at(self, row: Array) -> Array:
        trees = np.arange(len(self.feature))
        children, feature, threshold = jnp.asarray(self.children), jnp.asarray(self.feature), jnp.asarray(self.threshold)

        def step(_: Any, node: Array) -> Array:
            right = row[feature[trees, node]] > threshold[trees, node]
            return children[trees, node, right.astype(node.dtype)]

        most = jnp.minimum(self.depth, feature.shape[1])  # no walk is longer, whatever a file says
        leaf = jax.lax.fori_loop(0, most, step, jnp.zeros(len(trees), self.children.dtype))
        return jnp.sum(jnp.where(self.leaf == leaf[:, None], self.share, 0), axis=0) @ self.costs


@method("trees", label="Random forest", colour="#66A61E", kind="alone", words="a random forest of the client's own samples")
def trees(run: Run, *, trees: int = 100, min_leaf: int | None = None, judge: str = "regret") -> Outcome:
    """A forest of this many trees; ``min_leaf`` is the fewest samples of a leaf, by default what serves the client best."""
    require_whole("trees", trees, least=1, most=10**5)
    if min_leaf is not None:
        require_whole("min_leaf", min_leaf, least=1)
    require_judge(judge)
    try:
        import sklearn.ensemble  # noqa: F401
    except ImportError:
        raise ValueError("method 'trees' needs the extra: pip install 'dffl[trees]'") from None
    return run.alone(lambda client: _trees(client, trees, min_leaf, judge, run.settings.seed))


def _trees(client: Client, number: int, min_leaf: int | None, judge: str, seed: int) -> Own:
    unit = Normaliser.fit(client.x, client.c)
    z = unit.features(client.x).astype(np.float32)
    state = int(stream(seed, Purpose.TREES, client.name).integers(2**32))
    sizes = MIN_LEAF if min_leaf is None else (min_leaf,)
    grown = [grow(z, client.c, number, size, state) for size in sizes]
    best = best_of(client, [forest.out_of_bag for forest in grown], judge)
    return Own(TreesPredictor(unit, costs=client.c, **grown[best].arrays), {"min_leaf": sizes[best]})


class Grown(NamedTuple):
    """A forest as the arrays of `TreesPredictor`, and what it guesses of each sample by the trees that have not seen it."""

    arrays: dict[str, np.ndarray]
    out_of_bag: np.ndarray
    """(n, d); NaN where every tree has seen the sample."""


def grow(z: np.ndarray, c: np.ndarray, number: int, min_leaf: int, state: int) -> Grown:
    """A forest of ``trees`` trees on features z (n, p) of single precision and costs c (n, d)."""
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(number, min_samples_leaf=min_leaf, random_state=state, n_jobs=1)
    forest.fit(z, c if c.shape[1] > 1 else c[:, 0])
    trees = [estimator.tree_ for estimator in forest.estimators_]
    nodes = round_up(max(tree.node_count for tree in trees))  # few shapes, hence few programs
    children = np.broadcast_to(np.arange(nodes, dtype=np.int32)[:, None], (number, nodes, 2)).copy()
    feature, threshold = np.zeros((number, nodes), np.int32), np.zeros((number, nodes))
    leaf, share = np.empty((number, len(z)), np.int32), np.empty((number, len(z)))
    guessed, unseen = np.zeros_like(c), np.zeros((len(z), 1))
    for place, (tree, rows) in enumerate(zip(trees, forest.estimators_samples_, strict=True)):
        inner = np.flatnonzero(tree.children_left >= 0)
        children[place, inner] = np.stack([tree.children_left, tree.children_right], axis=1)[inner]
        feature[place, inner], threshold[place, inner] = tree.feature[inner], tree.threshold[inner]
        leaf[place] = tree.apply(z)
        drawn = np.bincount(rows, minlength=len(z))
        share[place] = drawn / np.bincount(leaf[place], drawn, nodes)[leaf[place]] / number
        out = (drawn == 0)[:, None]
        guessed += np.where(out, tree.value[leaf[place], :, 0], 0)
        unseen += out
    depth = np.asarray(max(tree.max_depth for tree in trees))
    arrays: dict[str, np.ndarray] = {
        "children": children,
        "feature": feature,
        "threshold": threshold,
        "depth": depth,
        "leaf": leaf,
        "share": share,
    }
    return Grown(arrays, np.where(unseen > 0, guessed / np.maximum(unseen, 1), np.nan))

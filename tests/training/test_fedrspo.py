"""FedRSPO+ against a rewrite in NumPy from its authors' description, and the options that give it other budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dffl
from dffl.losses.rspo_plus import RSPOPlus
from dffl.randomness import Purpose, stream
from dffl.training import ALL, Run
from tests.federations import client
from tests.training.numpy_update import Adam, Decide, Site, cheapest, weighted_mean
from tests.training.test_proof_methods import close, personal, trained

pytestmark = pytest.mark.filterwarnings("ignore:training predictions are clipped")  # a small tau, to test the clip too

D = 4
FEDERATION = dffl.Federation(
    [
        client("b", dffl.TopK(D, 1), n=5),
        client("c", dffl.TopK(D, 3), n=6, maximize=True),
        client("a", dffl.TopK(D, 2), n=11),
    ]
)
SETTINGS: dict[str, Any] = {"batch_size": 4, "hidden": 6, "dtype": "float64", "gradient_clip": 3.0, "tau": 1.5, "seed": 1}
OPTIONS: dict[str, Any] = {
    "warm_rounds": 3, "warm_epochs": 2, "warm_fraction": 0.7, "warm_step": 0.02, "personal_rounds": 8, "personal_epochs": 1,
    "personal_step": 0.03, "smoothing_decay": 1.5, "step_decay": 0.2, "freeze_at": 0.05,
}  # fmt: skip


def smoothed(smoothing: float) -> Decide:
    """The projection of -c / smoothing onto top-k, by bisection on the multiplier."""

    def decide(costs: np.ndarray, k: int) -> np.ndarray:
        low, high = costs.min(axis=1) - smoothing, costs.max(axis=1) + smoothing
        for _ in range(200):
            middle = (low + high) / 2
            more = np.clip((middle[:, None] - costs) / smoothing, 0, 1).sum(axis=1) > k
            low, high = np.where(more, low, middle), np.where(more, middle, high)
        return np.clip((high[:, None] - costs) / smoothing, 0, 1)

    return decide


def first_smoothing(site: Site) -> float:
    return float(np.linalg.norm(site.c, axis=1).mean() / np.sqrt(site.k))


def frozen_round(site: Site, options: dict[str, Any], seed: int) -> int:
    """The round t = 1, 2, ... from which on smoothing and step stay as they are."""
    order = stream(seed, Purpose.SOME_ROWS, site.client.name).permutation(site.count)
    c = site.c[np.sort(order[:8])]
    best = np.sum(c * cheapest(c, site.k), axis=1)
    for t in range(1, options["personal_rounds"] + 1):
        decide = smoothed(first_smoothing(site) / (1 + options["smoothing_decay"] * (t - 1)))
        if (np.sum(c * decide(c, site.k), axis=1) - best).mean() / (np.abs(best).mean() + 1e-8) <= options["freeze_at"]:
            return t
    return options["personal_rounds"]


def test_fedrspo() -> None:
    fit = dffl.fit(FEDERATION, "fedrspo", **OPTIONS, **SETTINGS)
    seen = fit.history
    sites = {one.name: Site(one, fit.settings) for one in FEDERATION}
    w = Run(FEDERATION, fit.settings).engine(ALL).initial
    warm = seen[seen["job"].str.startswith("fedrspo-warm")]
    for r in range(3):
        names = sorted(warm[warm["round"] == r]["client"])
        assert len(names) == 2
        answers = []
        for name in names:
            first = first_smoothing(sites[name])
            found, _ = sites[name].train(
                w, range(2 * r, 2 * r + 2), optimiser=Adam(1.0), factor=0.02 * first / 4, decide=smoothed(first)
            )
            answers.append(found)
        w = weighted_mean(answers, [sites[name].count for name in names])
    close(trained(fit.shared), w)
    stops = {}
    for name, vector in personal(fit).items():
        site, first = sites[name], first_smoothing(sites[name])
        frozen = frozen_round(site, OPTIONS, seed=1)
        stops[name] = min(frozen + 3, 8)
        theta, optimiser = w, Adam(1.0)
        for t in range(1, stops[name] + 1):
            at = min(t, frozen) - 1
            theta, _ = site.train(
                theta, [t - 1], purpose=Purpose.TUNE, optimiser=optimiser, factor=0.03 * first / 4 / (1 + 0.2 * at),
                decide=smoothed(first / (1 + 1.5 * at)),
            )  # fmt: skip
        close(vector, theta)
    assert {name: member.choices["epochs"] for name, member in fit.members.items()} == stops
    assert len(set(stops.values())) > 1, "some freeze and some do not"
    alone = seen[seen["job"].str.startswith("fedrspo(")]
    assert alone.groupby("client").size().to_dict() == stops


def test_without_its_own_budget_it_has_that_of_the_run() -> None:
    options = {"warm_rounds": None, "warm_epochs": None, "warm_fraction": None, "personal_rounds": 2, "freeze_at": None}
    run = {"rounds": 2, "local_epochs": 1, "client_fraction": 0.4, **SETTINGS}
    given = {"warm_rounds": 2, "warm_epochs": 1, "warm_fraction": 0.4}
    one = dffl.fit(FEDERATION, "fedrspo", **options, **run)
    other = dffl.fit(FEDERATION, "fedrspo", **options | given, **SETTINGS)
    for name in FEDERATION.names:
        np.testing.assert_array_equal(personal(one)[name], personal(other)[name])
        assert one.members[name].choices == {"epochs": 2}


def test_the_fit_is_saved_and_loaded(tmp_path: Any) -> None:
    options = {"warm_rounds": 1, "warm_epochs": 1, "personal_rounds": 1}
    fit = dffl.fit(FEDERATION, "fedrspo", loss=RSPOPlus(2.0), **options, **SETTINGS)
    fit.save(tmp_path / "fit.dffl")
    again = dffl.load(tmp_path / "fit.dffl")
    assert again.settings.loss == RSPOPlus(2.0)
    assert again.options == options
    np.testing.assert_array_equal(again.predict("a", FEDERATION["a"].x), fit.predict("a", FEDERATION["a"].x))


@pytest.mark.parametrize(
    ("option", "refusal"),
    [
        ({"warm_rounds": 0}, "warm_rounds must be a whole number >= 1, found 0"),
        ({"warm_epochs": 1.5}, "warm_epochs must be a whole number >= 1, found 1.5"),
        ({"warm_fraction": 0}, r"warm_fraction must be in \(0, 1\], or None, found 0"),
        ({"personal_rounds": 0}, "personal_rounds must be a whole number >= 1"),
        ({"personal_step": 0}, "personal_step must be > 0 and finite, found 0"),
        ({"smoothing_decay": -1}, "smoothing_decay must be >= 0 and finite, found -1"),
        ({"freeze_at": 0}, "freeze_at must be > 0 and finite, or None, found 0"),
    ],
)
def test_options_out_of_range_are_refused(option: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ValueError, match=refusal):
        dffl.fit(FEDERATION, "fedrspo", **option, **SETTINGS)

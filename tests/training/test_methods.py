"""What each method promises, on federations small enough to check by hand."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from dffl.comparing import fit_all
from dffl.losses import Loss
from dffl.predictor import MixedPredictor, NetworkPredictor
from dffl.randomness import Purpose
from dffl.training import Run, Settings
from dffl.training.engines.vector import VectorEngine
from dffl.training.parts import Part
from dffl.training.trainers import BestStop, Refit, Stops, Weights, tuned
from dffl.training.trainers.tuning import reach_stops
from dffl.training.update import NetworkForm

SMALL = {"rounds": 4, "local_epochs": 3, "batch_size": 16}


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    return dffl.synthetic.knapsack(seed=3, clients=4, dim=6, features=3, samples=[40, 40, 20, 20])


@pytest.fixture(scope="module")
def run(federation: dffl.Federation) -> Run:
    return Run(federation, Settings.of(**SMALL))


def laid_out(run: Run, part: Part) -> VectorEngine:
    engine = run.engine(part)
    assert isinstance(engine, VectorEngine)
    return engine


def validation_losses(run: Run, part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Each client's held-out SPO+ loss and squared error for every weight of the grid, (clients, weights) each."""
    own, shared, grid = run.trained(dffl.Local(), part), run.trained(dffl.FedAvg(), part), Weights().grid
    losses = np.empty((2, len(own), len(grid)))
    for site in laid_out(run, part).sites():
        models = np.stack([own[site.members], np.broadcast_to(shared, (len(site), shared.size))], axis=1)
        losses[:, site.members] = site.judge(models, np.stack([1 - grid, grid], axis=1), [Loss.of("spo+"), Loss.of("mse")])
    return losses[0], losses[1]


def test_mean_cost_predicts_the_mean_training_cost(federation: dffl.Federation) -> None:
    fit = dffl.fit(federation, "mean-cost")
    np.testing.assert_allclose(fit.predict("client-01", np.zeros((2, 3))), [federation[0].c.mean(axis=0)] * 2)


def test_fedavg_shares_one_network_in_each_clients_units(federation: dffl.Federation) -> None:
    fit = dffl.fit(federation, "fedavg", **SMALL)
    first, second = (fit.members[name].predictor for name in federation.names[:2])
    assert isinstance(first, NetworkPredictor)
    assert isinstance(second, NetworkPredictor)
    assert first.network is second.network
    for one in federation:
        assert fit.members[one.name].predictor.normaliser.c_scale == pytest.approx(np.abs(one.c).mean())  # type: ignore[attr-defined]


def test_interpolation_chooses_the_grid_point_with_the_lowest_validation_loss(run: Run, federation: dffl.Federation) -> None:
    own, shared = run.trained(dffl.Local(), dffl.SPLIT), run.trained(dffl.FedAvg(), dffl.SPLIT)
    engine, grid = run.engine(dffl.SPLIT), Weights().grid
    form = NetworkForm(engine.template, run.settings.tau)
    _, held = federation.split(0.2, 0)
    spo, error = validation_losses(run, dffl.SPLIT)
    for j, client in enumerate(held):
        unit = engine.units[j]
        scaled, c = unit.features(client.x), client.c / unit.c_scale
        outputs = [form.forward(engine.template.network(jnp.asarray(v)), jnp.asarray(scaled))[0] for v in (own[j], shared)]
        for i, weight in enumerate(grid):
            mixed = (1 - weight) * outputs[0] + weight * outputs[1]
            assert spo[j, i] == pytest.approx(float(dffl.spo_plus(mixed, c, client.set, True).mean()), rel=1e-4, abs=1e-5)
            assert error[j, i] == pytest.approx(float(dffl.mse(mixed, c).mean()), rel=1e-4, abs=1e-5)
    fits = fit_all(federation, ["interp-spo", "interp-mse"], **SMALL)
    for name, losses in (("interp-spo", spo), ("interp-mse", error)):
        for j, member in enumerate(fits[name].members.values()):
            assert member.choices["lambda"] == grid[np.argmin(losses[j])]
            assert isinstance(member.predictor, MixedPredictor)
            assert float(member.predictor.weight) == member.choices["lambda"]


def test_an_interpolated_predictor_mixes_outputs(federation: dffl.Federation) -> None:
    fit = dffl.fit(federation, "interp-spo", **SMALL)
    x = federation[0].x[:3]
    mixed = fit.members["client-01"].predictor
    assert isinstance(mixed, MixedPredictor)
    by_hand = (1 - mixed.weight) * mixed.own(jnp.asarray(x)) + mixed.weight * mixed.shared(jnp.asarray(x))
    np.testing.assert_allclose(fit.predict("client-01", x), by_hand, rtol=1e-5)


def test_oracles_choose_on_the_validation_federation_with_models_of_all_data(federation: dffl.Federation) -> None:
    validation = dffl.synthetic.knapsack(seed=3, split="validation", clients=4, dim=6, features=3, samples=300)
    fits = fit_all(federation, ["oracle-interp-spo", "oracle-interp-mse", "fedavg"], validation=validation, **SMALL)
    run = Run(federation, Settings.of(**SMALL), validation)
    spo, _ = validation_losses(run, dffl.ALL)
    chosen = [m.choices["lambda"] for m in fits["oracle-interp-spo"].members.values()]
    assert chosen == Weights().grid[np.argmin(spo, axis=1)].tolist()
    mixed = fits["oracle-interp-spo"].members["client-01"].predictor
    x = jnp.asarray(federation[0].x)
    np.testing.assert_allclose(mixed.shared(x), fits["fedavg"].members["client-01"].predictor(x), rtol=1e-6)  # type: ignore[attr-defined]
    np.testing.assert_allclose(mixed.own(x), fits["local"].members["client-01"].predictor(x), rtol=1e-6)  # type: ignore[attr-defined]


def test_finetune_of_zero_epochs_is_fedavg_and_one_candidate_is_no_choice(federation: dffl.Federation) -> None:
    fits = fit_all(federation, ["fedavg", ("finetune", {"epochs": (0,)})], **SMALL)
    x = federation[0].x
    np.testing.assert_array_equal(fits["finetune"].predict("client-01", x), fits["fedavg"].predict("client-01", x))
    assert fits["finetune"].members["client-01"].choices == {"epochs": 0}


def test_finetune_continues_the_federated_model_of_all_data(federation: dffl.Federation) -> None:
    """With a fixed number of epochs the result is the client update from the shared model on all samples."""
    run = Run(federation, Settings.of(**SMALL))
    found = run.trained(Refit(BestStop(Stops(dffl.FedAvg(), (7,)))))
    [site] = laid_out(run, dffl.ALL).sites(np.array([2]))
    current = run.trained(dffl.FedAvg())
    for first, count in ((0, 3), (3, 3), (6, 1)):
        current = site.train(current, count, first, purpose=Purpose.TUNE)
    np.testing.assert_array_equal(found.vectors[2], current.vectors[0])
    split = Run(federation, Settings.of(**SMALL))
    chosen, part = tuned(split, BestStop(Stops(dffl.FedAvg(), (0, 7))), refit=False)
    assert part == dffl.SPLIT
    assert set(chosen.epochs) <= {0, 7}


def test_finetune_chooses_by_validation_loss(federation: dffl.Federation) -> None:
    run = Run(federation, Settings.of(**SMALL))
    chosen = run.trained(BestStop(Stops(dffl.FedAvg(), (0, 2, 9))), dffl.SPLIT)
    engine = run.engine(dffl.SPLIT)
    form = NetworkForm(engine.template, run.settings.tau)
    _, held = federation.split(0.2, 0)
    for j, client in enumerate(held):

        def loss(vector: np.ndarray, j: int = j, client: dffl.Client = client) -> float:
            unit = engine.units[j]
            out, _ = form.forward(engine.template.network(jnp.asarray(vector)), jnp.asarray(unit.features(client.x)))
            return float(dffl.spo_plus(out, client.c / unit.c_scale, client.set, True).mean())

        assert loss(chosen.vectors[j]) <= loss(run.trained(dffl.FedAvg(), dffl.SPLIT)) + 1e-6


def test_methods_share_training_and_give_what_they_give_alone(federation: dffl.Federation) -> None:
    fits = fit_all(federation, ["fedavg", "interp-spo", "finetune"], **SMALL)
    jobs = fits["finetune"].history["job"].value_counts()
    assert jobs["fedavg/all"] == jobs["fedavg/split"] == 4 * 4  # once each: rounds x clients
    alone = dffl.fit(federation, "interp-spo", **SMALL)
    np.testing.assert_array_equal(alone.predict("client-03", np.ones(3)), fits["interp-spo"].predict("client-03", np.ones(3)))


@pytest.mark.filterwarnings("ignore:.*are equal to rows that train")
def test_a_new_method_is_one_function(federation: dffl.Federation) -> None:
    @dffl.method("halfway")
    def halfway(run: dffl.Run) -> dffl.Outcome:
        """Half own, half shared, for everybody."""
        own = run.personal(run.trained(dffl.Local()))
        common, newcomer = run.common(run.trained(dffl.FedAvg()))
        half = [dffl.MixedPredictor(a, b, np.asarray(0.5)) for a, b in zip(own, common, strict=True)]
        return dffl.Outcome(half, newcomer)

    try:
        table = dffl.compare(federation, ["halfway"], test=federation, **SMALL)
        assert set(table["method"]) == {"halfway", "local"}
    finally:
        from dffl.training import METHODS

        del METHODS["halfway"]


def test_any_equinox_module_can_be_the_network(federation: dffl.Federation) -> None:
    def factory(key: jax.Array, p: int, d: int) -> eqx.Module:
        return eqx.nn.MLP(p, d, width_size=8, depth=2, activation=jnp.tanh, key=key)

    fit = dffl.fit(federation, "fedavg", network=factory, **SMALL)
    assert fit.predict("client-01", federation[0].x).shape == (40, 6)
    with pytest.raises(
        ValueError, match=r"network must map a vector of 3 features to a vector of 6 costs, found output shape \(3,\)"
    ):
        dffl.fit(federation, "fedavg", network=lambda key, p, d: eqx.nn.Linear(p, p, key=key))


def test_learning_beats_the_mean_cost_and_more_rounds_beat_fewer() -> None:
    fed = dffl.synthetic.knapsack(seed=0, clients=5, samples=60, degree=2)
    test = dffl.synthetic.knapsack(seed=0, split="test", clients=5, samples=300, degree=2)
    mean, short, long = (
        dffl.fit(fed, method, rounds=rounds).evaluate(test)["relative_regret"].mean()
        for method, rounds in (("mean-cost", 1), ("fedavg", 2), ("fedavg", 30))
    )
    assert long < 0.5 * short
    assert long < 0.3 * mean


def test_built_in_methods_are_not_replaced_and_wrong_outcomes_are_named(federation: dffl.Federation) -> None:
    with pytest.raises(ValueError, match=r"method 'finetune' is there already \(dffl\..*\); choose another name"):
        dffl.method("finetune")(lambda run: dffl.Outcome([]))
    from dffl.training import METHODS

    wrong = ((5, "must return a dffl.Outcome, found int"), (dffl.Outcome([]), "a predictor for each of 4 clients, found 0"))
    for answer, message in wrong:
        dffl.method("broken")(lambda run, answer=answer: answer)
        try:
            with pytest.raises((TypeError, ValueError), match=message):
                dffl.fit(federation, "broken")
        finally:
            del METHODS["broken"]


def test_a_mix_is_the_mean_of_the_shared_and_the_tuned_model(federation: dffl.Federation) -> None:
    fits = fit_all(federation, ["fedavg", ("finetune-mix", {"epochs": (3,)})], **SMALL)
    alone = dffl.fit(federation, "finetune", epochs=(3,), **SMALL)
    for one in federation:
        halves = (fits["fedavg"].predict(one.name, one.x) + alone.predict(one.name, one.x)) / 2
        np.testing.assert_allclose(fits["finetune-mix"].predict(one.name, one.x), halves, rtol=1e-6)


def test_a_mix_chooses_its_epochs_with_the_mix_in_view(run: Run, federation: dffl.Federation) -> None:
    chosen = run.trained(BestStop(Stops(), share=0.5), dffl.SPLIT).epochs
    engine, shared = laid_out(run, dffl.SPLIT), run.trained(dffl.FedAvg(), dffl.SPLIT)
    form, candidates = NetworkForm(engine.template, run.settings.tau), Stops().epochs
    [site, *_] = engine.sites()
    stops = reach_stops(site, shared, candidates, purpose=Purpose.TUNE)
    _, held = federation.split(0.2, 0)
    for place, member in enumerate(site.members):
        client, unit = held[int(member)], engine.units[member]
        x, c = jnp.asarray(unit.features(client.x)), client.c / unit.c_scale
        models = [*(stop[place] for stop in stops), shared]
        outputs = [form.forward(engine.template.network(jnp.asarray(v)), x)[0] for v in models]
        losses = [float(dffl.spo_plus((one + outputs[-1]) / 2, c, client.set, client.maximize).mean()) for one in outputs[:-1]]
        assert losses[candidates.index(chosen[member])] == pytest.approx(min(losses), rel=1e-4)


def test_validation_blocks_reach_the_split_of_a_run(federation: dffl.Federation) -> None:
    run = Run(federation, Settings.of(**SMALL, validation_blocks=True))
    kept, _ = federation.split(0.2, 0, blocks=True)
    np.testing.assert_array_equal(laid_out(run, dffl.SPLIT).federation[0].c, kept[0].c)

"""A method owns its options; what is unknown, moved or another method's is named before anything trains."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import dffl
from dffl.training import METHODS
from dffl.training.aggregators.robust import Krum
from dffl.training.methods import colour_of, label_of
from dffl.training.trainers import Weights
from tests.federations import client

SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 2, "hidden": 8, "progress": False}


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    return dffl.Federation([client(f"c{i}", dffl.TopK(5, 2), 20) for i in range(3)])


@pytest.mark.parametrize(
    ("method", "keywords", "message"),
    [
        ("fedavg", {"loss": "sp+"}, r"unknown loss .sp\+.; did you mean .spo\+.\? \(allowed: .*mse"),
        ("fedavg", {"loss": 3}, "loss must be a name or a loss object, found 3"),
        ("fedavg", {"loss": "regret"}, "loss 'regret' has no useful gradient: it can judge candidates, but not train"),
        ("fedavg", {"aggregate": "medan"}, "unknown aggregator 'medan'; did you mean 'median'?"),
        ("fedavg", {"aggregate": "krum"}, "aggregator 'krum' with f=1 needs 5 clients in a round, found 3"),
        ("finetune", {"aggregate": "krum"}, "aggregator 'krum' with f=1 needs 5 clients in a round, found 3"),
        ("fedavg", {"optimiser": "adamw"}, "unknown optimiser 'adamw'; did you mean 'adam'?"),
        ("fedavg", {"schedule": "cosin"}, "unknown schedule 'cosin'; did you mean 'cosine'?"),
        ("ditto", {"pul": 0.1}, "unknown setting or option 'pul'; did you mean 'pull'?"),
        ("ditto", {"pull": -1}, "pull must be > 0 and finite, found -1"),
        ("finetune", {"pull": 0.1}, "'pull' is an option of ditto, fedprox, not of finetune .options of finetune: epochs"),
        ("fedrep", {"personal": "weights.7"}, r"'weights.7' names no layer of the network \(it has weights.0, weights.1"),
        ("fedrep", {"personal": ("weights.1", "bises.1")}, "'bises.1' names no layer of the network"),
        ("fedrep", {"personal": "*"}, "is the whole network: nothing would be shared"),
        ("apfl", {"alpha": -0.1}, r"alpha must be in \[0, 1\], found -0.1"),
        ("apfl", {"alpha": 1.5}, r"alpha must be in \[0, 1\], found 1.5"),
        ("apfl", {"adaptive": "no"}, "adaptive must be True or False, found 'no'"),
        ("apfl", {"own_epochs": 0}, "own_epochs must be a whole number >= 1, found 0"),
        ("clustered", {"clusters": 0}, "clusters must be a whole number >= 1, found 0"),
        ("clustered", {"clusters": 4}, "clusters must be at most the number of clients, 3, found 4"),
        ("clustered", {"judge": "spo"}, r"unknown loss 'spo'; did you mean 'spo\+'"),
        ("clustered", {"epochs": "many"}, "epochs must be a whole number >= 0, found 'many'"),
        (
            "clustered",
            {"aggregate": Krum(0), "clusters": 2},
            r"a cluster may have one client in a round \(aggregator 'krum' with",
        ),
        ("finetune", {"judge": "spo"}, r"unknown loss 'spo'; did you mean 'spo\+'"),
        ("finetune", {"epochs": (3, 3)}, r"epochs must be increasing whole numbers, found \(3, 3\)"),
        ("finetune", {"epochs": "many"}, "epochs must be a whole number >= 0, found 'many'"),
        ("finetune", {"finetune_epochs": (3,)}, "finetune_epochs is no longer a setting, but the option 'epochs'"),
        ("interp-spo", {"lambda_step": 1e-9}, r"lambda_step must be in \[0.0001, 1\], found 1e-09"),
        ("local", {"rounds": 10**23}, "rounds must be a whole number from 1 to 10,000,000, found 1000"),
        ("local", {"hidden": 10**10}, "hidden must be a whole number from 0 to 1,000,000, found 10000000000"),
        ("local", {"network": 1}, r"network must be a function of \(key, p, d\) that builds a network, found 1"),
        ("local", {"network": lambda key, p, d: 1}, "network must be an Equinox module with arrays of real numbers to train"),
        (
            "local",
            {"network": dffl.Network(jax.random.key(0), 3, 5)},
            r"network must be a function of \(key, p, d\) that builds",
        ),
        ("local", {"scale_features": "no"}, "scale_features must be True or False, found 'no'"),
        ("local", {"pooled_units": 1}, "pooled_units must be True or False, found 1"),
    ],
)
def test_bad_options_are_one_clear_line(
    federation: dffl.Federation, method: str, keywords: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dffl.training.engines.site.Site.train", _never)
    with pytest.raises(ValueError, match=message) as refused:
        dffl.fit(federation, method, **SMALL | keywords)
    assert "\n" not in str(refused.value)


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("it began to train")


def test_settings_that_moved_say_where_they_went(federation: dffl.Federation) -> None:
    for name in ("finetune_epochs", "finetune_refit", "lambda_step"):
        with pytest.raises(ValueError, match=f"{name} is no longer a setting, but the option '.*' of its methods: dffl.fit"):
            dffl.fit_all(federation, ["local"], **{name: 1})


def test_one_number_of_epochs_is_a_choice_of_one(federation: dffl.Federation) -> None:
    one, other = (dffl.fit(federation, "finetune", epochs=epochs, **SMALL) for epochs in (3, (3,)))
    np.testing.assert_array_equal(one.predict("c0", np.ones(3)), other.predict("c0", np.ones(3)))


def test_compare_takes_names_with_options(federation: dffl.Federation) -> None:
    methods = ["fedprox", ("fedprox", {"pull": 5.0}), ("finetune", {"epochs": (0, 2)})]
    fits = dffl.fit_all(federation, methods, **SMALL)
    assert list(fits) == ["fedprox", "fedprox(pull=5.0)", "finetune", "local"]
    assert fits["fedprox(pull=5.0)"].options == {"pull": 5.0}
    with pytest.warns(UserWarning, match="test rows of client 'c0' are equal to rows that train 'c0'"):
        table = dffl.compare(federation, methods, test=federation, **SMALL)
    assert list(dict.fromkeys(table["method"])) == list(fits)
    tight, loose = (fits[name].predict("c0", np.ones(3)) for name in ("fedprox(pull=5.0)", "fedprox"))
    assert not np.array_equal(tight, loose)
    with pytest.raises(ValueError, match=r"'epochs' is an option: give it with its method, as in methods=\[\('finetune', "):
        dffl.fit_all(federation, ["finetune"], epochs=(0, 2), **SMALL)
    with pytest.raises(ValueError, match="'pull' is an option of ditto, fedprox, not of local"):
        dffl.fit_all(federation, [("local", {"pull": 1.0})])
    with pytest.raises(ValueError, match="'pull' is an option of ditto, fedprox, not of local, finetune"):
        dffl.fit_all(federation, ["local", "finetune"], pull=1.0)
    with pytest.raises(ValueError, match="'rounds' is a setting of the run, not an option of local"):
        dffl.fit_all(federation, [("local", {"rounds": 3})])
    with pytest.raises(ValueError, match="a method is a name, or a name with options"):
        dffl.fit_all(federation, [3])  # type: ignore[list-item]


def test_an_option_can_be_written_with_its_method_as_a_setting(federation: dffl.Federation) -> None:
    dotted = dffl.fit_all(federation, ["finetune"], **SMALL, **{"finetune.epochs": (0, 2)})
    assert dotted["finetune"].options == {"epochs": (0, 2)}
    with pytest.raises(ValueError, match="unknown method 'finetuna'; did you mean 'finetune'"):
        dffl.fit_all(federation, ["finetune"], **{"finetuna.epochs": 3})


def test_an_option_is_saved_with_its_fit(federation: dffl.Federation, tmp_path: Any) -> None:
    fit = dffl.fit(federation, "finetune", epochs=(0, 2), judge="regret", loss="spo+mse", aggregate="median", **SMALL)
    fit.save(tmp_path / "fit.dffl")
    again = dffl.load(tmp_path / "fit.dffl")
    assert again.options == {"epochs": [0, 2], "judge": "regret"}
    assert again.settings == fit.settings


def test_a_method_owns_its_label_and_its_colour() -> None:
    assert label_of("finetune") == "Fine-tuned"
    assert len({method.colour for method in METHODS.values()}) == len(METHODS)
    assert label_of("a naive rule") == "a naive rule"
    assert colour_of("a naive rule").startswith("#")


def test_how_long_local_trains_is_an_option_of_its_own(federation: dffl.Federation) -> None:
    usual = dffl.fit(federation, "local", **SMALL)
    same = dffl.fit(federation, "local", epochs=4, **SMALL)
    longer = dffl.fit(federation, "local", epochs=9, **SMALL)
    np.testing.assert_array_equal(usual.predict("c0", np.ones(3)), same.predict("c0", np.ones(3)))
    assert not np.array_equal(usual.predict("c0", np.ones(3)), longer.predict("c0", np.ones(3)))
    chosen = dffl.fit(federation, "local", epochs=(1, 4, 9), **SMALL)
    for name, member in chosen.members.items():
        alone = dffl.fit(federation, "local", epochs=int(member.choices["epochs"]), **SMALL)
        np.testing.assert_array_equal(chosen.predict(name, np.ones(3)), alone.predict(name, np.ones(3)))
    assert {member.choices["epochs"] for member in chosen.members.values()} <= {1, 4, 9}


def test_the_judge_decides_the_weight(federation: dffl.Federation) -> None:
    by_mse = dffl.fit(federation, "interp-mse", **SMALL)
    through_option = dffl.fit(federation, "interp-spo", judge="mse", **SMALL)
    weights = [[member.choices["lambda"] for member in fit.members.values()] for fit in (by_mse, through_option)]
    assert weights[0] == weights[1]


def test_the_grid_of_weights_has_both_ends() -> None:
    np.testing.assert_allclose(Weights().grid, np.arange(21) / 20)
    np.testing.assert_allclose(Weights(step=0.3).grid, [0, 0.3, 0.6, 1.0])
    np.testing.assert_allclose(Weights(step=1.0).grid, [0, 1])


def test_a_method_of_ones_own_has_options_and_is_rehearsed_before_anything_trains(federation: dffl.Federation) -> None:
    calls = []

    @dffl.method("half-way", label="Half way")
    def half_way(run: dffl.Run, *, share: float = 0.5) -> dffl.Outcome:
        own, shared = run.trained(dffl.Local()), run.trained(dffl.FedAvg())
        calls.append(float(np.abs(own).max()))
        if calls[-1] == 0:
            raise RuntimeError("this method cannot live with models of zeros")  # the rehearsal's fault: ignored
        return dffl.Outcome(run.personal((1 - share) * own + share * shared))

    try:
        fit = dffl.fit(federation, "half-way", share=0.25, **SMALL)
        assert calls[0] == 0
        assert calls[1] > 0
        assert fit.options == {"share": 0.25}
        assert METHODS["half-way"].label == "Half way"
        with pytest.raises(ValueError, match="unknown setting or option 'shar'; did you mean 'share'"):
            dffl.fit(federation, "half-way", shar=1)
    finally:
        del METHODS["half-way"]


def test_progress_counts_what_was_asked_for(federation: dffl.Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    from dffl.progress import Progress

    bars: list[Progress] = []
    end = Progress.__exit__

    def ended(self: Progress, *args: Any) -> None:
        bars.append(self)
        end(self, *args)

    monkeypatch.setattr(Progress, "__exit__", ended)
    for method in ("fedavg", "interp-spo", "ditto", "scaffold", "fedrep", "apfl", "clustered", ("local", {"epochs": 7})):
        dffl.fit_all(federation, [method], **SMALL)
        assert bars[-1].done == pytest.approx(bars[-1].total) and bars[-1].total > 0, method  # noqa: PT018

"""Settings are refused before any training starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import dffl
from dffl.training.trainers import Weights
from tests.federations import client


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number >= 1, found 0"),
        ({"local_epochs": 0}, "local_epochs must be a whole number >= 1, found 0"),
        ({"batch_size": 2.5}, "batch_size must be a whole number >= 1, found 2.5"),
        ({"client_fraction": 0}, r"client_fraction must be in \(0, 1\], found 0"),
        ({"client_fraction": 1.5}, r"client_fraction must be in \(0, 1\], found 1.5"),
        ({"learning_rate": -1}, "learning_rate must be > 0 and finite, found -1"),
        ({"tau": "big"}, "tau must be > 0 and finite, found 'big'"),
        ({"seed": -3}, "seed must be a whole number from 0"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be in \(0, 1\), found 1.0"),
        ({"method": "finetune", "epochs": (3, 3)}, "^epochs must be increasing whole numbers"),
        ({"method": "finetune", "epochs": (-1, 3)}, "^epochs must be a whole number >= 0, found -1"),
        ({"method": "finetune", "finetune_epochs": (3,)}, "finetune_epochs is no longer a setting, but the option 'epochs'"),
        ({"method": "finetune-mix", "finetune_refit": False}, "finetune_refit is no longer a setting, but the option 'refit'"),
        ({"finetune_epochs": (3,)}, "finetune_epochs is no longer a setting, but the option 'epochs' of its methods"),
        (
            {"method": "fedavg", "lambda_step": 0.1},
            "lambda_step is no longer a setting, but the option 'lambda_step' of its methods: .*'interp-spo'",
        ),
        ({"method": "interp-spo", "lambda_step": 0.0}, r"lambda_step must be in \[0.0001, 1\], found 0.0"),
        ({"dtype": "float16"}, "dtype must be one of float32, float64, found 'float16'"),
        ({"engine": "warp"}, "engine must be one of vector, loop, ray, found 'warp'"),
        ({"engine": "processes"}, "engine 'processes' was removed; engine='loop' gives the same numbers, and `dffl federation"),
        ({"round": 5}, r"unknown setting or option 'round'; did you mean 'rounds'\?"),
        ({"method": "fedavgg"}, "unknown method 'fedavgg'; did you mean 'fedavg'?"),
        ({"method": "oracle-interp-spo"}, "method 'oracle-interp-spo' chooses on a separate validation federation"),
    ],
)
def test_a_bad_setting_is_named_with_what_is_allowed(setting: dict[str, object], message: str) -> None:
    fed = dffl.Federation([client("a", dffl.TopK(5, 2))])
    with pytest.raises(ValueError, match=message):
        dffl.fit(fed, **setting)  # type: ignore[arg-type]


def test_the_grid_of_weights_has_both_ends() -> None:
    np.testing.assert_allclose(Weights().grid, np.arange(21) / 20)
    np.testing.assert_allclose(Weights(step=0.3).grid, [0, 0.3, 0.6, 1.0])
    np.testing.assert_allclose(Weights(step=1.0).grid, [0, 1])


@pytest.mark.parametrize(
    ("old", "option", "method"),
    [
        ("lambda_step", "lambda_step", "interp-spo"),
        ("finetune_epochs", "epochs", "finetune"),
        ("finetune_refit", "refit", "finetune"),
    ],
)
def test_a_setting_that_is_now_an_option_says_of_which_method(old: str, option: str, method: str) -> None:
    message = rf"{old} is no longer a setting, but the option '{option}' of its methods: dffl.fit\(federation, '{method}', "
    with pytest.raises(ValueError, match=message):
        dffl.Settings.of(**{old: 1})


def test_validation_must_fit_the_federation_and_be_of_use() -> None:
    fed = dffl.Federation([client("a", dffl.TopK(5, 2)), client("b", dffl.TopK(5, 2))])
    with pytest.raises(ValueError, match="validation: client 'b' is missing"):
        dffl.fit(fed, "oracle-interp-spo", validation=dffl.Federation([fed[0]]))
    with pytest.raises(ValueError, match="validation: client 'c' is not in the federation"):
        dffl.fit(fed, "oracle-interp-spo", validation=dffl.Federation([client("c", dffl.TopK(5, 2))]))
    with pytest.raises(ValueError, match="validation is not used by interp-spo; oracle-interp-spo"):
        dffl.fit(fed, "interp-spo", validation=fed)
    with pytest.raises(ValueError, match=r"federation must be a dffl.Federation, found list"):
        dffl.fit([fed[0]])  # type: ignore[arg-type]


def test_too_few_samples_are_refused_by_the_methods_that_split_alone() -> None:
    fed = dffl.Federation([client("rich", dffl.TopK(5, 2)), client("poor", dffl.TopK(5, 2), n=1)])
    for method in ("interp-spo", "interp-mse", "finetune"):
        with pytest.raises(ValueError, match="client 'poor': x must have samples enough"):
            dffl.fit(fed, method)
    assert dffl.fit(fed, "fedavg", rounds=1).decide("poor", np.zeros(3)).sum() == 2


def test_a_setting_that_0_2_0_did_not_know_is_digested_only_where_it_is_changed() -> None:
    """Else every new setting would end the use of all checkpoints."""

    @dataclass(frozen=True)
    class Later(dffl.Settings):
        speed: float | None = None

    assert Later(seed=1).digest() == dffl.Settings(seed=1).digest() != Later(seed=1, speed=0.5).digest()
    assert Later(speed=0.4).digest() != Later(speed=0.5).digest()

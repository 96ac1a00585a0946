"""The typed keywords are those that settings and methods have."""

from __future__ import annotations

import inspect
from typing import get_type_hints

from dffl.training import METHODS, Settings
from dffl.training.keywords import FitKeywords, SettingsKeywords


def test_every_setting_is_a_typed_keyword() -> None:
    hints = get_type_hints(Settings)
    assert hints.pop("forecast") is bool, "the clients say it"
    assert hints.pop("item_features") is int, "and this"
    assert get_type_hints(SettingsKeywords) == hints
    assert set(Settings.names()) == set(hints)
    assert not SettingsKeywords.__required_keys__


def test_every_option_of_our_methods_is_a_typed_keyword() -> None:
    ours = [one for one in METHODS.values() if one.fit.__module__.startswith("dffl.")]
    options = {name for one in ours for name in one.options}
    assert len(ours) >= 14
    assert set(get_type_hints(FitKeywords)) == options | set(get_type_hints(SettingsKeywords))
    for one in ours:  # and none of them hides a keyword of dffl.fit itself
        assert not set(one.options) & {"method", "validation", "progress", "checkpoint"}
        assert all(
            kind.default is not inspect.Parameter.empty for kind in list(inspect.signature(one.fit).parameters.values())[1:]
        )

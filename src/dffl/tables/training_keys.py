"""The section about training in a federation's file: a method, its options, and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dffl.fitting import DEFAULT_METHOD
from dffl.named import find, nearest
from dffl.tables.keys import Keys
from dffl.time.outcome import CHOSEN
from dffl.training.methods import METHODS, Method
from dffl.training.settings import BY_NAME, FLAGS, FORECAST, MOVED, NAMED_SETTINGS, Settings

NOT_IN_FILES = ("network",)
"""Settings that exist only in Python."""
OF_THE_FEDERATION = {"split": "split", "period": "train_from and test_from"}
"""Settings that follow from keys under [federation], because the test rows depend on them too."""


def read_training(keys: Keys) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The method, its options and the settings. Options are under ``options`` or next to the settings."""
    name = keys.text("method") or DEFAULT_METHOD
    if name == CHOSEN:
        return _of_choice(keys)
    method: Method | None = None
    try:
        method = find(METHODS, name, "method")
    except ValueError as error:
        keys.refuse("method", f"{error}, or {CHOSEN!r}")
    known = list(method.options) if method is not None else []
    options: dict[str, Any] = {}
    method_options = keys.take("options", "a table of options of the method", lambda value: isinstance(value, Mapping), {})
    for option, value in method_options.items():
        if option in known:
            options[option] = value
        elif method is not None:
            listed = ", ".join(known) or "none"
            keys.refuse(f"options.{option}", f"{name} has no such option{nearest(option, known)} (options of {name}: {listed})")
    settings: dict[str, Any] = {}
    for key, value in keys.rest().items():
        keys.take(key, "", lambda _: True)
        if key in known and key in options:
            keys.refuse(key, "is here and under options; remove one")
        elif key in known:
            options[key] = value
        elif key in OF_THE_FEDERATION:
            keys.refuse(key, f"belongs under [federation], as {OF_THE_FEDERATION[key]}")
        elif key in Settings.names() and key not in NOT_IN_FILES:
            _setting(keys, key, value, settings)
        else:
            _refuse(keys, key, known, name, method is not None)
    return name, options, settings


def _of_choice(keys: Keys) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The settings of all trainings among which `chosen` chooses. It has no options."""
    settings: dict[str, Any] = {}
    for key, value in keys.rest().items():
        keys.take(key, "", lambda _: True)
        if key in OF_THE_FEDERATION:
            keys.refuse(key, f"belongs under [federation], as {OF_THE_FEDERATION[key]}")
        elif key == "privacy":
            keys.refuse(key, f"cannot be combined with {CHOSEN}, which trains again and again; name one method instead")
        elif key in Settings.names() and key not in (*NOT_IN_FILES, FORECAST):
            _setting(keys, key, value, settings)
        else:
            _refuse(keys, key, [], CHOSEN, True)
    return CHOSEN, {}, settings


def _setting(keys: Keys, key: str, value: Any, settings: dict[str, Any]) -> None:
    try:
        if key in FLAGS and not isinstance(value, bool):
            raise ValueError(f"{key} must be true or false, found {value!r:.60}")
        if key in NAMED_SETTINGS and isinstance(value, Mapping):  # such as loss = { name = "rspo+", ... }
            value = NAMED_SETTINGS[key].of(value)
        Settings.of(**{key: value})
        settings[key] = value
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        keys.refuse(key, str(error))


def _refuse(keys: Keys, key: str, options: list[str], method: str, known: bool) -> None:
    if key in NOT_IN_FILES:
        keys.refuse(key, "can be given in Python only")
        return
    if key == FORECAST:
        keys.refuse(key, BY_NAME)
        return
    others = [method.name for method in METHODS.values() if key in method.options]
    if known and others:
        keys.refuse(key, f"is an option of {', '.join(others)}, not of {method}")
    elif known or not (others or key in MOVED):  # the options of an unknown method are unknown too
        settings = [name for name in Settings.names() if name not in (*NOT_IN_FILES, *OF_THE_FEDERATION)]
        allowed = [*options, *settings, "method", "options"]
        keys.refuse(key, f"no such setting, or option of {method}{nearest(key, allowed)}")

"""Drift of columns: seen where a level moves, and not where values only last."""

import numpy as np
import pytest
from scipy.signal import lfilter

from dffl.time.drift import LATEST, _errors, drifted

KNOWN, COLUMNS = 400, 400


def lasting(keeps: float, seed: int = 0) -> np.ndarray:
    steps = np.random.default_rng(seed).normal(size=(KNOWN + LATEST + 200, COLUMNS))
    return np.asarray(lfilter([np.sqrt(1 - keeps**2)], [1, -keeps], steps, axis=0)[200:])


@pytest.mark.parametrize(("keeps", "move"), [(0.0, 2.5), (0.7, 4.0), (0.9, 6.0)])
def test_a_level_that_moves_is_seen_and_one_that_only_lasts_is_not(keeps: float, move: float) -> None:
    rows = lasting(keeps)
    assert drifted(rows[:KNOWN], rows[KNOWN:]).mean() < 0.01
    assert drifted(rows[:KNOWN], rows[KNOWN:] + move).mean() > 0.9


def test_the_mean_of_the_last_rows_errs_as_its_memory_says() -> None:
    for keeps in (0.0, 0.5, 0.9):
        rows = lasting(keeps)
        errors = _errors(rows[:KNOWN], rows[KNOWN:])
        assert 0.6 < np.sqrt(np.mean(errors**2)) < 1.2  # 1 if the memory were known


def test_a_column_that_never_changed_has_drifted_when_it_does_and_few_rows_say_nothing() -> None:
    before, latest = np.full((100, 2), 3.0), np.full((LATEST, 2), 3.0)
    latest[:10, 1] = 4.0
    assert drifted(before, latest).tolist() == [False, True]
    assert not drifted(before[:27], latest).any()


def test_one_spike_among_slightly_unusual_rows_is_no_drift() -> None:
    rows = lasting(0.9)
    before, latest = rows[:KNOWN], rows[KNOWN:]
    latest[5] = 200.0
    assert not drifted(before, latest).any()
    before[7] = 200.0  # nor do spikes hide how slowly the others forget
    assert not drifted(before, latest).any()
    assert drifted(before, latest + 6.0).mean() > 0.9

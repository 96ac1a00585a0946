"""Whether the intervals of advice hold is counted from rows of the study."""

import numpy as np
import pandas as pd

from dffl_studies.time.advice import advice_holds


def weeks(chosen: np.ndarray, forecast: np.ndarray) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"fleet": "a", "client": "x", "rule": rule, "week": range(len(lost)), "regret": lost, "days": 7})
        for rule, lost in (("chosen", chosen), ("forecast", forecast), ("mean-7", 2 * forecast), ("mean-14", 2 * forecast),
                           ("mean-28", 2 * forecast), ("steady", 2 * forecast))
    ]  # fmt: skip
    return pd.concat(parts)


def numbers(table: pd.DataFrame) -> dict[str, float]:
    cells = [one for one in advice_holds(table).cells if one.row == ("all", "all")]
    return {one.column: one.ours.mean for one in cells}


def test_a_gain_that_lasts_is_right_and_one_that_turns_is_missed() -> None:
    own = np.random.default_rng(0).gamma(20, size=40)
    lasts, turns = numbers(weeks(0.8 * own, own)), numbers(weeks(np.where(np.arange(40) < 28, 0.5, 2.0) * own, own))
    assert (lasts["held, %"], lasts["clear"], lasts["right"]) == (100.0, 4.0, 4.0)
    assert turns["right"] < turns["clear"]
    assert turns["held, %"] < 50

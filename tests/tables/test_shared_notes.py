"""What a file's notes say of rows that several tables hold: never that they are held out together where they are not."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.tables.description import Description, read

N = 80
RNG = np.random.default_rng(2)
PRICES = [f"price_{place}" for place in range(4)]


def table() -> pd.DataFrame:
    made = pd.DataFrame(np.random.default_rng(1).normal(size=(N, 3)), columns=["f_0", "f_1", "f_2"])
    made[PRICES] = 10 + np.random.default_rng(3).normal(size=(N, 4))
    made.insert(0, "date", pd.date_range("2023-01-01", periods=N).strftime("%Y-%m-%d"))
    return made


def described(folder: Path, change: Callable[[pd.DataFrame], pd.DataFrame], keys: str = "") -> Description:
    """Two sites; the second has the rows of the first, changed."""
    lines = ["[federation]", 'features = "f_*"', 'costs = "price_*"', keys]
    for name, made in (("a", table()), ("b", change(table()))):
        made.to_csv(folder / f"{name}.csv", index=False)
        lines += ["[[client]]", f'name = "{name}"', f'table = "{name}.csv"', 'set = { type = "top-k", k = 2 }']
    file = folder / "federation.toml"
    file.write_text("\n".join(lines))
    return read(file)


def with_costs(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda made: made.assign(**change(made[PRICES]))


def own_weather(made: pd.DataFrame) -> pd.DataFrame:
    return made.assign(**{name: RNG.normal(size=N) for name in ("f_0", "f_1", "f_2")})


def dated(made: pd.DataFrame) -> pd.DataFrame:
    return made.assign(date=made["date"] + " 12:00")


def test_a_fee_is_noted_in_folds_and_test_and_a_key_mends_it(tmp_path: Path) -> None:
    def fee(made: pd.DataFrame) -> pd.DataFrame:
        return with_costs(lambda prices: prices + 4)(made).sample(frac=1, random_state=0)

    notes = described(tmp_path, fee).notes
    assert notes[0].startswith("in the folds of training, ")
    assert "are held out while rows of equal features and related costs train" in notes[0]
    assert "have features, and related costs, of rows that train" in notes[1]
    assert all(note.endswith("(`key` in a file, `keys` of clients in Python), or leave the copies out") for note in notes)
    assert described(tmp_path, fee, 'key = "date"').notes == []


def test_shifted_copies_are_not_said_to_be_held_out_together(tmp_path: Path) -> None:
    def shifted(made: pd.DataFrame) -> pd.DataFrame:
        return made.assign(date=pd.date_range("2023-01-25", periods=N).strftime("%Y-%m-%d"))

    notes = described(tmp_path, shifted, 'order = "date"').notes
    assert "not all of them are held out together, see below" in notes[0]
    assert "held out by time, at all clients together" not in " ".join(notes)
    assert any("give rows of one moment the same time at all clients" in note for note in notes)
    together = described(tmp_path, lambda made: made, 'order = "date"').notes
    assert "they are held out by time, at all clients together" in together[0]


def test_keys_that_are_written_in_two_ways_are_noted(tmp_path: Path) -> None:
    exact = described(tmp_path, dated, 'key = "date"').notes
    assert "not all of them are held out together, see below" in exact[0]
    assert "rows with equal keys are held out together" not in " ".join(exact)
    rounded = described(
        tmp_path, lambda made: dated(own_weather(with_costs(lambda prices: (1.083 * prices).round(1))(made))), 'key = "date"'
    ).notes
    assert len(rounded) == 1
    assert "federation.key: no two training rows of any clients have the same 'date'" in rounded[0]
    assert "rows with equal keys are held out together" in described(tmp_path, lambda made: made, 'key = "date"').notes[0]


def test_a_site_with_too_few_rows_for_the_rule_is_named(tmp_path: Path) -> None:
    """None of its rows falls into the test: the one that is taken may train another site."""
    noted = 0
    for first in range(0, 60, 4):
        found = described(tmp_path, lambda made, first=first: made[first : first + 4])
        both = {tuple(row) for row in found.test["b"].c.tolist()} & {tuple(row) for row in found.train["a"].c.tolist()}
        forced = [note for note in found.notes if "client 'b': none of its 4 rows falls into the test" in note]
        assert bool(both) == bool(forced)
        noted += len(forced)
        if both:
            assert any("1 of the 1 test rows of client 'b' are equal to rows that train 'a'" in note for note in found.notes)
    assert 0 < noted < 15


def test_a_few_chance_hits_do_not_reassure_about_copies_in_cents(tmp_path: Path) -> None:
    cents = with_costs(lambda prices: pd.concat([prices[:3], (1.083 * prices[3:]).round(2)]))
    notes = described(tmp_path, lambda made: cents(made).sample(frac=1, random_state=0)).notes
    assert "clients share rows" in notes[0]
    assert "not all of them are held out together, see below" in notes[0]
    assert any("of equal features and related costs train" in note for note in notes)

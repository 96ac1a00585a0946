"""The study's page: shares of the best possible cost, and the study's own harm."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dffl.report import ReportData
from dffl_studies.energy.harm import excesses
from dffl_studies.energy.naive import RULES
from dffl_studies.energy.page import report_data
from dffl_studies.energy.setup import METHODS, Setup
from studies.tests.energy.made_rows import with_weeks

BEST = 50.0


def rows() -> pd.DataFrame:
    """Two zones, three seeds; finetune-mix gains in the first and is harmed in the second."""
    made = []
    for seed in range(3):
        for zone, factor in (("A", 0.5), ("B", 1.5)):
            for method in (*METHODS, *RULES):
                regret = 0.0 if method == "perfect-foresight" else 2.0 + 0.01 * seed
                regret *= factor if method == "finetune-mix" else 1
                made.append({"seed": seed, "zone": zone, "method": method, "regret": regret, "lambda": 0.25, "epochs": 5.0})
    facts = {"n": 100, "n_test": 28, "best": BEST, "demand": 6.0}
    return with_weeks(pd.DataFrame(made).assign(**facts), np.array([0.26, 0.25, 0.25, 0.24]))


def test_the_page_says_what_the_study_says() -> None:
    panel = SimpleNamespace(days=np.array(["2024-01-01", "2024-12-31"], dtype="datetime64[D]"), notes=("a note",))
    found = rows()
    data = report_data(found, panel, Setup(), "2024-07-01")  # type: ignore[arg-type]
    assert ReportData.from_json(data.as_json()) == data
    assert [client.decides for client in data.clients] == ["buy 6 of 24 hours"] * 2
    one = data.result("A", "finetune-mix")
    assert one is not None
    assert one.lost == pytest.approx(1.005)
    assert one.regret == pytest.approx(1.005 / BEST)
    assert one.low is not None and one.high is not None and one.low < one.regret < one.high  # noqa: PT018
    assert one.chosen == {"lambda": 0.25, "epochs": 5.0}
    gain, harm = (data.change(zone, "finetune-mix", "local-tuned") for zone in "AB")
    assert gain is not None and harm is not None  # noqa: PT018
    assert gain.value == pytest.approx(-1.005 / BEST, rel=1e-5)
    assert (gain.verdict, gain.harmed) == ("better", False)
    assert (harm.verdict, harm.harmed) == ("worse", True)
    study = excesses(found, "local-tuned").set_index(["zone", "method"]).loc[("B", "finetune-mix")]
    assert harm.low == pytest.approx(study["low"] / 100 * study["reference"] / BEST)
    assert {one.name for one in data.methods if one.kind == "naive"} == set(RULES) - {"perfect-foresight"}
    assert "2024-01-01 to 2024-06-30 train" in data.notes[0]

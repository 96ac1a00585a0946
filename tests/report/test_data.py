"""What a report says survives JSON, and damaged reports are refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from dffl.report import ReportData
from tests.report.made import HOSTILE, made, made_over_time


@pytest.mark.parametrize(
    "data", [made(), made(HOSTILE), made(judged=False), replace(made(), differences=None, curves=()), made_over_time()]
)
def test_json_there_and_back(data: ReportData) -> None:
    text = json.dumps(data.as_json(), allow_nan=False)
    assert ReportData.from_json(json.loads(text)) == data


def test_what_is_not_finite_becomes_unknown() -> None:
    data = made()
    odd = replace(data, results=(replace(data.results[0], regret=math.inf, low=math.nan),))
    again = ReportData.from_json(odd.as_json())
    assert again.results[0].regret is None
    assert again.results[0].low is None


@pytest.mark.parametrize("plain", [{}, {"format": 99}, [], {"format": 1}, {**made().as_json(), "more": 1}])
def test_other_json_is_refused_in_one_line(plain: object) -> None:
    with pytest.raises(ValueError, match=r"^report: [^\n]*$"):
        ReportData.from_json(plain)  # type: ignore[arg-type]


def test_the_reference_is_never_the_main_method_itself() -> None:
    data = made()
    assert data.reference == "local-tuned"
    assert replace(data, main="local-tuned").reference == "local"
    assert replace(data, main="local", references=("local",)).reference is None

"""Several reports as one: what is the same is shown once, what differs has the name of its model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dffl.report import ReportData, render
from dffl.report.merged import merged
from tests.report.made import made

BESIDE = ("mean-cost", "ridge", "local", "local-tuned")


def other(data: ReportData, main: str, shift: float, *changed: str) -> ReportData:
    """The same naive rows, and another main method; the regrets of ``changed`` are shifted."""
    methods = tuple(one if one.name in BESIDE else replace(one, name=main) for one in data.methods)
    results = tuple(
        replace(one, method=name, regret=(one.regret or 0) + (shift if name in (main, *changed) else 0.0))
        for one in data.results
        for name in [one.method if one.method in BESIDE else main]
    )
    return replace(data, main=main, methods=methods, results=results, curves=())


FIRST = made(methods=(*BESIDE, "crossfit"))


def test_other_methods_stand_beside_each_other() -> None:
    better = other(FIRST, "finetune", -0.005)
    found = merged({"a": FIRST, "b": better})
    assert {one.name for one in found.methods} == {*BESIDE, "crossfit", "finetune"}
    assert found.main == "finetune"  # it loses least
    assert found.references == ("local-tuned", "local")
    assert len(found.results) == 4 * 6
    assert found.result("north", "finetune") == better.result("north", "finetune")
    assert found.result("north", "crossfit") == FIRST.result("north", "crossfit")
    assert "2 models: a (crossfit, 3 starts), b (finetune, 3 starts). The verdict is about b" in found.notes[0]
    assert found.notes[1:] == FIRST.notes
    assert ReportData.from_json(found.as_json()).as_json() == found.as_json()


def test_one_method_with_other_numbers_has_the_name_of_its_model() -> None:
    found = merged({"a": FIRST, "b": other(FIRST, "crossfit", 0.01, "local")})
    names = {one.name for one in found.methods}
    assert names == {"mean-cost", "ridge", "local (a)", "local (b)", "local-tuned", "crossfit (a)", "crossfit (b)"}
    assert found.main == "crossfit (a)"
    assert found.references == ("local-tuned", "local (a)")
    mine, theirs = found.result("north", "crossfit (a)"), found.result("north", "crossfit (b)")
    assert mine is not None
    assert theirs is not None
    assert [one.against for one in mine.changes] == ["local-tuned", "local (a)"]
    assert [one.against for one in theirs.changes] == ["local-tuned", "local (b)"]
    assert theirs.regret == pytest.approx((mine.regret or 0) + 0.01)
    assert found.curves[0].method == "crossfit (a)"


def test_a_merged_page_is_rendered() -> None:
    pytest.importorskip("plotly")
    page = render(merged({"a": FIRST, "<b>": other(FIRST, "crossfit", 0.01, "local")}))
    assert "crossfit (&lt;b&gt;)" in page
    assert "crossfit (<b>)" not in page


def test_one_report_stays_as_it_is() -> None:
    assert merged({"a": FIRST}) is FIRST


def test_reports_of_other_clients_or_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="a and b have different clients, such as 'elsewhere'; one page shows"):
        merged({"a": FIRST, "b": made(("north", "south", "east", "elsewhere"), methods=(*BESIDE, "crossfit"))})
    fewer = replace(FIRST, clients=(replace(FIRST.clients[0], n_test=3), *FIRST.clients[1:]))
    with pytest.raises(ValueError, match="a and b have different test rows: 20 and 3 of client 'north'"):
        merged({"a": FIRST, "b": fewer})
    with pytest.raises(ValueError, match="a and b have different test rows: mean-cost loses more under one of them"):
        merged({"a": FIRST, "b": other(FIRST, "crossfit", 0.01, "mean-cost")})

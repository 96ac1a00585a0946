"""The tables of the energy study."""

import pandas as pd
import pytest

from dffl_studies.energy import published
from dffl_studies.energy.setup import METHODS
from dffl_studies.energy.tables import all_tables
from dffl_studies.running.render import to_markdown
from studies.tests.energy.made_rows import with_weeks

RULES = ("mean-7", "mean-28", "steady")


def rows(zones: list[str], seeds: int = 3) -> pd.DataFrame:
    """Regrets of 20 under local-tuned, 25 under local, 10 % less under the rest, 5 % more in the last zone; 1 more in each
    further seed.
    """
    made = []
    for seed in range(seeds):
        for zone in zones:
            for method in (*METHODS, *RULES):
                factor = 1.05 if zone == zones[-1] else 0.9
                factor = {"local-tuned": 1.0, "local": 1.25}.get(method, factor)
                facts = {"seed": seed, "zone": zone, "demand": 6.0, "method": method, "best": 100.0}
                made.append(facts | {"regret": (20.0 + seed) * factor, "lambda": 0.5 if method.startswith("interp") else None})
    return with_weeks(pd.DataFrame(made))


def cells(table) -> dict[tuple[str, ...], float]:
    return {(*cell.row, cell.column): cell.ours.mean for cell in table.cells}


def test_the_numbers_of_each_table():
    tables = {table.name: table for table in all_tables(rows(["A", "B", "C", "D"]))}
    assert list(tables) == ["totals", "changes-local-tuned", "changes-local"]
    changes = cells(tables["changes-local-tuned"])
    assert changes["Federated", "mean change %"] == pytest.approx((-10 * 3 + 5) / 4)
    assert changes["Federated", "worst harm %"] == pytest.approx(5)
    assert changes["Federated", "worst-20 % harm"] == pytest.approx(5)
    assert changes["Federated", "over 1 % of 4"] == 1
    assert changes["Local", "mean change %"] == pytest.approx(25)
    totals = cells(tables["totals"])
    assert totals["local-tuned", "Federated", "change %"] == pytest.approx((-10 * 3 + 5) / 4)
    assert totals["local", "Local, tuned", "change %"] == pytest.approx(-20)
    assert totals["steady", "Federated", "change %"] == pytest.approx(0)
    against_local = cells(tables["changes-local"])
    assert against_local["Federated", "mean change %"] == pytest.approx(100 * ((0.9 * 3 + 1.05) / 4 / 1.25 - 1))
    assert ("Local", "mean change %") not in against_local


def test_with_two_seeds_nobody_is_called_harmed():
    tables = {table.name: table for table in all_tables(rows(["A", "B", "C", "D"], seeds=2))}
    assert cells(tables["changes-local-tuned"])["Federated", "over 1 % of 4"] == 1
    for table in tables.values():
        assert "nan" not in to_markdown(table)
        assert "inf" not in to_markdown(table)


def test_names_of_the_papers_zones_alone_bring_none_of_its_numbers():
    for table in all_tables(rows(list(published.ZONES))):
        assert "paper" not in to_markdown(table).split("\n\n")[1]
        assert {cell.paper for cell in table.cells} == {None}


def test_a_zone_that_cannot_lose_leaves_the_others_their_numbers():
    table = rows(["A", "B", "C"])
    table.loc[(table["zone"] == "B") & table["method"].isin(["local", "local-tuned"]), "regret"] = 0.0
    for one in all_tables(table):
        text = to_markdown(one)
        assert "inf" not in text
        assert "nan" not in text
    changes = cells(all_tables(table)[1])
    assert changes["Federated", "mean change %"] == pytest.approx((-10 + 5) / 2)
    for one in all_tables(table.assign(regret=0.0)):
        assert "nan" not in to_markdown(one)

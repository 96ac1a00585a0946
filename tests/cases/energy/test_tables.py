"""The tables of the energy study."""

import pandas as pd
import pytest

from dffl.cases.energy import published
from dffl.cases.energy.setup import METHODS
from dffl.cases.energy.tables import all_tables
from dffl.studies.render import to_csv, to_markdown


def rows(zones: list[str], seeds: int = 2) -> pd.DataFrame:
    """Regrets of 20 under local, 10 % less under the rest, 5 % more in the last zone; 1 more in each further seed."""
    made = []
    for seed in range(seeds):
        for zone in zones:
            for method in (*METHODS, "mean-cost", "moving-average", "perfect-foresight"):
                factor = (
                    1.0 if method == "local" else 0.0 if method == "perfect-foresight" else 1.05 if zone == zones[-1] else 0.9
                )
                facts = {"seed": seed, "zone": zone, "demand": 6.0, "method": method, "best": 100.0}
                made.append(facts | {"regret": (20.0 + seed) * factor, "lambda": 0.5 if method.startswith("interp") else None})
    return pd.DataFrame(made)


def cells(table) -> dict[tuple[str, ...], float]:
    return {(*cell.row, cell.column): cell.ours.mean for cell in table.cells}


def test_the_numbers_of_each_table():
    tables = {table.name: table for table in all_tables(rows(["A", "B", "C", "D"]))}
    changes = cells(tables["changes"])
    assert changes["Federated", "mean change %"] == pytest.approx((-10 * 3 + 5) / 4)
    assert changes["Federated", "worst harm %"] == pytest.approx(5)
    assert changes["Federated", "worst-20 % harm"] == pytest.approx(5)
    assert changes["Federated", "harmed of 4"] == 1
    zones = cells(tables["zones"])
    assert zones["D", "6", "fedavg"] == pytest.approx(1.05 * 20.5)
    assert zones["D", "6", "lambda"] == 0.5
    money = cells(tables["money"])
    mean = 20.5 * (0.9 * 3 + 1.05) / 4
    assert money["Federated", "lost a year"] == pytest.approx(365 * mean)
    assert money["Federated", "saved: local"] == pytest.approx(365 * (20.5 - mean))
    assert money["Federated", "saved: mean price"] == pytest.approx(0)
    assert money["Perfect foresight", "paid a year"] == pytest.approx(36500)
    assert cells(tables["worst"])["1", "Federated", "D", "worst harm %"] == pytest.approx(5)


def test_the_papers_numbers_stand_beside_its_own_zones_only():
    ours = "\n".join(to_markdown(table) for table in all_tables(rows(["A", "B"])))
    assert "paper" not in ours
    some = "\n".join(to_markdown(table) for table in all_tables(rows(list(published.ZONES)[:5])))
    assert "paper" not in some
    tables = {table.name: table for table in all_tables(rows(list(published.ZONES)))}
    assert "| paper | -8.23 ± 0.59 |" in to_markdown(tables["changes"])
    duq = next(line for line in to_csv(tables["zones"]).splitlines() if line.startswith("DUQ,6,fedavg"))
    assert duq.split(",")[5:7] == ["16.52", "0.79"]
    lines = to_markdown(tables["zones"]).splitlines()
    local_zone = lines.index(next(line for line in lines if line.startswith("| PEPCO")))  # the paper's lambda is 0 there
    assert lines[local_zone + 2].split("|")[-2].strip() == "+0.50"


def test_a_zone_that_cannot_lose_leaves_the_others_their_numbers():
    table = rows(["A", "B", "C"])
    table.loc[(table["zone"] == "B") & (table["method"] == "local"), "regret"] = 0.0
    for one in all_tables(table):
        text = to_markdown(one)
        assert "inf" not in text
        assert "nan" not in text
    changes = cells(all_tables(table)[0])
    assert changes["Federated", "mean change %"] == pytest.approx((-10 + 5) / 2)
    for one in all_tables(table.assign(regret=0.0)):
        assert "nan" not in to_markdown(one)

"""Tables: the numbers are those of the rows, and every form says the same."""

import io

import numpy as np
import pandas as pd
import pytest

from dffl_studies.paper import tables
from dffl_studies.paper.nearness import ALL, PUBLISHED, Nearness, Place, measured, nearness, nearness_table
from dffl_studies.paper.published import AGGREGATE, BY_SIZE
from dffl_studies.running import render
from dffl_studies.running.tables import Cell, Table, Value


def made_up(seeds=(0, 1), noise=0.0) -> pd.DataFrame:
    """Rows whose statistics can be computed by hand: regret = method's base + client's number, in tenths of a percent."""
    base = {"mean-cost": 50, "local": 10, "fedavg": 8, "interp-mse": 7, "interp-spo": 5, "finetune": 3}
    lines = []
    for seed in seeds:
        for problem in ("knapsack", "portfolio"):
            for imbalanced in (False, True):
                for degree in (2, 4):
                    for client in range(1, 5):
                        for method, level in base.items():
                            n = 100 if not imbalanced else 500 if client <= 2 else 50
                            tenths = level + client + seed + degree - 3  # the degrees' mean adds nothing
                            where = (f"{seed}{problem}{imbalanced}{degree}", noise, seed, imbalanced, degree, 0.5, 1.0, problem)
                            weight = client / 10 if "interp" in method else np.nan
                            lines.append((*where, method, client, n, client == 4, tenths / 1000, weight))
    columns = ["job", "noise", "seed", "imbalanced", "degree", "eta_obj", "eta_constr", "problem", "method", "client", "n"]
    frame = pd.DataFrame(lines, columns=[*columns, "saturated", "relative_regret", "lambda"])
    half = frame["relative_regret"] / 2
    return frame.assign(mean_ratio=frame["relative_regret"], expected_relative_regret=half, expected_mean_ratio=half)


def found(table: tables.Table, row: tuple[str, ...], column: str) -> tables.Cell:
    return next(cell for cell in table.cells if cell.row == row and cell.column == column)


def test_table_one_by_hand():
    table = tables.aggregate(tables.percent(made_up()), oracles=False)
    cell = found(table, ("knapsack", "Local"), "mean")
    # Clients 1 to 4 at 1.0 + .1 client: mean 1.25 in seed 0, 1.35 in seed 1.
    assert cell.ours.mean == pytest.approx(1.30)
    assert cell.ours.sd == pytest.approx(np.std([1.25, 1.35], ddof=1))
    assert cell.paper == (1.21, 0.15)
    assert found(table, ("portfolio", "Federated"), "max").ours.mean == pytest.approx(1.25)
    assert found(table, ("knapsack", "Mean cost (no features)"), tables.ABOVE).ours.mean == 100
    assert found(table, ("knapsack", "Fine-tuned (ours)"), tables.ABOVE).ours.mean == 0
    assert found(table, ("knapsack", "Fine-tuned (ours)"), "mean").paper is None


def test_groups_weights_and_saturation_by_hand():
    rows = tables.percent(made_up())
    summary = tables.interpolation(rows)
    assert found(summary, ("knapsack", "data-rich"), "mean").ours.mean == pytest.approx(0.70)  # .5 + .15 + .05
    assert found(summary, ("portfolio", "data-poor"), "mean lambda").ours.mean == pytest.approx(0.35)
    assert found(summary, ("portfolio", "data-poor"), "mean lambda").paper == (0.89, 0.02)
    sized = tables.by_size(made_up(), tables.READING)
    assert found(sized, ("knapsack", "data-poor", "Local"), "median").ours.mean == pytest.approx(1.40)
    assert found(tables.saturation(rows), ("eta_constr = 1",), "saturated").ours.mean == 25
    binding = tables.without_saturated(rows)
    assert found(binding, ("knapsack", "Local"), "max").ours.mean == pytest.approx(1.35)


def test_above_local_begins_one_percent_above_it():
    rows = made_up(seeds=(0,))
    local = rows["method"].eq("local")
    rows.loc[local, tables.READING] = 0.01
    rows.loc[rows["method"].eq("fedavg"), tables.READING] = 0.010099
    rows.loc[rows["method"].eq("finetune"), tables.READING] = 0.010101
    above = tables.percent(rows).groupby("method")["above"].mean()
    assert (above["local"], above["fedavg"], above["finetune"]) == (0, 0, 1)
    assert tables.percent(rows[~local])["above"].isna().all()


def test_seeds_apart():
    table = tables.by_seed(tables.percent(made_up()))
    assert found(table, ("knapsack", "Local"), "seed 0").ours.mean == pytest.approx(1.25)
    assert found(table, ("knapsack", "Local"), "seed 1").ours.mean == pytest.approx(1.35)


def test_noise_has_its_own_table_and_touches_no_other():
    quiet, noisy = made_up(), made_up(noise=1.0)
    noisy["job"] += "noisy"
    both = {table.name: table for table in tables.all_tables(pd.concat([quiet, noisy]))}
    alone = {table.name: table for table in tables.all_tables(quiet)}
    assert set(both) - set(alone) == {"noise", "table7-both-noise-levels"}
    assert both["table2"].cells == alone["table2"].cells
    assert found(both["noise"], ("knapsack", "conditional-mean costs", "Local"), "mean").ours.mean == pytest.approx(0.65)


def test_both_levels_of_the_noise_are_averaged_where_both_are_finished():
    quiet, noisy = made_up(), made_up(noise=1.0)
    noisy["job"] += "noisy"
    noisy[tables.READING] *= 3
    table = tables.both_levels(pd.concat([quiet, noisy]))
    assert found(table, ("knapsack", "Local"), "mean").ours.mean == pytest.approx(2 * 1.30)
    assert table.note.startswith("32 configurations")
    only_degree_two = tables.both_levels(pd.concat([quiet, noisy[noisy["degree"] == 2]]))
    assert only_degree_two.note.startswith("16 configurations")
    assert found(only_degree_two, ("knapsack", "Local"), "mean").ours.mean == pytest.approx(2 * 1.20)


def test_the_whole_grid_says_how_near_it_is():
    quiet, noisy = made_up(), made_up(noise=1.0)
    noisy["job"] += "noisy"
    rows = {cell.row for cell in nearness_table(pd.concat([quiet, noisy[noisy["degree"] == 2]])).cells}
    counts = ("without noise (16)", "both levels averaged (16)")
    assert rows == {(words, reading) for words in counts for reading in ("in total", "per sample")}
    assert {cell.row[0] for cell in nearness_table(quiet).cells} == {"without noise (16)"}


def test_one_seed_has_no_deviation():
    table = tables.aggregate(tables.percent(made_up(seeds=(0,))), oracles=False)
    assert np.isnan(table.cells[0].ours.sd)
    assert "1.25 |" in render.to_markdown(table)
    assert "nan" not in render.to_markdown(table) + render.to_latex(table)


def test_markdown_csv_and_latex_say_the_same():
    table = tables.aggregate(tables.percent(made_up()), oracles=False)
    lines = render.to_markdown(table).splitlines()
    assert "| knapsack | Local | paper | 1.21 ± 0.15 | 1.10 ± 0.14 | 1.73 ± 0.20 | 2.41 ± 0.31 | 6.34 ± 1.45 |  |" in lines
    assert any(line.startswith("|  |  | ours | 1.30 ± 0.07 |") for line in lines)
    assert any(line.startswith("|  |  | difference | +0.09 (+7 %, 0.6 sd) |") for line in lines)
    frame = pd.read_csv(io.StringIO(render.to_csv(table)))
    row = frame[(frame["problem"] == "knapsack") & (frame["method"] == "Local") & (frame["statistic"] == "mean")].iloc[0]
    assert (row["ours"], row["paper"], row["difference"]) == (pytest.approx(1.3), 1.21, pytest.approx(0.09))
    latex = render.to_latex(table)
    assert r"1.30 $\pm$ 0.07" in latex
    assert r"+0.09 (+7 \%, 0.6 sd)" in latex
    assert latex.count(r"\begin{") == latex.count(r"\end{") == 2
    counts = {line.count("&") for line in latex.splitlines() if line.endswith(r"\\")}
    assert counts == {8}


def test_a_group_without_clients_has_no_number():
    rows = made_up()
    table = tables.saturation(tables.percent(rows.assign(saturated=False)))
    assert np.isnan(found(table, ("eta_constr = 1",), "local regret of these").ours.mean)
    assert "| eta_constr = 1 | 0.00 ± 0.00 |  | 1.30 ± 0.07 |" in render.to_markdown(table)


def test_without_the_paper_there_is_no_column_for_whose_numbers():
    table = tables.saturation(tables.percent(made_up()))
    assert render.to_markdown(table).splitlines()[2] == "| heterogeneity | saturated | local regret of these | of the others |"
    assert render.to_rich(table).row_count == 1


def test_the_published_cells_are_consistent():
    assert len(AGGREGATE) == 12
    assert len(BY_SIZE) == 16
    for numbers in AGGREGATE.values():
        values = [numbers[name].mean for name in ("median", "p75", "p90", "max")]
        assert values == sorted(values)


def test_the_distance_of_the_paper_to_itself_is_zero():
    itself = {place: value.mean for place, value in PUBLISHED.items()}
    assert nearness(itself) == Nearness(0, 0, 12, 16, 2, 76)
    doubled = nearness({place: 2 * value for place, value in itself.items()})
    assert doubled.distance == pytest.approx(100 * np.log(2))
    assert (doubled.means, doubled.means_by_size, doubled.ordered) == (0, 0, 2)
    swapped = itself | {Place("knapsack", ALL, "local", "mean"): 1.4}
    assert nearness(swapped).ordered == 1
    one_sd = itself | {Place("knapsack", ALL, "local", "mean"): 1.21 + 0.15}
    assert nearness(one_sd).deviations == pytest.approx(1 / 76)


def test_cells_are_measured_as_the_tables_are():
    rows = made_up()
    cells = measured(rows, "relative_regret")
    table = tables.aggregate(tables.percent(rows), oracles=True)
    in_table = {(cell.row[0], cell.row[1], cell.column): cell.ours.mean for cell in table.cells}
    for place, value in cells.items():
        if place.clients == ALL:
            assert value == pytest.approx(in_table[place.problem, tables.name_of(place.method), place.statistic])
    assert cells, "some cells are measured"


def test_only_a_number_without_a_spread_is_shown_as_a_count() -> None:
    cells = [
        Cell(("a",), "count", Value(22.0)),
        Cell(("a",), "regret", Value(22.0, 0.96)),
        Cell(("a",), "big", Value(1234.5, 6.0)),
    ]
    assert "| a | 22 | 22.00 ± 0.96 | 1,234 ± 6 |" in render.to_markdown(Table("t", "T", ("of",), cells, ""))


def test_a_table_without_cells_can_be_shown() -> None:
    empty = Table("t", "T", ("of",), [], "nothing is finished")
    assert render.to_rich(empty).row_count == 0
    assert render.to_markdown(empty)

"""The numbers by level of heterogeneity: by hand, and equal in figures and tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from dffl.training.methods import colour_of
from dffl_studies.paper import tables
from dffl_studies.paper.by_level import (
    REFERENCE,
    contests,
    differences,
    federated_share,
    level_tables,
    mean_by_level,
    mean_weights,
    paired,
    ties,
    winner_shares,
)
from dffl_studies.paper.figures import DRAWINGS
from dffl_studies.paper.tables import ORDER, PAPER_FOUR, READING, name_of, over_degrees, percent
from dffl_studies.running.tables import Table
from studies.tests.paper.fabricated import fabricate


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return fabricate(seeds=(0, 1, 2), degrees=(2, 4), etas=(0.0, 0.5, 1.0))


@pytest.fixture(scope="module")
def ragged(rows) -> pd.DataFrame:
    """A grid of which three tenths are not finished, so that weights matter: of seeds, of degrees, of clients."""
    jobs = rows["job"].drop_duplicates()
    return rows[rows["job"].isin(jobs.sample(frac=0.7, random_state=1))]


def named(found: list[Table]) -> dict[str, dict[tuple[tuple[str, ...], str], float]]:
    return {table.name: {(cell.row, cell.column): cell.ours.mean for cell in table.cells} for table in found}


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


# By hand


def made(**regrets: list[float]) -> pd.DataFrame:
    """One balanced configuration in each seed; for each method its clients' regrets (percent), the same in both seeds."""
    rows = fabricate(problems=("portfolio",), balances=(False,), etas=(0.0,), methods=tuple(regrets))
    for method, values in regrets.items():
        for client, value in enumerate(values, start=1):
            rows.loc[(rows["method"] == method) & (rows["client"] == client), READING] = value / 100
    return rows


def test_the_federated_share_counts_a_tie_as_not_lower():
    rows = made(local=[1, 2, 3, 4], fedavg=[0.5, 2, 3.5, 4.5])
    assert federated_share(paired(over_degrees(percent(rows)))) == (25.0, 0.0)


def test_the_federated_share_weighs_seeds_equally():
    rows = made(local=[2, 2, 2, 2], fedavg=[1, 1, 1, 1])
    rows.loc[(rows["method"] == "fedavg") & (rows["seed"] == 1), READING] = 0.03
    rows = rows[~((rows["seed"] == 1) & (rows["client"] > 1))]  # the second seed has one client only
    share = federated_share(paired(over_degrees(percent(rows))))
    assert share.mean == 50.0
    assert share.sd == pytest.approx(100 / np.sqrt(2))


def test_a_client_with_one_of_the_two_models_is_in_no_pair():
    rows = made(local=[1, 1, 1, 1], fedavg=[2, 2, 2, 2])
    rows = rows[~((rows["client"] == 3) & (rows["method"] == "local"))]
    assert sorted(set(paired(over_degrees(percent(rows)))["client"])) == [1, 2, 4]
    assert paired(over_degrees(percent(rows[rows["method"] == "local"]))).empty


def test_differences_are_free_of_what_a_seed_does_to_all_methods():
    rows = made(local=[1, 2, 3, 4], **{REFERENCE: [0.5, 1.5, 2.5, 4.5]})
    rows.loc[rows["seed"] == 1, READING] += 0.25
    means = mean_by_level(over_degrees(percent(rows)), "eta_obj").loc["local"]
    assert means["std"].item() == pytest.approx(25 / np.sqrt(2), rel=1e-5)
    change = mean_by_level(differences(percent(rows)), "eta_obj").loc["local"]
    assert change["mean"].item() == pytest.approx(0.25, abs=1e-5)
    assert change["std"].item() == pytest.approx(0, abs=1e-5)


def test_differences_pair_each_client_of_each_configuration():
    rows = made(local=[1, 2, 3, 4], **{REFERENCE: [0.5, 1, 1, 1]})
    rows = rows[~((rows["client"] == 4) & (rows["method"] == REFERENCE))]
    change = differences(percent(rows))
    assert change.groupby("client")["regret"].mean().to_dict() == pytest.approx({1: 0.5, 2: 1.0, 3: 2.0}, abs=1e-5)


def test_weights_weigh_seeds_equally():
    rows = made(**{REFERENCE: [1, 1, 1, 1]})
    rows["lambda"] = np.where(rows["seed"] == 0, 0.2, 0.8)
    rows = rows[~((rows["seed"] == 1) & (rows["client"] > 1))]
    weight = mean_weights(over_degrees(percent(rows)))
    assert weight["mean"].item() == pytest.approx(0.5)


def test_winner_shares_sum_to_one_and_ties_are_shared():
    rows = fabricate(problems=("knapsack",), seeds=(0,), balances=(False,))
    shares = winner_shares(percent(rows), PAPER_FOUR)
    assert len(shares) == 16
    assert np.allclose(shares.sum(axis=1), 1)
    saturated = (shares.index.get_level_values("eta_constr") == 1) & (shares.index.get_level_values("client") == 1)
    assert (shares[saturated] == 0.25).all(axis=None)  # no method loses anything
    assert set(np.unique(shares[~saturated])) == {0.0, 1.0}
    assert (ties(shares) == saturated).all()


def test_two_methods_with_the_same_regret_share_the_win():
    rows = made(local=[1, 1, 1, 1], fedavg=[2, 2, 2, 2], **{"interp-mse": [3] * 4, "interp-spo": [1] * 4})
    shares = winner_shares(percent(rows), PAPER_FOUR)
    assert (shares[["local", "interp-spo"]] == 0.5).all(axis=None)
    assert (shares[["fedavg", "interp-mse"]] == 0).all(axis=None)


def test_a_client_without_one_of_the_methods_is_in_no_contest():
    rows = fabricate(problems=("portfolio",), seeds=(0,), balances=(False,), etas=(0.0,))
    rows = rows[~((rows["client"] == 2) & (rows["method"] == "fedavg"))]
    assert list(winner_shares(percent(rows), PAPER_FOUR).index.get_level_values("client")) == [1, 3, 4]


def test_a_method_of_ours_competes_only_where_it_has_all_clients():
    rows = fabricate(problems=("portfolio",), seeds=(0,), etas=(0.0,))
    assert contests(rows)["with our methods"] == [*PAPER_FOUR, "finetune", "finetune-mix", "local-tuned", "crossfit"]
    fewer = rows[~((rows["method"] == "crossfit") & (rows["client"] == 2))]
    assert "crossfit" not in contests(fewer)["with our methods"]
    assert list(contests(rows[rows["method"].isin(PAPER_FOUR)])) == ["the paper's four methods"]
    assert contests(rows[rows["method"].isin(["local", "finetune"])]) == {}


# Figures and tables have the same numbers


def test_slopes_have_the_percentages_of_boxes_and_table(ragged):
    cells = named(level_tables(ragged))["federated-lower"]
    for problem in ("knapsack", "portfolio"):
        boxes = DRAWINGS[f"boxes-{problem}"](ragged)
        slopes = {
            words: np.array(DRAWINGS[f"slopes-{problem}-{words}"](ragged).axes).reshape(3, 3)
            for words in ("balanced", "imbalanced")
        }
        panels = np.array(boxes.axes).reshape(2, 3)
        for line, words in zip(panels, slopes, strict=True):
            for obj, axes in enumerate(line):
                shares = [cells.get(((problem, words, f"eta_obj = {o:g}"), f"eta_constr = {c:g}")) for o, c in around(obj)]
                written = [f"{share:.0f}%" for share in shares if share is not None]
                assert texts(axes) == written
                # The last of a panel's numbers is that of all its clients.
                assert [texts(panel)[-1] for panel in slopes[words][obj] if texts(panel)] == written
        for group, place in (("data-rich", 1), ("data-poor", 0)):
            label = (problem, f"imbalanced, {group}", "eta_obj = 1")
            shares = [
                f"{cells[label, f'eta_constr = {c:g}']:.0f}%" for _, c in around(2) if (label, f"eta_constr = {c:g}") in cells
            ]
            assert [texts(panel)[place] for panel in slopes["imbalanced"][2] if texts(panel)] == shares


def around(obj: int) -> list[tuple[float, float]]:
    return [((0.0, 0.5, 1.0)[obj], constr) for constr in (0.0, 0.5, 1.0)]


def test_a_line_of_a_slope_is_one_client_in_one_seed(rows):
    figure = DRAWINGS["slopes-portfolio-imbalanced"](rows)
    panel = figure.axes[5]  # eta_obj = .5, eta_constr = 1
    (lines,) = (child for child in panel.collections if isinstance(child, LineCollection))
    own = rows[(rows["problem"] == "portfolio") & rows["imbalanced"] & (rows["eta_obj"] == 0.5) & (rows["eta_constr"] == 1)]
    expected = 100 * own.astype({READING: float}).pivot_table(index=["seed", "client"], columns="method", values=READING)
    ends = np.array([segment[:, 1] for segment in lines.get_segments()])
    assert len(ends) == 3 * 4  # seeds times clients
    np.testing.assert_allclose(ends, expected[["fedavg", "local"]])
    colours = [to_hex(colour) for colour in lines.get_colors()]
    assert colours[:4] == [colours[0]] * 2 + [colours[3]] * 2  # clients 1 and 2 are data-rich, 3 and 4 data-poor
    assert to_hex(colours[0]) != to_hex(colours[3])


def test_boxes_show_every_client_that_is_beyond_the_whiskers():
    rows = fabricate(problems=("portfolio",), etas=(0.0,), balances=(False,), methods=("local", "fedavg"), clients=50)
    (axes,) = DRAWINGS["boxes-portfolio"](rows).axes
    low, high = axes.get_ylim()
    clients = over_degrees(percent(rows))
    drawn = np.concatenate([np.ravel(line.get_ydata()) for line in axes.lines])
    for method in ("local", "fedavg"):
        own = clients.loc[clients["method"] == method, "regret"].to_numpy()
        beyond = own[(own < np.percentile(own, 5)) | (own > np.percentile(own, 95))]
        assert len(beyond) == 10
        assert all(np.isclose(drawn, value).any() for value in beyond)
        assert low < own.min() < own.max() < high


def lines_by_colour(axes) -> dict[str, np.ndarray]:
    """The y values of each line that is drawn with a marker, by its colour."""
    marked = [line for line in axes.lines if line.get_marker() not in ("None", None, "") and len(line.get_ydata())]
    return {to_hex(line.get_color()).upper(): np.asarray(line.get_ydata(), float) for line in marked}


def test_means_and_differences_are_those_of_the_tables(ragged):
    found = named(level_tables(ragged))
    figure = DRAWINGS["means"](ragged)
    panels = iter(np.array(figure.axes).reshape(4, 2))
    for problem in ("knapsack", "portfolio"):
        for table, methods in (
            ("levels", PAPER_FOUR),
            ("differences", [m for m in ORDER if m not in ("mean-cost", REFERENCE)]),
        ):
            for axes, axis in zip(next(panels), ("eta_obj", "eta_constr"), strict=True):
                drawn = lines_by_colour(axes)
                assert set(drawn) == {colour_of(method).upper() for method in methods}
                for method in methods:
                    cells = [found[table][(problem, name_of(method)), f"{axis} = {level:g}"] for level in (0, 0.5, 1)]
                    np.testing.assert_allclose(drawn[colour_of(method).upper()], cells)


def test_bands_are_one_standard_deviation_over_seeds(rows):
    cells = next(table for table in level_tables(rows) if table.name == "levels").cells
    axes = DRAWINGS["means"](rows).axes[0]
    bands = {to_hex(band.get_facecolor()[0]).upper(): band for band in axes.collections if isinstance(band, PolyCollection)}
    assert len(bands) == 4
    for method in PAPER_FOUR:
        values = [cell.ours for cell in cells if cell.row == ("knapsack", name_of(method)) and "eta_obj" in cell.column]
        corners = bands[colour_of(method).upper()].get_paths()[0].vertices[:, 1]
        assert corners.max() == pytest.approx(max(value.mean + value.sd for value in values))
        assert corners.min() == pytest.approx(min(value.mean - value.sd for value in values))


def test_on_a_whole_grid_the_levels_average_to_table_one(rows):
    found, plain = named(level_tables(rows)), percent(rows)
    table_one = named([tables.aggregate(plain, oracles=True)])["table7"]
    for problem in ("knapsack", "portfolio"):
        for method in ORDER:
            if method == "finetune-mix":  # not in table 1
                continue
            mean = table_one[(problem, name_of(method)), "mean"]
            for axis in ("eta_obj", "eta_constr"):
                levels = [found["levels"][(problem, name_of(method)), f"{axis} = {level:g}"] for level in (0, 0.5, 1)]
                assert np.mean(levels) == pytest.approx(mean)


def test_the_oracle_figure_writes_the_means_of_table_one(ragged):
    table_one = named([tables.aggregate(percent(ragged), oracles=True)])["table7"]
    methods = ("interp-mse", "oracle-interp-mse", "interp-spo", "oracle-interp-spo", "finetune")
    for axes, problem in zip(DRAWINGS["oracles"](ragged).axes, ("knapsack", "portfolio"), strict=True):
        assert texts(axes) == [f"{table_one[(problem, name_of(method)), 'mean']:.2f}" for method in methods]


def test_weights_are_those_of_the_tables(ragged, rows):
    cells = named(level_tables(ragged))["weights"]
    panels = iter(DRAWINGS["weights"](ragged).axes[:6])
    for problem in ("knapsack", "portfolio"):
        for group in ("balanced", "data-rich", "data-poor"):
            wanted = [
                cells.get(((problem, group, f"eta_obj = {o:g}"), f"eta_constr = {c:g}")) for i in range(3) for o, c in around(i)
            ]
            assert texts(next(panels)) == [f"{weight:.2f}" for weight in wanted if weight is not None]
    whole = named(level_tables(rows))["weights"]
    by_size = named([tables.interpolation(percent(rows))])["table3"]
    for problem, group in by_size_rows(by_size):
        mean = np.mean([value for (row, _), value in whole.items() if row[:2] == (problem, group)])
        assert mean == pytest.approx(by_size[(problem, group), "mean lambda"])


def by_size_rows(cells) -> list[tuple[str, ...]]:
    return sorted({row for row, _ in cells})


def test_winner_shares_are_those_of_the_table(ragged):
    cells = named(level_tables(ragged))["winners"]
    figure: Figure = DRAWINGS["winners"](ragged)
    panels = np.array(figure.axes).reshape(2, 2, 2)
    for line, problem in zip(panels, ("knapsack", "portfolio"), strict=True):
        for pair, (title, methods) in zip(line, contests(ragged).items(), strict=True):
            for axes, axis in zip(pair, ("eta_obj", "eta_constr"), strict=True):
                heights = np.array([bar.get_height() for bar in axes.patches]).reshape(len(methods), 3)
                for method, drawn in zip(methods, heights, strict=True):
                    label = (problem, title, name_of(method))
                    np.testing.assert_allclose(drawn, [cells[label, f"{axis} = {level:g}"] for level in (0, 0.5, 1)])
                assert heights.sum(axis=0) == pytest.approx(100)


def test_noisy_rows_change_nothing_and_can_be_asked_for():
    quiet = fabricate(problems=("portfolio",), etas=(0.0,), methods=("local", "fedavg", "interp-spo"))
    noisy = quiet.assign(noise=1.0, job="noisy-" + quiet["job"], **{READING: 3 * quiet[READING]})
    both = pd.concat([quiet, noisy])
    assert named(level_tables(both)) == named(level_tables(quiet))
    assert named(level_tables(both, noise=1.0)) == named(level_tables(noisy, noise=1.0)) != named(level_tables(quiet))
    assert level_tables(quiet, noise=1.0) == []
    figures = [DRAWINGS["means"](both), DRAWINGS["means"](both, 1.0)]
    local = [lines_by_colour(figure.axes[0])[colour_of("local").upper()].item() for figure in figures]
    assert local[1] == pytest.approx(3 * local[0])
    assert ["noise 1" in figure.get_supxlabel() for figure in figures] == [False, True]

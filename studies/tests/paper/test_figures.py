from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from dffl.drawing import write_figures
from dffl.sets import EntropySimplex
from dffl.training.methods import METHODS, colour_of
from dffl_studies.paper.figures import DRAWINGS, draw_all, toy_numbers
from dffl_studies.paper.figures.face import flat_piece, outline, to_plane
from dffl_studies.paper.figures.parts import grouped
from dffl_studies.paper.tables import ORDER, PAPER_FOUR
from studies.tests.paper.fabricated import fabricate

OF_ROWS = {name: draw for name, draw in DRAWINGS.items() if name not in ("toy", "face")}


def render(figures) -> None:
    """Find out what only drawing would: without the layout, which takes most of the time."""
    for figure in figures:
        if figure is not None:
            figure.set_layout_engine("none")
            figure.draw_without_rendering()


def test_a_method_has_one_colour_and_no_two_the_same():
    # The paper has local orange and federated blue.
    colours = ("#999999", "#D55E00", "#0072B2", "#CC79A7", "#009E73", "#E6BCD3", "#80CEB9", "#E69F00", "#56B4E9",
               "#F4A582", "#332288")  # fmt: skip
    assert {method: colour_of(method) for method in ORDER} == dict(zip(ORDER, colours, strict=True))
    built_in = [one.colour for one in METHODS.values() if one.fit.__module__.startswith("dffl.")]
    assert len(set(built_in)) == len(built_in) > len(ORDER)


def test_toy_numbers():
    numbers = toy_numbers(0.3, 1.0)
    assert numbers.triangle_gap == pytest.approx(3.1284, abs=1e-3)
    assert numbers.triangle_bound == pytest.approx(0.3 + 2 * math.sqrt(2))
    assert numbers.triangle_jump == pytest.approx(math.sqrt(2))
    assert numbers.ball_gap == pytest.approx(0.8673, abs=1e-3)
    assert numbers.ball_jump == pytest.approx(0.3 * math.sqrt(2) / math.sqrt(2.69))


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("bound", [0.1, 1.0, 5.0])
def test_the_toy_gaps_keep_the_papers_bounds(epsilon, bound):
    numbers = toy_numbers(epsilon, bound)
    assert 0 < numbers.triangle_gap <= numbers.triangle_bound + 1e-9
    assert 0 < numbers.ball_gap <= numbers.ball_bound + 1e-9


def test_as_clients_become_alike_the_gap_vanishes_on_the_ball_only():
    numbers = toy_numbers(1e-6, 1.0)
    assert numbers.triangle_gap == pytest.approx(2 * math.sqrt(2), abs=1e-5)
    assert numbers.ball_gap < 1e-5


@pytest.mark.parametrize("h", [0.1, 0.5, math.log(2), 0.9])
def test_the_outline_of_the_entropy_set_is_its_boundary(h):
    s, w = EntropySimplex(3, h), outline(h)
    assert s.contains(w, 1e-6).all()
    assert not s.contains(1 / 3 + 1.001 * (w - 1 / 3), 1e-6).any()
    steps = np.linalg.norm(np.diff(to_plane(w), axis=0), axis=-1)
    np.testing.assert_allclose(steps, np.linalg.norm(np.diff(w, axis=0), axis=-1))  # the plane keeps distances


def test_the_entropy_set_is_flat_below_log_2_and_round_above():
    low, high = flat_piece(0.5)
    assert -low * math.log(low) - high * math.log(high) == pytest.approx(0.5)
    assert low + high == 1
    assert low < 0.5 < 0.6 < high  # the two portfolios that are marked, and so their midpoint
    assert (outline(0.5)[:, 2] < 1e-12).sum() > 100
    assert flat_piece(math.log(2)) is None
    assert flat_piece(0.9) is None
    # The ball that is drawn beside the round set holds it.
    shape, radius = to_plane(outline(0.9)), EntropySimplex(3, 0.9).curvature()
    lowest = shape[np.argmin(shape[:, 1])]
    assert np.linalg.norm(shape - lowest - [0, radius], axis=-1).max() <= radius + 1e-9


def test_every_figure_is_written_no_text_is_cut_and_none_left_open(tmp_path, monkeypatch):
    rows, figures = fabricate(), {}
    before = rows.copy()

    def keep(named, *args):
        figures.update(named)
        return write_figures(figures.items(), *args)

    monkeypatch.setattr("dffl_studies.paper.figures.write_figures", keep)
    # At the resolution that a figure has before it is saved: afterwards texts are measured where they were drawn.
    written = draw_all(rows, tmp_path / "new", formats=["png"], resolution=100)
    assert [path.name for path in written] == [f"{name}.png" for name in DRAWINGS]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    assert sorted((tmp_path / "new").iterdir()) == sorted(written)
    assert plt.get_fignums() == []
    pd.testing.assert_frame_equal(rows, before)
    assert {name: cut for name, figure in figures.items() if (cut := cut_texts(figure))} == {}


def cut_texts(figure: Figure) -> list[str]:
    """The texts of a figure that was drawn which the border of the page cuts; ticks keep labels that are not shown."""
    page = figure.bbox.padded(1)
    ticks = {label for axes in figure.axes for label in (*axes.get_xticklabels("both"), *axes.get_yticklabels("both"))}
    written = [text for text in figure.findobj(Text) if text.get_text() and text not in ticks]
    boxes = {text.get_text(): text.get_window_extent() for text in written}
    return [text for text, box in boxes.items() if not (page.contains(*box.min) and page.contains(*box.max))]


def test_a_pdf_is_the_same_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr("dffl_studies.paper.figures.DRAWINGS", {"oracles": DRAWINGS["oracles"]})
    rows = fabricate()
    (first,) = draw_all(rows, tmp_path / "first", formats=["pdf"])
    (second,) = draw_all(rows, tmp_path / "second", formats=["pdf"])
    assert first.read_bytes().startswith(b"%PDF")
    assert first.read_bytes() == second.read_bytes()


PARTIAL = {
    "one seed, one problem, no oracles": {"seeds": (0,), "problems": ("portfolio",), "methods": (*PAPER_FOUR, "finetune")},
    "balanced only, one eta": {"balances": (False,), "etas": (0.5,)},
    "imbalanced only, no fine-tuning": {"balances": (True,), "etas": (0.0,), "methods": PAPER_FOUR},
    "local only": {"methods": ("local",), "etas": (0.0,)},
    "no local": {"methods": ("fedavg", "interp-spo"), "etas": (0.0,)},
    "one seed, one degree, one level": {"seeds": (0,), "etas": (1.0,), "balances": (False,)},
    "the paper's four and mean cost": {"methods": ("mean-cost", *PAPER_FOUR), "etas": (0.0, 0.5)},
    "mean cost only": {"methods": ("mean-cost",), "etas": (0.0,)},
}


# What we do wrong with Matplotlib and NumPy is a warning of theirs; what they do with their own dependencies is not ours.
QUIET = pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning", "ignore::DeprecationWarning")


@pytest.mark.parametrize("what", PARTIAL)
@QUIET
def test_partial_rows_draw_what_is_there(what):
    rows = fabricate(**PARTIAL[what])
    drawn = {name: draw(rows) for name, draw in OF_ROWS.items()}
    render(drawn.values())
    present = {name for name, figure in drawn.items() if figure is not None}
    if what.startswith("one seed, one problem"):
        assert present == {name for name in OF_ROWS if "knapsack" not in name}
    if what == "mean cost only":
        assert not present


@QUIET
def test_a_ragged_grid_is_drawn():
    rows = fabricate(degrees=(2, 4))
    ragged = rows.drop(rows.sample(frac=0.7, random_state=1).index)
    drawn = [draw(ragged) for draw in OF_ROWS.values()]
    assert None not in drawn
    render(drawn)


@pytest.mark.parametrize("rows", [pd.DataFrame(), fabricate(etas=(0.0,)).assign(noise=1.0)], ids=["no rows", "only noise"])
def test_without_quiet_rows_only_what_needs_none_is_drawn(rows):
    assert [name for name, draw in DRAWINGS.items() if draw(rows) is not None] == ["toy", "face"]


def test_groups_of_clients():
    rows = grouped(fabricate(etas=(0.0,)))
    assert set(rows.loc[~rows["imbalanced"], "group"]) == {"balanced"}
    assert set(rows.loc[rows["n"] == 500, "group"]) == {"data-rich"}
    assert set(rows.loc[rows["n"] == 50, "group"]) == {"data-poor"}

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from dffl.training.methods import colour_of
from dffl_studies.energy.figures import draw_all, draw_bars, draw_calendar, draw_changes, draw_places, draw_zone_weights
from dffl_studies.energy.figures.calendar import EXPENSIVE, HIT, MISSED, REST, Bought
from dffl_studies.energy.figures.labels import place_labels
from dffl_studies.energy.figures.lines import EACH_END, MOST, lines_of
from dffl_studies.energy.figures.window import Window, crowded_part
from dffl_studies.energy.papers_tables import name_of
from dffl_studies.energy.summary import harmed_zones, zone_changes, zone_order
from studies.tests.energy.made_rows import with_weeks

METHODS = ("local", "local-tuned", "fedavg", "interp-spo", "crossfit", "mean-7", "steady")
NEW_YORK = {"G": (41.7, -73.92), "H": (41.2, -73.8), "I": (40.93, -73.9), "J": (40.71, -74.01), "K": (40.71, -73.62)}
FAR_WEST = {"TEXAS": (30.1, -94.1), "MINNESOTA": (45.0, -93.3)}


def fabricate(zones=4, seeds=5, methods=METHODS) -> pd.DataFrame:
    """Rows as the study writes them, with made-up regrets and weights."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "seed": seed, "zone": f"ZONE_{zone:02d}", "demand": 4 + zone % 9, "method": method,
            "regret": rng.uniform(20, 60), "lambda": rng.uniform() if method.startswith("interp") else np.nan,
        }
        for seed, zone, method in itertools.product(range(seeds), range(zones), methods)
    ]  # fmt: skip
    return with_weeks(pd.DataFrame(rows))


def located(places) -> pd.DataFrame:
    """Zones as the study writes them, at these latitudes and longitudes."""
    rows = [
        {"zone": zone, "demand": 4 + number, "lat": lat, "lon": lon, "own_p95": 10.0 * number}
        for number, (zone, (lat, lon)) in enumerate(places.items())
    ]
    return pd.DataFrame(rows)


def days_of(days=40, demand=6, first="2021-07-01") -> pd.DataFrame:
    """A test period as the study writes it: yesterday's cheapest hours are bought."""
    prices = np.random.default_rng(1).gamma(2, 15, size=(days + 1, 24))
    cheapest = np.argsort(np.argsort(prices, axis=1), axis=1) < demand
    dates = pd.date_range(first, periods=days).strftime("%Y-%m-%d")
    return pd.DataFrame(
        {
            "date": np.repeat(dates, 24), "hour": np.tile(np.arange(24), days), "price": prices[1:].ravel(),
            "chosen": cheapest[:-1].ravel(), "cheapest": cheapest[1:].ravel(),
        }
    )  # fmt: skip


def render(figure) -> None:
    """Find out what only drawing would: without the layout, which takes most of the time."""
    figure.set_layout_engine("none")
    figure.draw_without_rendering()


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def note_of(figure) -> str:
    return figure.get_supxlabel().replace("\n", " ")


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]


# --- changes


def test_a_change_is_of_the_regret_of_the_own_model_of_its_seed():
    rows = pd.DataFrame(
        [
            (0, "A", 4, "local-tuned", 10.0),
            (0, "A", 4, "fedavg", 15.0),
            (1, "A", 4, "local-tuned", 20.0),
            (1, "A", 4, "fedavg", 10.0),
        ],
        columns=["seed", "zone", "demand", "method", "regret"],
    )
    assert list(zone_changes(rows)["fedavg"]) == [50.0, -50.0]


def test_bars_whiskers_and_numbers_are_the_changes():
    rows = fabricate()
    figure = draw_changes(rows)
    rule = "steady"
    assert titles(figure) == ["Federated", "Interpolated (SPO+)", "Cross-fitted", name_of(rule)]
    changes, harmed = zone_changes(rows), harmed_zones(rows, "local-tuned")
    for axes, method in zip(figure.axes, ("fedavg", "interp-spo", "crossfit", rule), strict=True):
        by_zone = changes[method].groupby("zone")
        expected = by_zone.mean()[zone_order(rows)]
        bars = [bar for bar in axes.patches if bar.get_y() != 0 or bar.get_height() != 1]
        assert [bar.get_width() for bar in bars] == pytest.approx(list(expected))
        assert [bar.get_y() + bar.get_height() / 2 for bar in bars] == pytest.approx(range(4))
        assert {to_hex(bar.get_facecolor()).upper() for bar in bars} == {colour_of(method).upper()}
        ends = np.array([segment[:, 0] for segment in axes.collections[0].get_segments()])
        assert np.ptp(ends, axis=1) / 2 == pytest.approx(by_zone.std()[expected.index].to_numpy())
        numbers = [int(text.replace("\N{MINUS SIGN}", "-")) for text in texts(axes)[:4]]
        assert numbers == [round(change) for change in expected]
        counts = f"{(expected > 1).sum()} of 4 over 1 %\n{harmed[method]:.0f} significant\nworst {expected.max():+.0f} %"
        assert texts(axes)[4] == counts.replace("-", "\N{MINUS SIGN}")


def test_zones_are_in_the_order_of_their_federated_change_and_named_with_their_demand():
    rows = fabricate(zones=12)
    figure = draw_changes(rows)
    means = zone_changes(rows)["fedavg"].groupby("zone").mean()
    names = [label.get_text().split() for label in figure.axes[0].get_yticklabels()]
    assert [name[0] for name in names] == list(means.sort_values().index)
    assert [int(name[1]) for name in names] == [4 + int(name[0][-2:]) % 9 for name in names]
    low, high = figure.axes[0].get_ylim()
    assert low > high  # the first line is on top


def test_one_seed_has_no_whiskers():
    figure = draw_changes(fabricate(seeds=1))
    assert not any(axes.collections for axes in figure.axes)
    assert note_of(figure).startswith("One seed.")
    render(figure)


@pytest.mark.parametrize("zones", [1, 2, MOST])
def test_any_number_of_zones_up_to_a_page_has_a_line_each(zones):
    figure = draw_changes(fabricate(zones=zones, seeds=2))
    assert len(figure.axes[0].get_yticks()) == zones
    assert figure.get_size_inches()[1] < 9.5
    render(figure)


def test_of_very_many_zones_both_ends_are_shown():
    rows = fabricate(zones=MOST + 5, seeds=2, methods=("local-tuned", "fedavg", "steady"))
    figure = draw_changes(rows)
    order, (axes, _) = zone_order(rows), figure.axes
    names = [label.get_text().split()[0] for label in axes.get_yticklabels()]
    assert names == [*order[:EACH_END], *order[-EACH_END:], "…"]
    assert axes.get_yticklabels()[-1].get_text() == f"… {MOST + 5 - 2 * EACH_END} zones between …"
    assert axes.get_yticks()[-1] == EACH_END
    assert f"of {MOST + 5} over 1 %" in texts(axes)[-1]
    assert lines_of(order)[order[-1]] == 2 * EACH_END


def test_one_wild_zone_leaves_the_others_their_scale():
    rows = fabricate(zones=30)
    rows.loc[(rows["zone"] == "ZONE_07") & (rows["method"] == "fedavg"), "regret"] *= 100
    figure = draw_changes(rows)
    wild = zone_changes(rows)["fedavg"].groupby("zone").mean()["ZONE_07"]
    assert figure.axes[0].get_xlim()[1] < wild / 5
    assert f"{wild:+.0f}" in texts(figure.axes[0])
    assert "longer than the axis" in note_of(figure)


def test_methods_that_are_missing_have_no_panel():
    methods = ("local-tuned", "finetune-mix", "steady")
    assert titles(draw_changes(fabricate(methods=methods))) == ["Fine-tuned, mixed", "Steady moving average"]
    assert draw_changes(fabricate(methods=("fedavg", "interp-spo"))) is None  # there is nothing to compare with
    assert draw_changes(fabricate(methods=("local-tuned", "steady"))) is None
    assert draw_changes(pd.DataFrame()) is None


def test_a_zone_without_regret_of_its_own_is_left_out():
    rows = fabricate()
    rows.loc[rows["zone"] == "ZONE_02", "regret"] = 0.0
    figure = draw_changes(rows)
    assert len(figure.axes[0].get_yticks()) == 3
    assert note_of(figure).endswith("no regret of their own: 1.")


# --- bars


def test_the_papers_bars_stand_against_both_own_models_in_the_colours_of_the_paper():
    rows = fabricate(zones=6)
    figure = draw_bars(rows)
    assert titles(figure) == ["against local (as in the paper)", "against local-tuned (the fair comparison)"]
    order = zone_order(rows, "local")
    wide = rows.pivot_table(index=["seed", "zone"], columns="method", values="regret")
    for axes, against in zip(figure.axes, ("local", "local-tuned"), strict=True):
        bars = [bar for bar in axes.patches if bar.get_height() < 1]
        for number, method in enumerate(("fedavg", "interp-spo")):
            change = (100 * (wide[method] / wide[against] - 1)).groupby("zone")
            drawn = bars[6 * number : 6 * number + 6]
            assert [bar.get_width() for bar in drawn] == pytest.approx(list(change.mean()[order]))
            assert {to_hex(bar.get_facecolor()).upper() for bar in drawn} == {colour_of(method).upper()}
            ends = np.array([segment[:, 0] for segment in axes.collections[number].get_segments()])
            assert np.ptp(ends, axis=1) / 2 == pytest.approx(change.std()[order].to_numpy())
            text = texts(axes)[0].splitlines()[number].replace("\N{MINUS SIGN}", "-")
            assert text == f"{name_of(method)}: mean {change.mean().mean():+.0f} %, worst {change.mean().max():+.0f} %"
    names = [label.get_text().split()[0] for label in figure.axes[0].get_yticklabels()]
    assert names == order
    red, _, blue = to_rgb(colour_of("fedavg"))
    assert blue > 2 * red  # federated is blue, local orange, as in the paper
    red, green, blue = to_rgb(colour_of("local"))
    assert red > green > blue
    render(figure)


def test_bars_need_both_own_models_and_both_methods_of_the_paper():
    assert draw_bars(pd.DataFrame()) is None
    for missing in ("local", "local-tuned", "interp-spo"):
        assert draw_bars(fabricate(methods=[name for name in METHODS if name != missing])) is None
    rows = fabricate()
    rows.loc[rows["zone"] == "ZONE_02", "regret"] = 0.0
    assert len(draw_bars(rows).axes[0].get_yticks()) == 3
    assert note_of(draw_bars(rows)).endswith("no regret of their own: 1.")
    assert draw_bars(rows.assign(regret=0.0)) is None
    assert "One seed." in note_of(draw_bars(fabricate(seeds=1)))


# --- weights


def test_dots_are_seeds_and_diamonds_their_means():
    rows = fabricate(zones=7)
    figure = draw_zone_weights(rows)
    assert titles(figure) == [name_of("interp-spo")]
    order = zone_order(rows)
    names = [label.get_text().split()[0] for label in figure.axes[0].get_yticklabels()]
    assert names == order == [label.get_text().split()[0] for label in draw_changes(rows).axes[0].get_yticklabels()]
    own = rows[rows["method"] == "interp-spo"]
    _, dots, diamonds = figure.axes[0].collections
    assert np.asarray(dots.get_offsets())[:, 0] == pytest.approx(own["lambda"].to_numpy())
    assert [order[round(line)] for line in np.asarray(dots.get_offsets())[:, 1]] == list(own["zone"])
    means = own.groupby("zone")["lambda"].mean()
    assert {order[round(y)]: x for x, y in np.asarray(diamonds.get_offsets())} == pytest.approx(dict(means))
    assert to_hex(diamonds.get_facecolor()[0]).upper() == colour_of("interp-spo").upper()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one seed", "mean over 5 seeds"]


def test_weights_of_one_seed():
    figure = draw_zone_weights(fabricate(zones=1, seeds=1, methods=("local", "interp-spo")))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["the only seed"]
    render(figure)


def test_without_weights_there_is_no_figure():
    assert draw_zone_weights(fabricate(methods=("local", "fedavg"))) is None
    assert draw_zone_weights(fabricate().drop(columns="lambda")) is None
    assert draw_zone_weights(pd.DataFrame()) is None


def test_weights_without_a_federated_model_are_in_the_order_of_names():
    figure = draw_zone_weights(fabricate(methods=("interp-spo",)))
    assert [label.get_text().split()[0] for label in figure.axes[0].get_yticklabels()] == [
        f"ZONE_{zone:02d}" for zone in range(4)
    ]


# --- places


def test_markers_are_where_the_zones_are_as_large_as_demand_and_coloured_by_price():
    zones = located({"A": (40.0, -90.0), "B": (44.0, -80.0), "C": (30.0, -85.0)})
    figure = draw_places(zones)
    axes, bar = figure.axes
    (markers,) = axes.collections
    assert np.asarray(markers.get_offsets()).tolist() == [[-85.0, 30.0], [-80.0, 44.0], [-90.0, 40.0]]  # the largest first
    assert markers.get_sizes() / markers.get_sizes()[0] == pytest.approx([1, 5 / 6, 4 / 6])
    assert len({to_hex(colour) for colour in markers.get_facecolors()}) == 3
    assert bar.get_xlim() == (0, 20)
    assert sorted(texts(axes)) == ["A", "B", "C"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["4 h", "5 h", "6 h"]
    render(figure)


@pytest.mark.parametrize("places", [NEW_YORK, FAR_WEST, {"A": (0.0, 0.0)}, {"A": (60.0, 10.0), "B": (60.0, 30.0)}])
def test_a_degree_north_is_as_long_as_the_same_way_east(places):
    figure = draw_places(located(places))
    axes = figure.axes[0]
    (west, east), (south, north) = axes.get_xlim(), axes.get_ylim()
    width, height = axes.get_position().size * figure.get_size_inches()
    middle = np.mean(
        [[lat for lat, _ in places.values()][index] for index in np.argsort([lat for lat, _ in places.values()])[[0, -1]]]
    )
    assert (width / (east - west)) / (height / (north - south)) == pytest.approx(np.cos(np.radians(middle)))


def test_a_crowd_is_enlarged_and_every_zone_named_once():
    figure = draw_places(located(NEW_YORK | FAR_WEST))
    whole, part, _ = figure.axes
    assert sorted(texts(whole)) == sorted(FAR_WEST)
    assert sorted(texts(part)) == sorted(NEW_YORK)
    assert np.ptp(part.get_ylim()) < np.ptp(whole.get_ylim()) / 5
    frame = whole.patches[0].get_bbox()
    assert (frame.x0, frame.x1) == pytest.approx(part.get_xlim())
    assert (frame.y0, frame.y1) == pytest.approx(part.get_ylim())


def test_where_nothing_overlaps_there_is_one_map():
    lon, lat = np.array([-90.0, -80.0, -85.0]), np.array([40.0, 44.0, 30.0])
    assert crowded_part(lon, lat, Window.around(lon, lat, 6.0, 3.8, 0.3), 3.0, 3.0, 0.3) is None


def test_sixty_zones_are_named_without_overlap():
    rng = np.random.default_rng(2)
    zones = located({f"A_RATHER_LONG_NAME_{n}": (rng.uniform(30, 48), rng.uniform(-120, -70)) for n in range(60)})
    figure = draw_places(zones)
    render(figure)
    for axes in figure.axes[:-1]:
        boxes = np.array([text.get_window_extent().extents for text in axes.texts])
        for one, other in itertools.combinations(boxes, 2):
            assert (one[2:] <= other[:2]).any() or (other[2:] <= one[:2]).any()
    named = sum(len(axes.texts) for axes in figure.axes[:-1])
    assert note_of(figure).endswith(f"has no room: {60 - named}.")
    assert named > 20


def test_zones_without_coordinates_are_listed_and_alone_draw_nothing():
    zones = located({"A": (40.0, -90.0), "LOST": (np.nan, np.nan), "B": (44.0, -80.0), "HALF": (42.0, np.nan)})
    figure = draw_places(zones)
    assert len(figure.axes[0].collections[0].get_offsets()) == 2
    assert note_of(figure).endswith("without known coordinates: HALF, LOST.")
    assert draw_places(zones[zones["zone"] == "LOST"]) is None
    assert draw_places(pd.DataFrame()) is None


def test_labels_cover_neither_markers_nor_each_other():
    points = np.array([[50.0, 50.0], [56.0, 50.0], [50.0, 56.0], [53.0, 53.0]])
    radii, size = np.full(4, 4.0), (30.0, 8.0)
    spots = place_labels(points, radii, [size] * 4, (200.0, 100.0))
    boxes = np.array([[x - 15, y - 4, x + 15, y + 4] for x, y in (spot.middle for spot in spots)])
    markers = np.hstack([points - 4, points + 4])
    for number, box in enumerate(boxes):
        for other in [*boxes[number + 1 :], *markers]:
            assert (box[2:] <= other[:2]).any() or (other[2:] <= box[:2]).any()
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] <= (200, 100)).all()


def test_a_label_without_room_is_given_up():
    assert place_labels(np.array([[10.0, 10.0]]), np.array([3.0]), [(100.0, 8.0)], (50.0, 50.0)) == [None]


# --- calendar


def test_cells_tell_hits_from_misses():
    days = pd.DataFrame(
        {"date": "2021-07-01", "hour": range(24), "price": range(24), "chosen": 0, "cheapest": [1, 1, *[0] * 22]}
    )
    days.loc[[1, 5], "chosen"] = 1
    figure = draw_calendar(days, "ZONE", "local")
    strip, cells = figure.axes
    column = cells.images[0].get_array()[:, 0]
    assert column.shape == (24, 3)
    expected = [MISSED, HIT, REST, REST, REST, EXPENSIVE, *[REST] * 18]
    np.testing.assert_allclose(column, [to_rgb(colour) for colour in expected])
    assert [bar.get_height() for bar in strip.patches] == [5.0]  # hours 1 and 5 instead of 0 and 1
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [
        "bought: hit 50 % of the cheapest hours",
        "not bought: missed 50 %",
        "bought too dear: 50 % of purchases",
    ]
    assert [to_hex(patch.get_facecolor()) for patch in legend.get_patches()] == [to_hex(c) for c in (HIT, MISSED, EXPENSIVE)]
    render(figure)


def test_the_strip_is_each_days_regret_and_names_the_costliest():
    days = days_of()
    figure = draw_calendar(days.assign(date=pd.to_datetime(days["date"])), "ZONE", "mean-7")
    strip = figure.axes[0]
    regret = (days["price"] * (days["chosen"].astype(float) - days["cheapest"])).groupby(days["date"]).sum()
    assert [bar.get_height() for bar in strip.patches] == pytest.approx(list(regret))
    assert texts(strip) == [f"{regret.idxmax()}: {regret.max():.0f}"]
    assert strip.get_title(loc="left") == "Hours bought by ZONE: Mean of the last 7 days"
    assert f"mean regret {regret.mean():.2f}" in note_of(figure)
    assert draw_calendar(days, "ZONE", "interp-spo").axes[0].get_title(loc="left").endswith(name_of("interp-spo"))


def test_days_that_are_missing_stay_empty_and_seeds_are_averaged():
    days = days_of(days=3)
    gap = days[days["date"] != "2021-07-02"]
    other = gap.assign(chosen=gap["cheapest"])
    bought = Bought.of(pd.concat([gap, other]))
    assert bought.regret().isna().tolist() == [False, True, False]
    assert bought.hit() == pytest.approx((Bought.of(gap).hit() + 100) / 2)
    figure = draw_calendar(pd.concat([gap, other]), "ZONE", "local")
    assert (figure.axes[1].images[0].get_array()[:, 1] == 1).all()
    assert "in part" in note_of(figure)
    render(figure)


def test_perfect_foresight_has_a_calendar_too():
    days = days_of(days=5)
    figure = draw_calendar(days.assign(chosen=days["cheapest"]), "ZONE", "steady")
    assert "hit 100 %" in figure.legends[0].get_texts()[0].get_text()
    assert texts(figure.axes[0]) == []
    render(figure)
    assert draw_calendar(days.iloc[:0], "ZONE", "local") is None


# --- files


def test_every_figure_is_written_the_same_each_time_and_none_left_open(tmp_path):
    rows, zones, calendar = fabricate(zones=2, seeds=2), located(NEW_YORK | FAR_WEST), (days_of(), "ZONE", "local")
    before = [table.copy() for table in (rows, zones, calendar[0])]
    first, second = (draw_all(rows, zones, calendar, tmp_path / name, resolution=50) for name in ("first", "second"))
    assert [path.name for path in first] == ["changes.png", "bars.png", "places.png", "weights.png", "calendar.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert sorted((tmp_path / "first").iterdir()) == sorted(first)
    assert plt.get_fignums() == []
    for table, copy in zip((rows, zones, calendar[0]), before, strict=True):
        pd.testing.assert_frame_equal(table, copy)


def test_a_pdf_is_the_same_each_time(tmp_path):
    zones, calendar = located(FAR_WEST), (days_of(days=5), "ZONE", "local")
    first, second = (draw_all(pd.DataFrame(), zones, calendar, tmp_path / name, ["pdf"]) for name in ("first", "second"))
    assert [path.name for path in first] == ["places.pdf", "calendar.pdf"]
    assert all(path.read_bytes().startswith(b"%PDF") for path in first)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_without_data_nothing_is_written(tmp_path):
    assert draw_all(pd.DataFrame(), pd.DataFrame(), None, tmp_path) == []

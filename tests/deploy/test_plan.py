"""plan.toml: every mistake is named in a line of its own, all at once; its digest is that of what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dffl.deploy.federation_plan import read_plan
from dffl.deploy.joining import SiteCheck, columns_of, require_columns, site_description
from dffl.deploy.provisioning import create, init
from dffl.tables.description import Agreement
from dffl.tables.keys import DescriptionError
from tests.deploy.made import a_plan, plan_text

ORDERED: dict[str, Any] = {"order": "day", "split": "time", "train_from": "2021-01-04", "test_from": "2021-02-18"}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no address": ({"federation": {"address": None}}, "federation.address: is missing"),
    "an address without a port": ({"federation": {"address": "localhost"}}, "federation.address: must be host:port"),
    "a port above the highest": ({"federation": {"address": "localhost:70000"}}, "federation.address: must be host:port"),
    "a port of words": ({"federation": {"listen": "localhost:http"}}, "federation.listen: must be host:port"),
    "no sites": ({"federation": {"sites": None}}, "federation.sites: is missing"),
    "one site": ({"federation": {"sites": ["north"]}}, "federation.sites: must be a list of two or more"),
    "a site twice": ({"federation": {"sites": ["north", "North"]}}, "federation.sites: must differ"),
    "a site named as the coordinator": ({"federation": {"sites": ["north", "Server"]}}, "is not 'server'"),
    "a site's name with a dot": ({"federation": {"sites": ["north", "a.b"]}}, "federation.sites: a site's name"),
    "a site's name with a path": ({"federation": {"sites": ["north", "../x"]}}, "federation.sites: a site's name"),
    "a long name": ({"federation": {"sites": ["north", "x" * 60]}}, "federation.sites: a site's name"),
    "no inputs": ({"federation": {"inputs": None}}, "federation.inputs: is missing"),
    "no dimension": ({"federation": {"dimension": None}}, "federation.dimension: is missing"),
    "inputs of 0": ({"federation": {"inputs": 0}}, "federation.inputs: must be the number"),
    "a dimension that is true": ({"federation": {"dimension": True}}, "federation.dimension: must be the number"),
    "one row": ({"federation": {"min_rows": 1}}, "federation.min_rows: must be a whole number from 2"),
    "a table": ({"federation": {"table": "all.csv"}}, "federation.table: belongs to a site's own file"),
    "a set": ({"federation": {"set": {"type": "top-k", "k": 1}}}, "federation.set: belongs to a site's own file"),
    "no features": ({"federation": {"features": None}}, "federation.features: is missing"),
    "a key that is none": ({"federation": {"colour": "red"}}, "federation.colour: no such key"),
    "an unknown method": ({"training": {"method": "fedavgg"}}, "fedavg"),
    "an unknown setting": ({"training": {"round": 3}}, "training"),
    "no rounds": ({"training": {"rounds": 0}}, "rounds must be"),
    "clients as processes": ({"training": {"engine": "processes"}}, "engine 'processes' was removed"),
    "pooled units without pooled statistics": ({"training": {"pooled_units": True}}, 'needs statistics = "pooled"'),
    "more liars than sites": (
        {"training": {"aggregate": {"name": "krum", "f": 5}}},
        "training: aggregator 'krum' with f=5 needs 13 clients in a round, found 3; raise client_fraction, or lower f",
    ),
    "a split by time without an order": (
        {"federation": {"split": "time"}},
        'plan.toml: federation.split: needs federation.order, the column of dates or numbers; add order = "COLUMN", or',
    ),
    "a forecast by position": ({"training": {"forecast": True}}, "training.forecast: forecast is not a setting, as it took"),
    "a forecast that has no room": ({"federation": {"forecast": "f*"}}, "federation.inputs: must be at least dimension (5)"),
    "a quorum of 0": ({"rounds": {"quorum": 0}}, "rounds.quorum: must be a share"),
    "a quorum above 1": ({"rounds": {"quorum": 1.1}}, "rounds.quorum: must be a share"),
    "an impatient death": ({"rounds": {"dead_seconds": 1}}, "rounds.dead_seconds: must be at least 4"),
    "no time for a round": ({"rounds": {"round_seconds": 0}}, "rounds.round_seconds: must be seconds"),
    "a time of words": ({"rounds": {"join_seconds": "10 min"}}, "rounds.join_seconds: must be seconds"),
    "an unknown time": ({"rounds": {"patience": 3}}, "rounds.patience: no such key"),
    "an unknown scalar": ({"wire": {"scalars": ["losses"]}}, "wire.scalars: must be a list of some of"),
    "a scalar twice": ({"wire": {"scalars": ["loss", "loss"]}}, "wire.scalars: must be a list of some of"),
    "scalars as tables": ({"wire": {"scalars": [{}]}}, "wire.scalars: must be a list of some of"),
    "an unknown result": ({"wire": {"results": ["regret"]}}, "wire.results: must be a list of some of"),
    "unknown statistics": ({"wire": {"statistics": "pool"}}, "wire.statistics: must be 'own' or 'pooled'"),
    "messages of any size": ({"wire": {"most_megabytes": 5000}}, "wire.most_megabytes: must be a whole number"),
    "parameters below 0": ({"wire": {"largest_parameter": -1}}, "wire.largest_parameter: must be a number above 0"),
    "an unknown key of the wire": ({"wire": {"secrets": True}}, "wire.secrets: no such key"),
    "a further training without the choice": (
        {"federation": ORDERED, "time": {"later": [3]}},
        'time.later: belongs to method = "chosen"',
    ),
    "a key of the time that is none": ({"time": {"refits": 3}}, "time.refits: no such key"),
    "features of items in a file of the site": (
        {"federation": {"inputs": 9}, "items": {"known": {"weight": {"file": "items.csv", "column": "weight"}}}},
        "items.known.weight: a plan names no files of sites",
    ),
    "features of items that have no room": ({"items": {"features": ["w_*"]}}, "federation.inputs: must be at least dimension"),
}
BAD_CHOICES: dict[str, tuple[dict[str, Any], str]] = {
    "two sites": ({"sites": ("north", "south")}, 'federation.sites: method = "chosen" needs 3 or more sites, found 2'),
    "no order": ({"federation": dict.fromkeys(ORDERED)}, 'federation.order: method = "chosen" decides over time'),
    "a draw": ({"federation": {"split": "draw", "train_from": None, "test_from": None}}, "federation.order: method"),
    "no start": ({"federation": {"test_from": None}}, "federation.test_from: is missing"),
    "pooled statistics": ({"wire": {"statistics": "pooled"}}, 'wire: with method = "chosen" sites send no statistics'),
    "results": ({"wire": {"results": ["out_of_fold_regret"]}}, "wire: with method"),
    "privacy": ({"training": {"privacy": "client"}}, "training.privacy: cannot be combined with chosen"),
    "rows between refits": ({"time": {"refit": 28}}, "time.refit: counts rows, which sites that are apart cannot compare"),
    "each site's own rule": ({"time": {"choose": {"by": "shrunk"}}}, 'time.choose.by: must be "fleet"'),
    "a number among dates": ({"time": {"later": [3]}}, "time.later: must be dates, as test_from is"),
    "a date before the start": ({"time": {"later": ["2021-02-01"]}}, "time.later: must be moments after test_from"),
    "a training that cannot be": ({"training": {"rounds": 0}}, "training.rounds: rounds must be"),
}


@pytest.mark.parametrize(("changes", "line"), BAD_CHOICES.values(), ids=BAD_CHOICES.keys())
def test_a_choice_that_sites_cannot_make_is_refused(changes: dict[str, Any], line: str) -> None:
    whole: dict[str, Any] = {"federation": ORDERED, "training": {"method": "chosen", "hidden": None}}
    assert a_plan(**whole).choice is not None
    for key, values in changes.items():
        whole[key] = {**whole.get(key, {}), **values} if isinstance(values, dict) else values
    with pytest.raises(ValueError, match=r"plan\.toml") as refused:
        a_plan(**whole)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("changes", "line"), BAD.values(), ids=BAD.keys())
def test_a_mistake_is_named(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=r"plan\.toml") as refused:
        a_plan(**changes)
    assert line in str(refused.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(DescriptionError) as refused:
        a_plan(federation={"address": "x", "inputs": 0}, rounds={"quorum": 2}, wire={"statistics": "all"})
    found = refused.value.problems
    assert len(found) == 4
    assert all(line.startswith("plan.toml: ") and "\n" not in line for line in found)


@pytest.mark.parametrize("text", ["[federation", "a = ", "federation = 3", "[[federation]]\n", "\x00", "x" * 99])
def test_what_is_no_plan_is_refused_with_its_path(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"plan\.toml"):
        read_plan(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="UTF-8"):
        read_plan(path)
    with pytest.raises(ValueError, match="there is no such file"):
        read_plan(tmp_path / "other.toml")


def test_the_digest_is_that_of_what_the_plan_says() -> None:
    plain = a_plan()
    assert a_plan().digest == plain.digest
    for changes in ({"training": {"rounds": 4}}, {"rounds": {"quorum": 0.7}}, {"federation": {"name": "other"}}):
        assert a_plan(**changes).digest != plain.digest  # type: ignore[arg-type]


def test_comments_and_the_order_of_keys_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(plan_text())
    before = read_plan(path).digest
    path.write_text("# a comment\n" + plan_text().replace("[training]", "# another\n\n[training]"))
    assert read_plan(path).digest == before
    head, _, tail = plan_text().partition("[training]")
    path.write_text("[training]" + tail + "\n" + head)
    assert read_plan(path).digest == before


def test_the_plan_that_init_writes_can_be_used(tmp_path: Path) -> None:
    init(tmp_path / "c")
    plan = read_plan(tmp_path / "c" / "plan.toml")
    assert plan.sites == ("harbour", "bakery", "plant")
    assert plan.address == "localhost:8443"
    with pytest.raises(ValueError, match="is not overwritten"):
        init(tmp_path / "c")
    create(tmp_path / "c" / "plan.toml")
    with pytest.raises(ValueError, match="already exists"):
        create(tmp_path / "c" / "plan.toml")


def test_a_forecast_of_the_plan_is_found_by_name_in_a_sites_table(tmp_path: Path) -> None:
    plan = a_plan(federation={"inputs": 2 + 3, "dimension": 3, "forecast": "f*"})
    columns = ["f3", "x2", "f1", "c1", "c2", "c3", "f2", "x1"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 8)), columns=columns)
    frame.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "client.toml").write_text('[client]\ntable = "table.csv"\nset = { type = "top-k", k = 1 }\n')
    description = site_description(plan, "north", tmp_path / "client.toml")
    require_columns(plan, description)
    site = SiteCheck(description, plan, "north").as_json()
    assert site["features"] == ["x1", "x2", "f1", "f2", "f3"]
    assert site["forecast"] == {"c1": "f1", "c2": "f2", "c3": "f3"}
    [client] = description.train
    assert columns_of(description).digest == Agreement.of(client).digest
    assert client.forecast is not None
    frame.drop(columns="f2").to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(DescriptionError, match=r"table.csv: federation.forecast: 2 columns \('f3', 'f1'\) for 3 costs"):
        site_description(plan, "north", tmp_path / "client.toml")

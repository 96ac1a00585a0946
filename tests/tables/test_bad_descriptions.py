"""Bad inputs of `federation.toml` and its tables: each is named with file and key, or with file, line and column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dffl.tables.description import DescriptionError, read
from tests.tables.made import cell, files, write

Change = Callable[[dict[str, str]], object]


def toml(old: str, new: str) -> Change:
    def change(contents: dict[str, str]) -> None:
        assert old in contents["federation.toml"]
        contents["federation.toml"] = contents["federation.toml"].replace(old, new, 1)

    return change


def both(first: Change, second: Change) -> Change:
    def change(contents: dict[str, str]) -> None:
        first(contents)
        second(contents)

    return change


def at(file: str, line: int, column: str, value: str) -> Change:
    return lambda contents: contents.update({file: cell(contents[file], line, column, value)})


def text(file: str, old: str, new: str) -> Change:
    def change(contents: dict[str, str]) -> None:
        assert old in contents[file]
        contents[file] = contents[file].replace(old, new)

    return change


def whole(file: str, new: str) -> Change:
    return lambda contents: contents.update({file: new})


def gone(file: str) -> Change:
    return lambda contents: contents.pop(file)


def named(name: str) -> str:
    return f"federation.toml: client {name!r}"


KNAPSACK = '{ type = "zero-one-knapsack", weights = { file = "items.csv", column = "weight", by = "item" }, budget = 4 }'
TOP_K = '{ type = "top-k", k = 2 }'
FILE = '{ type = "file", path = "east.lp", predicted = "x_*" }'


def with_set(new: str) -> Change:
    return toml(TOP_K, new)


BAD: dict[str, tuple[Change, list[str]]] = {
    # The file itself.
    "syntax": (toml('sense = "min"', 'sense = "min'), ["federation.toml, line 4, column 13: "]),
    "syntax at the end": (toml("budget = 4 }", "budget = 4"), ["federation.toml, line 22, column "]),
    "a key twice": (toml("rounds = 3", "rounds = 3\nrounds = 4"), ["federation.toml, line 12, column "]),
    "an empty file": (
        whole("federation.toml", ""),
        ["federation.toml: federation: is missing", "federation.toml: client: is missing"],
    ),
    "a table where a text belongs": (
        whole("federation.toml", "federation = 3\nclient = 4\n"),
        ["federation.toml: federation: must be a table", "federation.toml: client: must be tables"],
    ),
    "clients in single brackets": (
        lambda contents: contents.update(
            {
                "federation.toml": contents["federation.toml"]
                .split('[[client]]\nname = "south"')[0]
                .replace("[[client]]", "[client]")
            }
        ),
        ["federation.toml: client: must be tables: write [[client]]"],
    ),
    "an unknown part": (
        toml("[training]", "[trainings]"),
        ["federation.toml: trainings: no such key", "did you mean 'training'?"],
    ),
    "a key above the parts": (
        toml("[federation]\n", 'order = "date"\n[federation]\n'),
        ["federation.toml: order: no such key", "it belongs under [federation]"],
    ),
    # [federation]
    "no features": (
        both(toml('features = ["temp_*", "weather", "date"]', ""), toml('order = "date"', "")),
        ["federation.toml: federation.features: is missing"],
    ),
    "no costs": (toml('costs = "price_*"', ""), ["federation.toml: federation.costs: is missing"]),
    "features that are a number": (
        toml('features = ["temp_*", "weather", "date"]', "features = 3"),
        ["federation.toml: federation.features: must be names of columns"],
    ),
    "features that are empty": (
        toml('["temp_*", "weather", "date"]', "[]"),
        ["federation.toml: federation.features: must be names"],
    ),
    "a misspelt key": (
        toml("missing =", "mising ="),
        ["federation.toml: federation.mising: no such key; did you mean 'missing'?"],
    ),
    "a wrong sense": (
        toml('sense = "min"', 'sense = "minimise"'),
        ["federation.toml: federation.sense: must be 'min' or 'max', found 'minimise'"],
    ),
    "a wrong rule": (
        toml('missing = "refuse"', 'missing = "median"'),
        ["federation.toml: federation.missing: must be 'refuse' or 'mean' or 'drop', found 'median'"],
    ),
    "a seed below 0": (toml('unit = "EUR"', "seed = -1"), ["federation.toml: federation.seed: must be a whole number from 0"]),
    "a seed that is true": (toml('unit = "EUR"', "seed = true"), ["federation.toml: federation.seed: must be a whole number"]),
    "a fraction above 1": (
        toml('unit = "EUR"', "test_fraction = 1.2"),
        ["federation.toml: federation.test_fraction: must be a number between 0 and 1, found 1.2"],
    ),
    "a unit that is a number": (
        toml('unit = "EUR"', "unit = 7"),
        ["federation.toml: federation.unit: must be a text, found 7"],
    ),
    "units in two ways": (
        toml('unit = "EUR"', 'unit = "EUR"\nunit_column = "weather"'),
        ["federation.toml: federation.unit: unit and unit_column cannot both be set; remove one"],
    ),
    "categories of no feature": (
        toml('unit = "EUR"', 'categories = { wether = ["dry"] }'),
        ["federation.toml: federation.categories.wether: is not a feature"],
    ),
    "categories twice": (
        toml('unit = "EUR"', 'categories = { weather = ["dry", "dry"] }'),
        ["federation.toml: federation.categories: must be lists"],
    ),
    "a category that is not listed": (
        toml('unit = "EUR"', 'categories = { weather = ["dry", "snow"] }'),
        ["north.csv, line 3, column 'weather': 'wet' is not among federation.categories.weather"],
    ),
    "a table without client_column": (
        toml('unit = "EUR"', 'table = "north.csv"'),
        ["federation.toml: federation.table: requires client_column"],
    ),
    "client_column without a table": (
        toml('unit = "EUR"', 'client_column = "weather"'),
        ["federation.toml: federation.client_column: requires table"],
    ),
    # [training]
    "an unknown method": (
        toml('"finetune"', '"finetun"'),
        ["federation.toml: training.method: unknown method 'finetun'; did you mean 'finetune'?"],
    ),
    "an unknown setting": (
        toml("rounds = 3", "runds = 3"),
        ["federation.toml: training.runds: no such setting", "did you mean 'rounds'?"],
    ),
    "a setting out of range": (
        toml("rounds = 3", "rounds = 0"),
        ["federation.toml: training.rounds: rounds must be a whole number >= 1, found 0"],
    ),
    "a setting of another kind": (toml("rounds = 3", "rounds = [3]"), ["federation.toml: training.rounds: rounds must be"]),
    "a flag that is a text": (
        toml("rounds = 3", 'scale_costs = "no"'),
        ["federation.toml: training.scale_costs: scale_costs must be true or false"],
    ),
    "an unknown loss": (
        toml("rounds = 3", 'loss = "spo"'),
        ["federation.toml: training.loss: unknown loss 'spo'; did you mean 'spo+'?"],
    ),
    "a loss with a wrong argument": (
        toml("rounds = 3", 'loss = { name = "spo+", depth = 3 }'),
        ["federation.toml: training.loss: "],
    ),
    "a loss without a name": (toml("rounds = 3", "loss = { depth = 3 }"), ["federation.toml: training.loss: "]),
    "an option of another method": (
        toml("rounds = 3", "pull = 0.1"),
        ["federation.toml: training.pull: is an option of ditto"],
    ),
    "an unknown option": (
        toml("rounds = 3", "options = { epoch = 3 }"),
        ["federation.toml: training.options.epoch: finetune has no such option; did you mean 'epochs'?"],
    ),
    "a network": (toml("rounds = 3", 'network = "large"'), ["federation.toml: training.network: can be given in Python only"]),
    # [[client]]
    "no name": (toml('name = "north"\n', ""), ["federation.toml: client number 1.name: is missing"]),
    "a name that cannot be printed": (
        toml('name = "north"', 'name = "no\\u001brth"'),
        ["client 'no\\x1brth'.name: must be a text that can be printed"],
    ),
    "a client twice": (toml('name = "south"', 'name = "north"'), [f"{named('north')}.name: must be unique, found it twice"]),
    "no table": (toml('table = "north.csv"\n', ""), [f"{named('north')}.table: is missing"]),
    "a table that is a number": (
        toml('table = "north.csv"\n', "table = 3\n"),
        [f"{named('north')}.table: must be the path of a CSV"],
    ),
    "a table that is missing": (
        toml('table = "north.csv"\n', 'table = "nord.csv"\n'),
        [f"{named('north')}.table: ", "nord.csv: there is no such file; did you mean 'north.csv'?"],
    ),
    "a test that is missing": (gone("south_test.csv"), [f"{named('south')}.test: ", "south_test.csv: there is no such file"]),
    "a table that is a folder": (
        toml('table = "north.csv"\n', 'table = "."\n'),
        [f"{named('north')}.table: ", "a folder, not a file"],
    ),
    "a table in Excel": (
        lambda c: (c.update({"a.xlsx": "x"}), toml("north.csv", "a.xlsx")(c)),
        ["a.xlsx: must be CSV or Parquet, found '.xlsx'"],
    ),
    "no set": (toml(f"set = {TOP_K}\n", ""), [f"{named('north')}.set: is missing"]),
    "a set that is a text": (with_set('"top-k"'), [f"{named('north')}.set: must be a table such as"]),
    "a client's misspelt key": (
        toml('table = "north.csv"', 'table = "north.csv"\nsens = "max"'),
        [f"{named('north')}.sens: no such key; did you mean 'sense'?"],
    ),
    "a database without a query": (
        toml('table = "north.csv"', 'table = { sqlite = "a.db" }'),
        [f"{named('north')}.table: must be the path"],
    ),
    "a database that is none": (
        toml('table = "north.csv"', 'table = { sqlite = "north.csv", query = "SELECT 1" }'),
        ["north.csv: is not an SQLite database"],
    ),
    # Sets.
    "an unknown set": (
        with_set('{ type = "topk", k = 2 }'),
        [f"{named('north')}.set.type: unknown type 'topk'; did you mean 'top-k'?"],
    ),
    "a set without a type": (with_set("{ k = 2 }"), [f"{named('north')}.set.type: is missing"]),
    "an unknown parameter": (
        with_set('{ type = "top-k", k = 2, budgets = 3 }'),
        [f"{named('north')}.set.budgets: top-k has no such parameter"],
    ),
    "a missing parameter": (with_set('{ type = "top-k" }'), [f"{named('north')}.set.k: is missing; top-k needs a number"]),
    "a parameter out of range": (
        with_set('{ type = "top-k", k = 9 }'),
        [f"{named('north')}.set.k: TopK: k must be in [0, 3], found 9"],
    ),
    "a parameter of another kind": (
        with_set('{ type = "top-k", k = "2" }'),
        [f"{named('north')}.set.k: must be a number, found '2'"],
    ),
    "a table for a number": (
        with_set('{ type = "top-k", k = { file = "items.csv", column = "weight" } }'),
        [f"{named('north')}.set.k: must be a number, found a table"],
    ),
    "too few weights": (
        with_set('{ type = "fractional-knapsack", weights = [1, 2], budget = 3 }'),
        [f"{named('north')}.set.weights: must have an entry for each of the 3 cost columns, found 2"],
    ),
    "a weight below 0": (
        with_set('{ type = "fractional-knapsack", weights = [1, 2, -3], budget = 3 }'),
        [f"{named('north')}.set.weights: FractionalKnapsack: weights must be > 0"],
    ),
    "reversed bounds": (
        with_set('{ type = "box", lower = 1, upper = 0 }'),
        [f"{named('north')}.set.upper: Box: upper - lower must be >= 0"],
    ),
    "an assignment of 3 costs": (with_set('{ type = "assignment" }'), [f"{named('north')}.set: an assignment of n jobs"]),
    "a grid of another size": (
        with_set('{ type = "shortest-path", rows = 100000, columns = 100000 }'),
        [f"{named('north')}.set: has 19999800000 decisions, where there are 3 cost columns"],
    ),
    "an infeasible polytope": (
        with_set('{ type = "polytope", A_eq = [[1, 1, 1]], b_eq = [9], lower = 0, upper = 1 }'),
        [f"{named('north')}.set: Polytope: "],
    ),
    "an unbounded polytope": (
        with_set('{ type = "polytope", A_ub = [[1, 1, 1]], b_ub = [9] }'),
        [f"{named('north')}.set: Polytope: "],
    ),
    "rows of unequal lengths": (
        with_set('{ type = "polytope", A_ub = [[1, 1, 1], [1]], b_ub = [9, 9] }'),
        [f"{named('north')}.set.A_ub: must be a list of rows of numbers"],
    ),
    "a battery that starts too full": (
        with_set('{ type = "battery", capacity = 1, charge = 1, initial = 4 }'),
        [f"{named('north')}.set"],
    ),
    "an ellipsoid that is flat": (
        with_set('{ type = "ellipsoid", center = 0, shape = [[1,0,0],[0,1,0],[0,0,0]] }'),
        [f"{named('north')}.set"],
    ),
    "a model that is missing": (gone("east.lp"), [f"{named('east')}.set", "east.lp"]),
    "a model that is damaged": (whole("east.lp", "this is no model"), [f"{named('east')}.set"]),
    "a model that is infeasible": (text("east.lp", ">= 2", ">= 4"), [f"{named('east')}.set"]),
    "a model that is unbounded": (text("east.lp", " 0 <= x_3 <= 1\n", " x_3 free\n"), [f"{named('east')}.set"]),
    "a pattern that fits no variable": (
        toml('predicted = "x_*"', 'predicted = "z_*"'),
        [f"{named('east')}.set", "'z_*' matches no variable"],
    ),
    "variables that do not fit the costs": (
        text("east.lp", "x_3", "x_4"),
        [f"{named('east')}.set", "do not match the variables"],
    ),
    "fewer variables than costs": (
        toml('predicted = "x_*"', 'predicted = ["x_1", "x_2"]'),
        [f"{named('east')}.set: has 2 decisions, where there are 3 cost columns"],
    ),
    "a model of another sense": (
        toml(f"set = {FILE}", f'sense = "max"\nset = {FILE}'),
        [f"{named('east')}.set", 'minimises known costs; write sense = "min" for the client, or say by sense in its set'],
    ),
    "a file of weights that is missing": (
        gone("items.csv"),
        [f"{named('south')}.set.weights.file: items.csv: there is no such file"],
    ),
    "a column of weights that is missing": (
        toml('column = "weight"', 'column = "wieght"'),
        ["items.csv: lacks the column 'wieght'; did you mean 'weight'?"],
    ),
    "a weight that is a text": (
        text("items.csv", "price_1,1", "price_1,heavy"),
        ["items.csv, line 3, column 'weight': must be a finite number, found 'heavy'"],
    ),
    "a weight that is empty": (
        text("items.csv", "price_1,1", "price_1,"),
        ["items.csv, line 3, column 'weight': must be a finite number, found nothing"],
    ),
    "an item that is no cost": (
        text("items.csv", "price_1,1", "price_9,1"),
        ["items.csv, line 3, column 'item': must be the name of a cost column, found 'price_9'"],
    ),
    "an item twice": (
        text("items.csv", "price_1,1", "price_3,1"),
        ["items.csv, line 3, column 'item': a second row for 'price_3'"],
    ),
    "an item that is missing": (
        text("items.csv", "price_1,1\n", ""),
        ["items.csv: column 'item' must have a row for each cost column, found none for 'price_1'"],
    ),
    "a key of a file that is unknown": (
        toml('by = "item"', 'for = "item"'),
        [f"{named('south')}.set.weights.for: no such key"],
    ),
    # Columns of tables.
    "a pattern that fits no column": (
        toml('"temp_*"', '"humid_*"'),
        ["north.csv: no column fits 'humid_*' of federation.features"],
    ),
    "a feature that is missing": (
        toml('"weather"', '"wether"'),
        ["north.csv: lacks the column 'wether'; did you mean 'weather'?"],
    ),
    "an order that is missing": (toml('order = "date"', 'order = "day"'), ["north.csv: lacks the column 'day'"]),
    "a feature missing at one site": (
        text("south.csv", "temp_2", "tmp_2"),
        ["south.csv: lacks 'temp_2' of federation.features, which "],
    ),
    "a cost under another name": (
        text("south.csv", "price_2", "price_two"),
        ["south.csv: lacks 'price_2' of federation.costs", "and has 'price_two' instead"],
    ),
    "a cost more at one site": (
        lambda c: c.update({"east.csv": c["east.csv"].replace("\n", ",1\n").replace("price_3,1", "price_3,price_4", 1)}),
        ["east.csv: has 'price_4' of federation.costs, which "],
    ),
    "a test with other costs": (
        text("south_test.csv", "price_2", "price_two"),
        ["south_test.csv: lacks 'price_2' of federation.costs"],
    ),
    "a feature that is a cost": (
        toml('["temp_*", "weather", "date"]', '["temp_*", "price_1"]'),
        ["federation.toml: federation.features: 'price_1' is among the costs, too"],
    ),
    "a column twice": (text("north.csv", "temp_2", "temp_1"), ["north.csv: two columns are named 'temp_1'"]),
    "a column that cannot be printed": (
        text("north.csv", "temp_2", "temp\x1b2"),
        ["north.csv: the column 'temp\\x1b2' has a character that cannot be printed"],
    ),
    # Cells of tables.
    "an empty table": (whole("north.csv", ""), ["north.csv: its first line must name the columns, found nothing there"]),
    "a header only": (
        whole("north.csv", "date,weather,temp_1,temp_2,price_1,price_2,price_3\n"),
        ["north.csv: must have at least one row below its header"],
    ),
    "empty rows only": (
        whole("north.csv", "date,weather,temp_1,temp_2,price_1,price_2,price_3\n,,,,,,\n"),
        ["north.csv: must have at least one row below its header"],
    ),
    "a text in a feature": (
        at("north.csv", 4, "temp_1", "warm"),
        ["north.csv, line 4, column 'temp_1': must be a finite number, found 'warm'"],
    ),
    "a text in a test row": (
        at("north.csv", 11, "temp_1", "warm"),
        ["north.csv, line 11, column 'temp_1': must be a finite number, found 'warm'"],
    ),
    "a text in a test table": (
        at("south_test.csv", 3, "temp_1", "warm"),
        ["south_test.csv, line 3, column 'temp_1': must be a finite number, found 'warm'"],
    ),
    "a cost whose square overflows": (
        at("south.csv", 6, "price_3", "-1e308"),
        ["south.csv, line 6, column 'price_3': must be at most 1e+100 in size, found '-1e308'"],
    ),
    "a text in a cost": (
        at("south.csv", 5, "price_2", "free"),
        ["south.csv, line 5, column 'price_2': must be a finite number, found 'free'"],
    ),
    "an infinite cost": (
        at("south.csv", 5, "price_2", "inf"),
        ["south.csv, line 5, column 'price_2': must be a finite number, found 'inf'"],
    ),
    "a number that is too large": (
        at("south.csv", 5, "price_2", "1e999"),
        ["south.csv, line 5, column 'price_2': must be a finite number, found '1e999'"],
    ),
    "a decimal comma in quotes": (
        lambda c: c.update({"south.csv": cell(c["south.csv"], 5, "price_2", "@").replace("@", '"1,5"')}),
        ["south.csv, line 5, column 'price_2': must be a finite number, found '1,5'; write decimals with a point"],
    ),
    "an empty feature": (at("north.csv", 4, "temp_1", ""), ["north.csv, line 4, column 'temp_1': is empty"]),
    "an empty category": (at("north.csv", 4, "weather", "NA"), ["north.csv, line 4, column 'weather': is empty"]),
    "an empty cost": (at("north.csv", 4, "price_3", "nan"), ["north.csv, line 4, column 'price_3': the cost is missing"]),
    "an empty date": (at("north.csv", 4, "date", ""), ["north.csv, line 4, column 'date': is empty"]),
    "a wrong date": (
        at("north.csv", 4, "date", "2024-02-30"),
        ["north.csv, line 4, column 'date': must be a date such as 2021-01-31", "found '2024-02-30'"],
    ),
    "a cell too many": (
        text("north.csv", "2024-01-03,", "2024-01-03,,"),
        ["north.csv, line 4: has 8 cells, where 7 were expected"],
    ),
    "a cell too few": (
        text("north.csv", "2024-01-03,dry,", "2024-01-03,"),
        ["north.csv, line 4: has 6 cells, where 7 were expected"],
    ),
    "a stray quote": (
        text("north.csv", "2024-01-03,dry", '2024-01-03,"dry'),
        ["north.csv, line 4, column 'weather': a cell goes over several lines"],
    ),
    "numbers with commas in quotes": (
        lambda c: c.update({"east.csv": _commas(c["east.csv"])}),
        ["east.csv, line 2, column 'price_1': must be a finite number", "write decimals with a point"],
    ),
    "semicolons and thousands": (
        lambda c: c.update({"east.csv": _thousands(c["east.csv"])}),
        ["east.csv, column 'price_1': ", "may be a decimal or thousands"],
    ),
    "semicolons, commas and points": (
        lambda c: c.update({"east.csv": _mixed(c["east.csv"])}),
        ["east.csv: has decimal commas in column", "decimal points in column"],
    ),
    "commas and semicolons between names": (
        text("north.csv", "date,weather,", "date;weather,"),
        ["north.csv, line 1: has commas and semicolons between the names"],
    ),
    "names of thousands": (
        lambda c: c.update({"north.csv": _unique(c["north.csv"])}),
        ["federation.toml: federation.features: column 'weather': has more than 100 different texts"],
    ),
    "one row": (
        lambda c: c.update({"north.csv": "\n".join(c["north.csv"].split("\n")[:2]) + "\n"}),
        ["north.csv: the test of all clients begins at 2024-01-09, and client 'north' has no row from then on"],
    ),
    "days that are all the same": (
        lambda c: c.update(
            {
                "north.csv": "".join(
                    line + "\n" if number == 0 else "2024-01-01" + line[10:] + "\n"
                    for number, line in enumerate(c["north.csv"].split("\n")[:-1])
                )
            }
        ),
        [
            "north.csv: the test of all clients begins at 2024-01-",
            "and client 'north' has no row from then on (its rows go from",
        ],
    ),
    "a feature that is always empty": (
        lambda c: (_emptied(c), toml('missing = "refuse"', 'missing = "mean"')(c)),
        ["federation.toml: federation.features: column 'temp_2': has no filled cell in any training row"],
    ),
    "a feature that is empty at one site": (
        lambda c: (_emptied(c, ["east.csv"]), toml('missing = "refuse"', 'missing = "mean"')(c)),
        ["east.csv: column 'temp_2' has no filled cell in the training rows"],
    ),
    "no row without gaps": (
        lambda c: (_emptied(c, ["east.csv"]), toml('missing = "refuse"', 'missing = "drop"')(c)),
        ["east.csv: every row has an empty cell"],
    ),
    "an empty cost with the rule mean": (
        lambda c: (at("north.csv", 4, "price_3", "")(c), toml('missing = "refuse"', 'missing = "mean"')(c)),
        ["north.csv, line 4, column 'price_3': the cost is missing"],
    ),
    "mixed units": (
        lambda c: (_units(c), toml('unit = "EUR"', 'unit_column = "unit"')(c)),
        ["north.csv, line 6, column 'unit': must be 'EUR' as in the rows before, found 'USD'"],
    ),
    "a text at most of one site": (text("east.csv", "2.", "~"), ["east.csv, line "]),
    "binary zeros": (at("north.csv", 4, "temp_1", "\0"), ["north.csv"]),
    "a set and a table wrong at once": (
        lambda c: (gone("north.csv")(c), with_set('{ type = "tok-k" }')(c)),
        [f"{named('north')}.table: ", f"{named('north')}.set.type: unknown type 'tok-k'"],
    ),
    "a set of one decision": (
        with_set('{ type = "top-k", k = 0 }'),
        [f"{named('north')}.set: leaves one decision only, whatever the costs are"],
    ),
    "a unit that steers a terminal": (
        toml('unit = "EUR"', 'unit = "\\u001b[2J"'),
        ["federation.toml: federation.unit: must be a text, found '\\x1b[2J'"],
    ),
}


def _semicolons(table: str) -> str:
    return table.replace(",", ";").replace(".", ",")


def _thousands(table: str) -> str:
    lines = _semicolons(table).split("\n")
    return "\n".join([lines[0], *(_with(line, 4, "1,234") for line in lines[1:] if line)]) + "\n"


def _mixed(table: str) -> str:
    lines = _semicolons(table).split("\n")
    return "\n".join([lines[0], *(_with(line, 4, "1.25") for line in lines[1:] if line)]) + "\n"


def _commas(table: str) -> str:
    lines = table.split("\n")
    return "\n".join([lines[0], *(_with(line, 4, '"1,25"', ",") for line in lines[1:] if line)]) + "\n"


def _with(line: str, place: int, value: str, sign: str = ";") -> str:
    cells = line.split(sign)
    cells[place] = value
    return sign.join(cells)


def _unique(table: str) -> str:
    header, row = table.split("\n")[:2]
    return "\n".join([header, *(f"{2000 + number}-01-01,text {number}{row[14:]}" for number in range(150))]) + "\n"


def _emptied(contents: dict[str, str], names: list[str] | None = None) -> None:
    for name in names or ["north.csv", "south.csv", "east.csv", "south_test.csv"]:
        lines = contents[name].split("\n")
        contents[name] = "\n".join([lines[0], *(_with(line, 3, "", ",") for line in lines[1:] if line)]) + "\n"


def _units(contents: dict[str, str]) -> None:
    for name in ("north.csv", "south.csv", "east.csv", "south_test.csv"):
        lines = contents[name].split("\n")
        unit = {5: "USD"} if name == "north.csv" else {}
        rows = [f"{line},{unit.get(number, 'EUR')}" for number, line in enumerate(lines[1:], start=1) if line]
        contents[name] = "\n".join([f"{lines[0]},unit", *rows]) + "\n"


def problems(path: Path) -> list[str]:
    with pytest.raises(DescriptionError) as caught:
        read(path)
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert all(problem and "\n" not in problem for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    change, expected = BAD[name]
    contents = files()
    change(contents)
    found = [problem.replace(f"{tmp_path}/", "") for problem in problems(write(tmp_path, contents))]
    for words in expected:
        assert any(words in problem for problem in found), found


def test_there_are_enough_of_them() -> None:
    assert len(BAD) >= 60


TOGETHER = [
    "a misspelt key", "an unknown method", "no name", "an unknown set", "a model that is infeasible", "a weight that is a text",
    "a text in a cost", "a cell too many",
]  # fmt: skip


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    contents = files()
    for name in TOGETHER:
        BAD[name][0](contents)
    found = [problem.replace(f"{tmp_path}/", "") for problem in problems(write(tmp_path, contents))]
    for name in TOGETHER:
        for words in BAD[name][1]:
            words = words.replace(named("north"), "federation.toml: client number 1")
            assert any(words in problem for problem in found), (name, found)
    assert len(found) == len(TOGETHER)


@pytest.mark.parametrize("first", list(BAD)[::9])
@pytest.mark.parametrize("second", ["a text in a cost", "an unknown parameter"])
def test_one_problem_does_not_hide_another(tmp_path: Path, first: str, second: str) -> None:
    contents = files()
    BAD[first][0](contents)
    try:
        BAD[second][0](contents)
    except (AssertionError, KeyError):
        pytest.skip("the first change has removed what the second would")
    if first in ("syntax", "no costs"):
        pytest.skip("nothing behind it can be read")
    found = [problem.replace(f"{tmp_path}/", "") for problem in problems(write(tmp_path, contents))]
    north = "federation.toml: client number 1" if first == "no name" else named("north")
    for words in [*BAD[first][1], *(words.replace(named("north"), north) for words in BAD[second][1])]:
        assert any(words in problem for problem in found), found


def test_a_file_that_is_missing_or_no_text(tmp_path: Path) -> None:
    path = tmp_path / "federation.toml"
    assert problems(path) == [f"{path}: there is no such file; `dffl init DIR` writes an example"]
    path.write_bytes(b"[federation]\nunit = '\xff'\n")
    assert problems(path) == [f"{path}, line 2: is not text in UTF-8; save it as UTF-8"]
    path.write_text("a = " + "[" * 100_000)
    assert problems(path)[0].startswith(f"{path}")
    assert problems(tmp_path)[0].startswith(f"{tmp_path}: cannot be read")

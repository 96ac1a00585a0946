"""The whole output of a backtest: nothing of row t follows from later rows, on many kinds of sets; and a stop loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.time import backtest as module
from dffl.time import spans
from dffl.time.kept import Kept
from dffl.time.past import Past
from dffl.time.refits import Prepared
from dffl.time.timeline import Timeline
from tests.time.made import federation

ROWS, START, REFIT = 150, 110, 10
METHODS = ["ridge", ("ridge", {"penalty": 30.0})]
OWN = [
    ("ridge", {"features": "own"}),
    ("ridge", {"features": "own", "degree": 2}),
    ("ridge", {"features": "both"}),
    ("ridge-pooled", {"features": "both"}),
    ("local", {"features": "own", "once": True, "epochs": 1}),
]


def clients(forecast: bool, changed: int | None = None, known_after: int = 0) -> dffl.Federation:
    """Two clients; with ``changed``, all that is not known when this row is decided is another."""
    made = []
    for place in range(2):
        rng = np.random.default_rng(place)
        costs = 30 + 8 * np.sin(np.arange(5) + np.cumsum(rng.normal(0, 0.1, ROWS))[:, None]) + rng.normal(0, 2, (ROWS, 5))
        x, brought = rng.normal(size=(ROWS, 1)), costs + rng.normal(0, 2, costs.shape)
        if changed is not None:
            costs, first = costs.copy(), changed - known_after
            costs[first:] = rng.normal(-50, 90, costs[first:].shape)
            x[changed + 1 :], brought[changed + 1 :] = 1e3, -1e3  # those of the row itself are known
        days = np.datetime64("2022-01-01") + np.arange(ROWS)
        mine = brought if forecast else None
        made.append(dffl.Client(f"c{place}", x, costs, dffl.TopK(5, 2), times=days, forecast=mine))
    return dffl.Federation(made)


def output(monkeypatch: pytest.MonkeyPatch, found: dffl.Federation, known_after: int) -> dict[str, Any]:
    """What each client was to decide in each row, by which rule, and the range that was stated."""
    decisions: list[np.ndarray] = []
    solve = spans.solve_each

    def seen(*arguments: Any) -> list[np.ndarray]:
        decisions.extend(solve(*arguments))
        return decisions

    monkeypatch.setattr(spans, "solve_each", seen)
    past = Past(known_after=known_after)
    made = dffl.backtest(found, METHODS, refit=REFIT, window=20, start=str(np.datetime64("2022-01-01") + START), past=past)
    monkeypatch.setattr(spans, "solve_each", solve)
    first = ROWS - made.clients[0].n
    return {
        "first": first,
        "decisions": decisions,
        "rules": [made.used(place) for place in range(2)],
        "ends": [one.ends for one in made.spans],
    }


@pytest.mark.parametrize("forecast", [False, True])
@pytest.mark.parametrize("known_after", [0, 1, 3])
def test_nothing_of_a_row_follows_from_what_is_not_known_by_then(
    monkeypatch: pytest.MonkeyPatch, known_after: int, forecast: bool
) -> None:
    whole = output(monkeypatch, clients(forecast), known_after)
    for row in (START + REFIT, START + 2 * REFIT + 7):  # at a refit, and between two
        other = output(monkeypatch, clients(forecast, row, known_after), known_after)
        until = row - whole["first"] + 1
        for name in ("decisions", "rules", "ends"):
            for mine, theirs in zip(whole[name], other[name], strict=True):
                np.testing.assert_array_equal(mine[:until], theirs[:until], err_msg=f"{name} of row {row}")
        assert any(
            not np.array_equal(mine[until:], theirs[until:])
            for name in ("decisions", "ends")
            for mine, theirs in zip(whole[name], other[name], strict=True)
        )


def set_of(kind: str, d: int, rng: np.random.Generator) -> Any:
    if kind == "knapsack":
        return dffl.FractionalKnapsack(rng.uniform(1, 5, d), float(d))
    if kind == "box":
        return dffl.Box(np.zeros(d), np.ones(d))
    return dffl.TopK(d, max(d // 3, 1)) if d > 1 else dffl.Box(-np.ones(1), np.ones(1))


@pytest.mark.parametrize(
    ("kind", "d", "sites", "rows"), [("topk", 24, 1, 120), ("knapsack", 7, 3, 120), ("box", 2, 2, 120), ("one", 1, 2, 120)]
)
def test_other_sets_few_sites_and_short_pasts(kind: str, d: int, sites: int, rows: int) -> None:
    made = []
    for place in range(sites):
        rng = np.random.default_rng(place)
        scale = 10.0 ** rng.integers(-2, 3, d)  # items of different sizes
        costs = scale * (2 * np.sin(np.arange(d) + np.arange(rows)[:, None] / 9) + rng.normal(0, 0.3, (rows, d)))
        days = np.datetime64("2023-01-01") + np.arange(rows)
        s = set_of(kind, d, rng)
        made.append(dffl.Client(f"c{place}", np.zeros((rows, 1)), costs, s, maximize=kind == "knapsack", times=days))
    found = dffl.backtest(dffl.Federation(made), METHODS, refit=15)
    assert np.isfinite(list(found.means.values())).all()
    assert all(np.isfinite(list(found.relative(rule).values())).all() for rule in found.lost)


class StopError(Exception):
    """Ends a backtest."""


def test_a_backtest_that_was_stopped_resumes_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "part"
    words: dict[str, Any] = {"refit": 20, "window": 40, "start": "2021-05-04"}
    whole = dffl.backtest(federation(), METHODS, **words)
    trained, train = [], Prepared.trained

    def counted(self: Prepared, *arguments: Any) -> Any:
        if len(trained) == 3:
            raise StopError
        trained.append(arguments)
        return train(self, *arguments)

    monkeypatch.setattr(Prepared, "trained", counted)
    with pytest.raises(StopError):
        dffl.backtest(federation(), METHODS, **words, checkpoint=path, jobs=1)  # side by side, a later one may be lost
    monkeypatch.setattr(Prepared, "trained", train)
    assert path.is_file()
    with pytest.raises(ValueError, match="belongs to another backtest; delete it, or name another file"):
        dffl.backtest(federation(), METHODS, **(words | {"refit": 10}), checkpoint=path)
    with pytest.raises(ValueError, match="belongs to another backtest"):  # the same rows without weekdays
        dffl.backtest(federation(), METHODS, **(words | {"start": None, "clock": "numbers"}), checkpoint=path)
    monkeypatch.setattr(Prepared, "trained", lambda self, *arguments: trained.append(arguments) or train(self, *arguments))
    again = dffl.backtest(federation(), METHODS, **words, checkpoint=path)
    assert len(trained) == len(METHODS) * len(whole.timeline.origins)  # none twice
    assert again.as_json() == whole.as_json()
    for rule, lost in whole.lost.items():
        for mine, theirs in zip(lost, again.lost[rule], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert not path.exists()


def test_a_damaged_checkpoint_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "part"
    kept = Kept.of(path, federation(), "recipe")
    kept.keep(3, "ridge", [np.ones((2, 6)), np.zeros((1, 6))])
    kept.close()
    assert [table.shape for table in Kept.of(path, federation(), "recipe").stored(3, "ridge", 2) or []] == [(2, 6), (1, 6)]
    assert Kept.of(path, federation(), "recipe").stored(4, "ridge", 2) is None
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"cannot be read .*; name another file, or delete it to start again") as refused:
        Kept.of(path, federation(), "recipe")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("known_after", "forecast"), [(0, False), (0, True), (2, False)])
def test_no_model_of_own_features_knows_a_row_that_is_not_known_yet(
    monkeypatch: pytest.MonkeyPatch, known_after: int, forecast: bool
) -> None:
    """Every rule, chosen or not: what it expects of a row, and the rules that clients use there."""

    def expected(found: dffl.Federation) -> tuple[dict[str, list[np.ndarray]], list[np.ndarray], int]:
        seen: dict[str, list[np.ndarray]] = {}
        ranges_of = module.ranges_of

        def kept(whole: Any, judged: Any, tables: dict[str, list[np.ndarray]], *rest: Any) -> Any:
            seen.update(tables)
            return ranges_of(whole, judged, tables, *rest)

        start, past = str(np.datetime64("2022-01-01") + START), Past(known_after=known_after)
        with monkeypatch.context() as patch:
            patch.setattr(module, "ranges_of", kept)
            made = dffl.backtest(found, OWN, refit=REFIT, window=20, start=start, past=past)
        return seen, [made.used(place) for place in range(2)], ROWS - made.clients[0].n

    tables, used, first = expected(clients(forecast, known_after=known_after))
    own = [one.label for one in module._candidates(OWN)]
    assert {*own, f"{own[0]}+{own[1]}", f"{own[2]}+{'forecast' if forecast else 'steady'}"} <= set(tables)
    for row in (START, START + REFIT + 7):  # where what is trained once is trained again, and between two refits
        others, theirs, _ = expected(clients(forecast, row, known_after))
        until = row - first + 1
        for rule, by in tables.items():
            for place in range(2):
                np.testing.assert_array_equal(by[place][:until], others[rule][place][:until], err_msg=f"{rule}, row {row}")
                np.testing.assert_array_equal(used[place][:until], theirs[place][:until])
        assert not np.array_equal(tables[own[0]][0][until:], others[own[0]][0][until:])


def test_the_candidates_by_default_are_two_networks_and_models_of_own_features() -> None:
    networks, own = ["fedavg", "fedavg-vector"], ["ridge-own", "ridge-own-2", "ridge-both", "ridge-pooled-both", "local-tuned"]
    found = module.candidates_of(module.CANDIDATES, federation())
    assert module.labels_of(found) == (tuple(networks), tuple(own))
    assert [one.label for one in found if one.once] == ["local-tuned"]
    made = clients(forecast=False)
    wide = [dffl.Client(one.name, np.zeros((ROWS, 22)), one.c, one.set, times=one.times) for one in made]
    found = module.candidates_of(module.CANDIDATES, dffl.Federation(wide))
    assert module.labels_of(found)[1] == (own[0], *own[2:]), "22 features have 275 products and squares"
    assert module.candidates_of(module.CANDIDATES, federation(), {"privacy": "client"}) == found[:2]
    with pytest.raises(ValueError, match="candidates: features must be one of past, own, both, found 'all'"):
        dffl.backtest(federation(), [("ridge", {"features": "all"})])
    with pytest.raises(ValueError, match="candidates: network = 'vector' corrects a base, and needs features = 'past'"):
        dffl.backtest(federation(), [("fedavg", {"features": "own", "network": "vector"})])
    with pytest.raises(ValueError, match="candidates: network must be one of item, vector, found 'deep'"):
        dffl.backtest(federation(), [("fedavg", {"network": "deep"})])


@pytest.mark.parametrize("known_after", [0, 1, 3])
def test_no_choice_knows_a_row_that_is_not_known_yet(known_after: int) -> None:
    """The mix loses terribly in one row: the choice changes at the first refit at which the row is known, and not before."""
    made, start = clients(forecast=False), str(np.datetime64("2022-01-01") + START)
    timeline = Timeline.of(made.clients, REFIT, 20, start, Past(known_after=known_after))
    first, refit = timeline.origins[0], timeline.origins[-1]
    judged = [client.rows(slice(first, client.n)) for client in made]
    for row, changes in ((refit - known_after - 1, True), (refit - known_after, False)):
        lost = {rule: [np.ones(client.n) for client in judged] for rule in ("steady", "a", "a+steady")}
        for place in range(2):
            lost["steady"][place] += 0.1
            lost["a+steady"][place][row - first] = 1e6
        picked = module.choices_of(judged, lost, timeline, 20, "fleet", "steady", ("a",))
        assert [one.rules[0] for one in picked[1:-1]] == ["a+steady"] * (len(picked) - 2)
        assert (picked[-1].rules[0] != "a+steady") is changes

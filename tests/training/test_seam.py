"""The line between server and clients: engines give the same bits, messages hold what they say, trainings are done once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.fitting import Fit
from dffl.randomness import Purpose, stream
from dffl.training import Run, Settings
from dffl.training.engines.base import ClientAnswers
from dffl.training.engines.site import Site
from dffl.training.engines.vector import VectorEngine
from dffl.training.trainers import BestStop, FedAvg, Local, Refit, Stops
from dffl.training.trainers.federated import sampled
from tests.federations import client, feasible_sets

SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 2, "hidden": 8, "progress": False}


def federation(sizes: tuple[int, ...] = (30, 12, 30, 17, 30)) -> dffl.Federation:
    """Clients of several shapes, families and both senses, not in the order of their names."""
    sets = feasible_sets()
    names = ["d", "b", "e", "a", "c"]
    families = ["topk", "knapsack", "topk", "topk", "knapsack"]
    return dffl.Federation(
        [client(name, sets[family], n, maximize=name == "b") for name, family, n in zip(names, families, sizes, strict=True)]
    )


def same(one: Fit, other: Fit) -> None:
    """Both fits predict the same bits and saw the same."""
    for name in one.members:
        x = np.linspace(-1, 1, 12).reshape(4, 3)
        np.testing.assert_array_equal(one.predict(name, x), other.predict(name, x), err_msg=name)
        assert one.members[name].choices == other.members[name].choices
    pd.testing.assert_frame_equal(one.history, other.history)


# Engines


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_engines_and_chunk_sizes_agree_bit_for_bit(dtype: str) -> None:
    fed = federation()
    whole = dffl.fit(fed, "finetune", epochs=(0, 3), dtype=dtype, client_fraction=0.6, **SMALL)
    for setting in ({"engine": "loop"}, {"chunk_size": 1}, {"chunk_size": 2}):
        same(whole, dffl.fit(fed, "finetune", epochs=(0, 3), dtype=dtype, client_fraction=0.6, **SMALL, **setting))


@pytest.mark.parametrize("rows", [5, 25, 32, 50, 64])
def test_a_client_has_the_same_bits_alone_and_among_many(rows: int) -> None:
    """The shape of its batches and of its block follow from the client alone, whoever trains beside it."""
    s = dffl.FractionalKnapsack(np.linspace(0.5, 1.5, 20), 6.0)
    many = [client(f"c{i}", s, rows) for i in range(9)]
    crowd = dffl.fit(dffl.Federation(many), "local", rounds=3)
    for size in (1, 2, 5):
        few = dffl.fit(dffl.Federation(many[:size]), "local", rounds=3)
        np.testing.assert_array_equal(few.predict("c0", many[0].x), crowd.predict("c0", many[0].x))


@pytest.mark.slow
def test_clients_one_by_one_give_the_same_bits_with_every_kind_of_method() -> None:
    fed = federation()
    for method, options in (
        ("finetune", {"epochs": (0, 3), "client_fraction": 0.6}),
        ("interp-spo", {}),
        ("scaffold", {}),
        ("ditto", {}),
        ("fedrep", {}),
        ("ridge-pooled", {}),
        ("nearest", {}),
        ("apfl", {"client_fraction": 0.6}),
        ("clustered", {"clusters": 2, "epochs": (0, 2), "client_fraction": 0.6, "loss": "fenchel-young"}),
        ("fedrspo", {"warm_rounds": 2, "personal_rounds": 6, "freeze_at": 0.1}),
    ):
        same(*(dffl.fit(fed, method, engine=engine, **options, **SMALL) for engine in ("vector", "loop")))


EXCHANGED = {
    "order": {"round", "shared", "rate", "control", "start", "epochs", "inverses", "coefficients"},
    "answer": {"vector", "change", "epochs", "loss", "weight", "gram", "cross", "errors", "alpha", "cluster"},
}
"""Every field of the orders and answers of all trainers, as docs/concepts.md lists them."""


def test_nothing_but_the_listed_fields_crosses_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[str]] = {"order": set(), "answer": set()}
    ask = VectorEngine.ask

    def watched(self: VectorEngine, *args: Any, scope: str = "", note: Any = None, **sent: Any) -> Iterator[ClientAnswers]:
        seen["order"].update(sent)
        for answer in ask(self, *args, scope=scope, note=note, **sent):
            seen["answer"].update(answer.fields)
            yield answer

    monkeypatch.setattr(VectorEngine, "ask", watched)
    five = federation()
    dffl.fit_all(
        dffl.Federation([five["d"], five["b"]]),
        [
            "fedavg",
            "interp-spo",
            ("finetune", {"epochs": (0, 2)}),
            ("crossfit", {"epochs": (0, 2), "folds": 2}),
            "scaffold",
            "fedrep",
            "ditto",
            "ridge-pooled",
            "apfl",
            ("clustered", {"clusters": 2}),
            ("crossfit-turned", {"epochs": (0, 2), "folds": 2}),
            ("fedrspo", {"warm_rounds": 1, "personal_rounds": 2}),
        ],
        **SMALL,
        **{"learning_rate": 1e-3, "schedule": "constant", "aggregate": "mean"},  # crossfit-turned has settings of its own
    )
    assert seen == EXCHANGED
    documented = Path("docs/concepts.md").read_text(encoding="utf-8")
    for name in set.union(*EXCHANGED.values()):
        assert f"`{name}`" in documented, name


def test_a_fit_of_the_former_engine_of_processes_loads_with_the_same_numbers(tmp_path: Path) -> None:
    described = Settings(engine="loop").described() | {"engine": "processes"}
    assert Settings.read(described, None) == Settings(engine="loop")


# Order and sampling


def test_the_order_of_the_clients_changes_no_number() -> None:
    fed = federation()
    turned = dffl.Federation([fed[name] for name in sorted(fed.names, reverse=True)])
    one, other = (dffl.fit(f, "fedavg", client_fraction=0.4, **SMALL | {"rounds": 6}) for f in (fed, turned))
    for name in fed.names:
        np.testing.assert_array_equal(one.predict(name, fed[name].x), other.predict(name, fed[name].x))
    seen = [set(map(tuple, fit.history[["round", "client"]].to_numpy())) for fit in (one, other)]
    assert seen[0] == seen[1]


def test_federations_in_the_order_of_names_are_sampled_as_before() -> None:
    names = [f"client-{i:02d}" for i in range(10)]
    for round in range(3):
        before = np.sort(stream(5, Purpose.SAMPLE_CLIENTS, counter=round).choice(10, 3, replace=False))
        np.testing.assert_array_equal(sampled(names, Settings(client_fraction=0.3, seed=5), round), before)


# Trainers are values


def test_trainers_are_equal_by_content_and_named_by_what_differs() -> None:
    assert FedAvg() == FedAvg(pull=0.0)
    assert hash(Stops(FedAvg(), (0, 3))) == hash(Stops(FedAvg(), (0, 3)))
    assert FedAvg(pull=0.1) != FedAvg()
    assert [t.label for t in (FedAvg(), FedAvg(pull=0.1), Local(), Local(7), Stops(), Refit())] == [
        "fedavg", "fedavg(pull=0.1)", "local", "local(epochs=7)", "finetune", "refit",
    ]  # fmt: skip
    assert Refit(BestStop(share=0.5)).label != Refit().label


def test_equal_trainers_train_once(monkeypatch: pytest.MonkeyPatch) -> None:
    visits: list[str] = []
    for kind in (FedAvg, Local, Stops):
        original = kind.visit

        def counted(self: Any, site: Any, sent: Any, original: Any = original) -> Any:
            visits.append(self.label)
            return original(self, site, sent)

        monkeypatch.setattr(kind, "visit", counted)
    fed = dffl.Federation([client(f"c{i}", dffl.TopK(5, 2), 20) for i in range(3)])
    tuning = {"epochs": (0, 2)}
    dffl.fit_all(fed, ["local", "fedavg", "interp-spo", "interp-mse", ("finetune", tuning), ("finetune-mix", tuning)], **SMALL)
    # Once for all samples and once for the split, with 2 rounds each; one tuning on the split serves both fine-tunings.
    assert {name: visits.count(name) for name in set(visits)} == {"fedavg": 4, "local": 2, "finetune(epochs=(0, 2))": 1}


def test_a_fit_has_the_history_of_what_it_asked_for() -> None:
    fed = dffl.Federation([client(f"c{i}", dffl.TopK(5, 2), 20) for i in range(3)])
    fits = dffl.fit_all(fed, ["fedavg", ("finetune", {"epochs": (0, 2)}), "mean-cost"], **SMALL)
    assert fits["mean-cost"].history.empty
    assert set(fits["fedavg"].history["job"]) == {"fedavg/all"}
    assert set(fits["local"].history["job"]) == {"local/all"}
    jobs = set(fits["finetune"].history["job"])
    assert {"fedavg/all", "fedavg/split", "finetune(epochs=(0, 2))/split"} <= jobs
    assert not any(job.startswith("local") for job in jobs)


def test_a_trainer_of_ones_own_is_one_class() -> None:
    @dataclass(frozen=True)
    class Slower(FedAvg):
        """Averages, and then goes half of the way only."""

        name: ClassVar[str] = "slower"
        way: float = 0.5

        def next(self, run: Any, part: Any, state: Any) -> Any:
            after = super().next(run, part, state)
            return after._replace(shared=(1 - self.way) * state.shared + self.way * after.shared)

    fed = dffl.Federation([client(f"c{i}", dffl.TopK(5, 2), 20) for i in range(3)])
    run = Run(fed, Settings(rounds=1, local_epochs=1, hidden=8, dtype="float64"))
    start = run.engine().initial
    np.testing.assert_allclose(run.trained(Slower()) - start, (run.trained(FedAvg()) - start) / 2, rtol=0, atol=1e-15)
    with pytest.raises(TypeError, match=r"run\.trained takes a trainer, such as FedAvg"):
        run.trained(lambda run: 1)  # type: ignore[arg-type]


def test_optimiser_state_can_stay_with_a_client_between_visits() -> None:
    fed = dffl.Federation([client(f"c{i}", dffl.TopK(5, 2), 20) for i in range(3)])
    run = Run(fed, Settings(rounds=4, local_epochs=1, hidden=8, dtype="float64"))
    engine = run.engine()
    for round in range(4):
        for _ in engine.ask(GoesOn(), scope="state", round=round):
            pass
    kept = engine.kept("state")
    for name, own in zip(fed.names, run.trained(Local()), strict=True):
        np.testing.assert_array_equal(kept[name]["vector"], own)
    assert engine.kept("another training") == {}


@dataclass(frozen=True)
class GoesOn:
    """Local training, one epoch in a visit, with an optimiser's state that stays with the client."""

    def visit(self, site: Any, sent: Mapping[str, Any]) -> dict[str, np.ndarray]:
        first = sent["round"] == 0
        empty = site.train(site.initial, 0).state
        state = None if first else [site.kept(f"state-{k}", leaf[0]) for k, leaf in enumerate(empty)]
        trained = site.train(site.kept("vector", site.initial), 1, sent["round"], state=state)
        site.keep("vector", trained.vectors)
        for k, leaf in enumerate(trained.state):
            site.keep(f"state-{k}", leaf)
        return {}


def test_a_learning_rate_schedule_scales_the_steps_of_a_round() -> None:
    fed = dffl.Federation([client("a", dffl.TopK(5, 2), 20)])
    moved = []
    for schedule in ("constant", "linear"):
        run = Run(fed, Settings(rounds=4, local_epochs=1, optimiser="sgd", dtype="float64", schedule=schedule))
        state = FedAvg().begin(run.engine())._replace(round=3)
        moved.append(FedAvg().next(run, dffl.ALL, state).shared - state.shared)
    np.testing.assert_allclose(
        moved[1], moved[0] / 4, rtol=0, atol=1e-15
    )  # one step, at a quarter of the rate in the last of 4 rounds
    assert np.abs(moved[0]).max() > 0


# Interrupted and resumed


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("scaffold", {"aggregate": "momentum"}),
        ("ditto", {}),
        ("fedrep", {}),
        ("finetune", {"epochs": (0, 2)}),
        ("apfl", {}),
        ("clustered", {"clusters": 2, "aggregate": "momentum", "epochs": (0, 2)}),
        ("fedrspo", {"warm_rounds": 4, "warm_fraction": 0.6, "personal_rounds": 3}),
    ],
)
def test_an_interrupted_fit_goes_on_to_the_same_bits(method: str, options: dict[str, Any], tmp_path: Any) -> None:
    fed, path = federation(), tmp_path / "run.checkpoint"
    settings = SMALL | {"rounds": 4, "client_fraction": 0.6} | options
    whole = dffl.fit(fed, method, **settings)
    for calls in (8, 2):  # in the third round or so, and again soon after going on
        with pytest.MonkeyPatch.context() as patch:
            _interrupt_after(patch, calls)
            with pytest.raises(KeyboardInterrupt):
                dffl.fit(fed, method, checkpoint=path, **settings)
        assert path.exists()
        assert path.stat().st_mode & 0o077 == 0, "what clients trained is nobody else's"
    same(whole, dffl.fit(fed, method, checkpoint=path, **settings))
    assert not path.exists(), "a complete fit leaves nothing to go on with"


def _interrupt_after(patch: pytest.MonkeyPatch, calls: int) -> None:
    train, count = Site.train, iter(range(calls))

    def interrupted(self: Site, *args: Any, **kwargs: Any) -> Any:
        if next(count, None) is None:
            raise KeyboardInterrupt
        return train(self, *args, **kwargs)

    patch.setattr(Site, "train", interrupted)


def test_a_fit_killed_at_any_moment_goes_on_to_the_same_bits(tmp_path: Any) -> None:
    path, out = tmp_path / "run.checkpoint", tmp_path / "fit.dffl"
    code = (
        "import sys, dffl\n"
        "from dffl.training import checkpoint\n"
        "checkpoint.EVERY = 0.0\n"
        "from tests.training.test_seam import federation\n"
        "fit = dffl.fit(federation(), 'fedavg', checkpoint=sys.argv[1], rounds=60, local_epochs=1, hidden=8, progress=False)\n"
        "fit.save(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", code, str(path), str(out)]
    for _ in range(2):
        process = subprocess.Popen(command)
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert not out.exists()
    subprocess.run(command, check=True)
    whole = dffl.fit(federation(), "fedavg", rounds=60, local_epochs=1, hidden=8, progress=False)
    same(whole, dffl.load(out))


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused(tmp_path: Any) -> None:
    fed, path = federation(), tmp_path / "run.checkpoint"
    with pytest.MonkeyPatch.context() as patch:
        _interrupt_after(patch, 6)
        with pytest.raises(KeyboardInterrupt):
            dffl.fit(fed, "fedavg", checkpoint=path, **SMALL)
    with pytest.raises(ValueError, match=r"checkpoint: .* belongs to a run with other data or settings; delete it"):
        dffl.fit(fed, "fedavg", checkpoint=path, seed=1, **SMALL)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"checkpoint: .* cannot be read as a checkpoint .*; name another file"):
        dffl.fit(fed, "fedavg", checkpoint=path, **SMALL)
    with pytest.raises(ValueError, match="checkpoint must name a file in a folder that exists"):
        dffl.fit(fed, "fedavg", checkpoint=tmp_path / "no" / "file", **SMALL)

"""A coordinator that asks for more than the plan says: a site gives nothing more, writes nowhere else, and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.messages import TO_SERVER, TROUBLES, Message, decode
from dffl.deploy.participant import Participant
from dffl.deploy.site_state import SiteState
from dffl.training.trainers.federated import sampled
from tests.deploy.made import a_plan
from tests.deploy.simulated import LOG
from tests.federations import client, feasible_sets

RUN, OTHER = "0123456789ab", "ba9876543210"
NO_ROUND, ONCE, NO_FORM = TROUBLES[2], TROUBLES[3], TROUBLES[4]
HIDDEN = {"level": "client", "where": "site", "clip": 1.0, "noise": 1.0}


class Told:
    """A site's end of the network that keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    def send(self, peer: str, content: bytes) -> bool:
        self.sent.append(decode(content, TO_SERVER))
        return True


class Asked:
    """A site that is asked for things."""

    def __init__(self, folder: Path, plan: FederationPlan):
        self.link: Any = Told()
        self.folder = folder
        own = client("north", feasible_sets()["topk"], n=17)
        self.site = Participant(plan, own, self.link, SiteState(folder / "state"), LOG)
        self.site._open(RUN)
        assert self.site._work is not None
        [job] = self.site._work.jobs.values()
        self.form = job.trainer.order_form(self.site._work.run_of(job).engine(job.part))

    def order(self, **changes: Any) -> dict[str, Any]:
        sent = {name: np.zeros_like(array) for name, array in self.form.items()}
        return {"run": RUN, "job": 0, "round": 0, "last": -1, "rate": 1.0, "sent": sent} | changes

    def answered(self, **changes: Any) -> str:
        """How the site answers an order: the kind of its message, or the trouble that it has."""
        self.site._answer(self.order(**changes))
        kind, values = self.link.sent[-1]
        return str(values["why"]) if kind == "trouble" else kind

    def finish(self, **changes: Any) -> dict[str, Any]:
        return {"run": RUN, "rounds": {"0": 3}, "last": {"0": 0}, "unused": {}, "shared": {"0": self.form["shared"]}} | changes


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(tmp_path_factory.mktemp("site"), a_plan())


def test_an_order_of_the_plan_is_answered(asked: Asked) -> None:
    assert asked.answered() == "answer"


def test_an_order_that_the_plan_does_not_have_is_not_answered(asked: Asked) -> None:
    shared = asked.form["shared"]
    wrong: list[tuple[str, dict[str, Any]]] = [
        (NO_ROUND, {"job": 1}),
        (NO_ROUND, {"job": -1}),
        (NO_ROUND, {"round": 3}),
        (NO_ROUND, {"round": -1}),
        (NO_FORM, {"rate": -1.0}),
        (NO_FORM, {"rate": 1e300}),
        (NO_FORM, {"sent": {}}),
        (NO_FORM, {"sent": {"shared": shared[:-1]}}),
        (NO_FORM, {"sent": {"shared": np.stack([shared, shared])}}),
        (NO_FORM, {"sent": {"shared": shared.astype(np.float64)}}),
        (NO_FORM, {"sent": {"shared": np.full_like(shared, np.nan)}}),
        (NO_FORM, {"sent": {"shared": shared, "members": np.array([0])}}),
        (NO_FORM, {"sent": {"shared": shared, "scope": np.array([0])}}),
    ]
    for why, changes in wrong:
        assert asked.answered(**changes) == why, changes


def test_a_site_answers_only_rounds_for_which_it_is_drawn(tmp_path: Path) -> None:
    plan = a_plan(training={"client_fraction": 0.4, "rounds": 8})
    asked = Asked(tmp_path, plan)
    assert asked.site._work is not None
    [job] = asked.site._work.jobs.values()
    drawn = [0 in sampled(plan.sites, job.part.seeded(plan.settings), round) for round in range(8)]
    assert True in drawn
    assert False in drawn
    assert [asked.answered(round=round) == "answer" for round in range(8)] == drawn


@pytest.mark.parametrize("run", ["../../elsewhere", "/tmp/elsewhere", "", ".", "a/b", "a\\b", "x" * 41])
def test_the_name_of_a_run_leads_to_no_other_folder(run: str, asked: Asked) -> None:
    before = sorted(asked.folder.parent.rglob("*"))
    with pytest.raises(ValueError, match="sent an invalid run name"):
        asked.site._open(run)
    with pytest.raises(ValueError, match="sent an invalid run name"):
        asked.site._finish(asked.finish(run=run))
    assert sorted(asked.folder.parent.rglob("*")) == before


def test_a_model_that_is_not_of_the_plan_is_not_kept(asked: Asked) -> None:
    shared = asked.form["shared"]
    for changes in (
        {"rounds": {}},
        {"rounds": {"0": 1}},
        {"last": {}},
        {"last": {"0": 9}},
        {"shared": {}},
        {"shared": {"0": shared[:-1]}},
        {"shared": {"0": np.full_like(shared, np.inf)}},
    ):
        with pytest.raises(ValueError, match="the coordinator's model of training 0 does not match the plan"):
            asked.site._finish(asked.finish(**changes))
    assert not asked.site.state.finals()


def test_units_are_taken_only_if_the_plan_pools_them(asked: Asked, tmp_path: Path) -> None:
    units = {"all/x_mean": np.zeros(3), "all/x_scale": np.ones(3), "all/c_scale": np.asarray(1.0)}
    asked.site._take_units({"run": RUN, "units": units})
    assert not asked.site.state.units()
    pooling = Asked(tmp_path, a_plan(training={"pooled_units": True}, wire={"statistics": "pooled"}))
    for wrong in (
        {},
        {"all/x_mean": np.zeros(3)},
        units | {"all/x_scale": np.zeros(3)},
        units | {"all/c_scale": np.asarray(1e99)},
    ):
        with pytest.raises(ValueError, match="cannot be used"):
            pooling.site._take_units({"run": RUN, "units": wrong})
    assert not pooling.site.state.units()
    pooling.site._take_units({"run": RUN, "units": units})
    assert set(pooling.site.state.units()) == {"all"}


def test_with_privacy_a_site_answers_each_round_once_and_one_run(tmp_path: Path) -> None:
    asked = Asked(tmp_path, a_plan(training={"privacy": HIDDEN}, wire={"scalars": []}))
    assert asked.answered(rate=2.0) == NO_FORM
    assert asked.answered() == "answer"
    assert asked.answered() == "answer"  # the same once more, as after a broken connection
    other = {name: array + 1 for name, array in asked.form.items()}
    assert asked.answered(sent=other) == ONCE
    asked.site._open(RUN)
    with pytest.raises(ValueError, match="starts another run"):
        asked.site._open(OTHER)

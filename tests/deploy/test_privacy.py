"""Privacy in a deployment: noise behind a secret of each side, one answer for each round, and nothing beside the models."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.messages import TO_SERVER, TROUBLES, decode
from dffl.deploy.network import COORDINATOR
from dffl.deploy.participant import Participant
from dffl.deploy.site_state import SiteState
from tests.deploy.in_memory import Deployed, Wires, deployed
from tests.deploy.made import a_plan
from tests.deploy.simulated import LOG
from tests.deploy.test_equal_to_fit import QUICK, SOON, federation

BARE = {"scalars": [], "results": []}


def private_plan(**privacy: Any) -> FederationPlan:
    hidden = {"level": "client", "clip": 0.5, "noise": 1.0} | privacy
    return a_plan(training={**QUICK, "method": "fedavg", "privacy": hidden}, rounds=SOON, wire=BARE)


def predictions(found: Deployed) -> np.ndarray:
    return np.concatenate([found.fits[client.name].predict(client.name, client.x) for client in federation()])


@pytest.mark.parametrize("where", ["server", "site"])
def test_noise_follows_from_a_secret_and_not_from_the_seed(where: str, tmp_path: Path) -> None:
    plan = private_plan(where=where)
    one, other = (deployed(plan, federation(), tmp_path / name) for name in ("one", "other"))
    simulated = dffl.fit(
        federation(), "fedavg", **QUICK, privacy={"level": "client", "clip": 0.5, "noise": 1.0, "where": where}
    )
    at = np.concatenate([simulated.predict(client.name, client.x) for client in federation()])
    assert not np.allclose(predictions(one), predictions(other))
    assert not np.allclose(predictions(one), at)
    silent = private_plan(where=where, noise=0.0)
    assert np.array_equal(
        predictions(deployed(silent, federation(), tmp_path / "a")), predictions(deployed(silent, federation(), tmp_path / "b"))
    )


def test_the_secrets_can_be_read_by_their_owner_alone(tmp_path: Path) -> None:
    deployed(private_plan(), federation(), tmp_path)
    keys = list(tmp_path.rglob("noise.key"))
    assert len(keys) == 4  # of three sites and the coordinator
    assert all(stat.S_IMODE(key.stat().st_mode) == 0o600 for key in keys)
    assert len({key.read_bytes() for key in keys}) == 4


def test_a_hidden_site_does_not_tell_its_number_of_rows(tmp_path: Path) -> None:
    found = deployed(private_plan(), federation(), tmp_path)
    for sender, _, content in found.wires.sent:
        if sender != COORDINATOR:
            kind, values = decode(content, TO_SERVER)
            assert values.get("count", 1) == 1, kind
            assert values.get("rows", 4) == 4, kind
            assert set(values.get("counts", {}).values()) <= {1}, kind


@pytest.mark.parametrize(
    "wire", [{"scalars": ["loss"]}, {**BARE, "results": ["out_of_fold_regret"]}, {**BARE, "statistics": "pooled"}]
)
def test_a_plan_that_sends_more_than_hidden_models_is_refused(wire: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="privacy hides models only"):
        a_plan(training={**QUICK, "privacy": {"level": "client"}}, wire=wire)


class Asked:
    """One participant that is asked by hand."""

    def __init__(self, plan: FederationPlan, folder: Path):
        self.wires = Wires()
        self.wires.link(COORDINATOR)
        link: Any = self.wires.link("north")
        self.site = Participant(plan, federation()["north"], link, SiteState(folder), LOG)
        self.site._start_run("r1")

    def order(self, round: int, job: int = 0, shift: float = 0.0) -> tuple[str, dict[str, Any]]:
        work = self.site._work
        assert work is not None
        shared = work.run_of(next(iter(work.jobs.values()))).engine().initial + np.float32(shift)
        self.site._answer({"run": "r1", "job": job, "round": round, "last": -1, "rate": 1.0, "sent": {"shared": shared}})
        return decode(self.wires.sent[-1][2], TO_SERVER)


def test_with_privacy_a_site_answers_each_round_once(tmp_path: Path) -> None:
    asked = Asked(private_plan(where="site"), tmp_path)
    kind, first = asked.order(0)
    assert kind == "answer"
    kind, again = asked.order(0)
    assert kind == "answer"
    assert np.array_equal(first["fields"]["vector"], again["fields"]["vector"])  # it reveals nothing new
    kind, values = asked.order(0, shift=0.5)
    assert (kind, values["why"]) == ("trouble", TROUBLES[3])
    restarted = Asked(private_plan(where="site"), tmp_path)
    kind, values = restarted.order(0, shift=0.5)
    assert (kind, values["why"]) == ("trouble", TROUBLES[3])
    assert restarted.order(1)[0] == "answer"


def test_without_privacy_a_round_may_be_asked_again(tmp_path: Path) -> None:
    asked = Asked(a_plan(training=QUICK), tmp_path)
    assert asked.order(0)[0] == "answer"
    assert asked.order(0, shift=0.5)[0] == "answer"


@pytest.mark.parametrize(("job", "round"), [(0, 2), (0, 10**6), (0, -1), (1, 0), (-1, 0)])
def test_a_site_answers_no_round_that_the_plan_does_not_have(job: int, round: int, tmp_path: Path) -> None:
    kind, values = Asked(a_plan(training={**QUICK, "method": "fedavg"}), tmp_path).order(round, job)
    assert (kind, values["why"]) == ("trouble", TROUBLES[2])

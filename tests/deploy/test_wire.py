"""What really crosses the network is what `messages.KINDS` lists and the plan names; no sample is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.deploy.messages import KINDS, TO_SERVER, TO_SITE, Message, decode
from dffl.deploy.network import COORDINATOR
from tests.deploy.in_memory import Deployed, deployed
from tests.deploy.made import SITES, a_plan
from tests.federations import client, feasible_sets

SOON = {"join_seconds": 300, "quorum_seconds": 2, "dead_seconds": 600}
IN_A_RUN = {"join", "welcome", "opened", "open", "order", "answer", "finish", "done", "leave"}
"""The kinds of messages of a run in which nothing goes wrong; signs of life come with time."""


def federation() -> dffl.Federation:
    sets = feasible_sets()
    return dffl.Federation([client(name, sets["topk"], n=15 + place) for place, name in enumerate(SITES)])


def train(base: Path, training: dict[str, Any], **wire: Any) -> Deployed:
    return deployed(a_plan(training={"rounds": 2} | training, wire=wire, rounds=SOON), federation(), base)


def messages(found: Deployed) -> list[Message]:
    return [decode(content, TO_SITE if sender == COORDINATOR else TO_SERVER) for sender, _, content in found.wires.sent]


def fields_of(kinds: set[str]) -> set[str]:
    return {f"{kind}.{name}" for kind in kinds for name in KINDS[kind].fields}


@pytest.mark.parametrize("statistics", ["own", "pooled"])
def test_the_fields_on_the_wire_are_those_that_are_listed(statistics: str, tmp_path: Path) -> None:
    found = train(tmp_path, {"method": "scaffold"}, statistics=statistics)
    kinds = IN_A_RUN | ({"units"} if statistics == "pooled" else set())
    assert found.traffic == found.served == fields_of(kinds)
    assert {message.kind for message in messages(found)} == kinds


def test_neither_loss_nor_statistics_are_sent_if_the_plan_does_not_name_them(tmp_path: Path) -> None:
    found = messages(train(tmp_path, {}, scalars=[], statistics="own", results=[]))
    for message in found:
        if message.kind in ("answer", "done"):
            assert message.values["scalars"] == {}
        if message.kind == "opened":
            assert message.values["units"] == {}
            assert set(message.values["counts"]) == {"0"}
        if message.kind == "answer":
            assert set(message.values["fields"]) == {"vector"}
        if message.kind == "order":
            assert set(message.values["sent"]) == {"shared"}


def test_what_the_plan_names_is_sent(tmp_path: Path) -> None:
    training = {"method": "crossfit", "folds": 2, "epochs": [0, 1]}
    found = messages(train(tmp_path, training, scalars=["loss", "norm"], statistics="pooled", results=["out_of_fold_regret"]))
    assert all(set(one.values["scalars"]) == {"loss", "norm"} for one in found if one.kind == "answer")
    assert all(set(one.values["scalars"]) == {"out_of_fold_regret"} for one in found if one.kind == "done")
    opened = [one.values["units"] for one in found if one.kind == "opened"]
    assert len(opened) == 3
    assert all({name.rpartition("/")[2] for name in units} == {"x_mean", "x_scale", "c_scale"} for units in opened)


def test_no_sample_and_no_personal_model_is_in_any_message(tmp_path: Path) -> None:
    found = train(tmp_path, {"method": "ditto"})
    sent = b"".join(content for sender, _, content in found.wires.sent if sender != COORDINATOR)
    for one in federation():
        for value in np.concatenate([one.x.ravel(), one.c.ravel()]):
            assert np.float64(value).tobytes() not in sent
            assert np.float32(value).tobytes() not in sent
            assert str(float(value)).encode() not in sent
        personal: Any = found.fits[one.name].members[one.name].predictor
        import jax

        for array in jax.tree_util.tree_leaves(personal.network):
            if np.size(array) > 3:
                assert np.asarray(array).tobytes() not in sent


def test_a_payload_is_little_more_than_the_parameters(tmp_path: Path) -> None:
    found = train(tmp_path, {"hidden": 256})
    size = next(one.values["sent"]["shared"].nbytes for one in messages(found) if one.kind == "order")
    for record in found.records:
        assert 2 * size * 3 <= record.sent + record.received <= 2 * size * 3 * 1.1

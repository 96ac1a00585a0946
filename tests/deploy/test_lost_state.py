"""A site that goes on from a folder without its state: it must not spoil the run, and says where the state should be."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.deploy.participant import LostStateError, Participant
from dffl.deploy.site_state import SiteState
from tests.deploy.made import a_plan
from tests.deploy.simulated import LOG
from tests.deploy.test_hostile_coordinator import HIDDEN, RUN, Asked

KEEPS, KEEPS_NOTHING = {"method": "ditto"}, {"method": "fedavg"}
HIDES = ({"training": {**KEEPS_NOTHING, "privacy": HIDDEN}, "wire": {"scalars": []}}, {"training": KEEPS})
LOST = r"state: has no state of this site after round 1; join from the folder that this site used before"


def taking_part(folder: Path, **plan: Any) -> Asked:
    return Asked(folder, a_plan(**plan))


@pytest.mark.parametrize("plan", HIDES, ids=["hides", "keeps"])
def test_a_round_is_not_answered_without_what_the_last_one_left(plan: dict[str, Any], tmp_path: Path) -> None:
    assert taking_part(tmp_path / "own", **plan).answered() == "answer"
    assert taking_part(tmp_path / "own", **plan).answered(round=1, last=0) == "answer"
    elsewhere = taking_part(tmp_path / "new", **plan)
    with pytest.raises(LostStateError, match=LOST):
        elsewhere.site._answer(elsewhere.order(round=1, last=0))
    assert [message.kind for message in elsewhere.link.sent] == ["opened"]


def test_a_training_that_keeps_nothing_at_a_site_needs_nothing(tmp_path: Path) -> None:
    assert taking_part(tmp_path / "new", training=KEEPS_NOTHING).answered(round=1, last=0) == "answer"
    assert taking_part(tmp_path / "new", training=KEEPS_NOTHING).answered(round=2, last=1) == "answer"


def test_an_old_copy_of_the_state_is_none(tmp_path: Path) -> None:
    own = taking_part(tmp_path / "own", training=KEEPS)
    assert own.answered() == "answer"
    shutil.copytree(tmp_path / "own", tmp_path / "copy")
    assert own.answered(round=1, last=0) == "answer"
    assert own.answered(round=2, last=1) == "answer"
    copied = taking_part(tmp_path / "copy", training=KEEPS)
    with pytest.raises(LostStateError, match="has no state of this site after round 2"):
        copied.site._answer(copied.order(round=2, last=1))


@pytest.mark.parametrize("training", [KEEPS, KEEPS_NOTHING])
def test_no_model_is_made_without_the_state_of_the_rounds(training: dict[str, Any], tmp_path: Path) -> None:
    own = taking_part(tmp_path / "own", training=training)
    assert own.answered() == "answer"
    last = {"last": {"0": 1}}  # a number: the first round
    assert own.site._finish(own.finish(**last)).members.keys() == {"north"}
    elsewhere = taking_part(tmp_path / "new", training=training)
    with pytest.raises(LostStateError, match=LOST):
        elsewhere.site._finish(elsewhere.finish(**last))
    never = taking_part(tmp_path / "never", training=training)
    assert never.site._finish(never.finish()).members.keys() == {"north"}  # it took part in no round


CHANGED = {
    "a row": lambda own: replace(own, c=np.where(np.arange(own.n)[:, None] == 3, own.c + 1, own.c)),
    "its set": lambda own: replace(own, set=dffl.TopK(own.c.shape[1], 1)),
    "its sense": lambda own: replace(own, maximize=not own.maximize),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_run_is_not_resumed_with_other_data(what: str, tmp_path: Path) -> None:
    """A table that is changed between two rounds: rows change their folds, and the sense turns all decisions round."""
    own = taking_part(tmp_path, training=KEEPS_NOTHING)
    assert own.answered() == "answer"
    changed = CHANGED[what](own.site.client)
    site = Participant(own.site.plan, changed, own.link, SiteState(tmp_path / "state"), LOG)
    with pytest.raises(
        ValueError, match=f"{RUN}: the site's rows, set or sense are not those with which it began this run; bring"
    ):
        site._open(RUN)
    assert own.site._finish(own.finish()).members.keys() == {"north"}
    assert site.unfinished() is None
    assert own.site.unfinished() is not None
    site._open("another")  # a new run begins with them
    assert (tmp_path / "state" / "another" / "data.txt").exists()


def test_a_folder_without_a_digest_of_the_data_resumes(tmp_path: Path) -> None:
    """Those of version 0.2.0 have none."""
    taking_part(tmp_path, training=KEEPS_NOTHING)
    (tmp_path / "state" / RUN / "data.txt").unlink()
    assert taking_part(tmp_path, training=KEEPS_NOTHING).answered() == "answer"

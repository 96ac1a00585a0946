"""A checkpoint is read as it was written, or refused in one line."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import dffl
from dffl import archive
from dffl.training import Settings
from dffl.training.checkpoint import Checkpoint, data_fingerprint, run_fingerprint
from tests.training.test_seam import SMALL, _interrupt_after, federation, same

REFUSED = (
    r"^checkpoint: .*run.checkpoint cannot be read as a checkpoint \([^\n]*; name another file, or delete it to start again$"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """What an interrupted training left."""
    with pytest.MonkeyPatch.context() as patch:
        _interrupt_after(patch, 6)
        with pytest.raises(KeyboardInterrupt):
            dffl.fit(federation(), "fedavg", checkpoint=tmp_path / "run.checkpoint", **SMALL)
    return tmp_path / "run.checkpoint"


def test_no_flipped_bit_is_read(path: Path) -> None:
    whole, members = path.read_bytes(), archive.read(path, "about.json", "a checkpoint").members
    run = json.loads(members["about.json"])["run"]
    end = 8 * len(whole)
    for bit in [*range(0, end, end // 500), *range(end - 8 * (archive.WIDTH + 22), end)]:
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with pytest.raises(ValueError, match=REFUSED):
            Checkpoint(path, run)


def test_an_edited_one_is_refused(path: Path) -> None:
    members = archive.read(path, "about.json", "a checkpoint").members
    about = json.loads(members["about.json"])
    array = members['0/["state", "round"]']
    for edit in (
        {"0/[]": array},
        {'0/["nowhere", "x"]': array},
        {'0/["kept", "x"]': array},
        {"x": array},
        {'0/["state", "round"]': b""},
        {"about.json": b"[" * 10**5},
        {"about.json": b"[]"},
        {"about.json": json.dumps(about | {"done": 5}).encode()},
    ):
        archive.write(path, members | edit)
        with pytest.raises(ValueError, match=REFUSED):
            Checkpoint(path, about["run"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ('["state", "round"]', None),
        ('["state", "round"]', np.array(-1)),
        ('["state", "round"]', np.array(2**40)),
        ('["state", "shared"]', np.zeros(3, np.float32)),
        ('["history", "loss"]', None),
        ('["history", "loss"]', np.array(["x"])),
        ('["history", "member"]', np.array(0)),
        ('["kept", "nobody", "vector"]', np.zeros(3)),
    ],
)
def test_one_that_was_edited_and_sealed_again_is_named(path: Path, name: str, value: Any) -> None:
    members = archive.read(path, "about.json", "a checkpoint").members
    members.pop(f"0/{name}", None)
    archive.write(path, members | ({} if value is None else {f"0/{name}": archive.packed(value)}))
    with pytest.raises(ValueError, match=r"^checkpoint: \S*run.checkpoint: the run that it continues fails \([^\n]*$"):
        dffl.fit(federation(), "fedavg", checkpoint=path, **SMALL)


def test_one_of_before_there_were_digests_is_continued(path: Path) -> None:
    members = archive.read(path, "about.json", "a checkpoint").members
    about = json.loads(members["about.json"])

    def without_digest(form: str) -> None:
        with zipfile.ZipFile(path, "w") as old:
            for name, content in (members | {"about.json": json.dumps(about | {"format": form}).encode()}).items():
                old.writestr(name, content)

    without_digest("dffl-checkpoint-2")
    with pytest.raises(ValueError, match="its format is 'dffl-checkpoint-2', without a digest"):
        Checkpoint(path, about["run"])
    without_digest("dffl-checkpoint-1")
    whole = dffl.fit(federation(), "fedavg", **SMALL)
    with pytest.MonkeyPatch.context() as patch:
        _interrupt_after(patch, 4)  # calls of one round: a training from the beginning makes twice as many
        same(whole, dffl.fit(federation(), "fedavg", checkpoint=path, **SMALL))


def test_another_network_of_the_same_name_is_another_run() -> None:
    def factory(activation: Any) -> Any:
        return lambda key, p, d: eqx.nn.MLP(p, d, 8, 1, activation=activation, key=key)

    small = dffl.synthetic.knapsack(clients=2, samples=20, dim=4)
    found = [run_fingerprint(small, None, Settings(network=factory(one))) for one in (jax.nn.relu, jax.nn.tanh, jax.nn.relu)]
    assert found[0] == found[2] != found[1]
    assert run_fingerprint(small, None, Settings()) not in found


@pytest.mark.parametrize("family", [dffl.Polytope, dffl.MixedInteger])
def test_rows_with_an_end_and_equations_are_other_data(family: Any) -> None:
    """The same numbers under other names: a run with "at most 2" must not be continued as one with "exactly 2"."""

    def own(kind: str) -> dffl.Client:
        rows = {f"A_{kind}": np.ones((1, 4)), f"b_{kind}": np.array([2.0])}
        return dffl.Client("a", np.zeros((3, 1)), np.ones((3, 4)), family(**rows, lower=np.zeros(4), upper=np.ones(4)))

    assert data_fingerprint(own("ub")) == data_fingerprint(own("ub")) != data_fingerprint(own("eq"))


def test_a_set_with_a_field_that_is_no_number_has_one_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """As bytes, an object is its address: in another process the same run would be refused as one of other data."""
    own = dffl.Client("a", np.zeros((3, 1)), np.ones((3, 4)), dffl.TopK(4, 1))
    monkeypatch.setattr(dffl.TopK, "spec", lambda self: {"dim": 4, "k": 1, "notes": {"by": [None]}})
    assert data_fingerprint(own) == data_fingerprint(own)
    before = data_fingerprint(own)
    monkeypatch.setattr(dffl.TopK, "spec", lambda self: {"dim": 4, "k": 1, "notes": {"by": ["me"]}})
    assert data_fingerprint(own) != before


def test_columns_that_are_a_forecast_or_of_items_are_other_data_than_features() -> None:
    x, c, choice = np.arange(15.0).reshape(3, 5), np.ones((3, 2)), dffl.TopK(2, 1)
    plain = dffl.Client("a", x, c, choice)
    brought = dffl.Client("a", x[:, :3], c, choice, forecast=x[:, 3:])
    of_items = dffl.Client("a", x[:, :1], c, choice, items=x[:, 1:].reshape(3, 2, 2))
    for other in (brought, of_items):
        np.testing.assert_array_equal(other.x, x)
        assert data_fingerprint(other) != data_fingerprint(plain)

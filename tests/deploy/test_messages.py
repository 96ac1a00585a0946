"""Messages: what is sent is what is read, and whatever else arrives is refused with a `ValueError`, never anything else."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl.deploy.messages import KINDS, MAX_HEADER_BYTES, TO_SERVER, TO_SITE, decode, encode

VALUES: dict[str, Any] = {"int": 3, "float": 0.1, "text": "north", "flag": True, "counts": {"0": 12, "part all": 3}}
ARRAYS = {"vector": np.linspace(-1, 1, 7, dtype=np.float32), "cluster": np.asarray(2), "table": np.ones((2, 3))}
REPLIES = {TO_SERVER: TO_SITE, TO_SITE: TO_SERVER}


def example(kind: str) -> dict[str, Any]:
    return {name: ARRAYS if field.holds == "arrays" else VALUES[field.holds] for name, field in KINDS[kind].fields.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_is_read_as_it_was_sent(kind: str) -> None:
    sent = example(kind)
    found = decode(encode(kind, **sent), KINDS[kind].direction)
    assert found.kind == kind
    assert set(found.values) == set(sent)
    for name, value in sent.items():
        if KINDS[kind].fields[name].holds == "arrays":
            assert list(found.values[name]) == list(value)
            for inner, array in value.items():
                assert found.values[name][inner].dtype == array.dtype
                np.testing.assert_array_equal(found.values[name][inner], array)
        else:
            assert found.values[name] == value


@pytest.mark.parametrize("kind", KINDS)
def test_the_other_direction_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="malformed message"):
        decode(encode(kind, **example(kind)), REPLIES[KINDS[kind].direction])


def test_fields_that_are_not_listed_are_not_sent() -> None:
    with pytest.raises(ValueError, match="must have the fields"):
        encode("beat", secret="x")
    with pytest.raises(ValueError, match="must have the fields"):
        encode("open")


def raw(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(4, "little") + text + body


def answer_header(**changes: Any) -> dict[str, Any]:
    plain = {"run": "r", "job": 0, "round": 0, "count": 1, "seconds": 0.0}
    return {"kind": "answer", "plain": plain, "arrays": [["fields", "vector", "float32", [2]]]} | changes


GOOD = answer_header()
EVIL = {
    "nothing": b"",
    "three bytes": b"abc",
    "a header longer than the message": (100).to_bytes(4, "little") + b"{}",
    "a header above the limit": raw(b" " * (MAX_HEADER_BYTES + 1)),
    "no JSON": raw(b"hello"),
    "no UTF-8": raw(b"\xff\xfe"),
    "deep JSON": raw(b"[" * 60_000),
    "a huge number": raw(b"9" * 6000),
    "a list": raw([1]),
    "null": raw(None),
    "an unknown kind": raw(answer_header(kind="exec"), bytes(8)),
    "a kind that is a list": raw(answer_header(kind=[]), bytes(8)),
    "no plain values": raw(answer_header(plain=None), bytes(8)),
    "a field too few": raw(answer_header(plain={"run": "r"}), bytes(8)),
    "a field too many": raw(answer_header(plain=GOOD["plain"] | {"code": "x"}), bytes(8)),
    "arrays among plain values": raw(answer_header(plain=GOOD["plain"] | {"fields": {}}), bytes(8)),
    "a float as int": raw(answer_header(plain=GOOD["plain"] | {"count": 1.5}), bytes(8)),
    "a flag as int": raw(answer_header(plain=GOOD["plain"] | {"count": True}), bytes(8)),
    "an int of 80 bits": raw(answer_header(plain=GOOD["plain"] | {"count": 2**80}), bytes(8)),
    "NaN": raw(answer_header(plain=GOOD["plain"] | {"seconds": float("nan")}), bytes(8)),
    "infinity": raw(answer_header(plain=GOOD["plain"] | {"seconds": float("inf")}), bytes(8)),
    "an int that no float holds": raw(answer_header(plain=GOOD["plain"] | {"seconds": 10**400}), bytes(8)),
    "a long text": raw(answer_header(plain=GOOD["plain"] | {"run": "x" * 2001}), bytes(8)),
    "counts below 0": raw({"kind": "opened", "plain": {"run": "r", "counts": {"0": -1}}, "arrays": []}),
    "counts of texts": raw({"kind": "opened", "plain": {"run": "r", "counts": {"0": "1"}}, "arrays": []}),
    "objects": raw(answer_header(arrays=[["fields", "vector", "object", [1]]]), bytes(8)),
    "texts": raw(answer_header(arrays=[["fields", "vector", "U2", [1]]]), bytes(8)),
    "a shape that is huge": raw(answer_header(arrays=[["fields", "vector", "float32", [2**62, 2**62]]]), bytes(8)),
    "a shape that is huge and empty": raw(answer_header(arrays=[["fields", "vector", "float32", [0, 10**30]]])),
    "a shape below 0": raw(answer_header(arrays=[["fields", "vector", "float32", [-1]]]), bytes(8)),
    "a shape of four": raw(answer_header(arrays=[["fields", "vector", "float32", [1, 1, 1, 2]]]), bytes(8)),
    "a shape that is a number": raw(answer_header(arrays=[["fields", "vector", "float32", 2]]), bytes(8)),
    "a shape of flags": raw(answer_header(arrays=[["fields", "vector", "float32", [True, 2]]]), bytes(8)),
    "an array twice": raw(answer_header(arrays=[["fields", "vector", "float32", [1]]] * 2), bytes(8)),
    "an array in a plain field": raw(answer_header(arrays=[["run", "vector", "float32", [2]]]), bytes(8)),
    "an array without a name": raw(answer_header(arrays=[["fields", None, "float32", [2]]]), bytes(8)),
    "arrays of three": raw(answer_header(arrays=[["fields", "vector", "float32"]]), bytes(8)),
    "numbers that are missing": raw(GOOD, bytes(7)),
    "numbers that are left over": raw(GOOD, bytes(9)),
}


@pytest.mark.parametrize("content", EVIL.values(), ids=EVIL.keys())
def test_a_wrong_message_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="message"):
        decode(content, TO_SERVER)
    with pytest.raises(ValueError, match="message"):
        decode(content, TO_SITE)


def test_the_wrong_messages_are_wrong_in_one_place_only() -> None:
    """Else the list above would show nothing."""
    assert decode(raw(GOOD, bytes(8)), TO_SERVER).values["count"] == 1


def test_checks_do_not_vanish_where_python_leaves_out_assertions() -> None:
    program = (
        "from dffl.deploy.messages import decode, encode\n"
        "try:\n    decode(encode('stop', why='x'), 'site to coordinator')\n"
        "except ValueError:\n    print('refused')"
    )
    done = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.strip() == "refused"


def read_or_refused(content: bytes) -> None:
    for direction in REPLIES:
        with suppress(ValueError):
            decode(content, direction)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    read_or_refused(content)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.data())
def test_a_message_that_is_cut_or_flipped_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    content = bytearray(encode(kind, **example(kind)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    read_or_refused(bytes(content))
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(ValueError, match="message"):
        decode(encode(kind, **example(kind))[:cut], KINDS[kind].direction)


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([*VALUES, "float32"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.data())
def test_any_header_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    header: dict[str, Any] = {
        "kind": kind,
        "plain": {name: VALUES[field.holds] for name, field in KINDS[kind].fields.items() if field.holds != "arrays"},
        "arrays": [[name, "a", "float32", [2]] for name, field in KINDS[kind].fields.items() if field.holds == "arrays"],
    }
    part = data.draw(st.sampled_from(["plain", "arrays", "kind"]))
    if part == "plain" and header["plain"]:
        header["plain"][data.draw(st.sampled_from(sorted(header["plain"])))] = data.draw(plain_json)
    elif part == "arrays" and header["arrays"]:
        header["arrays"][0][data.draw(st.integers(0, 3))] = data.draw(plain_json)
    else:
        header[part] = data.draw(plain_json)
    read_or_refused(raw(header, data.draw(st.binary(max_size=16))))


def test_a_reason_of_any_length_arrives() -> None:
    """A site that could not read why a run has ended would wait on."""
    assert decode(encode("stop", why="x" * 10_000), TO_SITE).values["why"].startswith("xxx")


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[2J", "\ud800", "\u202e"])
def test_a_text_that_could_forge_a_line_of_a_log_is_refused_and_never_sent(text: str) -> None:
    sent = encode("stop", why=f"a {text} b")
    assert decode(sent, TO_SITE).values["why"].isprintable()
    with pytest.raises(ValueError, match="malformed message"):
        decode(raw({"kind": "stop", "plain": {"why": text}, "arrays": []}), TO_SITE)
    with pytest.raises(ValueError, match="malformed message"):
        decode(raw({"kind": "opened", "plain": {"run": "r", "counts": {text: 1}}, "arrays": []}), TO_SERVER)
    with pytest.raises(ValueError, match="malformed message"):
        decode(raw({"kind": "done", "plain": {"run": "r"}, "arrays": [["scalars", text, "int32", [0]]]}), TO_SERVER)

"""The messages between sites and coordinator. All kinds and fields are listed here; nothing else is sent or accepted.

A message is a JSON header with plain values, followed by the bytes of its arrays. It has no pickled data and no code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

PROTOCOL = 3
"""The version of the messages; raised with every change that an older version would misread."""
DTYPES = ("float32", "float64", "int32", "int64")
MAX_HEADER_BYTES = 1 << 16
MAX_TEXT_LENGTH = 2000
TO_SERVER, TO_SITE = "site to coordinator", "coordinator to site"


class Field(NamedTuple):
    """One field of a message: its type (``int``, ``float``, ``text``, ``flag``, ``counts`` or ``arrays``), and its purpose."""

    holds: str
    why: str


@dataclass(frozen=True)
class MessageKind:
    """One kind of message."""

    direction: str
    why: str
    fields: Mapping[str, Field]


RUN = Field("text", "the run")
JOB = Field("int", "the training of the run, counted from 0")
ROUND = Field("int", "the round, counted from 0")
KINDS: dict[str, MessageKind] = {
    "join": MessageKind(TO_SERVER, "a site asks to take part", {
        "protocol": Field("int", "the version of these messages"),
        "dffl": Field("text", "the version of dffl"),
        "carrier": Field("text", "the version of NVFlare"),
        "plan": Field("text", "a digest of the plan, which must be the same on both sides"),
        "columns": Field("text", "a digest of the names of features and costs, in order"),
        "rows": Field("int", "the number of training samples"),
        "time": Field("float", "the site's clock"),
        "finished": Field("text", "the run from which the site already has its own model, if any"),
        "instance": Field("text", "a random text that identifies the site's process"),
    }),
    "beat": MessageKind(TO_SERVER, "the site is alive", {}),
    "opened": MessageKind(TO_SERVER, "the site has prepared its samples", {
        "run": RUN,
        "counts": Field("counts", "for each training, the number of training samples"),
        "units": Field("arrays", "mean and scale of each feature, scale of the costs; only if the plan pools statistics"),
    }),
    "answer": MessageKind(TO_SERVER, "a site's update in one round, or its numbers in the choice", {
        "run": RUN, "job": JOB, "round": ROUND,
        "count": Field("int", "the number of samples of the update"),
        "seconds": Field("float", "the computing time of the site"),
        "fields": Field("arrays", "the update: model parameters, and further arrays of the method; or the numbers"),
        "scalars": Field("arrays", "means over the round's steps of scalars in the plan, such as the loss"),
    }),
    "trouble": MessageKind(TO_SERVER, "the site cannot answer an order", {
        "run": RUN, "job": JOB, "round": ROUND,
        "why": Field("text", "one of the texts in `TROUBLES`, never a text with data"),
    }),
    "done": MessageKind(TO_SERVER, "the site has its own model", {
        "run": RUN, "scalars": Field("arrays", "results in the plan, such as the out-of-fold regret"),
    }),
    "leave": MessageKind(TO_SERVER, "the site leaves on purpose", {}),
    "welcome": MessageKind(TO_SITE, "the answer to join", {
        "instance": Field("text", "the instance of the join that it answers"),
        "accepted": Field("flag", "whether the site may take part"), "why": Field("text", "if not, the reason"),
    }),
    "rejoin": MessageKind(TO_SITE, "a site that counted as dead has sent a message, and may join again", {}),
    "open": MessageKind(TO_SITE, "a run starts or resumes", {"run": RUN}),
    "units": MessageKind(TO_SITE, "units of all sites together, if the plan pools statistics", {
        "run": RUN, "units": Field("arrays", "mean and scale of each feature, scale of the costs"),
    }),
    "order": MessageKind(TO_SITE, "train in one round, or judge the rules of the choice", {
        "run": RUN, "job": JOB, "round": ROUND,
        "last": Field("int", "the last round of this training in which the site's update was valid, or -1"),
        "rate": Field("float", "the factor on the step size"),
        "sent": Field("arrays", "the shared model, and further arrays of the method; or the models of the backtest"),
    }),
    "finish": MessageKind(TO_SITE, "all rounds are over", {
        "run": RUN,
        "rounds": Field("counts", "for each training, its number of rounds; 0 for one that the chosen rule does not need"),
        "last": Field("counts", "for each training, the number of the last round in which the site's update was valid, or 0"),
        "unused": Field("counts", "the number of refused or left out updates of each site that has some"),
        "shared": Field("arrays", "for each training, the shared model; of the choice, the median of each rule's number"),
    }),
    "stop": MessageKind(TO_SITE, "the run has ended without a model", {"why": Field("text", "the reason")}),
}  # fmt: skip
TROUBLES = (
    "training diverged at the site",
    "the site could not compute the update",
    "the plan has no such round",
    "with privacy a site answers each round once",
    "the order is not of the plan's form",
)


class Message(NamedTuple):
    """A kind and its values."""

    kind: str
    values: dict[str, Any]


def encode(kind: str, **values: Any) -> bytes:
    """A message as bytes, with all fields of its kind and no other."""
    known = KINDS[kind].fields
    if set(values) != set(known):
        raise ValueError(f"message {kind!r} must have the fields {sorted(known)}, found {sorted(values)}")
    plain: dict[str, Any] = {}
    arrays: list[tuple[str, str, np.ndarray]] = []
    for name, value in values.items():
        if known[name].holds == "arrays":
            arrays += [(name, inner, np.asarray(array, order="C")) for inner, array in value.items()]
        else:
            plain[name] = _in_one_line(value) if known[name].holds == "text" else value
    listed = [[name, inner, array.dtype.name, list(array.shape)] for name, inner, array in arrays]
    header = json.dumps({"kind": kind, "plain": plain, "arrays": listed}, separators=(",", ":"), allow_nan=False).encode()
    return b"".join([len(header).to_bytes(4, "little"), header, *(array.tobytes() for _, _, array in arrays)])


def decode(content: bytes, direction: str) -> Message:
    """The message in these bytes. A `ValueError` names the problem if it is incomplete or of the other direction."""
    if len(content) < 4 or (size := int.from_bytes(content[:4], "little")) > min(MAX_HEADER_BYTES, len(content) - 4):
        raise ValueError("an incomplete message, or not a dffl message")
    try:
        header = json.loads(bytes(content[4 : 4 + size]).decode())
        kind, plain, listed = header["kind"], header["plain"], header["arrays"]
        known = KINDS[kind]
        _require(known.direction == direction and isinstance(plain, dict))
        values = {name: _plain(known.fields[name].holds, value) for name, value in plain.items()}
        values |= {name: {} for name, field in known.fields.items() if field.holds == "arrays"}
        start = 4 + size
        for name, inner, dtype, shape in listed:
            _require(known.fields[name].holds == "arrays" and _is_name(inner) and inner not in values[name])
            _require(
                dtype in DTYPES and len(shape) <= 3 and all(type(length) is int and 0 <= length < 2**53 for length in shape)
            )
            end = start + math.prod(shape) * np.dtype(dtype).itemsize
            _require(end <= len(content))
            values[name][inner] = np.frombuffer(content[start:end], dtype).reshape(shape)
            start = end
        _require(start == len(content) and set(values) == set(known.fields))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise ValueError("a malformed message") from None
    return Message(kind, values)


def _require(valid: bool) -> None:
    """Reject a malformed message; not with `assert`, which ``python -O`` removes."""
    if not valid:
        raise ValueError


def _plain(holds: str, value: Any) -> Any:
    """Check a plain value of this type."""
    if holds == "int":
        _require(type(value) is int and abs(value) < 2**53)
    elif holds == "float":
        _require(type(value) in (int, float) and math.isfinite(value))
    elif holds == "flag":
        _require(type(value) is bool)
    elif holds == "text":
        _require(type(value) is str and len(value) <= MAX_TEXT_LENGTH and value.isprintable())
    else:
        _require(holds == "counts" and type(value) is dict and len(value) <= 10**4)
        _require(all(_is_name(name) and type(count) is int and 0 <= count < 2**53 for name, count in value.items()))
    return value


def _is_name(value: Any) -> bool:
    """Whether it can name a number or an array; names may be written to files and logs."""
    return isinstance(value, str) and value.isascii() and value.isprintable()


def _in_one_line(text: str) -> str:
    """A text of any sender, made safe for a terminal and a log."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))[:MAX_TEXT_LENGTH]

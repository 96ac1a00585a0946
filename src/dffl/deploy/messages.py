"""What crosses the network: messages of few kinds, whose fields are all listed here. Nothing else is sent or accepted.

A message is a line of JSON with plain values, and then the numbers of its arrays. Nothing is pickled, and no code travels.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

PROTOCOL = 2
"""Raised with every change that an older side would misread."""
DTYPES = ("float32", "float64", "int32", "int64")
MOST_HEADER = 1 << 16
MOST_TEXT = 2000
TO_SERVER, TO_SITE = "site to coordinator", "coordinator to site"


class Field(NamedTuple):
    """One field of a message: what it holds (``int``, ``float``, ``text``, ``flag``, ``counts`` or ``arrays``), and why."""

    holds: str
    why: str


@dataclass(frozen=True)
class Kind:
    """One kind of message."""

    direction: str
    why: str
    fields: Mapping[str, Field]


RUN = Field("text", "which run it belongs to")
JOB = Field("int", "which training of the run, counted from 0")
ROUND = Field("int", "which round, counted from 0")
KINDS: dict[str, Kind] = {
    "join": Kind(TO_SERVER, "a site offers to take part", {
        "protocol": Field("int", "the version of these messages"),
        "dffl": Field("text", "the version of dffl"),
        "carrier": Field("text", "the version of NVFlare"),
        "plan": Field("text", "a digest of the plan: both sides read the same one"),
        "columns": Field("text", "a digest of the names of features and costs, in order"),
        "rows": Field("int", "the number of training samples"),
        "time": Field("float", "the site's clock"),
        "finished": Field("text", "the run of which the site has its own model already, if any"),
        "instance": Field("text", "a random text of the site's process: two processes under one name are told apart"),
    }),
    "beat": Kind(TO_SERVER, "the site is alive", {}),
    "opened": Kind(TO_SERVER, "the site has laid out its samples", {
        "run": RUN,
        "counts": Field("counts", "for each training the number of samples that train"),
        "units": Field("arrays", "mean and scale of each feature, scale of the costs; only if the plan pools statistics"),
    }),
    "answer": Kind(TO_SERVER, "a site's update in one round", {
        "run": RUN, "job": JOB, "round": ROUND,
        "count": Field("int", "the number of samples behind the update"),
        "seconds": Field("float", "how long the site has computed"),
        "fields": Field("arrays", "the update: model parameters, and what else the method's rounds send"),
        "scalars": Field("arrays", "means over the round's steps that the plan names, such as the loss"),
    }),
    "trouble": Kind(TO_SERVER, "the site cannot answer an order", {
        "run": RUN, "job": JOB, "round": ROUND,
        "why": Field("text", "one of the words of `TROUBLES`, never a text with data in it"),
    }),
    "done": Kind(TO_SERVER, "the site has its own model", {
        "run": RUN, "scalars": Field("arrays", "results that the plan names, such as the out-of-fold regret"),
    }),
    "leave": Kind(TO_SERVER, "the site goes, on purpose", {}),
    "welcome": Kind(TO_SITE, "the answer to join", {
        "instance": Field("text", "that of the join which it answers"),
        "accepted": Field("flag", "whether the site may take part"), "why": Field("text", "if not, why"),
    }),
    "rejoin": Kind(TO_SITE, "a site that was taken for dead has given a sign of life, and may offer itself again", {}),
    "open": Kind(TO_SITE, "a run begins, or goes on", {"run": RUN}),
    "units": Kind(TO_SITE, "units of all sites together, if the plan pools statistics", {
        "run": RUN, "units": Field("arrays", "mean and scale of each feature, scale of the costs"),
    }),
    "order": Kind(TO_SITE, "train in one round", {
        "run": RUN, "job": JOB, "round": ROUND,
        "last": Field("int", "the last round of this training in which the site's update was taken, or -1"),
        "rate": Field("float", "the factor on the step size"),
        "sent": Field("arrays", "the shared model, and what else the method's rounds send"),
    }),
    "finish": Kind(TO_SITE, "all rounds are over", {
        "run": RUN, "rounds": Field("counts", "for each training its number of rounds"),
        "last": Field("counts", "for each training the number of the last round in which the site's update was taken, or 0"),
        "unused": Field("counts", "for each site with refused or left out updates how many there were"),
        "shared": Field("arrays", "for each training the shared model"),
    }),
    "stop": Kind(TO_SITE, "the run has ended without a model", {"why": Field("text", "why")}),
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
    """A message as bytes; every field of its kind must be there, and no other."""
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
    """The message of these bytes, if it is one of this direction and complete; a `ValueError` says what is wrong."""
    if len(content) < 4 or (size := int.from_bytes(content[:4], "little")) > min(MOST_HEADER, len(content) - 4):
        raise ValueError("a message that is cut short, or is none of ours")
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
            _require(dtype in DTYPES and len(shape) <= 3 and all(type(one) is int and 0 <= one < 2**53 for one in shape))
            end = start + math.prod(shape) * np.dtype(dtype).itemsize
            _require(end <= len(content))
            values[name][inner] = np.frombuffer(content[start:end], dtype).reshape(shape)
            start = end
        _require(start == len(content) and set(values) == set(known.fields))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise ValueError("a message whose form is wrong") from None
    return Message(kind, values)


def _require(right: bool) -> None:
    """Refuse a message; not by `assert`, which Python leaves out on request."""
    if not right:
        raise ValueError


def _plain(holds: str, value: Any) -> Any:
    """A plain value of this kind, or a refusal."""
    if holds == "int":
        _require(type(value) is int and abs(value) < 2**53)
    elif holds == "float":
        _require(type(value) in (int, float) and math.isfinite(value))
    elif holds == "flag":
        _require(type(value) is bool)
    elif holds == "text":
        _require(type(value) is str and len(value) <= MOST_TEXT and value.isprintable())
    else:
        _require(holds == "counts" and type(value) is dict and len(value) <= 10**4)
        _require(all(_is_name(name) and type(one) is int and 0 <= one < 2**53 for name, one in value.items()))
    return value


def _is_name(value: Any) -> bool:
    """The name of a number or an array; it may become part of a file, and of a line of a log."""
    return isinstance(value, str) and value.isascii() and value.isprintable()


def _in_one_line(text: str) -> str:
    """A text that may be shown on a screen and written to a log, whoever sent it."""
    return "".join(one if one.isprintable() else "?" for one in " ".join(text.split()))[:MOST_TEXT]

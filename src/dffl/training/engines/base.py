"""The line between the server and the clients: what is asked, and what is answered.

A trainer has two sides. Its ``visit`` runs where the clients' samples are, its server side where the answers arrive. What
crosses the line is an order (the trainer, which is a small value, and named arrays) and an answer (named arrays); nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from dffl.predictor import Normaliser, Template
from dffl.training.update import Diagnostics

if TYPE_CHECKING:
    from dffl.training.engines.site import Site

Fields = dict[str, np.ndarray]
"""Named arrays. In an answer, the first axis counts clients."""


class Visitor(Protocol):
    """A question to clients: a small value, equal by content, with the code that runs at a client's site."""

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        """Work at the clients of ``site`` with the arrays from the server, and answer."""


class ClientAnswers(NamedTuple):
    """The answers of some clients: their positions, and named arrays with one row for each of them."""

    members: np.ndarray
    fields: Fields


def checked_answer(visitor: Visitor, members: np.ndarray, fields: Any) -> ClientAnswers:
    """An answer whose fields are checked to have one row for each client."""
    who = f"{type(visitor).__name__}.visit"
    if not isinstance(fields, Mapping):
        raise ValueError(f"{who} must return a dictionary of named arrays, found {type(fields).__name__}")
    for name, values in fields.items():
        if np.ndim(values) < 1 or len(values) != len(members):
            wanted = f"one row for each of the {len(members)} clients of its site"
            raise ValueError(f"{who}: field {name!r} must have {wanted}, found shape {np.shape(values)}")
    return ClientAnswers(members, dict(fields))


def answered(visitor: Visitor, site: Site, sent: Mapping[str, Any]) -> ClientAnswers:
    """The message of a site: the visitor's answer, protected by the site's own settings. All engines and deployed sites use it.

    An answer to an order outside the rounds of federated training (`Federated.in_round`) does not leave a deployed site.
    """
    fields = checked_answer(visitor, site.members, visitor.visit(site, sent)).fields
    privacy, in_round = site.settings.hides, getattr(visitor, "in_round", None)
    if privacy is not None and in_round is not None and in_round(site.settings, sent):
        if set(fields) != {"vector"}:
            raise ValueError(f"privacy hides the field 'vector' of an answer, {type(visitor).__name__} sends {sorted(fields)}")
        fields = {"vector": privacy.leaving(site, sent, np.asarray(fields["vector"]))}
    return ClientAnswers(site.members, fields)


@dataclass(frozen=True)
class Note:
    """The results of one call of the client update, for the history and the progress bar."""

    members: np.ndarray
    label: str
    number: int
    epochs: int
    seen: Diagnostics


class Engine(Protocol):
    """Some part of a federation's samples, and a way to run a visit at its clients."""

    names: tuple[str, ...]
    counts: np.ndarray
    """The number of training samples of each client."""
    template: Template
    initial: np.ndarray
    """The start vector of every client."""
    judges: bool
    """Whether there are samples for judging candidates."""
    in_process: bool
    """Whether the clients are in this process, so that `kept` costs nothing."""
    all_answer: bool
    """Whether every client answers. In a deployment, a round continues without those that are refused, late or dead."""

    @property
    def units(self) -> Sequence[Normaliser]:
        """The units of each client's features and costs."""

    def ask(
        self,
        visitor: Visitor,
        members: np.ndarray | None = None,
        *,
        scope: str = "",
        note: Callable[[Note], None] | None = None,
        **sent: Any,
    ) -> Iterator[ClientAnswers]:
        """Send an order to the clients at these positions (default: all), and yield their answers as they come.

        ``scope`` names the training for which the clients keep arrays until the next visit.
        """

    def kept(self, scope: str) -> dict[str, Fields]:
        """Arrays that each client keeps in a scope: for storing an unfinished training, if the clients are in this process."""

    def restore(self, scope: str, client_state: Mapping[str, Fields]) -> None:
        """Restore the arrays of `kept`."""


def in_name_order(
    answers: Iterable[ClientAnswers], members: np.ndarray, names: Sequence[str], all_answer: bool = True
) -> Iterator[tuple[int, Fields]]:
    """The answers one by one in the order of the clients' names, each as soon as all before it have arrived.

    Sums then depend neither on the order in which clients answer, nor on which clients are computed together.
    """
    order = iter(sorted(members.tolist(), key=lambda member: names[member]))
    waiting: dict[int, Fields] = {}
    following = next(order, None)
    for some, fields in answers:
        for row, member in enumerate(some.tolist()):
            waiting[member] = {name: values[row] for name, values in fields.items()}
        while following in waiting:
            yield following, waiting.pop(following)
            following = next(order, None)
    if following is not None and all_answer:
        raise RuntimeError(f"client {names[following]!r} gave no answer")
    for member in sorted(waiting, key=lambda member: names[member]):
        yield member, waiting[member]


def gathered(answers: Iterable[ClientAnswers], clients: int) -> Fields:
    """The answers of all clients, one row for each, in the federation's order."""
    fields: Fields = {}
    for answer in answers:
        for name, values in answer.fields.items():
            values = np.asarray(values)
            if name not in fields:
                fields[name] = np.empty((clients, *values.shape[1:]), values.dtype)
            fields[name][answer.members] = values
    return fields

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
"""Named arrays. In an answer the first axis counts clients."""


class Visitor(Protocol):
    """What can be asked of clients: a small value, equal by content, with the code that runs at a client's site."""

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        """Work at the clients of ``site`` with what the server sent, and answer."""


class ClientAnswers(NamedTuple):
    """What some clients answered: their positions, and named arrays with one row for each of them."""

    members: np.ndarray
    fields: Fields


def checked_answer(visitor: Visitor, members: np.ndarray, fields: Any) -> ClientAnswers:
    """An answer whose fields have one row for each client, as everything relies on."""
    who = f"{type(visitor).__name__}.visit"
    if not isinstance(fields, Mapping):
        raise ValueError(f"{who} must return a dictionary of named arrays, found {type(fields).__name__}")
    for name, values in fields.items():
        if np.ndim(values) < 1 or len(values) != len(members):
            wanted = f"one row for each of the {len(members)} clients of its site"
            raise ValueError(f"{who}: field {name!r} must have {wanted}, found shape {np.shape(values)}")
    return ClientAnswers(members, dict(fields))


def answered(visitor: Visitor, site: Site, sent: Mapping[str, Any]) -> ClientAnswers:
    """What leaves a site: the visitor's answer, hidden as the site's own settings say. All engines and deployed sites use it.

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
    """What one call of the client update saw, for the history and the progress bar."""

    members: np.ndarray
    label: str
    number: int
    epochs: int
    seen: Diagnostics


class Engine(Protocol):
    """Some part of a federation's samples, and a way to run a visit at its clients."""

    names: tuple[str, ...]
    counts: np.ndarray
    """The number of samples that train, for each client."""
    template: Template
    initial: np.ndarray
    """The vector that every client starts from."""
    judges: bool
    """There are samples to judge candidates on."""
    in_process: bool
    """The clients are in this process, so that `kept` costs nothing."""
    all_answer: bool
    """Every client that is asked answers. In a deployment a round continues without those that are refused, late or dead."""

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
        """What each client keeps in a scope: for saving an unfinished training, where the clients are in this process."""

    def restore(self, scope: str, kept: Mapping[str, Fields]) -> None:
        """Put back what `kept` returned."""


def in_name_order(
    answers: Iterable[ClientAnswers], members: np.ndarray, names: Sequence[str], all_answer: bool = True
) -> Iterator[tuple[int, Fields]]:
    """The answers one by one in the order of the clients' names, each as soon as all before it are there.

    Sums then do not depend on the order in which clients answer, nor on who is computed together.
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
    found: Fields = {}
    for answer in answers:
        for name, values in answer.fields.items():
            values = np.asarray(values)
            if name not in found:
                found[name] = np.empty((clients, *values.shape[1:]), values.dtype)
            found[name][answer.members] = values
    return found

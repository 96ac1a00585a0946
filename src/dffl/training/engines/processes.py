"""Every client in an operating-system process of its own, which holds only its own rows and exchanges only messages.

It is the proof that nothing else crosses the line between server and clients, and what a deployment does, on one machine. Each
process runs the loop engine for its one client. Processes are spawned, never forked: a fork would copy the parent's data.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, cast

import numpy as np

from dffl.cache import keep_compiled_programs
from dffl.federation import Client, Federation, limits_met
from dffl.predictor import Normaliser
from dffl.training.engines.base import ClientAnswers, Fields, Note, Visitor
from dffl.training.engines.start import precision, starting_recipe
from dffl.training.engines.vector import LoopEngine
from dffl.training.parts import Part
from dffl.training.settings import Settings
from dffl.training.units import pooled
from dffl.training.update import Diagnostics

Message = dict[str, Any]
"""Named values; ``kind`` is the kind of message."""


class Traffic:
    """Which fields the messages of each kind had: what has crossed the line."""

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = {}

    def add(self, direction: str, message: Message) -> Message:
        """Note a message's fields, with the fields of what it carries."""
        names = self.seen.setdefault(f"{direction} {message['kind']}", set())
        for name, value in message.items():
            names.update({f"{name}.{inner}" for inner in value} if isinstance(value, dict) else {name} - {"kind"})
        return message


class _Worker(NamedTuple):
    process: Any
    pipe: Connection


class Processes:
    """The clients' processes, for a whole run."""

    def __init__(self, federation: Federation, settings: Settings, validation: Federation | None = None):
        self.names, self.settings = tuple(federation.names), settings
        self.features, self.dim = federation.features, federation.dim
        self.traffic = Traffic()
        _require_picklable(settings)
        context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        # Whatever happens to the run, its processes end with it.
        self.close = weakref.finalize(self, _close, self._workers)
        for place, client in enumerate(federation):
            mine, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), name=f"dffl {client.name}", daemon=True)
            process.start()
            theirs.close()
            self._workers.append(_Worker(process, mine))
            judging = {} if validation is None else _rows(validation[client.name], "judge_")
            self.send(place, {"kind": "begin", "settings": settings} | _rows(client, "") | judging)

    def send(self, place: int, message: Message) -> None:
        try:
            self._workers[place].pipe.send(self.traffic.add("to client:", message))
        except (BrokenPipeError, OSError):
            raise RuntimeError(self._ended(place)) from None

    def receive(self, places: list[int]) -> Iterator[tuple[int, Message]]:
        """Each message that arrives from these clients, with the client's place. The caller stops when it has enough."""
        pipes: dict[Any, int] = {self._workers[place].pipe: place for place in places}
        while True:
            for pipe in wait(list(pipes)):
                place = pipes[pipe]
                try:
                    message = self.traffic.add("to server:", cast(Connection, pipe).recv())
                except (EOFError, OSError):
                    raise RuntimeError(self._ended(place)) from None
                if message["kind"] == "error":
                    raise message["error"]
                yield place, message

    def collect(self, places: list[int], message: Message) -> dict[int, Message]:
        """Send one message to these clients and wait for one answer from each."""
        for place in places:
            self.send(place, message)
        found: dict[int, Message] = {}
        for place, answer in self.receive(places):
            found[place] = answer
            if len(found) == len(places):
                break
        return found

    def _ended(self, place: int) -> str:
        process = self._workers[place].process
        process.join(1)
        hint = "; a script that uses this engine must start under if __name__ == '__main__'" if process.exitcode == 1 else ""
        return f"client {self.names[place]!r}: its process ended early (exit code {process.exitcode}){hint}"


class ProcessEngine:
    """One part of the samples of clients that live in processes. An `Engine`."""

    in_process = False
    all_answer = True

    def __init__(self, processes: Processes, part: Part):
        self._processes, self._part = processes, part
        settings, self.names = processes.settings, processes.names
        with precision(settings):
            recipe, self.initial = starting_recipe(part.seeded(settings), processes.features, processes.dim)
        self.template = recipe.form.template
        self._everyone = list(range(len(self.names)))
        opened = processes.collect(self._everyone, {"kind": "open", "part": part})
        self.counts = np.array([opened[place]["count"] for place in self._everyone])
        self.units = [Normaliser(**{k: opened[place][k] for k in UNIT_FIELDS}) for place in self._everyone]
        self.judges = opened[0]["judges"]
        if settings.pooled_units:
            unit = pooled(self.units, self.names, self.counts.tolist(), settings, processes.dim)
            self.units = [unit] * len(self.names)
            for place in self._everyone:
                processes.send(place, {"kind": "units", "part": part} | _unit_fields(unit))

    def ask(
        self,
        visitor: Visitor,
        members: np.ndarray | None = None,
        *,
        scope: str = "",
        note: Callable[[Note], None] | None = None,
        **sent: Any,
    ) -> Iterator[ClientAnswers]:
        """Send the order to each client's process, and yield the answers as they arrive."""
        asked = self._everyone if members is None else members.tolist()
        order = {"kind": "order", "part": self._part, "visitor": visitor, "scope": scope, "sent": sent}
        for place in asked:
            self._processes.send(place, order)
        waiting = set(asked)
        for place, message in self._processes.receive(asked) if asked else ():
            if message["kind"] == "note":
                if note is not None:
                    note(_note(place, message))
                continue
            waiting.discard(place)
            yield ClientAnswers(np.array([place]), message["fields"])
            if not waiting:
                return

    def kept(self, scope: str) -> dict[str, Fields]:
        answers = self._processes.collect(self._everyone, {"kind": "kept", "part": self._part, "scope": scope})
        return {self.names[place]: message["fields"] for place, message in answers.items() if message["fields"]}

    def restore(self, scope: str, kept: Mapping[str, Fields]) -> None:
        for place, name in enumerate(self.names):
            if name in kept:
                message = {"kind": "restore", "part": self._part, "scope": scope, "fields": dict(kept[name])}
                self._processes.send(place, message)


UNIT_FIELDS = ("x_mean", "x_scale", "c_scale")


def _unit_fields(unit: Normaliser) -> Message:
    return {name: getattr(unit, name) for name in UNIT_FIELDS}


def _note(place: int, message: Message) -> Note:
    seen = Diagnostics(message["loss"], message["clipped"], message["norm"])
    return Note(np.array([place]), message["label"], message["number"], message["epochs"], seen)


# The client's side.


def serve(pipe: Connection) -> None:
    """What a client's process does: answer messages until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the server decides what it means
    keep_compiled_programs()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        site = _ClientProcess(pipe, pipe.recv())
        while True:
            message = pipe.recv()
            try:
                getattr(site, message["kind"])(message)
            except (ValueError, RuntimeError, TypeError) as error:
                pipe.send({"kind": "error", "error": error})


class _ClientProcess:
    """One client's rows, laid out in each part that was asked for."""

    def __init__(self, pipe: Connection, begin: Message):
        self._pipe, self._settings = pipe, begin["settings"]
        self._federation = Federation([_client(begin, "")])
        self._validation = Federation([_client(begin, "judge_")]) if "judge_x" in begin else None
        self._engines: dict[Part, LoopEngine] = {}
        self._units: dict[Part, Normaliser] = {}
        """The units of all clients together, where the settings pool them."""

    def _engine(self, message: Message) -> LoopEngine:
        part: Part = message["part"]
        if part not in self._engines:
            divided = part.divide(self._federation, self._settings, self._validation)
            units = [self._units[part]] if part in self._units else part.units(divided.train, self._settings)
            self._engines[part] = LoopEngine(divided.train, part.seeded(self._settings), divided.judge, units)
        return self._engines[part]

    def open(self, message: Message) -> None:
        part: Part = message["part"]
        divided = part.divide(self._federation, self._settings, self._validation)
        [own] = part.units(divided.train, replace(self._settings, pooled_units=False))
        opened = {"kind": "opened", "count": divided.train[0].n, "judges": divided.judge is not None}
        self._pipe.send(opened | _unit_fields(own))

    def units(self, message: Message) -> None:
        self._units[message["part"]] = Normaliser(**{name: message[name] for name in UNIT_FIELDS})

    def order(self, message: Message) -> None:
        def note(one: Note) -> None:
            seen = {name: np.asarray(value)[:1] for name, value in one.seen._asdict().items()}
            self._pipe.send({"kind": "note", "label": one.label, "number": one.number, "epochs": one.epochs} | seen)

        # Limits of the client's own solver are said here: no message carries them.
        with limits_met(self._federation.clients, "solves of training"):
            for answer in self._engine(message).ask(message["visitor"], scope=message["scope"], note=note, **message["sent"]):
                fields = {name: np.asarray(values) for name, values in answer.fields.items()}
                self._pipe.send({"kind": "answer", "fields": fields})

    def kept(self, message: Message) -> None:
        mine = self._engine(message).kept(message["scope"])
        self._pipe.send({"kind": "keeps", "fields": next(iter(mine.values()), {})})

    def restore(self, message: Message) -> None:
        engine = self._engine(message)
        engine.restore(message["scope"], {engine.names[0]: message["fields"]})


SENT = ("name", "x", "c", "set", "maximize", "keys", "times")
"""What a client's process is told of its client."""


def _rows(client: Client, prefix: str) -> Message:
    return {prefix + name: getattr(client, name) for name in SENT}


def _client(message: Message, prefix: str) -> Client:
    return Client(**{name: message[prefix + name] for name in SENT})


def _require_picklable(settings: Settings) -> None:
    try:
        pickle.dumps(settings)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        fix = "define the network's factory and the loss at the top of a module, not as a lambda"
        raise ValueError(f"engine 'processes' sends the settings to other processes: {fix} ({error})") from None


def _close(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.pipe.close()
    for worker in workers:
        worker.process.join(5)
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join()

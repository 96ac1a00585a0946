"""Every random number of a run, from one seed, in any order.

A stream is identified by its purpose, the client's name and a counter, never by earlier draws. So the loop engine, the
vectorised engine and a client on its own machine draw the same numbers, whichever other clients take part.
"""

from __future__ import annotations

import hashlib
import os
import threading
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np


class Purpose(IntEnum):
    """The purposes of streams. The values determine the numbers of a seed: never renumber them."""

    SHUFFLE = 1
    TUNE = 2
    SPLIT = 3
    SAMPLE_CLIENTS = 4
    INITIALISE = 5
    SYNTHETIC_PROBLEM = 6
    SYNTHETIC_ROWS = 7
    FOLD = 8
    COMPARE = 9
    EXAMPLE = 10
    LOSS = 11
    FOLD_START = 12
    START = 13
    TREES = 14
    FIRST_CLUSTER = 15
    SOME_ROWS = 16
    TEST_ROWS = 17
    SITE_NOISE = 18
    SERVER_NOISE = 19
    SAMPLE_NOISE = 20
    LIE = 21
    NETWORK = 22


def stream(seed: int, purpose: Purpose, client: str = "", counter: int = 0) -> np.random.Generator:
    """The generator for this purpose, client and counter."""
    philox = np.random.Philox(key=[checked_seed(seed), _name_key(client)], counter=[0, 0, counter, int(purpose)])
    return np.random.Generator(philox)


class _Reused(threading.local):
    """A generator for each thread that is reset for every draw: creating one takes longer than a short draw."""

    def __init__(self) -> None:
        self.bits = np.random.Philox(key=[0, 0])
        self.generator = np.random.Generator(self.bits)


_reused = _Reused()


def permutation(seed: int, purpose: Purpose, client: str, counter: int, n: int) -> np.ndarray:
    """``stream(seed, purpose, client, counter).permutation(n)``, in half the time."""
    state: Any = _reused.bits.state
    state["state"]["key"][:] = _philox_key(seed, client)
    state["state"]["counter"][:] = (0, 0, counter, int(purpose))
    state["buffer_pos"], state["has_uint32"] = 4, 0
    _reused.bits.state = state
    return _reused.generator.permutation(n)


def start_seeds(seed: int, starts: int) -> list[int]:
    """The seeds of several trainings: the first is the given one, the others are drawn from it."""
    others = (int(stream(seed, Purpose.START, counter=start).integers(2**63)) for start in range(1, starts))
    return [checked_seed(seed), *others]


@lru_cache(maxsize=65536)
def _philox_key(seed: int, client: str) -> np.ndarray:
    # As NumPy combines the two numbers, which determines the numbers of a seed.
    state: Any = stream(seed, Purpose.SHUFFLE, client).bit_generator.state
    return np.array(state["state"]["key"])


@lru_cache(maxsize=65536)
def _name_key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def checked_seed(seed: int, name: str = "seed") -> int:
    """``seed`` as an int for a stream; ``name`` is its name in messages."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise ValueError(f"{name} must be a whole number from 0 to 2**63 - 1, found {seed!r:.40}")
    return int(seed)


class NoiseSource:
    """Noise for privacy: a function of a secret and of the whole question that it helps to answer.

    The same question gets the same noise, so an interrupted training resumes to the same bits, and asking twice reveals
    nothing new. Any other question gets other noise: no two answers share noise that could be subtracted. Whoever knows the
    secret can remove the noise. So a deployed site or server has its own secret (`fresh`), which never leaves it. A
    simulation has a `public` one, from its seed: it protects nothing, but its numbers can be repeated.
    """

    LEAST = 16

    def __init__(self, secret: bytes):
        if not isinstance(secret, bytes) or len(secret) < self.LEAST:
            raise ValueError(f"a noise source needs a secret of at least {self.LEAST} bytes; NoiseSource.fresh() makes one")
        self._secret = secret

    @classmethod
    def fresh(cls) -> NoiseSource:
        """A source with a new secret from the operating system."""
        return cls(os.urandom(32))

    @classmethod
    def public(cls, seed: int) -> NoiseSource:
        """The source of a simulation: anyone who knows the seed knows the noise."""
        return cls(b"no secret: simulation" + checked_seed(seed).to_bytes(8, "little"))

    @property
    def secret(self) -> bytes:
        """The secret, to be stored until an interrupted training resumes, in a file that only its owner can read."""
        return self._secret

    def __repr__(self) -> str:
        return "NoiseSource(...)"  # never the secret

    def normals(self, size: int, purpose: Purpose, *question: str | int | bytes) -> np.ndarray:
        """Standard normal numbers for this question, in float64, from a cryptographic generator (SHAKE-256)."""
        from scipy.special import ndtri  # slow to import, and needed here alone

        words = [self._secret, int(purpose).to_bytes(8, "little"), *map(_as_bytes, question)]
        sponge = hashlib.shake_256()
        for word in words:  # preceded by its length, so that two questions cannot give the same bytes
            sponge.update(len(word).to_bytes(8, "little") + word)
        bits = np.frombuffer(sponge.digest(8 * size), "<u8")
        return ndtri(((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def _as_bytes(value: str | int | bytes) -> bytes:
    return value if isinstance(value, bytes) else f"{type(value).__name__}:{value}".encode()

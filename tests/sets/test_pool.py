"""Solver processes: who answers, what happens when one dies, and that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dffl
from dffl.sets import _pool
from dffl.solving.rows import RowError, answers

from . import solvers
from .solvers import MARK, D

COSTS = np.random.default_rng(0).normal(size=(11, D))
EXPECTED = np.array([solvers.cheapest(c) for c in COSTS])
MARKED = COSTS.copy()
MARKED[7, 0] = MARK + 1


def job(function: object, name: str = "mine", batched: bool = False, kind: str = "") -> _pool.Job:
    return _pool.job(name, partial(partial, answers, function, batched), kind)


@pytest.fixture
def pool() -> Iterator[_pool.Pool]:
    made = _pool.Pool(2)
    yield made
    made.close()


def gone(pid: int, seconds: float = 15.0) -> bool:
    """Whether a process ends within some time; one that only waits to be collected has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("processes", [1, 2, 5])
@pytest.mark.parametrize(
    ("function", "batched"), [(solvers.cheapest, False), (solvers.all_cheapest, True), (solvers.prints, False)]
)
def test_answers_are_those_of_the_function_in_order(pool: _pool.Pool, processes: int, function: object, batched: bool) -> None:
    for _ in range(2):
        np.testing.assert_array_equal(pool.solve(job(function, batched=batched), COSTS, processes, 60), EXPECTED)
    np.testing.assert_array_equal(pool.solve(job(function, batched=batched), COSTS[:1], processes, 60), EXPECTED[:1])
    assert len(pool.pids) == min(processes, 2)


def test_rows_are_divided_and_workers_are_used_again(pool: _pool.Pool) -> None:
    told = job(solvers.tells)
    first = pool.solve(told, COSTS, 2, 60)[:, 0]
    assert len(set(first)) == 2
    assert np.all(np.diff(np.unique(first, return_inverse=True)[1]) != 0) or len(set(first[:6])) == 1, "consecutive rows"
    assert set(pool.solve(told, COSTS, 2, 60)[:, 0]) == set(first) == set(pool.pids)
    assert os.getpid() not in pool.pids
    other = job(solvers.tells, kind="other")
    assert not set(pool.solve(other, COSTS, 2, 60)[:, 0]) & set(first), "other kinds have workers of their own"
    assert set(pool.solve(told, COSTS, 2, 60)[:, 0]) == set(first)


def test_a_worker_that_dies_is_replaced_and_its_rows_are_tried_again(pool: _pool.Pool, tmp_path: Path) -> None:
    dies = solvers.DiesOnce(tmp_path / "died")
    np.testing.assert_array_equal(pool.solve(job(dies), MARKED, 2, 60), [solvers.cheapest(c) for c in MARKED])
    assert dies.path.exists()
    assert len(pool.pids) == 2


def test_one_that_dies_twice_is_named_with_its_row(pool: _pool.Pool) -> None:
    found = r"^solver 'mine': row 7: its process ended \(exit code 7\), as it did when it was tried before$"
    with pytest.raises(ValueError, match=found):
        pool.solve(job(solvers.exits), MARKED, 2, 60)
    np.testing.assert_array_equal(pool.solve(job(solvers.exits), COSTS, 2, 60), EXPECTED)


def test_a_call_that_ends_early_leaves_nothing_behind_for_the_next(pool: _pool.Pool) -> None:
    slow, rows = job(solvers.exits_or_is_slow), COSTS.copy()
    rows[0, 0] = MARK + 1
    with pytest.raises(ValueError, match="row 0: its process ended"):
        pool.solve(slow, rows, 2, 60)  # the second worker is in the middle of its rows
    np.testing.assert_array_equal(pool.solve(slow, COSTS[2:], 2, 60), EXPECTED[2:])


def test_one_that_hangs_is_ended_and_named(pool: _pool.Pool) -> None:
    begin = time.monotonic()
    with pytest.raises(
        ValueError, match=r"^solver 'mine': row 7: its process gave no answer within 0.5 seconds and was ended$"
    ):
        pool.solve(job(solvers.hangs), MARKED, 2, 0.5)
    assert time.monotonic() - begin < 30
    np.testing.assert_array_equal(pool.solve(job(solvers.hangs), COSTS, 2, 60), EXPECTED)


def test_a_worker_killed_while_idle_is_replaced(pool: _pool.Pool) -> None:
    pool.solve(job(solvers.cheapest), COSTS, 2, 60)
    before = pool.pids
    os.kill(before[0], signal.SIGKILL)
    np.testing.assert_array_equal(pool.solve(job(solvers.cheapest), COSTS, 2, 60), EXPECTED)
    assert before[0] not in pool.pids


def test_the_first_bad_row_is_named_whoever_is_quicker(pool: _pool.Pool) -> None:
    several = MARKED.copy()
    several[4, 0] = several[9, 0] = MARK + 1
    for processes in (1, 2):
        for _ in range(3):
            with pytest.raises(RowError, match=r"^row 4: RuntimeError: no such plan$"):
                pool.solve(job(solvers.raises), several, processes, 60)
    with pytest.raises(RowError, match=r"^row 7: RuntimeError"):
        pool.solve(job(solvers.raises), MARKED, 2, 60)
    assert len(pool.pids) == 2, "a mistake of the function costs no process"


def test_what_cannot_be_sent_or_built_is_refused_in_one_line(pool: _pool.Pool) -> None:
    found = "^solver 'mine': it cannot be sent to another process; define it at the top of a module, not as a lambda .*$"
    with pytest.raises(ValueError, match=found):
        job(lambda c: c)
    with pytest.raises(ValueError, match=r"^solver 'mine': its process cannot build it: OSError: no licence here$"):
        pool.solve(job(solvers.Unbuildable()), COSTS, 2, 60)


def test_threads_share_few_workers() -> None:
    pool = _pool.Pool(1)
    found: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda k=k: found.update({k: pool.solve(job(solvers.cheapest, f"{k}"), COSTS, 2, 60)}))
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(pool.pids) == 1
    assert sorted(found) == [0, 1, 2, 3]
    for answer in found.values():
        np.testing.assert_array_equal(answer, EXPECTED)
    [pid] = pool.pids
    pool.close()
    assert gone(pid)


def test_a_worker_builds_a_solver_once_and_forgets_old_ones(pool: _pool.Pool, tmp_path: Path) -> None:
    from dffl.solving.worker import MOST

    for k in range(MOST + 2):
        made = job(solvers.DiesOnce(tmp_path / str(k)))
        np.testing.assert_array_equal(pool.solve(made, COSTS[:1], 1, 60), EXPECTED[:1])
    np.testing.assert_array_equal(pool.solve(job(solvers.DiesOnce(tmp_path / "0")), COSTS, 1, 60), EXPECTED)


def test_a_worker_imports_neither_jax_nor_highs() -> None:
    heavy = "{'jax', 'highspy', 'equinox', 'pandas'}"
    code = f"import sys, dffl.solving.worker, dffl.solving.epo; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


SCRIPT = """
import sys, time
import numpy as np
import dffl
from dffl.sets import _pool
from tests.sets import solvers

s = dffl.Solver(solvers.hangs, solvers.D, processes=2)
s.solve(np.arange(4.0 * solvers.D).reshape(4, solvers.D))  # equal rows would be asked once
print(*_pool.shared().pids, flush=True)
if sys.argv[1] == "asking":
    s.solve(1000.0 + np.arange(4.0 * solvers.D).reshape(4, solvers.D))
elif sys.argv[1] == "idle":
    time.sleep(600)
"""


def started(what: str) -> tuple[subprocess.Popen[str], list[int]]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, what],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True,
    )  # fmt: skip
    assert parent.stdout is not None
    return parent, [int(pid) for pid in parent.stdout.readline().split()]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(("what", "number"), [("idle", signal.SIGKILL), ("asking", signal.SIGKILL), ("asking", signal.SIGINT)])
def test_no_worker_is_left_when_the_parent_is_killed(what: str, number: signal.Signals) -> None:
    parent, pids = started(what)
    try:
        assert len(pids) == min(2, _pool.core_count())
        time.sleep(0.5)
        os.killpg(parent.pid, number)
        errors = parent.communicate(timeout=30)[1]
        assert parent.returncode != 0
        assert number == signal.SIGKILL or errors.rstrip().endswith("KeyboardInterrupt"), errors
        assert all(gone(pid) for pid in pids)
    finally:
        parent.kill()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_no_worker_is_left_when_the_parent_ends() -> None:
    parent, pids = started("end")
    errors = parent.communicate(timeout=30)[1]
    assert (parent.returncode, errors) == (0, "")
    assert pids
    assert all(gone(pid) for pid in pids)


SELF = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import dffl
from dffl.sets import _pool


def mine(c):
    return -np.sign(c) * OWN


def fitted(s):
    x, c = np.ones((4, 2)), np.ones((4, 3))
    federation = dffl.Federation([dffl.Client(name, x, c, s) for name in "ab"])
    return sorted(dffl.fit(federation, "fedavg", rounds=1).members)


OWN = 1.0
if __name__ == "__main__":
    s = dffl.Solver(mine, 3, processes=1)
    print(s.solve([1.0, -1.0, 2.0]))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        print(pool.submit(fitted, s).result())
"""


@pytest.mark.slow
def test_functions_of_the_script_itself_are_found_also_from_its_processes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SELF)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env)
    assert done.stdout == "[-1.  1. -1.]\n['a', 'b']\n", done.stderr
    end = time.monotonic() + 15  # those of other processes end by themselves, a moment later
    while left := subprocess.run(["pgrep", "-f", f"dffl.solving.worker.*{tmp_path}"], capture_output=True, text=True).stdout:
        assert time.monotonic() < end, left
        time.sleep(0.1)


def test_the_shared_pool_has_as_many_workers_as_cores() -> None:
    assert _pool.shared() is _pool.shared()
    assert _pool.shared().cores == _pool.core_count()
    s = dffl.Solver(solvers.cheapest, D, processes=64)
    np.testing.assert_array_equal(s.solve(COSTS), EXPECTED)
    assert len(_pool.shared().pids) <= _pool.core_count()

"""Work side by side in threads: in order, and stopped at once when something ends it."""

from __future__ import annotations

import threading
import time

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dffl.cores import one_blas_thread, side_by_side


def nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_answers_come_in_order_whoever_computes_them(cores: int) -> None:
    threads = set()

    def square(k: int) -> int:
        threads.add(threading.get_ident())
        time.sleep(0.002 * (7 - k))
        return k * k

    assert list(side_by_side(square, range(7), cores, nothing, nothing)) == [k * k for k in range(7)]
    assert 1 <= len(threads) <= cores
    assert threading.get_ident() in threads


def test_a_slow_item_does_not_keep_the_others_waiting() -> None:
    slow, done = threading.Event(), []

    def work(k: int) -> int:
        if k == 1:
            assert slow.wait(30), "the others were not begun meanwhile"
        done.append(k)
        if len(done) == 4:
            slow.set()
        time.sleep(0.02)  # long enough for the helper to begin with 1
        return k

    assert list(side_by_side(work, range(5), 2, nothing, nothing)) == [0, 1, 2, 3, 4]
    assert done[-1] == 1


def test_items_may_work_side_by_side_themselves_and_may_fail() -> None:
    def outer(k: int) -> int:
        return sum(side_by_side(lambda n: n + k, range(4), 2, nothing, nothing))

    assert list(side_by_side(outer, range(6), 2, nothing, nothing)) == [6 + 4 * k for k in range(6)]

    def fails(k: int) -> int:
        def inner(n: int) -> int:
            time.sleep(0.01)
            if k == 1:
                raise ValueError("it fails in a helper")
            return n

        return sum(side_by_side(inner, range(3), 2, nothing, nothing))

    with pytest.raises(ValueError, match="it fails in a helper"):
        list(side_by_side(fails, range(3), 2, nothing, nothing))


def test_waiting_is_used_and_a_failure_stops_the_others() -> None:
    stopped, looks = threading.Event(), []

    def work(k: int) -> int:
        if k == 0:
            return 0
        assert stopped.wait(30), "nobody stopped it"
        raise RuntimeError("stopped")

    answers = side_by_side(work, range(5), 2, lambda: looks.append(1), stopped.set)
    assert next(answers) == 0
    started = time.monotonic()
    answers.close()  # as when the caller is interrupted
    assert stopped.is_set()
    assert time.monotonic() - started < 20

    def fails(k: int) -> int:
        time.sleep(0.1 + 0.5 * k)  # long enough for the helper to begin
        if k == 1:
            raise ValueError("client 'b': something is wrong")
        return k

    with pytest.raises(ValueError, match="client 'b': something is wrong"):
        list(side_by_side(fails, range(2), 2, lambda: looks.append(1), nothing))
    assert looks, "while it waits it looks at what is under way"


def test_blas_has_one_thread_inside_and_its_own_number_afterwards() -> None:
    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, "blas"):
        before = threads()
        assert 2 in before
        with one_blas_thread():
            with one_blas_thread():
                assert set(threads()) == {1}
            assert set(threads()) == {1}  # the outer call still relies on it
        assert threads() == before

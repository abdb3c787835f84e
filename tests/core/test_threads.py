"""Threads give results in order, raise the first error in order, and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from p2p_sim.core import InputError
from p2p_sim.core.lazy_attribute import lazy
from p2p_sim.core.threads import AHEAD, Threads, cores
from tests.processes import ended


def alive() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("blocks-")]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    def late(number: int) -> int:
        time.sleep(0.002 * (number % 3 == 0))
        return number * number

    with Threads(count) as threads:
        assert list(threads.map(late, range(30))) == [n * n for n in range(30)]
        assert list(threads.map(late, range(7))) == [n * n for n in range(7)], "they serve again"
        assert list(threads.map(late, [])) == []
        assert len(alive()) == count - 1, "the calling thread is one of them"
    assert not alive()


def test_two_work_at_once_and_one_alone_is_the_caller() -> None:
    meeting = threading.Barrier(2, timeout=10)
    with Threads(2) as threads:
        assert sorted(threads.map(lambda _: meeting.wait(), range(2))) == [0, 1]
        assert list(threads.map(lambda _: threading.current_thread(), [0])) == [threading.current_thread()]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_the_first_error_in_order_is_raised_though_another_is_sooner(count: int) -> None:
    ended = []

    def work(number: int) -> int:
        if number == 3:
            time.sleep(0.03)
            raise ValueError("three")
        if number > 3:
            raise KeyError(number)
        ended.append(number)
        return number

    with Threads(count) as threads, pytest.raises(ValueError, match="three"):
        list(threads.map(work, range(40)))
    assert sorted(ended) == [0, 1, 2]
    assert not alive()


def test_no_more_is_taken_up_than_a_few_items_a_thread() -> None:
    taken = []
    with Threads(3) as threads, closing(threads.map(taken.append, range(100))) as done:
        for number, _ in enumerate(done):
            assert len(taken) <= number + 1 + AHEAD * 3


def test_what_was_begun_has_ended_before_an_error_or_a_close_returns() -> None:
    running = [0]

    def work(number: int) -> None:
        running[0] += 1
        time.sleep(0.02)
        running[0] -= 1
        if number == 0:
            raise ValueError

    with Threads(1 + AHEAD) as threads:
        with pytest.raises(ValueError):
            list(threads.map(work, range(50)))
        assert running == [0]
        with closing(threads.map(work, range(1, 50))) as done:
            next(done)
        assert running == [0]


def test_a_system_without_threads_to_give_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with Threads(5) as threads, pytest.raises(InputError, match=r"threads = 5: .*starts 0 .*give fewer"):
        list(threads.map(str, range(5)))


ENDLESS = r"""
import os, signal, time
from p2p_sim.core.threads import Threads

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore Ctrl-C

def work(number):
    os.write(1, b"begun\n")
    while True:
        time.sleep(0.01)

with Threads(2) as threads:
    list(threads.map(work, range(4)))
"""


WITH_A_RESULT = r"""
import os, signal, time
from contextlib import closing
from p2p_sim.core.threads import AHEAD, Threads

signal.signal(signal.SIGINT, signal.default_int_handler)

def work(number):
    while number:
        time.sleep(0.01)

with Threads(2) as threads, closing(threads.map(work, range(9 * AHEAD))) as done:
    for _ in done:
        os.write(1, b"begun\n")
        time.sleep(60)
"""


@pytest.mark.parametrize("program", [ENDLESS, WITH_A_RESULT], ids=["waiting", "with a result"])
def test_ctrl_c_ends_a_process_whose_blocks_do_not_end(program: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline() == b"begun\n"
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(20) != 0
        finally:
            process.kill()
        assert b"KeyboardInterrupt" in process.stderr.read()


ENDING = r"""
import os, signal, time
from p2p_sim.core.threads import Threads

signal.signal(signal.SIGINT, signal.default_int_handler)

def work(number):
    os.write(1, b"begun\n")
    time.sleep(0.5)
    os.write(1, b"ended\n")

with Threads(2) as threads:
    list(threads.map(work, range(2)))
"""


def test_ctrl_c_waits_for_blocks_of_other_threads_that_end_soon() -> None:
    """Else the interpreter would stop them inside compiled code, which can abort the process."""
    started = subprocess.Popen([sys.executable, "-c", ENDING], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with ended(started) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"begun\n"] * 2
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert out == b"ended\n", "what the calling thread did is interrupted"
    assert b"KeyboardInterrupt" in err


def test_cores_are_those_of_this_process() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_a_lazy_attribute_is_computed_once_and_several_at_a_time() -> None:
    meeting = threading.Barrier(2, timeout=10)
    calls = []

    class Late:
        @lazy
        def value(self) -> int:
            """The value."""
            calls.append(self)
            return meeting.wait()

    one, other = Late(), Late()
    with Threads(2) as threads:  # one lock for both would let them wait for each other without end
        first: Iterator[int] = threads.map(lambda late: late.value, [one, other])
        assert sorted(first) == [0, 1]
    assert {one.value, other.value} == {0, 1}
    assert len(calls) == 2
    assert Late.value.__doc__ == "The value."

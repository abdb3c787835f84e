"""A time budget is kept: quick groups come first, none takes the time of the others, nothing goes on after its end."""

from __future__ import annotations

import math
import selectors
import subprocess
import time
from typing import Any

import pytest

from p2p_sim.core.errors import RunLostError
from p2p_sim.sweep import processes
from p2p_sim.sweep.time_budget import OUT_OF_TIME, TimeBudget, TimedWorkers


class Clock:
    """Workers whose runs take known seconds, on a clock of their own."""

    def __init__(self, seconds: dict[int, float], workers: int):
        self.now, self.seconds, self.workers = 0.0, seconds, workers
        self.running: dict[int, float] = {}

    def free(self) -> bool:
        return len(self.running) < self.workers

    def give(self, index: int, _text: str) -> None:
        self.running[index] = self.now + self.seconds[index]

    def take(self, until: float | None = None) -> Any:
        index = min(self.running, key=lambda each: self.running[each])
        if until is not None and self.running[index] > until:
            self.now = max(self.now, until)
            return None
        self.now = self.running.pop(index)
        return index, "done", ""

    def stop(self, index: int) -> None:
        del self.running[index]


def made(
    monkeypatch: pytest.MonkeyPatch, groups: list[str], seconds: list[float], until: float, workers: int = 2
) -> tuple[Clock, list[int], list[int]]:
    """Make all runs within a budget; return the clock, the runs that were made, and those that were not."""
    clock = Clock(dict(enumerate(seconds)), workers)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    budget = TimeBudget(until, workers)
    budget.begin(groups)
    timed, waiting, done, out = TimedWorkers(clock, budget), list(range(len(groups))), [], []
    while waiting or clock.running:
        while waiting and clock.free():
            index = waiting.pop(0)
            if not timed.give(index, "", groups[index]):
                out.append(index)
        if not clock.running:
            break
        index, _, how = timed.take()
        (out if how == OUT_OF_TIME else done).append(index)
    return clock, done, out


def test_all_is_made_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, done, out = made(monkeypatch, ["a", "b"] * 5, [1.0] * 10, until=100.0)
    assert (clock.now, len(done), out) == (5.0, 10, [])


def test_a_slow_group_gets_what_the_quick_ones_leave_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = ["quick", "middle", "slow"] * 4
    clock, done, out = made(monkeypatch, groups, [1.0, 2.0, 1000.0] * 4, until=60.0)
    assert clock.now <= 60.0
    assert {groups[index] for index in out} == {"slow"}
    assert sum(groups[index] != "slow" for index in done) == 8


def test_nothing_goes_on_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, done, out = made(monkeypatch, list("abcdef"), [50.0] * 6, until=10.0)
    assert clock.now <= 10.0
    assert not done
    assert len(out) == 6


def test_without_a_budget_workers_are_asked_as_ever() -> None:
    clock = Clock({0: 5.0}, 1)
    timed = TimedWorkers(clock, None)
    assert timed.give(0, "", "a")
    assert timed.take() == (0, "done", "")


@pytest.mark.parametrize("seconds", [3.6e14, math.inf])
def test_a_time_longer_than_the_system_waits_is_waited_for(seconds: float) -> None:
    popen = subprocess.Popen(["printf", r"ready\nsaid\n"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert popen.stdout is not None
    process = processes._Process(popen, 7)
    with processes.Processes(1, _running=[process]) as hands:
        hands._selector.register(popen.stdout, selectors.EVENT_READ, process)
        assert hands.take(time.monotonic() + seconds) == (7, "said\n", "")


def _killed(said: str) -> processes._Process:
    """Return a worker that was killed after it had said something."""
    popen = subprocess.Popen(
        ["sh", "-c", f"printf '{said}'; kill -9 $$"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    return processes._Process(popen, 7)


def test_how_a_worker_ended_is_said_in_whole_sentences() -> None:
    """Of whatever it did: the runs of a sweep, calibrations, the cases of an experiment."""
    advice = ", as the system does when memory runs out: then give a smaller --workers, or end other programs"
    with processes.Processes(1, _running=[_killed("")]) as hands:
        hands._selector.register(hands._running[0].popen.stdout, selectors.EVENT_READ, hands._running[0])
        with pytest.raises(RunLostError) as told:
            hands.take()
    assert str(told.value) == (
        f"a worker was killed by signal 9 before it began{advice}.  What it said is above; what was done is kept: give "
        "the same command again"
    )
    with processes.Processes(1, _running=[_killed(r"ready\n")]) as hands:
        hands._selector.register(hands._running[0].popen.stdout, selectors.EVENT_READ, hands._running[0])
        assert hands.take() == (7, None, f"the process that made it was killed by signal 9{advice}")

"""What is told of a run while it goes on: speeds, the slowest shard, and counters for Prometheus."""

from __future__ import annotations

from typing import Any

import pytest

from p2p_sim.backends import speeds
from p2p_sim.backends.speeds import Speeds, rate
from p2p_sim.core.site import SiteReport
from p2p_sim.progress import Pace


def report(seconds: float, delivered: int) -> SiteReport:
    return SiteReport([], [], [], done=False, seconds=seconds, delivered=delivered)


def test_a_round_is_told_with_its_slowest_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 12.0, 12.5])
    monkeypatch.setattr(speeds.time, "perf_counter", lambda: next(clock))
    said: list[tuple[str, int, int]] = []
    told: list[tuple[str, Any]] = []
    counted: list[tuple[str, int, float]] = []
    mine = Speeds(
        4_000_000, ["shard 0", "shard 1", "servers"], lambda *state: said.append(state),
        lambda event, about: told.append((event, about)), lambda *count: counted.append(count), 10.0,
    )  # fmt: skip
    next(clock)
    mine.tell("user, round 1", 0, 4_000_000)
    mine.round("user", 1, (0, 1), [report(0.4, 3_000_000), report(1.5, 1_000_000)])
    mine.tell("learner, round 1", 0, 1)
    mine.tell("", 1, 1)
    mine.round("learner", 1, (2,), [report(0.1, 500)])
    assert [label for label, _, _ in said] == [
        "user, round 1",
        "learner, round 1 (before: 2M a second users, 2M a second messages; slowest: shard 1, 1.5 s)",
        "",
    ]
    (event, about), (_, after) = told
    assert (event, about["slowest"], about["slowest_seconds"]) == ("round", "shard 1", 1.5)
    assert (about["users_per_second"], about["messages"], about["sites"]) == (2e6, 4_000_000, 2)
    assert (after["messages"], after["users"], after["messages_per_second"]) == (500, 0, 1000)
    assert counted == [("user", 4_000_000, 2.0), ("learner", 500, 0.5)]


def test_rates_in_words() -> None:
    assert [rate(number) for number in (7, 1234, 2.1e6, 5e12)] == [
        "7 a second", "1.23k a second", "2.1M a second", "5e+03G a second",
    ]  # fmt: skip


def test_counters_for_prometheus(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, float, dict[str, str]]] = []

    class Metric:
        def __init__(self, name: str, *_about: Any):
            self.name = name

        def inc(self, value: float, tags: dict[str, str]) -> None:
            said.append((self.name, value, tags))

        observe = inc

    monkeypatch.setattr("ray.util.metrics.Counter", Metric)
    monkeypatch.setattr("ray.util.metrics.Histogram", Metric)
    speeds.counters("PeerToPeer")("user", 30, 0.5)
    tags = {"protocol": "PeerToPeer", "role": "user"}
    assert said == [
        ("p2p_sim_messages_total", 30, tags), ("p2p_sim_rounds_total", 1, tags), ("p2p_sim_round_seconds", 0.5, tags),
    ]  # fmt: skip


def test_the_time_that_is_left() -> None:
    pace = Pace()
    assert pace.left("user, round 1", 0, 100, 5.0) == ""
    assert pace.left("user, round 1", 25, 100, 6.0) == ", about 3 s left"
    assert pace.left("user, round 2", 10, 100, 9.0) == ""  # other work
    assert pace.left("user, round 2", 10, 100, 9.5) == ""
    assert pace.left("user, round 2", 1, 1, 9.9) == ""

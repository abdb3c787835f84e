"""The exchange side by side: what is no exchange is found, and what this environment can run is one."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.sidebyside import __main__ as command
from benchmarks.sidebyside import outcomes, systems, tables
from benchmarks.sidebyside.exchange import CLUSTER, label
from benchmarks.sidebyside.outcomes import faults
from benchmarks.sidebyside.programs.numpy_floor import labels

USERS = 20 * CLUSTER


def exchanged(flips: float = 0.1, within: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Carry out the exchange plainly, or wrongly."""
    draw, users = np.random.default_rng(3), np.arange(USERS)
    y_hat = labels(users) ^ (draw.random(USERS) < flips)
    peers = users // CLUSTER * CLUSTER + draw.integers(0, CLUSTER, USERS)
    if not within:
        peers = draw.integers(0, USERS, USERS)
    count = np.bincount(peers, minlength=USERS), np.bincount(peers, y_hat, USERS)
    return count[0].astype("u1"), count[1].astype("u1")


def test_the_exchange_is_accepted_and_what_is_none_is_not():
    assert faults(*exchanged()) == []
    assert any("cluster 0 received" in fault for fault in faults(*exchanged(within=False)))
    assert any("ones in clusters" in fault for fault in faults(*exchanged(flips=0.3)))
    got, ones = exchanged()
    each = np.ones_like(got)  # a permutation: everybody receives one
    assert any("users who received 0" in fault for fault in faults(each, np.minimum(ones, each)))


def test_labels_are_the_same_in_numpy():
    assert labels(np.arange(3 * CLUSTER)).tolist() == [label(user) for user in range(3 * CLUSTER)]


HERE = {one.name: one for one in systems.SYSTEMS if one.lock is None and "shards" not in one.more}


@functools.cache
def carried_out(name: str, again: bool = False) -> systems.Measured:
    return systems.measure(HERE[name], sys.executable, USERS, 7, 120)


@pytest.mark.slow
@pytest.mark.parametrize("name", HERE)
def test_a_system_of_this_environment_carries_it_out(name):
    """Again it draws the same, and another way of one program draws it too: that is as good as once more."""
    others = [other for other, one in HERE.items() if one.program == HERE[name].program and other != name]
    first, second = carried_out(name), carried_out(others[0]) if others else carried_out(name, True)
    assert first.outcome.messages == USERS
    assert first.outcome.digest == second.outcome.digest
    assert first.peak > 4 << 20  # an interpreter alone


def test_each_system_has_its_program_and_its_lock():
    for system in systems.SYSTEMS:
        assert importlib.util.find_spec(f"{systems.PROGRAMS}.{system.program}")
        if system.lock not in (None, "system"):
            assert "==" in (systems.LOCKS / f"{system.lock}.txt").read_text()


def test_a_program_that_takes_too_long_or_fails_is_said():
    with pytest.raises(systems.Failed, match=r"over 0\.2 CPU s"):
        systems.measure(HERE["plain Python"], sys.executable, 10**8, 7, 0.2)
    broken = systems.System("broken", "no_such_program")
    with pytest.raises(systems.Failed, match=r"status 1: .*no_such_program"):
        systems.measure(broken, sys.executable, CLUSTER, 7, 60)


def test_a_program_that_holds_too_much_is_said(monkeypatch):
    monkeypatch.setattr(systems, "_free", lambda: 1 << 20)
    with pytest.raises(systems.Failed, match="over 0 GiB"):
        systems.measure(HERE["plain Python"], sys.executable, 10**8, 7, 60)


def measured(cpu: float, digest: str = "equal", start: float = 1.0) -> systems.Measured:
    """Return what a run of 1,000 users might have taken."""
    return systems.Measured(outcomes.Outcome(1000, True, digest, 2 * cpu, cpu, start), 5 << 20)


def test_the_least_disturbed_run_counts_and_long_runs_are_not_repeated(monkeypatch):
    taken = iter([0.5, 0.2, 0.4, 0.3, 0.6])
    monkeypatch.setattr(command, "measure", lambda *_: measured(next(taken)))
    row = command.rows(HERE["plain Python"], Path(), 1000, 60)[0]
    assert (row["runs"], row["messages_per_cpu_second"], row["most_cpu_of_least"]) == (5, 5000, 3.0)
    assert row["identical"]
    digests = iter("ab")
    monkeypatch.setattr(command, "measure", lambda *_: measured(10, next(digests)))
    first, second = command.rows(HERE["plain Python"], Path(), 10**4, 60)
    assert first["runs"] == 2
    assert not first["identical"]
    assert second["failed"] == "not run: ten times 10 CPU s is well over 60"


def test_what_a_folder_has_of_other_systems_stays(tmp_path):
    rows = [{"system": name, "users": 1000, "failed": "so"} for name in ("SimPy", "Mesa")]
    command.save({"rows": rows}, tmp_path)
    simpy = next(one for one in systems.SYSTEMS if one.name == "SimPy")
    assert [row["system"] for row in command.kept(tmp_path, [])] == ["Mesa", "SimPy"]
    assert [row["system"] for row in command.kept(tmp_path, [simpy])] == ["Mesa"]
    assert command.kept(tmp_path / "none", []) == []


def test_the_table_and_the_plot(tmp_path):
    row = {
        "system": "one", "users": 1000, "messages_per_cpu_second": 5, "wall_seconds": 1.0, "start_cpu_seconds": 2.0,
        "peak_bytes": 3 << 20, "identical": False, "peers": False,
    }  # fmt: skip
    result = {"rows": [row, {"system": "one", "users": 10_000, "failed": "over 60 s"}]}
    text = tables.markdown(result)
    assert "| one (users have a server alone) | 5 |" in text
    assert "| one (users have a server alone) | 1e3 | 1.00 | 2.0 | 3 | **no** | 1e4: over 60 s |" in text
    tables.plot(result, tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()

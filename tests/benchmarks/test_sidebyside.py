"""The exchange side by side: what is no exchange is found, and what this environment can run is one."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

from benchmarks.sidebyside import systems, tables
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


@pytest.mark.slow
@pytest.mark.parametrize("name", HERE)
def test_a_system_of_this_environment_carries_it_out(name):
    first, second = (systems.measure(HERE[name], sys.executable, USERS, 7, 120) for _ in range(2))
    assert first.outcome.messages == USERS
    assert first.outcome.digest == second.outcome.digest
    assert first.peak > 4 << 20  # an interpreter alone


def test_each_system_has_its_program_and_its_lock():
    for system in systems.SYSTEMS:
        assert importlib.util.find_spec(f"{systems.PROGRAMS}.{system.program}")
        if system.lock not in (None, "system"):
            assert "==" in (systems.LOCKS / f"{system.lock}.txt").read_text()


def test_a_program_that_takes_too_long_or_fails_is_said():
    with pytest.raises(systems.Failed, match=r"over 0\.2 s"):
        systems.measure(HERE["plain Python"], sys.executable, 10**8, 7, 0.2)
    broken = systems.System("broken", "no_such_program")
    with pytest.raises(systems.Failed, match=r"status 1: .*no_such_program"):
        systems.measure(broken, sys.executable, CLUSTER, 7, 60)


def test_the_table_and_the_plot(tmp_path):
    row = {
        "system": "one", "users": 1000, "messages_per_cpu_second": 5, "wall_seconds": 1.0, "start_cpu_seconds": 2.0,
        "peak_bytes": 3 << 20, "identical": False, "peers": False,
    }  # fmt: skip
    result = {"rows": [row, {"system": "one", "users": 10_000, "failed": "over 60 s"}]}
    assert (
        "| one (to a server alone) | 1e+03 | 5 (best 5) | 1.00 | 2.0 | 3 | **no** | 1e+04 users: over 60 s |"
        in (tables.markdown(result))
    )
    tables.plot(result, tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()

"""Programs work with one BLAS thread: products have the same bits for all numbers of threads, of whichever kind."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import p2p_sim
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.core.blas_threads import OneBlasThread

ROOT = Path(__file__).parents[2]
WIDE = 60_000


@dataclass(frozen=True)
class Products(Protocol):
    """Each block sums a long product, whose last bits depend on how many threads BLAS divides it among."""

    label = Message("user", "learner", "sends a label", y=bool)

    def user(self, me: Party) -> Rounds:
        """Send, and keep the product and the numbers of threads."""
        yield self.label(y=me.y)
        most = max((pool["num_threads"] for pool in blas()), default=1)
        long = np.sin(np.arange(WIDE) + me.rows.start)
        return {"product": np.full(me.size, long @ np.cos(long)), "threads": np.full(me.size, most)}

    def learner(self, me: Party) -> Rounds:
        """Receive, and keep the number of threads."""
        yield self.label.receive()
        return {"threads": np.array([max((pool["num_threads"] for pool in blas()), default=1)])}


def blas() -> list[dict[str, int]]:
    return [pool for pool in threadpool_info() if pool["user_api"] == "blas"]


def threads_set() -> list[int]:
    return [pool["num_threads"] for pool in blas()]


def people() -> p2p_sim.Population:
    return p2p_sim.Population.from_arrays(y=np.arange(64) % 2 == 0)


def digests() -> None:
    """Print the digests of 1, 2 and 3 threads, and how many BLAS threads were seen."""
    for threads in (1, 2, 3):
        run = p2p_sim.run(Products(), people(), seed=1, threads=threads, blocks=8)
        seen = {int(each) for role in ("user", "learner") for each in run.outputs[role]["threads"]}
        print(run.digest, run.outputs["user"]["product"].tobytes().hex(), seen)


def test_digests_do_not_depend_on_threads_of_either_kind() -> None:
    said = set()
    for count in "12":
        words = [sys.executable, "-c", "from tests.core.test_blas_threads import digests; digests()"]
        settings = {"OPENBLAS_NUM_THREADS": count, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count}
        done = subprocess.run(
            words, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=True
        )
        said |= set(done.stdout.splitlines())
    assert len(said) == 1
    assert said.pop().endswith(" {1}")


def test_two_blas_threads_would_give_other_bits() -> None:
    if not blas() or (os.cpu_count() or 1) < 2:
        pytest.skip("no BLAS whose threads can be set")
    found = set()
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found |= {
                (threads, float((long := np.sin(np.arange(WIDE) + first)) @ np.cos(long)))
                for first in range(0, 64, 8)
            }
    assert {each for threads, each in found if threads == 1} != {
        each for threads, each in found if threads == 2
    }


def test_the_setting_of_the_caller_comes_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = threads_set()
        p2p_sim.run(Products(), people(), seed=1, blocks=8)
        assert threads_set() == before


def test_two_runs_at_once_leave_the_setting_as_it_was() -> None:
    """Each in a thread: the first to end must not take the limit from the other, nor the last leave it."""
    limit, both, seen = OneBlasThread(), Barrier(2), list[list[int]]()

    def first() -> None:
        with limit:
            both.wait()
            both.wait()

    def second() -> None:
        both.wait()
        with limit:
            both.wait()
            ended.result()
            seen.append(threads_set())

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(2) as pool:
        before = threads_set()
        ended = pool.submit(first)
        pool.submit(second).result()
        assert seen == [[1] * len(before)]
        assert threads_set() == before

"""This project: the exchange as a protocol, run as the last argument says: a key of ``HOW``."""

import atexit
import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

os.environ["P2P_SIM_NUMBA"] = "1"  # or runs of one to twenty million users begin without the compiled loops

import p2p_sim
from benchmarks.sidebyside.exchange import ALPHA, CLUSTER, perform
from benchmarks.sidebyside.programs.numpy_floor import labels
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.rundir.trace_writer import Draft

HOW = {
    "one-thread": {"threads": 1}, "threads": {}, "shards": {"backend": "shards", "shards": 2},
    "traced": {"threads": 1, "trace": "full"}, "folder": {"threads": 1, "trace": "full"},
}  # fmt: skip


@dataclass(frozen=True)
class Exchange(Protocol):
    """Everybody sends her noisy label to a random member of her cluster, herself included.

    ``alpha``: probability of a flip.
    """

    alpha: float
    label = Message("user", "user", "sends a noisy label", y_hat=bool)

    def user(self, me: Party) -> Rounds:
        """Send, and count what comes."""
        y_hat = me.y ^ me.draw.bernoulli("flip", self.alpha)
        heard = yield self.label(to=me.draw.member("peer", me.cluster), y_hat=y_hat)
        return {"got": heard.count.astype(np.uint16), "ones": heard.y_hat.sum().astype(np.uint16)}


def people(users):
    """Make users with labels in clusters."""
    y = np.concatenate([labels(np.arange(low, low + CLUSTER)) for low in range(0, users, CLUSTER)])
    return p2p_sim.Population.from_arrays(y=y, cluster=np.repeat(np.arange(users // CLUSTER), CLUSTER))


def run(population, seed, how, place):
    """Carry the exchange out; return a function that says what each user received, and how many of these said 1."""
    stack = contextlib.ExitStack()
    out = {}  # a draft gets messages and outputs, a path the population too
    if "trace" in HOW[how]:
        out = {"out": stack.enter_context(Draft(place)) if how == "traced" else place}
    done = p2p_sim.run(Exchange(ALPHA), population, seed=seed, digest=False, **HOW[how], **out)

    def received():
        with stack:
            columns = done.outputs["user"]
            return columns["got"], columns["ones"]

    return received


def prepare(users, seed):
    folder, how = Path(sys.argv[3]), sys.argv[4]
    population = people(users)
    if how == "shards":
        from p2p_sim.backends.ray_session import session

        stack = contextlib.ExitStack()
        stack.enter_context(session(None, 2, 1 << 30))
        atexit.register(stack.close)
    run(
        people(300 * CLUSTER), seed, how, folder / "first"
    )()  # imports, loads the compiled loops, starts actors

    def exchange(begin):
        begin()
        return run(population, seed, how, folder / "run")

    return exchange


if __name__ == "__main__":
    perform(prepare)

"""This project: the exchange as a protocol, run as the last argument says: a key of ``HOW``."""

import atexit
import contextlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import p2p_sim
from benchmarks.sidebyside.exchange import ALPHA, CLUSTER, perform
from benchmarks.sidebyside.programs.numpy_floor import labels
from p2p_sim.core import Message, Party, Protocol, Rounds

HOW = {
    "one-thread": {"threads": 1}, "threads": {}, "shards": {"backend": "shards", "shards": 2},
    "traced": {"threads": 1, "trace": "full"},
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
    numbers = np.arange(users)
    return p2p_sim.Population.from_arrays(y=labels(numbers), cluster=numbers // CLUSTER)


def prepare(users, seed):
    how, population = HOW[sys.argv[4]], people(users)
    stack = contextlib.ExitStack()
    if "shards" in how:
        from p2p_sim.backends.ray_session import session

        stack.enter_context(session(None, 2, 1 << 30))
        atexit.register(stack.close)
    p2p_sim.run(Exchange(ALPHA), people(300 * CLUSTER), seed=seed, digest=False, **how)  # loads the kernels

    def exchange(begin):
        begin()
        with tempfile.TemporaryDirectory() as folder:
            out = {"out": Path(folder) / "run"} if "trace" in how else {}
            run = p2p_sim.run(Exchange(ALPHA), population, seed=seed, digest=False, **how, **out)
            columns = run.outputs["user"]
        return columns["got"], columns["ones"]

    return exchange


if __name__ == "__main__":
    perform(prepare)

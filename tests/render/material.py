"""Slices to draw and export: of shipped protocols, and one with every name that could break a format."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import p2p_sim
from p2p_sim import Population
from p2p_sim.coalition import Coalition
from p2p_sim.trace.slices import Slice
from protocols import EncryptedShuffle, PeerPermutation, PeerToPeer, SecureAggregation
from tests.tiny import CLUSTERS, people

PROTOCOLS = {
    "peer to peer": PeerToPeer(alpha=0.1, theta=0.6),
    "encrypted shuffle": EncryptedShuffle(1.0, shufflers=2),
    "peer permutation": PeerPermutation(alpha=0.2),
    "secure aggregation": SecureAggregation(4, threshold=3),
}

EVIL = [
    "<script>alert('1')</script>", 'say "no"; end', "two\nlines\r\n\tand a tab", "]]> --> &amp; #35; %%",
    "nul\x00 \x1b[31m \ud800 \u202e",
    "{'a': 1}", "a:b->>c", "end",
]  # fmt: skip


def sliced(protocol: Any, population: Population | None = None) -> tuple[Any, Slice]:
    """Run a protocol and return the run with all its messages."""
    run = p2p_sim.run(protocol, population or people(), seed=3, trace="full")
    kinds = protocol.messages()
    return run, Slice.of(kinds, {kind: run.messages(kind) for kind in kinds})


def sight_of(protocol: Any, part: Slice, view: str) -> dict[str, Any]:
    """Return what a coalition with named users sees and reads of a slice."""
    coalition, kinds = Coalition.parse(view, protocol.roles()), protocol.messages()
    return {kind: coalition.sees(kinds[kind], part.kinds[kind], "plain") for kind in part.kinds}


def cluster_of(ids: Any) -> Any:
    """Return the cluster numbers of the tiny population's users."""
    return np.array(CLUSTERS)[ids]


def many(users: int = 300, size: int = 10) -> Population:
    """More users than lanes."""
    return Population.from_arrays(y=np.arange(users) % 3 == 0, cluster=np.arange(users) // size + 5)


def large(messages: int) -> Slice:
    """Many messages of one round, each from another user to the learner."""
    zeros = np.zeros(messages, np.int64)
    columns = {
        "round": zeros + 1, "sender": np.arange(messages), "recipient": zeros, "seq": zeros,
        "y": zeros.astype(np.bool_), "nbytes": zeros + 17,
    }  # fmt: skip
    return Slice.of({"report": PeerToPeer(0.1).messages()["report"]}, {"report": columns})


def peak(work: Callable[[], Any]) -> int:
    """Return how many bytes Python and numpy hold at most while some work is done."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def evil() -> Slice:
    """Messages whose kinds, roles, sentences and fields have names that mean something to a format."""
    kinds: dict[str, Any] = {}
    roles, texts, sealed = {}, {}, {}
    for i, name in enumerate(EVIL):
        ends = [("user", name), (EVIL[i - 1], "user"), ("user", "user")][i % 3]
        kinds[name] = {
            "round": np.array([i + 1, i + 1], np.int32),
            "sender": np.array([1, 2]) if ends[0] == "user" else np.zeros(2, np.int64),
            "recipient": np.array([2, 2]) if ends[1] == "user" else np.zeros(2, np.int64),
            "seq": np.array([0, 1]),
            f"field {name}": np.array([1, 0], np.uint8),
            "nbytes": np.array([17, 17]),
        }
        roles[name], texts[name] = ends, f"tells {name}"
        sealed[name] = name if i % 2 else None
    layers: dict[str, tuple[str, ...]] = dict.fromkeys(kinds, ())
    return Slice(kinds, roles, texts, sealed, layers, dict.fromkeys(kinds, 2), (f"a note: {EVIL[0]}",))

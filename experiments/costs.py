"""What the protocols cost at one setting: messages, bytes, cryptographic operations, computing, and simulated time.

``python -m experiments.costs --out costs.csv``; about half a minute.  Seconds depend on the machine; the rest does not.
"""

from __future__ import annotations

import argparse
import functools
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import p2p_sim
from experiments._common import check, write_csv
from experiments._rows import add_fresh, keeping, promised, synthetic
from p2p_sim import Population
from p2p_sim.crypto.rates import Rates, measure
from p2p_sim.network import topologies
from protocols import (
    EncryptedShuffle,
    LabelProportions,
    NetworkShuffle,
    PeerPermutation,
    PeerToPeer,
    SecureAggregation,
)

USERS = 10_000
CLUSTER = 100
DELTA = 1e-6
CHANNEL, SERVERS = "20ms,10Mbit", "1ms,1Gbit"
SIZES = (10, 20, 50, 200)
"""Cluster sizes at which the peer permutation is run, too: its cost grows with them."""

SECONDS = ("cpu_seconds", "cpu_seconds_each", "simulated_seconds")
"""Columns that depend on the machine."""


@dataclass(frozen=True)
class Setting:
    """A protocol under the name that the table gives it."""

    name: str
    protocol: Any
    cluster_size: int = CLUSTER
    graph: str | None = None


def settings() -> list[Setting]:
    """Return what is compared, in the order of the table."""
    return [
        Setting("peer-to-peer", PeerToPeer(alpha=0.1)),
        Setting("encrypted shuffle", EncryptedShuffle(epsilon=1.0)),
        Setting("encrypted shuffle, chain of 3", EncryptedShuffle(epsilon=1.0, shufflers=3)),
        Setting("network shuffle, 10 steps", NetworkShuffle(epsilon=1.0, steps=10), graph="regular:20"),
        Setting("label proportions", LabelProportions(bag_size=CLUSTER)),
        Setting("secure aggregation", SecureAggregation(bag_size=CLUSTER)),
        Setting("peer permutation", PeerPermutation(alpha=0.1)),
        *(Setting("peer permutation", PeerPermutation(alpha=0.1), size) for size in SIZES),
    ]


def rows(setting: Setting, users: int, rates: Rates) -> Iterator[dict[str, Any]]:
    """Yield a row for each role that takes part."""
    people = Population.synthetic(users=users, cluster_size=setting.cluster_size, positive=0.3, seed=1)
    if setting.graph is not None:
        people = topologies.join(people, setting.graph, 1, within_clusters=False)
    run = p2p_sim.run(setting.protocol, people, seed=1, costs=True, digest=False)
    bill = run.costs(CHANNEL, servers=SERVERS, rates=rates)
    about = synthetic(people.y, "a label is 1 with probability 0.3")
    private = promised(setting.protocol, people, DELTA, ("learner", "wire"))
    rounds = max(number for (_, number), count in run.counts.items() if count.travelled)
    for role, done in bill.roles.items():
        if done.messages_up + done.messages_down == 0:
            continue
        yield {
            **about,
            "protocol": setting.name,
            "cluster_size": setting.cluster_size,
            "role": role,
            "parties": bill.parties[role],
            "sent": done.messages_up,
            "received": done.messages_down,
            "bytes_up": done.bytes_up,
            "bytes_down": done.bytes_down,
            "operations": " ".join(f"{name}={count}" for name, count in sorted(done.operations.items())),
            "rounds": rounds,
            "cpu_seconds": f"{done.compute_seconds:.3g}",
            "cpu_seconds_each": f"{done.compute_seconds / bill.parties[role]:.3g}",
            "simulated_seconds": f"{bill.seconds:.3g}",
            "trials": 1,
            **private,
        }


def main(words: list[str] | None = None) -> int:
    """Run all and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--out", type=Path, default=Path("costs.csv"))
    add_fresh(parser)
    options = parser.parse_args(words)
    check(parser, options.out)
    kept = keeping(parser, options.out, "settings", fresh=options.fresh)
    # Kept like rows, for seconds of one table are of one measurement; they are of this machine alone.
    rates = Rates(**kept.get({"rates of": platform.node()}, lambda: [asdict(measure())])[0])
    about = {"users": options.users, "rates": asdict(rates)}
    cases = [
        (about | {"setting": repr(setting)}, functools.partial(_rows_of, setting, options.users, rates))
        for setting in settings()
    ]
    write_csv(options.out, kept.take(cases))
    return 0


def _rows_of(setting: Setting, users: int, rates: Rates) -> list[dict[str, Any]]:
    print(f"{setting.name}, clusters of {setting.cluster_size}", file=sys.stderr)
    return list(rows(setting, users, rates))


if __name__ == "__main__":
    sys.exit(main())

"""What the protocols cost at one setting: messages, bytes, cryptographic operations, computing, and simulated time.

10,000 users in clusters of 100, users at 20ms,10Mbit, servers at 1ms,1Gbit; a row a role.  Seconds depend on the
machine; the rest does not.  docs/costs.md has the table.
"""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import p2p_sim
from experiments import _plots
from experiments._common import Claim, Experiment, Options, Outcome, Verdict, main
from experiments._rows import promised, synthetic
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

USERS, QUICK_USERS = 10_000, 1_000
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


def run(options: Options) -> Outcome:
    """Run all settings, and count what a user sends."""
    users = QUICK_USERS if options.quick else USERS
    kept = options.kept("costs", "settings")
    # Kept like rows, for seconds of one table are of one measurement; they are of this machine alone.
    rates = Rates(**kept.get({"rates of": platform.node()}, lambda: [asdict(measure())])[0])
    about = {"users": users, "rates": asdict(rates)}
    cases = [
        (about | {"setting": repr(setting)}, functools.partial(_rows_of, setting, users, rates))
        for setting in settings()
    ]
    found = kept.take(cases)
    return Outcome({"": found}, [_claim(found)], {"": lambda: _plot(found)})


def _rows_of(setting: Setting, users: int, rates: Rates) -> list[dict[str, Any]]:
    print(f"{setting.name}, clusters of {setting.cluster_size}", file=sys.stderr)
    return list(rows(setting, users, rates))


def _of_users(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of users in clusters of the same size."""
    return [row for row in found if row["role"] == "user" and row["cluster_size"] == CLUSTER]


def _claim(found: Sequence[dict[str, Any]]) -> Claim:
    by_name = {row["protocol"]: row for row in _of_users(found)}
    resampled, permuted = by_name["peer-to-peer"], by_name["peer permutation"]

    def said(row: dict[str, Any]) -> str:
        sent, got, up = (row[name] / row["parties"] for name in ("sent", "received", "bytes_up"))
        what = row["operations"] or "no cryptography"
        return f"{sent:.1f} messages sent, {got:.1f} received and {up:,.0f} bytes a user, {what}"

    received = resampled["received"] / resampled["parties"]
    dearer = permuted["bytes_up"] > 10 * resampled["bytes_up"]
    plain = not resampled["operations"] and "seal" in permuted["operations"]
    shape: Verdict = "reproduced" if received <= 1 else "reproduced in shape"
    return Claim(
        "Clustering 2022, Section 5.1",
        "each user receives one unencrypted message from one other user; a secret permutation instead would need a "
        "cryptographic protocol",
        f"peer-to-peer: {said(resampled)}; permutation in clusters of {CLUSTER}: {said(permuted)}",
        shape if dearer and plain and received <= 2 else "not reproduced",
        "reproduced: no more than one message received; in shape: two, as here a user is first asked for the "
        "label that she sends; the seed of the permutation is the sum of sealed contributions of a cluster's members",
    )


def _plot(found: Sequence[dict[str, Any]]) -> Figure:
    figure, grid = _plots.panels(1, 1, (7.0, 3.2))
    axes = grid[0, 0]
    users = _of_users(found)
    for column, colour, offset in (("bytes_up", _plots.BLUE, -0.2), ("bytes_down", _plots.ORANGE, 0.2)):
        places = [place + offset for place in range(len(users))]
        each = [max(row[column] / row["parties"], 1) for row in users]
        axes.barh(places, each, height=0.4, color=colour, label=column.replace("_", " "))
    axes.set_yticks(range(len(users)), [row["protocol"] for row in users])
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel=f"bytes a user, clusters of {CLUSTER}")
    axes.legend(fontsize="small")
    return figure


EXPERIMENT = Experiment(
    "costs", "What the protocols cost", "Clustering 2022, Section 5.1", "half a minute", run,
    keys=("protocol", "cluster_size", "role", "n"),
    values=dict.fromkeys(("parties", "sent", "received", "bytes_up", "bytes_down", "rounds"), 0.0),
    seeded=False,
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

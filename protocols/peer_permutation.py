"""Peer permutation: a cluster agrees on a secret permutation, by which its users hand on their noisy labels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import InputError, Message, Party, Protocol, Rounds, check_flip, check_range
from p2p_sim.core.groups import Members
from p2p_sim.core.random_words import order

SHARES = 1 << 62
"""A contribution is one of so many, and so is their sum: the seed."""

MOST_SHARES = 50_000_000
"""Contributions of a run: the square of each cluster's size, summed.  Beyond, memory would not do."""


@dataclass(frozen=True)
class PeerPermutation(Protocol):
    """Users flip their labels, agree on a permutation of their cluster, and report the label that it gives them.

    ``alpha``: probability in [0, 1/2] that a user flips her own label.  Everybody sends everybody of her cluster a
    random contribution, sealed: s (s - 1) messages in a cluster of s, where Algorithm 2 sends 2 a user.  The sum of
    all seeds the permutation: it is uniform, and unknown to whoever lacks one of them.  Labels are bits.  The
    learner returns columns ``sender`` and ``y``.  Raises InputError for parameters out of range; a run among clusters
    that exchange more than 50 million contributions raises ProtocolError.

    *Source:* Clustering 2022, section 5.1.
    *Assumes:* users follow the protocol, none of them talks to the learner, who does not watch who writes to whom;
    SHAKE-256 of a secret seed is as good as random.  One peer sees one noisy label, which alpha alone protects.
    """

    alpha: float

    share = Message(
        "user", "user", "contributes to the seed, sealed for one member of the cluster", sealed_for="user",
        word=np.uint64,
    )  # fmt: skip
    label = Message("user", "user", "hands the noisy label to whom the permutation says", y_hat=bool)
    report = Message("user", "learner", "hands the learner the label that came", y=bool)

    def __post_init__(self) -> None:
        check_range("alpha", self.alpha, 0, 0.5)

    def users_at_once(self, cluster_size: int) -> int:
        """Return how many users, in clusters of one size, need no more than a gigabyte or so."""
        return MOST_SHARES // 5 // cluster_size

    def check_sizes(self, sizes: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> None:
        """Check the number of contributions; raises InputError above 50 million."""
        shares = int((sizes * sizes * times).sum())
        if shares > MOST_SHARES:
            raise InputError(
                f"clusters of up to {sizes.max():,} users exchange {shares:,} contributions; at most {MOST_SHARES:,} "
                "are simulated: give smaller clusters, or fewer users"
            )

    def user(self, me: Party) -> Rounds:
        """Flip, agree, hand on, report."""
        self.check_sizes(*np.unique(np.diff(me.cluster.starts), return_counts=True))
        check_flip("alpha", self.alpha)
        y_hat = me.y ^ me.draw.bernoulli("flip", self.alpha)
        word = me.draw.below("share", SHARES).astype(np.uint64)
        shares = yield self.share(to=me.all_of(me.cluster), word=word)
        to = successors(me.cluster, me.id, shares.word.sum() % np.uint64(SHARES))
        labels = yield self.label.reply(shares.where(shares.sender == to), y_hat=y_hat)
        yield self.report(y=labels.y_hat)

    def learner(self, me: Party) -> Rounds:
        """Receive labels in an order that nobody who follows the protocol tells her."""
        reports = yield self.report.receive()
        return reports.columns()


def successors(cluster: Members, ids: npt.NDArray[np.int64], seeds: npt.NDArray[np.uint64]) -> Any:
    """Return the id of the user to whom each one's label goes, by the seed that she knows.

    The i-th of a cluster, in ascending id, gives to the one at place i of the agreed order.  What members with one seed
    would each compute is computed once.
    """
    alike = np.lexsort((seeds, cluster.codes))
    code, seed, place = cluster.codes[alike], seeds[alike], cluster.places(ids)[alike]
    starts = np.flatnonzero((np.diff(code, prepend=-1) != 0) | (np.diff(seed, prepend=seed[:1]) != 0))
    bounds = [*starts.tolist(), len(ids)]
    given = np.empty(len(ids), np.int64)  # the place of each one's successor
    for low, high, one, size in zip(
        bounds, bounds[1:], seed[starts].tolist(), cluster.size[alike][starts].tolist(), strict=False
    ):
        given[low:high] = agreed_order(one, size)[place[low:high]]
    rows = cluster.starts[code] + given
    to = np.empty(len(ids), np.int64)
    to[alike] = rows if cluster.order is None else cluster.order[rows]
    return to


def agreed_order(seed: int, size: int) -> npt.NDArray[np.int64]:
    """Return the permutation of 0 .. size - 1 that a seed stands for: the order of ``size`` words of SHAKE-256.

    If the seed is uniform and the words are as good as random, the permutation is uniform except for equal words, of
    which a cluster of s has some with probability below s^2 / 2^65.
    """
    stream = hashlib.shake_256(b"p2p-sim peer permutation" + seed.to_bytes(8, "little"))
    return order(np.frombuffer(stream.digest(8 * size), "<u8").astype(np.uint64))

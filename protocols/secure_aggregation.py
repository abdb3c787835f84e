"""Secure aggregation: the server learns the sum of each bag and nothing else, even if users drop out on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import (
    BagSums,
    Bytes,
    InputError,
    Message,
    Party,
    Protocol,
    Rounds,
    Vector,
    check_whole,
    exp,
)
from p2p_sim.core.columns import Inbox, PerMessage
from p2p_sim.crypto import field, pairs, shamir
from p2p_sim.crypto.octets import Octets
from p2p_sim.network.bags import bag_numbers, bags_of, largest, once
from protocols._unmasking import UnmaskingServer
from protocols.laplace_label_proportions import check_noise, scale

BITS = 256
_TAIL = 72
"""What is left out of a table is less than 2^-72 of it: no word of 64 bits would draw it."""


@lru_cache(maxsize=16)
def polya_weights(scale: Fraction, shares: int) -> tuple[int, ...]:
    """Return weights of 0, 1, ..., proportional to Polya(1/shares, q), q = e^(-1/scale), in 256-bit integers.

    The difference of two such variables is a share: ``shares`` of them, added up, are discrete Laplace noise of that
    scale, P(j) proportional to e^(-|j| / scale).  ``scale`` in steps, above 0.

    *Source:* Goryczka and Xiong 2017: the geometric distribution is infinitely divisible.
    """
    ratio = int(exp(-1 / float(scale)) * (1 << BITS))
    weights, weight, total = [], 1 << BITS, 0
    while True:
        weights.append(weight)
        total += weight
        j = len(weights)
        weight = weight * ratio * (1 + (j - 1) * shares) // (shares * j << BITS)
        if weight << (_TAIL + BITS) < total * ((1 << BITS) - ratio):
            return tuple(weights)


LIMBS = 5
"""Field elements of 7 bytes that hold a secret of 32."""

MOST_STEPS = 150
"""Largest scale of the noise, in steps: a user's share is drawn from a table of some 50 entries a step."""

MOST_SHARES = 5_000_000
"""Shares that users of a run send each other, one for each neighbour of each: about a kilobyte of memory each."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SecureAggregation(Protocol):
    """Users mask their labels so that the masks cancel in the sum of a bag; with noise, nobody need be trusted.

    ``bag_size``: k, users a bag, at least 2, as in LabelProportions.  ``threshold``: t, the least number of users of a
    bag that must stay to the end, 2 to k; fewer, and the bag is refused; 0: three quarters of k.  ``degree``: with how
    many others of her bag a user shares masks, even; in a bag of at most that many others, with all.  ``epsilon``: in
    (0, 700], in nats: every user adds a share of discrete Laplace noise of scale 1 / epsilon to her label, of which t
    are the whole noise; infinity adds none.  ``grid``: steps a label, as in LaplaceLabelProportions.  Labels are bits.
    The learner returns columns ``bag``, ``cluster``, ``joined``, ``size`` (who stayed), ``total`` (the sum in steps,
    exact; 0 where refused), ``refused``.  Raises InputError for parameters out of range, and for more than 5 million
    shares, one for each neighbour of each user.

    A bag that fewer than t users join ends there: nobody in it shares or reports.  Who drops out before her masked
    value came is left out of the sum.  In a bag where all are neighbours any users may drop out, at any step, while t
    stay; otherwise more than half of each user's neighbours must stay, too, and masks must join all who stayed, or her
    bag is refused.  If m stay, the noise has m / t times the variance of Laplace noise: the price of being safe with t.

    *Source:* Bonawitz et al. 2017, figure 4; Bell et al. 2020 (a sparse graph); Unified 2023, section 6 (the noise).
    *Assumes:* the aggregator follows the protocol but may be curious; fewer neighbours of a user collude than it takes
    to recover her secrets; keys for sealing are known.  An aggregator who deviates can put keys of her own in the place
    of neighbours' keys for masks, which nobody signs: then a user's own share of the noise is all that hides her label.
    """

    bag_size: int = 16
    threshold: int = 0
    degree: int = 20
    epsilon: float = math.inf
    grid: int = 1

    advertise = Message(
        "user",
        "aggregator",
        "joins her bag and publishes a key",
        bag=np.int32,
        cluster=np.int32,
        key=Bytes(32),
    )
    neighbour = Message(
        "aggregator", "user", "names a neighbour: her key, the place of her share, how many shares recover a secret",
        peer=np.int64, key=Bytes(32), place=np.int32, need=np.int32,
    )  # fmt: skip
    share = Message(
        "user", "aggregator", "shares the secrets behind her masks with one neighbour, by way of the server",
        sealed_for="user", giver=np.int64, seed=Vector(np.uint64, LIMBS), private=Vector(np.uint64, LIMBS),
    )  # fmt: skip
    routed = Message(
        "aggregator", "user", "passes on a neighbour's share",
        sealed_for="user", giver=np.int64, seed=Vector(np.uint64, LIMBS), private=Vector(np.uint64, LIMBS),
    )  # fmt: skip
    report = Message(
        "user", "aggregator", "hands in her masked value, and how many pairwise masks are on it",
        value=np.uint64, masks=np.int32,
    )  # fmt: skip
    ask = Message(
        "aggregator", "user", "asks for her share of a neighbour's seed if that one stayed, of her key if not",
        giver=np.int64, stayed=bool,
    )  # fmt: skip
    reveal = Message(
        "user", "aggregator", "reveals the share that was asked for", value=Vector(np.uint64, LIMBS)
    )
    total = Message(
        "aggregator", "learner", "tells the sum of a bag, or that too few stayed",
        bag=np.int32, cluster=np.int32, joined=np.int32, size=np.int32, total=np.int64, refused=bool,
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_whole("bag_size", self.bag_size, 2)
        if self.threshold:
            check_whole("threshold", self.threshold, 2, self.bag_size)
        check_whole("degree", self.degree, 2)
        if self.degree % 2:
            raise InputError(
                f"degree = {self.degree}: must be even: as many neighbours on each side of a ring"
            )
        check_whole("grid", self.grid)
        if self.noisy:
            check_noise(self.epsilon, self.grid, MOST_STEPS)

    @property
    def noisy(self) -> bool:
        """Whether noise is added."""
        return self.epsilon != math.inf

    @property
    def least(self) -> int:
        """The least number of users of a bag that must stay: t."""
        return self.threshold or max(2, math.ceil(3 * self.bag_size / 4))

    def needed(self, joined: Any, neighbours: Any) -> Any:
        """Return how many of a user's neighbours can recover her secrets, in a bag of ``joined``; arrays or integers.

        More than half of those she has when k join, or of those she has, if more; where all others are neighbours, no
        more than the t - 1 whom she has when t stay.  So no number who join makes it fewer than ``fewest``.
        """
        half = np.minimum(np.maximum(joined, self.bag_size) - 1, self.degree) // 2 + 1
        return np.where(neighbours == joined - 1, np.minimum(half, self.least - 1), half)

    @property
    def fewest(self) -> int:
        """How many neighbours can recover a user's secrets, at least, whatever number joined: that where t did."""
        return int(self.needed(self.least, min(self.least - 1, self.degree)))

    def bag_sums(self) -> BagSums:
        """Return the bags."""
        return BagSums(self.bag_size, self.grid, self.least)

    def users_at_once(self, cluster_size: int) -> int:
        """Return how many users, in clusters of one size, need no more than a gigabyte or so."""
        return cluster_size * MOST_SHARES // 5 // max(1, self.shares(np.array([cluster_size])))

    def shares(self, clusters: Array) -> int:
        """Return how many shares are sent in clusters of some sizes, if everybody joins."""
        return self._shares_of(*np.unique(clusters, return_counts=True))

    def _shares_of(self, sizes: Array, times: Array) -> int:
        first = self.bag_size * min(self.bag_size - 1, self.degree)
        total = 0
        for users, count in zip(sizes.tolist(), times.tolist(), strict=True):
            most = largest(users, self.bag_size)
            bags = bags_of(users, self.bag_size) - 1
            total += count * (bags * first + most * min(most - 1, self.degree))
        return total

    def user(self, me: Party) -> Rounds:
        """Run the four rounds for a block of users."""
        self.check_sizes(*np.unique(np.diff(me.cluster.starts), return_counts=True))
        crypto = pairs.mode(me)
        bag = bag_numbers(me.cluster, me.id, self.bag_size)
        private = _secret(me, "private key")
        key = crypto.publics(_octets(private))
        yield self.advertise(bag=bag, cluster=me.cluster.codes, key=key)  # round 0

        near = yield self.neighbour.receive()
        need = near.need.first(np.iinfo(np.int32).max)
        # whatever the server says: not in a bag that cannot have t, nor where fewer shares would do than ever may
        takes_part = (me.cluster.size >= self.least) & (need >= self.fewest)
        seed = _secret(me, "seed")
        shares = self._shares(me, np.concatenate([seed, private], axis=1), near, need)
        yield self.share.reply(
            near, reader=near.peer, giver=me.id, seed=shares(0, LIMBS), private=shares(LIMBS, 2 * LIMBS),
            when=takes_part,
        )  # fmt: skip  # round 1

        held = yield self.routed.receive()
        peers = _match(held.layout.holder, held.giver.data, near.layout.holder, near.peer.data)
        holder = held.layout.holder
        pair = crypto.masks(crypto.agreed(_octets(private)[holder], near.key.data[peers]))
        first = me.id[holder] < held.giver.data  # of a pair, one adds the mask and the other subtracts it
        both = PerMessage(np.where(first, pair, np.uint64(0) - pair), held.layout).sum()
        plain = field.residues(self.grid * me.y.astype(np.int64) + self._noise(me), 1 << 64)
        masked = plain + crypto.masks(_octets(seed)) + both
        yield self.report(value=masked, masks=held.count, when=takes_part & (held.count >= need))  # round 2

        asks = yield self.ask.receive()
        asks = asks.where(PerMessage(_due(asks, held), asks.layout))
        which = _match(asks.layout.holder, asks.giver.data, holder, held.giver.data)
        value = np.where(asks.stayed.data[:, None], held.seed.data[which], held.private.data[which])
        yield self.reveal.reply(asks, value=PerMessage(value, asks.layout))  # round 3

    def aggregator(self, me: Party) -> Rounds:
        """Route, add up, and take off the masks with the help of those who stayed."""
        joined = once((yield self.advertise.receive()))
        order = me.draw.permutation("graph", each=joined)
        server = UnmaskingServer.of(joined, order.data, self)
        yield self.neighbour(to=me.each(server.owner_ids), **_each(me, server.neighbours()))

        shares = yield self.share.receive()
        mutual, edges = server.mutual(shares)
        yield self.routed(
            to=PerMessage(server.peer_ids[edges], mutual.layout),
            giver=mutual.giver, seed=mutual.seed, private=mutual.private,
        )  # fmt: skip

        reports = once((yield self.report.receive()))
        asks = server.close(reports, edges)
        yield self.ask(to=me.each(asks.pop("to")), **_each(me, asks))

        reveals = yield self.reveal.receive()
        sums = server.unmask(reveals, me)
        yield self.total(**_each(me, sums))

    def learner(self, me: Party) -> Rounds:
        """Receive the sums."""
        totals = yield self.total.receive()
        return totals.columns()

    def check_sizes(self, sizes: Array, times: Array) -> None:
        """Check the number of shares; raises InputError above 5 million."""
        shares = self._shares_of(sizes, times)
        if shares > MOST_SHARES:
            raise InputError(
                f"{(sizes * times).sum():,} users in bags of {self.bag_size}, with up to {self.degree} neighbours "
                f"each, send {shares:,} shares; at most {MOST_SHARES:,} are simulated: give fewer users, smaller bags "
                "or a lower degree"
            )

    def _noise(self, me: Party) -> Array:
        """Draw each user's share of the noise: the difference of two Polya variables."""
        if not self.noisy:
            return np.zeros(me.size, np.int64)
        weights = polya_weights(scale(self.epsilon, self.grid), self.least)
        up, down = me.draw.categorical("noise up", weights), me.draw.categorical("noise down", weights)
        return np.asarray(up - down)

    def _shares(self, me: Party, secrets: Array, near: Inbox, need: Array) -> Any:
        """Share each user's secrets (users, elements) with her neighbours; users who need the same go together."""
        most = self.degree // 2 + 1  # never more, whatever the size of a bag
        width = secrets.shape[1]
        drawn = me.draw.below("coefficients", field.PRIME, times=most * width)
        words = drawn.data.astype(np.uint64).reshape(me.size, most, width)
        out = np.zeros((near.layout.size, width), np.uint64)
        holder, place = near.layout.holder, near.place.data
        for needed in np.unique(need[near.count > 0]).tolist():
            rows = need[holder] == needed
            users, which = np.unique(holder[rows], return_inverse=True)
            with me.doing(share=int(np.count_nonzero(rows)) * (needed - 1) * width):
                table = shamir.share(
                    secrets[users], needed, int(max(place[rows].max(), needed)), words[users, : needed - 1]
                )
            out[rows] = table[which.reshape(-1), place[rows] - 1]
        return lambda low, high: PerMessage(np.ascontiguousarray(out[:, low:high]), near.layout)


def _secret(me: Party, name: str) -> Array:
    """Draw 32 bytes for each user, as field elements (users, 5)."""
    drawn = me.draw.below(name, 1 << 56, times=LIMBS).data.astype(np.uint64).reshape(me.size, LIMBS)
    drawn[:, -1] &= np.uint64((1 << 32) - 1)  # 4 elements of 7 bytes, and one of 4
    return np.asarray(drawn)


def _octets(secret: Array) -> Octets:
    return field.to_octets(secret, 32)


def _match(holder: Array, giver: Array, in_holder: Array, in_giver: Array) -> Array:
    """Return, for each (holder, giver), its position among others; there each pair is found once."""
    span = int(max(giver.max(initial=0), in_giver.max(initial=0))) + 1
    codes = in_holder * span + in_giver
    order = np.argsort(codes, kind="stable")
    return np.asarray(order[np.searchsorted(codes[order], holder * span + giver)])


def _due(asks: Inbox, held: Inbox) -> Array:
    """Return a mask of the asks that are answered: the first about each giver whose shares their reader holds.

    So nobody reveals shares of both secrets of a giver, whatever the server asks.
    """
    giver, holders = asks.giver.data, held.giver.data
    span = int(max(giver.max(initial=0), holders.max(initial=0))) + 1
    about = asks.layout.holder * span + giver
    first = np.zeros(len(about), np.bool_)
    first[np.unique(about, return_index=True)[1]] = True
    return first & np.isin(about, held.layout.holder * span + holders)


def _each(me: Party, columns: dict[str, Array]) -> dict[str, PerMessage]:
    return {name: me.each(column) for name, column in columns.items()}

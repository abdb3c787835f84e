"""Cluster response: a trusted curator replaces labels by draws from the noisy label distribution of their cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from p2p_sim.core import (
    InputError,
    Message,
    Party,
    Protocol,
    Rounds,
    check_labels,
    check_range,
    check_whole,
    exp,
)
from p2p_sim.core.errors import near
from p2p_sim.core.exact import LAPLACE_LIMIT
from p2p_sim.core.message import Vector
from p2p_sim.network.bags import once
from protocols.laplace_label_proportions import MOST_MOVED, check_tail
from protocols.public_phi import phi_of_file, pinned_sample

Array = npt.NDArray[Any]

CLUSTER, UNIFORM, GIVEN = "cluster", "uniform", "given"
PRESETS = (CLUSTER, UNIFORM)
"""The settings that an epsilon chooses: those of Corollary 2 and of Corollary 1."""

LARGEST = 40.0
"""Largest epsilon, in nats: beyond it a label is drawn anew less often than a word of 64 bits can say well."""

FINEST = 256
"""Most steps of noise a label: the law multiplies so many probabilities by as many."""

LEAST_DRAWN = Fraction(1, 1 << 48)
"""Least lambda above 0, so that a word of 64 bits has it to one part in 2^16."""

MOST_SUM = 1 << 62
"""The weights of a distribution add up to at most this: they are drawn by one word of 64 bits."""


PHI = 0.02
"""The public phi that is taken where none is given."""

FINE = 16
"""Steps of the statistic from which phi is estimated."""

MOST_ALIKE = 1 << 29
"""Most users of a cluster whose statistic is an integer of 64 bits."""


class Settings(NamedTuple):
    """Parameters of Algorithm 1 as they are used, exactly; ``sigma``: None if infinite."""

    tau: Fraction
    sigma: Fraction | None
    lam: Fraction
    beta: Fraction


@dataclass(frozen=True)
class ClusterResponse(Protocol):
    """A trusted curator replaces a share of the labels by draws from the noisy label distribution of their cluster.

    In each cluster, of n users, she adds Laplace noise of scale sigma to the number of each label, divides by n, cuts
    the shares to tau and above, and makes them sum to 1.  With probability lambda a user's label is then replaced by a
    draw from this distribution, which is released, too.

    ``epsilon``: above 0, at most 40, in nats: what the learner's view costs in all, by Theorem 1 as corrected.
    ``labels``: k, from 2 to 256.
    ``preset``: "cluster" (Corollary 2), or "uniform" (Corollary 1): no noisy distribution, all labels are as likely.
    ``phi``: of "cluster", above 0: tau is the smaller of phi and 1/k. Corollary 2 takes for it how much labels differ
    within clusters; here it is a public parameter, whose choice must not depend on labels and costs nothing.
    ``noise_share``: of "cluster", between 0 and 1: the part of epsilon that the noisy distributions cost, 2/3 in
    Corollary 2; resampling costs the rest.
    ``grid``: steps of noise a label, from 1 to 256: the noise is discrete, so that its law is exact.
    ``phi_share``: of "cluster", at least 0 and below 1: the part of epsilon for which the curator estimates phi from
    the labels, in place of the public one; ``noise_share`` divides the rest.  The estimate is 2 (1 - the mean over
    users of the sum of squared label shares of their cluster), which phi cannot exceed, with discrete Laplace noise.
    The learner is not told lambda then, so no model is corrected.
    ``phi_sample``: of "cluster", a .csv file with the columns label and cluster of a public sample, and features at
    will. ``phi`` is then that of the sample, which costs nothing; see ``protocols.public_phi``.

    Settings of your own: ``ClusterResponse.given``.  The learner returns columns ``sender``, ``cluster`` and ``y``
    (uint8) of each label, and of each cluster ``q_cluster``, its number, and ``weights``, (c, k): the distribution is
    weights / their sum.  Raises InputError for parameters out of range.

    *Source:* Clustering 2022, Algorithm 1, Corollaries 1 and 2, and Theorem 1, corrected: a replaced label changes two
    counts, so that noise costs 2/sigma; Ghosh, Roughgarden, Sundararajan 2009 (discrete noise).
    *Assumes:* the curator is trusted: she sees every label.  Clusters are public and depend on no label.
    """

    epsilon: float
    labels: int = 2
    preset: str = CLUSTER
    phi: float = PHI
    noise_share: float = 2 / 3
    grid: int = 1
    phi_share: float = 0.0
    phi_sample: str = ""
    own: tuple[Fraction, Fraction | None, Fraction, Fraction] | None = field(default=None, repr=False)
    """tau, sigma (None: infinite), lambda and beta, set by ``given``; None: from epsilon and the preset."""

    report = Message("user", "curator", "hands the trusted curator a label", cluster=np.int32, y=np.uint8)
    distribution = Message(
        "curator", "learner", "tells the noisy distribution of labels in a cluster",
        cluster=np.int32, weights=Vector(np.int64, "labels"),
    )  # fmt: skip
    released = Message(
        "curator", "learner", "passes on the label of a user, or one drawn in its place",
        cluster=np.int32, user=np.int32, y=np.uint8,
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_labels("labels", self.labels)
        check_whole("grid", self.grid, 1, FINEST)
        if self.own is None:
            if self.phi_sample:
                self._take_sample()
            check_range("epsilon", self.epsilon, 0, LARGEST, open_low=True)
            check_range("phi", self.phi, 0, 2, open_low=True)
            check_range("noise_share", self.noise_share, 0, 1, open_low=True)
            if self.noise_share == 1:
                raise InputError("noise_share = 1: must be below 1, for drawing labels anew costs the rest")
            self._check_estimate()
            if self.preset not in PRESETS:
                more = "; settings of your own: ClusterResponse.given" if self.preset == GIVEN else ""
                raise InputError(
                    f"preset = {self.preset!r}: must be one of {', '.join(PRESETS)}{more}"
                    f"{near(str(self.preset), PRESETS)}"
                )
        elif (
            self.preset != GIVEN
            or self.phi_share
            or self.phi_sample
            or self.epsilon != total(self.settings())
        ):
            raise InputError(
                f"own = {self.own!r}: contradicts epsilon = {self.epsilon!r}, preset = {self.preset!r}, "
                f"phi_share = {self.phi_share!r} or phi_sample = {self.phi_sample!r}; use "
                "ClusterResponse.given(tau=, sigma=, lam=)"
            )
        self._check_noise()

    def _take_sample(self) -> None:
        """Take phi from the public sample."""
        sample = pinned_sample("phi_sample", self.phi_sample)
        phi = phi_of_file("phi_sample", sample, self.labels)
        if self.preset != CLUSTER or self.phi_share or self.phi not in (PHI, phi):
            raise InputError(
                f"phi_sample = {self.phi_sample!r} with preset = {self.preset!r}, phi = {self.phi!r}, phi_share = "
                f'{self.phi_share!r}: phi is {phi!r} in the sample, of preset = "{CLUSTER}"; give one of '
                "phi, phi_share and phi_sample"
            )
        object.__setattr__(self, "phi_sample", sample)
        object.__setattr__(self, "phi", phi)

    def _check_estimate(self) -> None:
        """Check that phi is public or can be estimated, and that what is left can be spent at any estimate."""
        check_range("phi_share", self.phi_share, 0, 1)
        if not self.phi_share:
            return
        if self.phi_share == 1 or self.preset != CLUSTER or self.phi != PHI:
            raise InputError(
                f"phi_share = {self.phi_share!r} with preset = {self.preset!r}, phi = {self.phi!r}: phi is estimated "
                f'for a part of epsilon below 1, of preset = "{CLUSTER}", and then not given; leave phi out, or '
                "phi_share"
            )
        if self.phi_cost() * LAPLACE_LIMIT < 2 * FINE:
            raise InputError(
                f"phi_share = {self.phi_share!r} of epsilon = {self.epsilon!r}: the estimate of phi needs an epsilon "
                f"of at least {2 * FINE / LAPLACE_LIMIT:g}: give a larger share, or phi"
            )
        if self.phi_cost() > MOST_MOVED:
            raise InputError(
                f"phi_share = {self.phi_share!r} of epsilon = {self.epsilon!r}: the estimate of phi may cost "
                f"{MOST_MOVED:g} nats at most, for the tail of its noise must be drawn: give a smaller share, or phi"
            )
        for phi in (0.5, 1.0):  # the rest must be enough for either preset
            self.after(Fraction(phi) / self.labels)

    def phi_cost(self) -> Fraction:
        """Return the part of epsilon that estimating phi costs, in nats."""
        return Fraction(self.phi_share) * Fraction(self.epsilon)

    def after(self, phi: Fraction) -> ClusterResponse:
        """Return the mechanism that what is left of epsilon pays for, once ``phi`` (above 0) is estimated.

        With phi of at least 1/k all labels are as likely (tau = 1/k), so that noise would be paid for in vain.
        """
        left = math.nextafter(float(Fraction(self.epsilon) - self.phi_cost()), 0.0)
        preset = UNIFORM if phi >= Fraction(1, self.labels) else CLUSTER
        return ClusterResponse(left, self.labels, preset, min(float(phi), 1.0), self.noise_share, self.grid)

    def _check_noise(self) -> None:
        """Check that the noise can be drawn."""
        sigma, lam = self.settings().sigma, self.settings().lam
        if sigma is not None and sigma * self.grid > LAPLACE_LIMIT:
            least = "a smaller sigma"
            if self.own is None:
                least = f"an epsilon of at least {2 * self.grid / (LAPLACE_LIMIT * self.noise_share):.3g}"
            raise InputError(
                f"epsilon = {self.epsilon!r} with grid = {self.grid}: noise of {float(sigma * self.grid):,.0f} steps; "
                f"at most {LAPLACE_LIMIT:,} are drawn: give a coarser grid, or {least}"
            )
        if 0 < lam < LEAST_DRAWN:
            raise InputError(
                f"epsilon = {self.epsilon!r}, phi = {self.phi!r}: labels would be drawn anew with lambda = "
                f"{float(lam):.3g}; at least {float(LEAST_DRAWN):.3g} is needed: give a smaller epsilon"
            )

    @classmethod
    def given(
        cls,
        *,
        tau: float | Fraction,
        sigma: float | Fraction,
        lam: float | Fraction,
        beta: float | Fraction = 0,
        labels: int = 2,
        grid: int = 1,
    ) -> ClusterResponse:
        """Return the mechanism with the paper's own parameters.

        ``tau`` in [0, 1/k]: the least probability of a label in q~; 1 / labels as a float is exactly 1/k.  ``sigma``
        above 0: the scale of noise on a count; infinity: q~ is uniform, and then tau must be 1/k.  ``lam`` in [0, 1]:
        share of labels drawn anew.  ``beta`` in [0, 1): of the modified loss.  Raises InputError outside.
        """
        check_labels("labels", labels)
        check_range("sigma", sigma, 0, math.inf, open_low=True)
        even = Fraction(1, labels)
        floor = even if tau == 1 / labels else _share("tau", tau, even)
        noise = None if sigma == math.inf else Fraction(sigma)
        if noise is None and floor != even:
            raise InputError(
                f"sigma = inf with tau = {tau!r}: noise without end leaves nothing of the labels, so q~ is uniform: "
                f"give tau = 1 / {labels}"
            )
        bias = _share("beta", beta, Fraction(1))
        if bias == 1:
            raise InputError(
                "beta = 1: the matrix of the modified loss is singular; must be in [0, 1): give lam, or 0"
            )
        share = _share("lam", lam, Fraction(1))
        epsilon = total(Settings(floor, noise, share, bias))
        return cls(epsilon, labels, GIVEN, grid=grid, own=(floor, noise, share, bias))

    def settings(self) -> Settings:
        """Return the parameters of Algorithm 1; e^epsilon to 60 digits, the same on every machine."""
        if self.own is not None:
            return Settings(*self.own)
        if self.phi_share:  # they follow from the estimate: those of the largest tau below 1/k
            return self.after(Fraction(1, self.labels) * Fraction((1 << 20) - 1, 1 << 20)).settings()
        even = Fraction(1, self.labels)
        if self.preset == UNIFORM:  # Corollary 1
            lam = self.labels / (self.labels - 1 + exp(self.epsilon))
            return Settings(even, None, lam, lam)
        # Corollary 2, its budget split: 2 / sigma for noise, the rest for lambda
        noise = Fraction(self.noise_share) * Fraction(self.epsilon)
        tau = min(Fraction(self.phi), even)
        lam = 1 / (1 + (exp(float(Fraction(self.epsilon) - noise)) - 1) * tau)
        return Settings(tau, 2 / noise, lam, Fraction(0))

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def user(self, me: Party) -> Rounds:
        """Hand in the label, with the public number of the cluster."""
        yield self.report(cluster=me.cluster.codes, y=me.y.view(np.uint8))

    def curator(self, me: Party) -> Rounds:
        """Add noise to the label distributions, and draw labels anew from them (lines 1 to 27)."""
        reports = once((yield self.report.receive()))
        y, cluster = reports.y.data, reports.cluster.data
        counts = me.contingency(cluster, y, self.labels)
        names = np.flatnonzero(counts.any(axis=1))  # the clusters that somebody reported from
        code, counts = _codes(names, cluster), counts[names]
        how = self.after(self._estimated(me, counts)) if self.phi_share else self
        weights = how._distributions(me, counts)
        # 22-25
        y_hat = me.draw.weighted("y_hat", weights, code, each=reports).data  # 23
        anew = me.draw.bernoulli("anew", how.settings().lam, each=reports).data
        y_tilde = y + anew * (y_hat - y)  # 24; modulo 256: np.where, which branches, takes ten times as long
        user = reports.sender.data.astype(np.int32)
        for column in (user, y_tilde):
            column.flags.writeable = False  # so that sending it needs no copy
        # 26, 31: the data set, and what the modified loss of lines 28 to 30 needs
        yield (
            self.distribution(cluster=me.each(names), weights=me.each(weights)),
            self.released(
                cluster=me.each(cluster),
                user=me.each(user),
                y=me.each(y_tilde),
            ),
        )

    def _estimated(self, me: Party, counts: Array) -> Fraction:
        """Return the noisy estimate of phi, at least 1/n, from the number of each label, (c, k)."""
        users = int(counts.sum())
        if not users:
            return Fraction(1)
        if (most := int(counts.sum(axis=1).max())) > MOST_ALIKE:
            raise InputError(
                f"a cluster has {most:,} users: phi is estimated in clusters of at most {MOST_ALIKE:,}; make smaller "
                "ones, or give phi"
            )
        noise = int(me.draw.laplace("phi", Fraction(2 * FINE) / self.phi_cost())[0])
        share = Fraction(int(alike(counts).sum()) + noise, FINE * users)
        return max(2 * (1 - share), Fraction(1, users))

    def _distributions(self, me: Party, counts: Array) -> Array:
        """Return q~ of each cluster as integer weights, from the number of each label, both (c, k)."""
        sigma = self.settings().sigma
        if sigma is None:
            return np.ones_like(counts)
        check_tail(self.epsilon, float(1 / sigma))  # each count is moved by one
        noise = me.draw.laplace("noise", sigma * self.grid, each=me.each(counts.ravel()))  # 6
        return self.resampling(counts, noise.data.reshape(counts.shape))

    def check_sizes(self, sizes: Array, times: Array) -> None:
        """Check that weights are integers of 64 bits; raises InputError for a cluster too large for that."""
        most = int(sizes.max(initial=0))
        if most > self.most_users():
            raise InputError(
                f"a cluster has {most:,} users: with labels = {self.labels} and grid = {self.grid} at most "
                f"{self.most_users():,} are possible; make smaller clusters, or a coarser grid"
            )

    def steps(self, size: int) -> tuple[int, int]:
        """Return how many steps of 1 / (k grid) of a label ``size`` users have, n, and tau in n-ths: rounded up."""
        whole = size * self.grid * self.labels
        return whole, math.ceil(self.settings().tau * whole)

    def resampling(self, counts: Array, noise: Array) -> Array:
        """Return q~ as integer weights (c, k) in lowest terms, from counts and noise in steps, both (c, k).

        tau is rounded up to a step, of which 1/k has a whole number: no probability is below tau, and all fit.  Raises
        InputError for a cluster too large for its weights to be integers of 64 bits.
        """
        sizes, which = np.unique(counts.sum(axis=1), return_inverse=True)
        self.check_sizes(sizes, np.ones_like(sizes))
        steps = np.array([self.steps(size) for size in sizes.tolist()], np.int64).reshape(-1, 2)[which]
        whole, floor = steps[:, :1], steps[:, 1:]
        return renormalized(
            np.clip((counts * self.grid + noise) * self.labels, floor, whole), floor, whole
        )  # 4-7

    def most_users(self) -> int:
        """Return the most users of a cluster whose weights are integers of 64 bits."""
        return math.isqrt(MOST_SUM // self.labels) // (self.grid * self.labels)

    def learner(self, me: Party) -> Rounds:
        """Receive the distributions and the labels."""
        distributions, labels = yield self.distribution.receive(), self.released.receive()
        return {
            "sender": labels.user.data,
            "cluster": labels.cluster.data,
            "y": labels.y.data,
            "q_cluster": distributions.cluster.data,
            "weights": distributions.weights.data,
        }


def alike(counts: Array) -> Array:
    """Return for each cluster the sum of n_y^2 / n, of n users of whom n_y have label y, in steps of 1 / ``FINE``.

    ``counts`` (c, k).  Rounded down.  A replaced label changes it in one cluster alone, by at most 2 (n - 1) / n, so
    that noise for 2 is enough, rounding included.
    """
    return np.asarray(FINE * (counts.astype(np.int64) ** 2).sum(axis=1) // counts.sum(axis=1))


def renormalized(q: Array, floor: Array | int, whole: Array | int) -> Array:
    """Return q~ as integer weights in lowest terms, from q and tau in ``whole``-ths; q has shape (c, k)."""
    gap = whole - q.sum(axis=1, keepdims=True)  # 9
    xi = np.where(gap < 0, q - floor, whole - q)  # 10-16
    # 17-19, times the sum of xi, which is not 0: with gap < 0 not all q are tau, with gap >= 0 not all are 1.
    weights = q * xi.sum(axis=1, keepdims=True) + xi * gap
    return np.asarray(weights // np.gcd.reduce(weights, axis=1, keepdims=True))


def total(settings: Settings) -> float:
    """Return epsilon of the learner's view in nats: 2/sigma + ln(1 + (1 - lambda) / (lambda tau)), maybe infinite.

    *Source:* Clustering 2022, Theorem 1, corrected.
    """
    tau, sigma, lam, _ = settings
    if lam < 1 and not lam * tau:
        return math.inf
    noise = 0.0 if sigma is None else float(2 / sigma)
    return noise + (math.log1p(float((1 - lam) / (lam * tau))) if lam < 1 else 0.0)


def _share(name: str, value: Any, most: Fraction) -> Fraction:
    """Return a number from 0 to ``most`` exactly; raises InputError outside."""
    exact = value == most  # which a float beside it may not be
    check_range(name, float(most) if exact else value, 0, float(most))
    return most if exact else Fraction(value)


def _codes(names: Array, cluster: Array) -> Array:
    """Return the place of each cluster among ``names``, ascending numbers."""
    if not len(names) or names[-1] == len(names) - 1:  # all of them, which is the rule
        return cluster
    place = np.zeros(int(names[-1]) + 1, np.int32)
    place[names] = np.arange(len(names), dtype=np.int32)
    return np.asarray(place[cluster])

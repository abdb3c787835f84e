"""Runs of the same clusters: the worst case is one case in all of them, beside every user's outcomes enumerated."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from p2p_sim import privacy
from p2p_sim.privacy.composition.compose import compose, composed, repeated
from p2p_sim.privacy.composition.same_case import cases_of, listed_cases
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.mixtures import Scaled, Worst
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from p2p_sim.privacy.profile import PrivacyProfile
from protocols import EncryptedShuffle, PeerToPeer, RandomizedResponse
from tests.privacy.composition.composing import of, rr

pytestmark = pytest.mark.slow

Array = npt.NDArray[np.float64]
Pair = tuple[Array, Array]


def of_bits(labels: tuple[int, ...], alpha: float) -> dict[tuple[int, ...], float]:
    """P(all users' noisy bits), for all users' labels: each flips by herself."""
    found = {}
    for bits in itertools.product((0, 1), repeat=len(labels)):
        flips = sum(a != b for a, b in zip(bits, labels, strict=True))
        found[bits] = alpha**flips * (1 - alpha) ** (len(labels) - flips)
    return found


def seen_reports(labels: tuple[int, ...], alpha: float, theta: float) -> dict[tuple[int, ...], float]:
    """P(what each user reports: 0, 1, or nothing, -1): each asks one of all, by herself, and reports by chance."""
    found: dict[tuple[int, ...], float] = {}
    for bits, chance in of_bits(labels, alpha).items():
        one = theta * sum(bits) / len(bits)
        each = {1: one, 0: theta - one, -1: 1 - theta}
        for seen in itertools.product(each, repeat=len(bits)):
            found[seen] = found.get(seen, 0.0) + chance * math.prod(each[said] for said in seen)
    return found


def seen_shuffled(labels: tuple[int, ...], alpha: float) -> dict[tuple[int, ...], float]:
    found: dict[tuple[int, ...], float] = {}
    for bits, chance in of_bits(labels, alpha).items():
        seen = tuple(sorted(bits))
        found[seen] = found.get(seen, 0.0) + chance
    return found


def pair_of(first: dict[tuple[int, ...], float], second: dict[tuple[int, ...], float]) -> Pair:
    """Two laws outcome by outcome; outcomes of one ratio are put together, which changes no divergence."""
    p, q = (np.array([law[seen] for seen in first]) for law in (first, second))
    with np.errstate(divide="ignore", invalid="ignore"):
        _, group = np.unique(np.round(np.log(p / q), 10), return_inverse=True)
    return np.bincount(group, p), np.bincount(group, q)


def composed_delta(pair: Pair, times: int, epsilon: float) -> float:
    """The larger direction, all runs' outcomes side by side."""
    p, q = np.ones(1), np.ones(1)
    for _ in range(times):
        p, q = np.multiply.outer(p, pair[0]).ravel(), np.multiply.outer(q, pair[1]).ravel()
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) for a, b in ((p, q), (q, p)))


@functools.cache
def of_reports(n: int, alpha: float, theta: float) -> list[Pair]:
    """One pair for every way to label the others."""
    return [
        pair_of(seen_reports((0, *others), alpha, theta), seen_reports((1, *others), alpha, theta))
        for others in itertools.product((0, 1), repeat=n - 1)
    ]


@functools.cache
def of_shuffle(n: int, alpha: float) -> list[Pair]:
    return [
        pair_of(seen_shuffled((0, *others), alpha), seen_shuffled((1, *others), alpha))
        for others in itertools.product((0, 1), repeat=n - 1)
    ]


def check(law: Law, pairs: list[Pair], times: int) -> None:
    """The worst of all labels of the others; at most what the worst case of each run gives."""
    found, free = composed(of(law), times, same_case=True), composed(of(law), times)
    assert found.basis == "exact"
    for share in (0.0, 0.03, 0.2, 0.5, 0.9):
        epsilon = share * times * law.pure()
        alone = [composed_delta(pair, times, epsilon) for pair in pairs]
        low, value, high = found.delta_bracket(epsilon)
        assert low <= max(alone) * (1 + 1e-9) + 1e-13
        assert max(alone) <= high * (1 + 1e-9) + 1e-13
        assert value == pytest.approx(max(alone), rel=1e-8, abs=1e-13)
        assert high <= free.delta_bracket(epsilon).upper * (1 + 1e-9) + 1e-13
        assert all(map(math.isclose, found.directions(epsilon), [value] * 2))
    for delta in (1e-2, 1e-5):
        assert found.epsilon(delta) <= free.epsilon_bracket(delta).upper * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "alpha", "theta"), [(2, 0.2, 0.5), (3, 0.1, 1.0), (3, 0.4, 0.3), (4, 0.3, 0.8), (5, 0.25, 1.0)]
)
@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_reports_of_the_worst_labels(n: int, alpha: float, theta: float, times: int) -> None:
    check(ClusterReports(alpha, theta, n), of_reports(n, alpha, theta), times)


@pytest.mark.parametrize(("n", "alpha"), [(2, 0.1), (3, 0.25), (4, 0.4), (5, 0.05)])
@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_shuffled_bits_of_the_worst_labels(n: int, alpha: float, times: int) -> None:
    check(ShuffledBits(alpha, n), of_shuffle(n, alpha), times)


def test_the_worst_case_of_each_run_is_more() -> None:
    """The figure was 8.8 % above that of any one case: no labels are the worst in all ten runs."""
    law = ClusterReports(0.1, 1.0, 10)
    same, free = composed(of(law), 10, same_case=True), composed(of(law), 10)
    assert same.epsilon(1e-6) == pytest.approx(8.43035, rel=1e-4)
    assert free.epsilon(1e-6) > 1.08 * same.epsilon(1e-6)
    low, _, high = same.epsilon_bracket(1e-6)
    assert high <= low * (1 + 2e-4)


@pytest.mark.parametrize(
    "law",
    [
        ClusterReports(0.1, 0.5, 40, composition=11),
        ClusterReports(0.02, 1.0, 40, composition=39),
        ClusterReports(0.45, 0.9, 12, composition=0),
        ShuffledBits(0.01, 40, composition=20),
        ShuffledBits.of(43, 2.0, colluders=3, composition=0),
    ],
    ids=["reports", "all report", "an end", "bits", "colluders"],
)
def test_listed_outcomes_are_the_law(law: Law) -> None:
    """The sums of tails, which are another way to compute the same."""
    listed = law.outcomes()
    assert listed is not None
    p, q = np.exp(listed[0]), np.exp(listed[1])
    assert p.sum() == pytest.approx(1.0, rel=1e-12)
    for epsilon in (0.0, 0.2, 1.0, 0.7 * law.pure()):
        by_tails = law.directions(epsilon)
        for (low, _, high), over, under in zip(by_tails, (q, p), (p, q), strict=True):
            true = float(np.maximum(over - math.exp(epsilon) * under, 0.0).sum())
            assert low - 1e-14 <= true * (1 + law.outcomes_error())
            assert true * (1 - law.outcomes_error()) <= high + 1e-14


def test_clusters_of_several_sizes() -> None:
    """The worst cluster is one, too; each case stands for its mirror image."""
    sizes = [ClusterReports(0.2, 0.5, n) for n in (3, 5)]
    both = composed(of(Worst(tuple(sizes))), 3, same_case=True)
    alone = [composed(of(law), 3, same_case=True) for law in sizes]
    for epsilon in (0.0, 0.4, 1.2):
        assert both.delta(epsilon) == pytest.approx(max(one.delta(epsilon) for one in alone), rel=1e-9)
        assert both.directions(epsilon)[0] == both.directions(epsilon)[1]


def test_of_a_law_that_is_seen_by_chance() -> None:
    law, times = Scaled(0.3, ClusterReports(0.2, 0.5, 4)), 3
    pairs = [(np.append(0.3 * p, 0.7), np.append(0.3 * q, 0.7)) for p, q in of_reports(4, 0.2, 0.5)]
    check(law, pairs, times)


def under_faults() -> list[PrivacyProfile]:
    lost = {"faults": ["loss=0.1", "drop=0.1"], "cluster_size": 5}
    return [
        privacy.profile(PeerToPeer(0.2, theta=0.5), **lost),
        privacy.profile(EncryptedShuffle(1.0), **lost),
        privacy.profile(EncryptedShuffle(1.0, labels=3), **lost),
    ]


@pytest.mark.parametrize("profile", under_faults(), ids=["reports", "bits", "labels"])
def test_a_crowd_that_chance_chooses_is_no_case(profile: PrivacyProfile) -> None:
    """Who arrives is another matter in each run, and with it how many of them have label 1."""
    assert profile.law is not None
    assert cases_of(profile.law) == [(profile.law, False)]
    assert composed(profile, 2, same_case=True).epsilon(1e-3) == composed(profile, 2).epsilon(1e-3)


@pytest.mark.parametrize(
    "law", [ShuffledBits(0.2, 10**6), ClusterReports(0.2, 0.5, 10**6), ClusterReports(0.2, 0.5, 9, 2)]
)
def test_too_many_cases_are_not_looked_at(law: Law) -> None:
    assert cases_of(law) == [(law, False)]
    assert not listed_cases(law)


def test_what_the_result_says() -> None:
    small, large = ShuffledBits(0.25, 9), ShuffledBits(0.25, 41)
    same, free, each = (
        composed(of(law), 3, same_case=asked) for law, asked in ((small, True), (small, False), (large, True))
    )
    assert "the worst case, the same in every run" in same.source
    assert any("the same users in every run" in text for text in same.assumes)
    assert "the worst case" not in free.source
    assert "the worst case of each run" in each.source
    assert not any("the same users in every run" in text for text in each.assumes)
    mixed = compose([of(small), (rr(0.5), 2)], same_case=True)
    assert mixed.basis == "upper"
    assert "the worst case of each run" in mixed.source
    assert composed(of(small), 1, same_case=True).source == composed(of(small), 1).source


def test_times_are_runs_of_the_same_clusters() -> None:
    few = privacy.profile(PeerToPeer(0.1, theta=0.5), cluster_size=5)
    assert repeated(few, 3).basis == "exact"
    assert repeated(few, 3).epsilon(1e-4) == composed(few, 3, same_case=True).epsilon(1e-4)
    many = privacy.profile(EncryptedShuffle(1.0), cluster_size=60)
    assert repeated(many, 2).epsilon(1e-4) == composed(many, 2).epsilon(1e-4)


def test_an_explicit_wish_of_pairs_of_labels_is_kept() -> None:
    rows = np.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
    report = privacy.building_blocks.randomization_matrix(rows)
    found = composed(report, 4, same_case=True)
    pairs = [Atoms.of(rows[a], rows[b]) for a, b in itertools.combinations(range(3), 2)]
    assert found.basis == "exact"
    assert found.epsilon(1e-3) == pytest.approx(
        max(composed(of(one), 4).epsilon(1e-3) for one in pairs), rel=1e-9
    )


@pytest.mark.parametrize(
    ("protocol", "size", "words"),
    [
        (PeerToPeer(0.1), 10, "the worst case, the same in every run"),
        (PeerToPeer(0.1), 80, "the worst case of each run, as no case is composed by itself"),
        (RandomizedResponse(1.0, 3), 10, "closed form"),
    ],
)
def test_runs_together_say_whose_cases_they_are(protocol: Any, size: int, words: str) -> None:
    profile = privacy.profile(protocol, cluster_size=size)
    assert repeated(profile, 3).source.endswith(words)

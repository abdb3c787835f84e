"""The laws of Algorithm 2 against brute force, and against fractions for more users."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim import privacy
from p2p_sim.core.errors import InputError
from p2p_sim.privacy.laws.binomial_tails import binomial, two_levels
from p2p_sim.privacy.mechanisms.peer_to_peer import cluster_reports
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from p2p_sim.privacy.mechanisms.peer_to_peer.report_counts import Reports
from p2p_sim.privacy.mechanisms.peer_to_peer.urn import Urn, upper_tails
from protocols import PeerToPeer
from tests.privacy import brute

pytestmark = pytest.mark.slow

SCALES = [Fraction(1), Fraction(5, 4), Fraction(2), Fraction(29, 10)]
WORLDS = [
    (2, Fraction(1, 4), Fraction(1)),
    (3, Fraction(1, 4), Fraction(1)),
    (3, Fraction(1, 4), Fraction(1, 2)),
    (3, Fraction(1, 10), Fraction(1, 3)),
]


def _colluders(n: int, c: int, learner: bool = True) -> brute.View:
    return brute.coalition(learner, tuple(range(n - c, n)))


_views: dict[tuple[int, int, bool], brute.View] = {}


def view_of(n: int, c: int, learner: bool = True) -> brute.View:
    return _views.setdefault((n, c, learner), _colluders(n, c, learner))


def agree(profile: privacy.PrivacyProfile, truth: Fraction, scale: Fraction) -> None:
    low, value, high = profile.delta_bracket(math.log(scale))
    assert value == pytest.approx(float(truth), rel=1e-10, abs=1e-13)
    assert low - 1e-15 <= float(truth) <= high + 1e-15
    assert profile.basis == "exact"


@pytest.mark.parametrize(("n", "alpha", "theta"), WORLDS)
@pytest.mark.parametrize("scale", SCALES)
def test_every_view_against_brute_force(n: int, alpha: Fraction, theta: Fraction, scale: Fraction) -> None:
    protocol = PeerToPeer(float(alpha), float(theta))
    for c in range(n):
        name = "learner" if c == 0 else f"learner+{c}*user"
        truth = brute.delta(n, alpha, theta, view_of(n, c), scale)
        agree(privacy.profile(protocol, name, cluster_size=n), truth, scale)
        if c:
            truth = brute.delta(n, alpha, theta, view_of(n, c, False), scale)
            agree(privacy.profile(protocol, f"{c}*user", cluster_size=n), truth, scale)
    for name, view, channels in [
        ("wire", brute.wire, "plain"),
        ("learner+wire", brute.wire, "plain"),
        ("learner+wire", brute.metadata, "encrypted"),
        ("wire", brute.sealed, "encrypted"),
    ]:
        truth = brute.delta(n, alpha, theta, view, scale)
        agree(privacy.profile(protocol, name, cluster_size=n, channels=channels), truth, scale)


@pytest.mark.parametrize("c", [0, 1, 2, 3])
def test_four_users_against_brute_force(c: int) -> None:
    alpha, theta = Fraction(1, 5), Fraction(1)
    name = f"learner+{c}*user" if c else "learner"
    for scale in (Fraction(1), Fraction(3, 2)):
        truth = brute.delta(4, alpha, theta, view_of(4, c), scale)
        agree(privacy.profile(PeerToPeer(0.2), name, cluster_size=4), truth, scale)


@pytest.mark.parametrize("ones", [0, 1, 2])
def test_a_given_composition_and_its_directions(ones: int) -> None:
    n, alpha, theta = 3, Fraction(1, 4), Fraction(1, 2)
    p, q = brute.pairs(n, alpha, theta, view_of(n, 0))[(0, 1, 3)[ones]]
    profile = privacy.profile(PeerToPeer(0.25, 0.5), cluster_size=n, composition=ones)
    scale = Fraction(6, 5)
    first, second = profile.directions(math.log(scale))
    assert first == pytest.approx(float(brute.excess(q, p, scale)), rel=1e-11)
    assert second == pytest.approx(float(brute.excess(p, q, scale)), rel=1e-11)


def _learner(n: int, ones: int, alpha: Fraction, m: int, epsilon: float) -> Fraction:
    """Return delta from label 0 to 1 at m reports by adding up fractions."""
    rest = [Fraction(1)]
    for p in [1 - alpha] * ones + [alpha] * (n - 1 - ones):
        rest = [
            a + b for a, b in zip([*(v * (1 - p) for v in rest), 0], [0, *(v * p for v in rest)], strict=True)
        ]
    scale = Fraction(Context(prec=50).exp(Decimal(epsilon)))
    total = Fraction(0)
    for k in range(m + 1):
        a, b = (
            sum(w * Fraction((r + x) ** k * (n - r - x) ** (m - k), n**m) for r, w in enumerate(rest))
            for x in (0, 1)
        )
        one, zero = (1 - alpha) * b + alpha * a, alpha * b + (1 - alpha) * a
        total += math.comb(m, k) * max(Fraction(0), one - scale * zero)
    return total


@pytest.mark.parametrize(
    ("n", "ones", "m", "epsilon"), [(20, 3, 20, 0.3), (25, 24, 10, 0.2), (40, 0, 40, 0.5)]
)
def test_fixed_reports_against_fractions(n: int, ones: int, m: int, epsilon: float) -> None:
    truth = float(_learner(n, ones, Fraction(1, 4), m, epsilon))
    value, error = Urn(0.25, ones, n - 1 - ones).draws(1e-30).gain(m, epsilon)
    assert value == pytest.approx(truth, rel=1e-10)
    assert abs(value - truth) <= error


def test_the_worst_composition_may_be_anywhere() -> None:
    law = privacy.profile(PeerToPeer(0.2), cluster_size=10)
    alone = [
        privacy.profile(PeerToPeer(0.2), cluster_size=10, composition=i).epsilon(1e-3) for i in range(10)
    ]
    assert law.epsilon(1e-3) == pytest.approx(max(alone), rel=1e-12)
    assert int(np.argmax(alone)) in (3, 6)
    assert alone[0] == pytest.approx(0.6344020, abs=1e-7)


@pytest.mark.parametrize(
    ("alpha", "theta", "n"), [(0.25, 1.0, 150), (0.45, 1.0, 90), (0.02, 1.0, 120), (0.2, 0.3, 60)]
)
def test_branch_and_bound_equals_a_full_scan(alpha: float, theta: float, n: int) -> None:
    law = ClusterReports(alpha, theta, n)
    for epsilon in (0.05, 0.3):
        every = max(ClusterReports(alpha, theta, n, 0, i, True).delta(epsilon).value for i in range(n))
        low, value, high = law.delta(epsilon)
        assert value == pytest.approx(every, rel=1e-9)
        assert low <= every <= high


@pytest.mark.parametrize("theta", [0.6, 1.0])
@pytest.mark.parametrize(("n", "c"), [(60, 0), (60, 2), (200, 1)])
def test_blocks_are_bounded(n: int, c: int, theta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    law = ClusterReports(0.2, theta, n, c)

    def room(low: int, high: int) -> float:
        bound = law._bound(low, high, 0.2, 1e-20)
        every = (
            ClusterReports(0.2, theta, n, c, ones, True).delta(0.2).value
            for ones in {low, (low + high) // 2, high}
        )
        return min(bound / value for value in every)

    wide = [(3, 9), (20, 40), (0, n - 1 - c)]
    assert all(room(*block) >= 1 for block in [(0, 0), *wide])
    monkeypatch.setattr(cluster_reports, "two_levels", lambda users, *_: (0.0, users, users))
    assert any(room(*block) < 1 for block in wide)  # with more coins than there are


@pytest.mark.parametrize(("n", "p"), [(0, 0.8), (1, 0.8), (5, 0.8), (40, 0.2), (300, 0.8), (300, 1e-9)])
def test_two_levels_of_coins(n: int, p: float) -> None:
    rare, least, many = two_levels(n, p, 1e-16)
    chance = Fraction(p)
    law = [math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
    below = float(sum(law[least:many]))
    assert float(sum(law[:least])) <= 1e-16
    assert below <= rare <= below * (1 + 1e-11)
    assert 0 <= least <= many <= n
    assert (many > least) == (n > 0)


def test_many_numbers_of_reports_are_bracketed_and_interpolated() -> None:
    urn, n, theta = Urn(0.2, 0, 999), 1000, 0.3
    mass = binomial(n, theta, 1 - theta, 1e-25)
    draws = urn.draws(1e-25)
    every = sum(w * draws.gain(mass.low + i, 0.1)[0] for i, w in enumerate(mass.mass))
    low, value, high = Reports(urn, n, theta).gain(0.1, 1e-20)
    assert low <= every <= high
    assert high / low < 1.1
    assert value == pytest.approx(every, rel=1e-5)
    assert Reports(urn, n, theta).greatest(0.1, 1e-20) >= every


def test_tails_to_twelve_digits() -> None:
    size, m, k = 3000, 900, 330
    counts = np.arange(700, 1400, dtype=np.float64)
    tails = upper_tails(m, k, size, counts)
    for i in (100, 350, 500):
        p = Fraction(int(counts[i]), size)
        truth = sum(
            math.comb(m, j) * p.numerator**j * (p.denominator - p.numerator) ** (m - j)
            for j in range(k, m + 1)
        )
        assert tails[i] == pytest.approx(float(Fraction(truth, p.denominator**m)), rel=1e-12)


def test_large_clusters_answer_with_a_bracket() -> None:
    profile = privacy.profile(PeerToPeer(0.1), cluster_size=10**9)
    low, value, high = profile.delta_bracket(1e-4)
    assert profile.basis == "lower"
    assert 0 < low <= value <= high < 0.01


@pytest.mark.parametrize("c", [1, 5, 19, 40, 399])
def test_many_colluders(c: int) -> None:
    few = privacy.profile(PeerToPeer(0.2), "learner", cluster_size=400).delta(0.1)
    profile = privacy.profile(PeerToPeer(0.2), f"learner+{c}*user", cluster_size=400)
    low, value, high = profile.delta_bracket(0.1)
    assert few < low <= value <= high
    with pytest.raises(InputError, match="399 users beside"):
        privacy.profile(PeerToPeer(0.2), "learner+400*user", cluster_size=400)

"""The worst composition is the worst: against a law written from its definition, over all compositions and cases."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from p2p_sim import Population, privacy
from p2p_sim.privacy.branch_and_bound import search
from p2p_sim.privacy.laws.binomial_tails import binomial
from p2p_sim.privacy.mechanisms.peer_to_peer import cluster_reports
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from p2p_sim.privacy.mechanisms.peer_to_peer.report_counts import average, averages
from p2p_sim.privacy.mechanisms.peer_to_peer.urn import Urn
from protocols import PeerToPeer
from tests.privacy import brute

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

Array = npt.NDArray[np.float64]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """What is computed may be changed here: nothing kept before or after is used."""
    cluster_reports._gain.cache_clear()
    yield monkeypatch
    cluster_reports._gain.cache_clear()


def every_composition(n: int, c: int, alpha: float, theta: float, epsilon: float) -> Array:
    """Return delta from label 0 to 1 if no colluder got the victim's bit, for 0..n - 1 - c ones among the others.

    Positive parts are added up outcome by outcome; which honest bits are known is counted by inclusion and exclusion.
    """
    pool, others = n - c, n - c - 1
    urns = [(d, u, s) for d in range(min(c, others) + 1) for u in range(others - d + 1) for s in range(d + 1)]
    ones = np.zeros((pool, len(urns)))  # of the bits in the urn, the victim's left out
    for i, (d, u, s) in enumerate(urns):
        law = np.convolve(
            binom.pmf(np.arange(u + 1), u, 1 - alpha),
            binom.pmf(np.arange(others - d - u + 1), others - d - u, alpha),
        )
        ones[s : s + len(law), i] = law
    share, delta = np.arange(pool + 1) / pool, np.zeros(len(urns))
    for m in range(pool + 1):
        drawn = binom.pmf(np.arange(m + 1)[:, None], m, share)
        a, b = drawn[:, :-1] @ ones, drawn[:, 1:] @ ones
        one, zero = (1 - alpha) * b + alpha * a, alpha * b + (1 - alpha) * a
        delta += binom.pmf(m, pool, theta * pool / n) * np.maximum(0, one - math.exp(epsilon) * zero).sum(0)
    out = np.zeros(others + 1)
    for i, (d, u, s) in enumerate(urns):
        exactly = sum(
            (-1) ** (d - j) * math.comb(d, j) * Fraction(c + j, max(1, n - 1)) ** c for j in range(d + 1)
        )
        for k in range(others + 1):
            j = k - u  # of the known bits, those of label 1
            if 0 <= j <= d and d - j <= others - k:
                told = sum(binom.pmf(t, j, 1 - alpha) * binom.pmf(s - t, d - j, alpha) for t in range(j + 1))
                sets = math.comb(k, j) * math.comb(others - k, d - j)
                out[k] += float(exactly * sets) * told * delta[i]
    return out


def truth(n: int, c: int, alpha: float, theta: float, epsilon: float) -> float:
    """Return delta of the learner with ``c`` users."""
    caught = 1 - (1 - 1 / n) ** c if c else 0.0
    local = max(0.0, 1 - alpha - alpha * math.exp(epsilon))
    return caught * local + (1 - caught) * float(every_composition(n, c, alpha, theta, epsilon).max())


def of(n: int, c: int, alpha: float, theta: float, **more: int) -> privacy.PrivacyProfile:
    view = f"learner+{c}*user" if c else "learner"
    return privacy.profile(PeerToPeer(alpha, theta), view, cluster_size=n, **more)


@pytest.mark.parametrize("c", [0, 1, 2])
def test_the_definition_agrees_with_brute_force(c: int) -> None:
    alpha, theta = Fraction(1, 5), Fraction(1, 2)
    view = brute.coalition(True, tuple(range(3 - c, 3)))
    for scale in (Fraction(1), Fraction(3, 2)):
        exact = float(brute.delta(3, alpha, theta, view, scale))
        assert truth(3, c, 0.2, 0.5, math.log(scale)) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "c", "alpha", "theta", "epsilon", "printed"),
    [
        (50, 1, 0.05, 0.5, 0.5, 0.025063),
        (50, 1, 0.1, 0.3, 0.3, 0.019049),
        (30, 14, 0.05, 1.0, 0.3, 0.461966),
        (40, 0, 0.2, 0.3, 0.1, None),
        (36, 2, 0.45, 0.7, 0.01, None),
        (28, 3, 0.02, 1.0, 0.7, None),
        (25, 12, 0.3, 0.4, 0.2, None),
    ],
)
def test_all_compositions(
    n: int, c: int, alpha: float, theta: float, epsilon: float, printed: float | None
) -> None:
    profile, exact = of(n, c, alpha, theta), truth(n, c, alpha, theta, epsilon)
    low, value, high = profile.delta_bracket(epsilon)
    assert profile.basis == "exact"
    assert low <= exact * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= high <= value * (1 + 1e-7)
    assert value == pytest.approx(exact, rel=1e-9)
    assert printed is None or value == pytest.approx(printed, abs=6e-7)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 18),
    c=st.integers(0, 5),
    alpha=st.just(0.0) | st.floats(1e-300, 0.49),  # scipy's binom.pmf overflows at 2.2250738585072014e-308
    theta=st.floats(0.01, 1),
    part=st.floats(0, 0.9),
)
def test_any_small_cluster(n: int, c: int, alpha: float, theta: float, part: float) -> None:
    c = min(c, n - 1)
    epsilon = part * math.log((1 - alpha) / alpha) if alpha > 0.001 else part
    exact = truth(n, c, alpha, theta, epsilon)
    low, value, high = of(n, c, alpha, theta).delta_bracket(epsilon)
    assert value == pytest.approx(exact, rel=1e-8, abs=1e-14)
    assert low - 1e-15 <= exact * (1 + 1e-11)
    assert exact * (1 - 1e-11) <= high + 1e-15


@settings(max_examples=12, deadline=None)
@given(
    n=st.integers(60, 500),
    c=st.integers(0, 2),
    alpha=st.floats(0.01, 0.42),
    theta=st.floats(0.05, 1),
    epsilon=st.floats(0, 0.3),
    where=st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_no_composition_is_worse(
    n: int, c: int, alpha: float, theta: float, epsilon: float, where: list[float]
) -> None:
    """Searched by bounds, not scanned; both directions of each composition tried, the ends and the middle too."""
    low, value, high = ClusterReports(alpha, theta, n, c).delta(epsilon)
    last = n - 1 - c
    for ones in {0, 1, 2, last // 2, *(int(x * last) for x in where), *(int(x**4 * last) for x in where)}:
        first, second = ClusterReports(alpha, theta, n, c, ones).directions(epsilon)
        swapped = ClusterReports(alpha, theta, n, c, last - ones).directions(epsilon)
        assert max(first.value, second.value) <= value * (1 + 2e-8) + 1e-18
        assert max(first.lower, second.lower) <= high
        assert first.value == pytest.approx(swapped[1].value, rel=1e-8, abs=1e-18)
    assert low <= value <= high


@pytest.mark.parametrize(
    ("n", "c", "alpha", "theta"), [(80, 1, 0.1, 0.5), (80, 0, 0.3, 0.5), (120, 2, 0.2, 1.0)]
)
def test_a_search_equals_a_scan(
    n: int, c: int, alpha: float, theta: float, limits: pytest.MonkeyPatch
) -> None:
    every = max(ClusterReports(alpha, theta, n, c, i, True).delta(0.2).value for i in range(n - c))
    limits.setattr(cluster_reports, "SCAN", 0)
    law = ClusterReports(alpha, theta, n, c)
    assert law.proven
    assert not law.plan.scanned
    assert law.delta(0.2).value == pytest.approx(every, rel=2e-8)
    assert law.delta(0.2).upper >= every * (1 - 1e-12)


@pytest.mark.parametrize("value", [0, cluster_reports.VALUE])
def test_too_many_cases_are_bracketed_and_called_lower(value: int, limits: pytest.MonkeyPatch) -> None:
    """Colluders who forget, or know nothing, give the value; those who know more give the upper end."""
    exact, alone = truth(26, 9, 0.1, 0.6, 0.3), of(17, 0, 0.1, 0.6 * 17 / 26).delta(0.3)
    caught = (1 - (1 - 1 / 26) ** 9) * max(0.0, 0.9 - 0.1 * math.exp(0.3))
    limits.setattr(cluster_reports, "SCAN", 0)
    limits.setattr(cluster_reports.WorkPlan, "few", property(lambda _plan: False))
    limits.setattr(cluster_reports, "VALUE", value)
    profile = of(26, 9, 0.1, 0.6)
    low, found, high = profile.delta_bracket(0.3)
    assert profile.basis == "lower"
    assert low <= found <= exact <= high < 2 * exact
    nothing = caught + (1 - 1 / 26) ** 9 * alone
    assert found == pytest.approx(nothing, rel=1e-9) if value == 0 else found > nothing * (1 + 1e-3)
    every = [of(26, 9, 0.1, 0.6, composition=i).delta_bracket(0.3).upper for i in range(17)]
    assert max(every) <= high * (1 + 1e-9)


@settings(max_examples=30, deadline=None)
@given(
    size=st.integers(1, 700),
    ones=st.floats(0, 1),
    alpha=st.sampled_from([0.0, 1e-6, 0.01, 0.2, 0.45]),
    theta=st.sampled_from([1e-3, 0.1, 0.5, 0.9, 1.0]),
    known=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    epsilon=st.sampled_from([0.0, 0.01, 0.2, 0.75]),
)
def test_a_walk_is_the_sum_of_its_steps(
    size: int, ones: float, alpha: float, theta: float, known: tuple[int, int], epsilon: float
) -> None:
    some = round(ones * (size - 1))
    draws = Urn(alpha, some, size - 1 - some, 1, *known).draws(1e-30)
    window = binomial(draws.urn.size, theta, 1 - theta, 1e-25)
    if (1 - alpha) <= alpha * math.exp(epsilon):
        assert average(draws, window, epsilon) == (0.0, 0.0)
        return
    gains = np.array([draws.gain(window.low + i, epsilon) for i in range(len(window.mass))])
    total, error = window.mass @ gains
    value, slack = average(draws, window, epsilon)
    assert abs(value - total) <= slack + error
    assert value == pytest.approx(total, rel=1e-9, abs=1e-28)
    both = averages([draws] * 5, [window] * 5, epsilon)
    assert both[0] == pytest.approx([value] * 5, rel=1e-9, abs=1e-28)
    assert abs(both[0][2] - total) <= both[1][2] + error


def test_a_walk_far_from_its_start_keeps_its_digits() -> None:
    draws, window = Urn(0.1, 0, 29_999).draws(1e-20), binomial(30_000, 0.2, 0.8, 1e-20)
    every = [draws.gain(window.low + i, 0.02)[0] for i in range(len(window.mass))]
    value, slack = average(draws, window, 0.02)
    assert abs(value - window.mass @ every) <= slack <= 1e-6 * value
    assert value == pytest.approx(window.mass @ every, rel=1e-9)


@pytest.mark.parametrize("ones", [0, 1, 2])
def test_pure_epsilon_without_noise(ones: int) -> None:
    protocol = PeerToPeer(0.0)
    trio = Population.from_arrays(y=np.array([False, ones > 0, ones > 1]))
    law = privacy.enumerate_view(protocol, trio, view="learner", change=0)
    profile = privacy.profile(protocol, cluster_size=3, composition=ones)
    pure = profile.epsilon(0)
    assert pure == pytest.approx(math.log(8) if ones == 1 else math.inf)
    assert (law.delta_at(Fraction(8)) == 0) == (ones == 1)
    assert law.delta_at(Fraction(799, 100)) > 0
    assert privacy.profile(protocol, cluster_size=3).epsilon(0) == math.inf


@pytest.mark.parametrize("theta", [1e-5, 1e-8])
@pytest.mark.parametrize(("n", "c"), [(50, 0), (50, 1), (3000, 0), (3000, 2), (10**6, 0)])
def test_few_reports_show_little(theta: float, n: int, c: int) -> None:
    law = ClusterReports(0.1, theta, n, c)
    for epsilon in (0.0, 0.1):
        low, value, high = law.delta(epsilon)
        assert 0 <= low <= value <= high
        keep = 0.9 - 0.1 * math.exp(epsilon)
        assert high <= -math.expm1((n - c) * math.log1p(-theta)) * keep * (1 + 1e-9)
    if n == 50:  # never two reports, as good as: one in n - c is the victim's
        assert law.delta(0.0).value == pytest.approx(theta * (n - c) / n * 0.8, rel=2e-3)


def test_a_search_stops_within_its_slack() -> None:
    values = [1 + 1e-4 * math.sin(i) for i in range(400)]

    def bound(low: int, high: int) -> float:
        return max(values[low : high + 1]) * 1.0005

    for slack in (0.0, 1e-4, 1e-2):
        found = search(400, values.__getitem__, bound, slack=slack, floor=values[0])
        assert found.value <= max(values) <= found.upper <= found.value * (1 + max(slack, 1e-15))


@pytest.mark.parametrize("growth", [0.01, 0.05, 0.5, 4.0])
@pytest.mark.parametrize("budget", [16, 150])
def test_a_search_that_stops_early_has_bounded_every_block(growth: float, budget: int) -> None:
    values = [1 + 1e-4 * math.sin(i) for i in range(12_000)]

    def bound(low: int, high: int) -> float:
        return max(values[low : high + 1]) * (1 + 1e-4 * (high - low))

    found = search(12_000, values.__getitem__, bound, growth=growth, budget=budget)
    assert found.value <= max(values) <= found.upper <= 1.0001 * (1 + 1.2)


def test_ends_meet_in_a_large_cluster_whose_labels_are_nearly_coins() -> None:
    """Against tails from scipy at some compositions: the upper end is above all, and close to the worst."""
    alpha, n = 0.485, 12_000
    law = ClusterReports(alpha, 1.0, n)
    for epsilon in (1e-4, 1e-3):
        low, value, high = law.delta(epsilon)
        worst = law.at_worst(epsilon).composition
        assert worst is not None
        gains = [tails_of_all_reports(alpha, n, ones, epsilon) for ones in (0, 3000, 5999, n - 1, worst)]
        assert max(gains) == pytest.approx(value, rel=1e-9)
        assert gains[-1] >= max(gains) * (1 - 1e-9)
        assert low <= value
        assert max(gains) * (1 - 1e-9) <= high <= 1.011 * max(gains)


def tails_of_all_reports(alpha: float, n: int, ones: int, epsilon: float) -> float:
    """Delta from 0 to 1 where everybody reports: the best of the events that at least k ones are reported."""
    first, second = (
        binom.pmf(np.arange(count + 1), count, p) for count, p in ((ones, 1 - alpha), (n - 1 - ones, alpha))
    )
    urn = np.convolve(first, second)
    low, high = (int(np.searchsorted(np.cumsum(urn), share)) for share in (1e-17, 1 - 1e-15))
    counts = np.arange(low, high + 2)
    spread = math.sqrt(n / 2)
    at = (low + high) // 2 + (spread * np.arange(-2.0, 7.0, 0.01)).astype(np.int64)
    tails = np.stack([binom.sf(k - 1, n, counts / n) for k in at])
    more, rest = np.diff(tails, axis=1) @ urn[low : high + 1], tails[:, :-1] @ urn[low : high + 1]
    keep = (1 - alpha) - alpha * math.exp(epsilon)
    return float((keep * more - math.expm1(epsilon) * rest).max())


def test_a_huge_cluster_with_colluders_answers_soon() -> None:
    began = time.process_time()
    profile = of(10**9, 3, 0.1, 0.1)
    low, value, high = profile.delta_bracket(2e-5)
    assert profile.basis == "lower"
    assert 0 < low <= value <= high < 1e-3
    assert time.process_time() - began < 20


def test_the_upper_end_of_a_huge_cluster_is_that_of_its_delta() -> None:
    """It was the pure epsilon, 9.19, where delta is certified to be below the target from 1 on."""
    law = ClusterReports(1.098805884e-05, 1.0, 10_000_000)
    low, value, high = law.epsilon_bracket(1e-9)
    assert low == pytest.approx(0.40647, abs=1e-5)
    assert low <= value <= high < 1
    assert law.delta(high).upper <= 1e-9 < law.delta(high * (1 - 1e-6)).upper
    uppers = [law.delta(epsilon).upper for epsilon in (0.45, 0.6, 0.9, 1.2, 2.0, 6.0)]
    assert uppers == sorted(uppers, reverse=True)
    assert uppers[2] < 1e-9


def test_what_calibrate_finds_for_a_huge_cluster_is_what_the_accountant_says_there() -> None:
    found = privacy.calibrate(PeerToPeer, vary="alpha", cluster_size=10_000_000, epsilon=1.0, delta=1e-9)
    there = privacy.profile(found.protocol, cluster_size=10_000_000).epsilon_bracket(1e-9)
    assert there == found.achieved
    assert there.upper <= 1


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.3])
def test_the_bound_of_a_huge_cluster_holds_at_every_composition(
    alpha: float, limits: pytest.MonkeyPatch
) -> None:
    limits.setattr(cluster_reports, "WIDE", 20)
    law = ClusterReports(alpha, 1.0, 60)
    for epsilon in (0.01, 0.5, 0.5 * math.log((1 - alpha) / alpha)):
        every = every_composition(60, 0, alpha, 1.0, epsilon)
        assert every.max() <= law.delta(epsilon).upper * (1 + 1e-9)
        assert every.max() <= law.ceiling(epsilon) * (1 + 1e-9)

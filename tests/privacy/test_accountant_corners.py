"""The accountant at the ends of its parameters: flips next to 0 and 1/2, budgets beyond 700 nats, bases that meet."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf  # type: ignore[import-untyped]

from p2p_sim import InputError, Population, privacy
from p2p_sim.privacy import accountant
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.mixtures import Worst
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from p2p_sim.privacy.mechanisms.peer_to_peer.urn import bit_margin, margin_error
from p2p_sim.privacy.profile import worst_basis
from protocols import EncryptedShuffle, PeerPermutation, PeerToPeer, RandomizedResponse

ALMOST = math.nextafter(0.5, 0)
FLIPS = (5e-324, 1e-310, 1e-300, 1e-100, 1e-18, 1e-3, 0.1, 0.2, 0.3, 0.45, 0.4999999, 0.4999999999999, ALMOST)


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with warnings.catch_warnings(), mp.workdps(400):
        warnings.simplefilter("error")
        yield


def outcomes(flip: float, theta: float, n: int, ones: int) -> list[tuple[Fraction, Fraction]]:
    """Return the probabilities of every (reports, ones among them) under label 0 and 1 of the victim, exactly."""
    a, t = Fraction(flip), Fraction(theta)
    urn = [Fraction(1)]
    for i in range(n - 1):
        p = 1 - a if i < ones else a
        urn = [x * (1 - p) + y * p for x, y in zip([*urn, Fraction(0)], [Fraction(0), *urn], strict=True)]
    found = []
    for m in range(n + 1):
        for k in range(m + 1):
            low, high = (
                sum((w * binomial(m, k, Fraction(r + x, n)) for r, w in enumerate(urn)), Fraction(0))
                for x in (0, 1)
            )
            come = binomial(n, m, t)
            found.append((come * ((1 - a) * low + a * high), come * (a * low + (1 - a) * high)))
    return found


def binomial(m: int, k: int, share: Fraction) -> Fraction:
    return math.prod([share] * k + [1 - share] * (m - k), start=Fraction(math.comb(m, k)))


def exact(value: Fraction) -> Any:
    return mpf(value.numerator) / mpf(value.denominator)


def delta(pairs: list[tuple[Fraction, Fraction]], epsilon: float) -> Any:
    """Return the larger direction, to 400 digits."""
    odds = mp.exp(mpf(epsilon))
    both = [[exact(q) - odds * exact(p), exact(p) - odds * exact(q)] for p, q in pairs]
    return max(sum(max(pair[side], mpf(0)) for pair in both) for side in (0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize(("theta", "n", "ones"), [(1.0, 1, 0), (1.0, 3, 2), (0.999999, 4, 0), (0.5, 6, 3)])
def test_brackets_hold_the_truth(flip: float, theta: float, n: int, ones: int) -> None:
    found = privacy.profile(PeerToPeer(flip, theta), cluster_size=n, composition=ones)
    pairs = outcomes(flip, theta, n, ones)
    pure = max(abs(mp.log(exact(q) / exact(p))) for p, q in pairs if p)
    low, _, high = found.epsilon_bracket(0.0)
    assert low <= pure <= high <= low * (1 + 1e-11)
    for part in (0.0, 1e-3, 0.5, 0.9, 0.999, 1 - 1e-9):
        at = float(pure) * part
        low, _, high = found.delta_bracket(at)
        assert low <= delta(pairs, at) <= high
        assert high <= low * (1 + 1e-6) + 1e-290 or part > 0.999
    assert all(found.delta_bracket(math.nextafter(at, 0)).upper >= delta(pairs, math.nextafter(at, 0))
               for at in (found.epsilon(0.0), float(pure)))  # fmt: skip
    at_pure = found.epsilon(0.0)
    assert found.delta_bracket(at_pure).lower <= delta(pairs, at_pure) <= found.delta_bracket(at_pure).upper


@pytest.mark.parametrize("wanted", [1e-300, 1e-9, 1e-3])
def test_roots_of_weak_flips(wanted: float) -> None:
    low, value, high = privacy.profile(
        PeerToPeer(0.4999999, 0.999999), cluster_size=4, composition=0
    ).epsilon_bracket(wanted)
    pairs = outcomes(0.4999999, 0.999999, 4, 0)
    assert low <= value <= high
    assert delta(pairs, low) >= wanted or low == 0
    assert delta(pairs, high) <= wanted


@pytest.mark.parametrize("wanted", [1e-9, 0.5])
@pytest.mark.parametrize(("flip", "n"), [(1e-310, 1), (5e-324, 1), (1e-305, 3)])
def test_roots_beyond_700_nats(flip: float, n: int, wanted: float) -> None:
    low, _, high = privacy.profile(PeerToPeer(flip), cluster_size=n, composition=0).epsilon_bracket(wanted)
    pairs = outcomes(flip, 1.0, n, 0)
    assert delta(pairs, low) >= wanted >= delta(pairs, high)
    assert 690 < low <= high < low * (1 + 1e-11)


def test_colluders_beyond_700_nats() -> None:
    """A flip of 5e-324 hides as little at 700 nats as none."""
    flipped = privacy.profile(PeerToPeer(5e-324, 0.5), "learner+3*user", cluster_size=6)
    plain = privacy.profile(PeerToPeer(0.0, 0.5), "learner+3*user", cluster_size=6)
    assert flipped.delta(700.0) == pytest.approx(plain.delta(math.inf), rel=1e-9)
    assert flipped.delta(700.0) == pytest.approx(0.5543, abs=1e-4)
    assert flipped.epsilon(0.5) > 740


@pytest.mark.parametrize("flip", FLIPS)
def test_what_a_one_more_is_worth(flip: float) -> None:
    for part in (0.0, 1e-9, 0.3, 0.999999, 1.0):
        at = part * accountant.local_epsilon(PeerToPeer(flip))  # type: ignore[operator]
        truth = 1 - 2 * mpf(flip) - mpf(flip) * mp.expm1(mpf(at))
        assert abs(bit_margin(flip, at) - truth) <= margin_error(flip)


def test_the_local_budget_of_weak_flips() -> None:
    for flip in FLIPS:
        truth = mp.log((1 - mpf(flip)) / mpf(flip))
        for protocol in (PeerToPeer(flip), PeerPermutation(flip)):
            assert abs(accountant.local_epsilon(protocol) - truth) <= 1e-15 * truth
    assert accountant.local_epsilon(PeerToPeer(0.0)) == math.inf
    assert accountant.local_epsilon(PeerToPeer(0.5)) == 0


def test_the_pure_budget_is_rounded_outward() -> None:
    """The logarithm of a flip is rounded: delta there is not 0, as a float would have it."""
    found = privacy.profile(PeerToPeer(0.1, 0.1), "learner+user", cluster_size=4)
    low, value, high = found.epsilon_bracket(0.0)
    assert low < value < high < low * (1 + 3e-15)
    assert low <= mp.log((1 - mpf(0.1)) / mpf(0.1)) <= high
    assert found.delta_bracket(value).upper > 4.5e-17
    assert found.delta_bracket(high) == (0, 0, 0)


@pytest.mark.parametrize("n", [100, 1000, 10**5])
def test_the_pure_budget_of_many(n: int) -> None:
    """Beyond a thousand users the event that decides is rarer than any float; its logarithm by a long sum."""
    flip, top = 0.1, None
    r = np.arange(n, dtype=np.float64)
    from scipy.special import gammaln

    logs = gammaln(n) - gammaln(r + 1) - gammaln(n - r) + r * math.log(flip) + (n - 1 - r) * math.log1p(-flip)
    with np.errstate(divide="ignore"):
        first, second = logs + n * np.log(r / n), logs + n * np.log((r + 1) / n)
    top = second.max()
    ratio = math.log(np.exp(second - top).sum() / np.exp(first - top).sum())
    up = math.expm1(ratio)
    truth = math.log1p((1 - 2 * flip) * up / (1 + flip * up))
    low, value, high = ClusterReports(flip, 1.0, n).pure_bracket()
    assert low <= value <= high <= low * (1 + 1e-9)
    assert value == pytest.approx(truth, rel=1e-14 * n)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [PeerPermutation, PeerToPeer])
@pytest.mark.parametrize(("n", "times"), [(1, 2), (4, 3), (3, 2)])
@pytest.mark.parametrize("flip", [ALMOST, 0.4999999999])
def test_composed_at_the_extreme(protocol: Any, n: int, times: int, flip: float) -> None:
    one = privacy.profile(protocol(flip), cluster_size=n)
    low, value, high = privacy.compose([(one, times)]).delta_bracket(0.0)
    assert (
        one.delta_bracket(0.0).lower
        <= low
        <= value
        <= high
        <= times * one.delta_bracket(0.0).upper * (1 + 1e-9)
    )
    if n == 1:  # of two equal coins the first alone decides at epsilon = 0
        assert low <= 1 - 2 * Fraction(flip) <= high < 1.001 * low


def population() -> Population:
    return Population.from_arrays(y=[0, 1] * 530, cluster=[0] * 60 + [1] * 1000)


@pytest.mark.slow
def test_the_basis_of_a_population_of_upper_bounds() -> None:
    found = privacy.profile(EncryptedShuffle(1.0, labels=3), population=population())
    each = [privacy.profile(EncryptedShuffle(1.0, labels=3), cluster_size=n) for n in (60, 1000)]
    assert found.basis == "upper" == worst_basis(each)
    assert found.epsilon(1e-6) == max(part.epsilon(1e-6) for part in each)
    assert privacy.compose([(found, 2)]).basis == "upper"


def test_the_worst_of_bases() -> None:
    parts = {
        b: privacy.PrivacyProfile("learner", b, "", (), "", Nothing()) for b in ("exact", "upper", "lower")
    }
    assert worst_basis([parts["exact"]]) == "exact"
    assert worst_basis([parts["exact"], parts["upper"]]) == "upper"
    assert worst_basis([parts["upper"], parts["lower"], parts["exact"]]) == "lower"


def test_a_refused_part_refuses_the_population() -> None:
    found = privacy.profile(
        EncryptedShuffle(1.0, labels=3), population=population(), composition="population"
    )
    assert found.basis == "refused"
    assert "counts two labels" in found.why
    with pytest.raises(InputError, match="counts two labels"):
        found.epsilon(1e-6)


def test_laws_are_compared_as_they_are() -> None:
    """A law of many numbers is not written out in full: two that look the same may differ."""
    found = privacy.profile(PeerToPeer(0.2), population=population())
    assert isinstance(found.law, Worst)
    same = privacy.profile(RandomizedResponse(1.0), population=population())
    assert same.law == privacy.profile(RandomizedResponse(1.0)).law


@pytest.mark.parametrize("epsilon", [1000.5, 2000.0, math.inf])
def test_who_never_lies_tells_all(epsilon: float) -> None:
    found = privacy.profile(RandomizedResponse(epsilon))
    assert found.epsilon(0.0) == found.epsilon(0.5) == math.inf
    assert found.delta(1e9) == 1
    assert accountant.local_epsilon(RandomizedResponse(epsilon)) == math.inf
    assert accountant.local_epsilon(EncryptedShuffle(epsilon)) == math.inf


def test_the_last_budget_that_lies() -> None:
    assert privacy.profile(RandomizedResponse(1000.0)).epsilon(0.0) == 1000


def test_what_is_assumed_of_messages() -> None:
    arrives = "no message is lost, late or doubled, so nobody asks again"
    asks = PeerToPeer(0.1, 1.0, retries=3)
    assert arrives in privacy.profile(asks, cluster_size=4).assumes
    faulty = privacy.profile(asks, cluster_size=4, faults=["drop=0.1"])
    assert arrives not in faulty.assumes
    assert "retries tell no more" in faulty.source
    assert faulty.epsilon(0.0) == accountant.local_epsilon(
        asks
    )  # the learner's law without retries is not used

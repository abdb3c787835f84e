"""Every correction of the papers shows, and its numbers are those of an oracle that shares no code with them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.optimize import brentq
from scipy.stats import binom, norm

from p2p_sim import errata
from p2p_sim.core.errors import InputError
from p2p_sim.errata import Erratum, Numbers
from p2p_sim.report import errata_table

ROOT = Path(__file__).parents[2]
Values = tuple[Any, Any, Any]


def renormalized(shares: list[float], tau: float) -> list[float]:
    """Lines 5 to 18 of Algorithm 1, from noisy shares."""
    q = [max(tau, min(1.0, share)) for share in shares]
    gap = 1 - sum(q)
    xi = [each - tau if gap < 0 else 1 - each for each in q]
    return [each + gap * free / sum(xi) for each, free in zip(q, xi, strict=True)]


def laplace(x: Any, middle: Any, scale: Any) -> Any:
    return mpmath.exp(-abs(x - middle) / scale) / (2 * scale)


def event(sigma: Any, lam: Any) -> Any:
    """The log ratio of q~(1) = 0.6 and a told 1, with one and with two ones among four, by quadrature."""
    chances = []
    for ones, victim in ((mpf(1) / 4, 0), (mpf(1) / 2, 1)):
        up = mpmath.quad(lambda x, m=ones: laplace(x, m, sigma / 4), [mpf("0.6"), 2, 20])
        down = mpmath.quad(lambda x, m=1 - ones: laplace(x, m, sigma / 4), [-20, -1, mpf("0.4")])
        chances.append(up * down * ((1 - lam) * victim + lam * mpf("0.6")))
    return mpmath.log(chances[1] / chances[0])


def theorem1() -> Values:
    flipped = mpmath.log(1 + 1 / mpf("0.4"))
    return 1 + flipped, event(mpf(1), mpf("0.5")), 2 + flipped


def corollary2() -> Values:
    return 2, event(mpf(1), 1 / (1 + (mpmath.e - 1) * mpf("0.4"))), 3


def theorem3() -> Values:
    """The exact one by the normal law of the number of ones, good to some thousandths here."""
    s = 20_000
    printed = 1 + 3 / (mpmath.e * mpmath.sqrt(s) * mpmath.log(s)) + mpf(2) ** 0.75 * 3 / mpf(s) ** 0.25
    alpha = float(4 * mpmath.sqrt(2) * mpmath.log(s) / mpmath.sqrt(s))
    mu = (1 - 2 * alpha) / math.sqrt(2 * s * alpha * (1 - alpha))

    def over(epsilon: float) -> float:
        tails = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return float(tails - 2.5e-9)

    xi = mpmath.sqrt(-4 * (alpha + 1 / mpf(s)) * (1 - alpha) / alpha * mpmath.log(2.5e-9))
    lemma = mpmath.log(mpmath.e + 3 / (s * alpha)) + xi * mpmath.log(1 + 3 / mpmath.sqrt(s * alpha))
    return printed, brentq(over, 1e-4, 1), lemma


def equation32() -> Values:
    s = 20_000
    alpha = 4 * mpmath.sqrt(2) * mpmath.log(s) / mpmath.sqrt(s)
    return mpmath.sqrt(72 / (s * mpmath.log(s))), 3 / (s * alpha), 3 / (s * alpha)


def equation32_bound() -> Values:
    s = 20_000
    root, log = mpmath.sqrt(s), mpmath.log(s)
    alpha, xi, last = (
        4 * mpmath.sqrt(2) * log / root,
        4 * mpmath.sqrt(log),
        mpf(2) ** 0.75 * 3 / mpf(s) ** 0.25,
    )
    start = mpmath.log(mpmath.e + 3 / (s * alpha)) + xi * mpmath.log(1 + 3 / mpmath.sqrt(s * alpha))
    return 1 + 3 / (mpmath.e * mpmath.sqrt(s * log)) + last, start, 1 + 3 / (mpmath.e * root * log) + last


def two_reports() -> Values:
    """Flips and picks of both users."""
    both = Fraction(0)
    for flips in itertools.product((0, 1), repeat=2):
        noisy = [1 ^ flips[0], 0 ^ flips[1]]
        chance = Fraction(1, 4) ** sum(flips) * Fraction(3, 4) ** (2 - sum(flips))
        for picks in itertools.product((0, 1), repeat=2):
            both += chance * Fraction(1, 4) * (noisy[picks[0]] and noisy[picks[1]])
    return Fraction(1, 4), both, both


def response_of_ten() -> Values:
    weights = [mpmath.e if told == 0 else mpf(1) for told in range(10)]
    truth = weights[0] / sum(weights)
    return mpmath.e / 9, truth, truth


def weighted() -> Values:
    """The rule of the best attacker by trying all four rules."""
    p, lie = (mpf("0.03"), mpf("0.97")), 1 / (1 + mpmath.exp(mpf("0.1")))
    best = max(
        sum(
            p[y] * (1 - lie if y == told else lie) / (2 * p[y])
            for y in (0, 1)
            for told in (0, 1)
            if rule[told] == y
        )
        for rule in itertools.product((0, 1), repeat=2)
    )
    factor = 1 - 2 / (1 + mpmath.exp(mpf("0.1")))
    return factor / (2 * p[0]), best - mpf(1) / 2, factor


def fair() -> Values:
    factor = 1 - 2 / (1 + mpmath.e)
    return factor, mpmath.e / (1 + mpmath.e) - mpf(1) / 2, factor / 2


def covariance() -> Values:
    def right(deviation: Any) -> Any:
        return mpmath.quad(lambda x: mpmath.npdf(x, mpmath.sqrt(2), deviation), [mpmath.sqrt(2) / 2, 30, 300])

    return right(mpf(10)), right(mpmath.sqrt(10)), None


def best_guess(eta: Any) -> Any:
    """How often the better guess of a label is right, from it with Laplace noise of scale 1, by quadrature."""

    def density(x: Any) -> Any:
        return max(eta * laplace(x, 1, 1), (1 - eta) * laplace(x, 0, 1))

    return mpmath.quad(density, [-40, -5, 0, mpf(1) / 2, 1, 5, 40])


def odds_of_zero() -> Values:
    eta = mpf("0.1")
    exact = (1 - eta) * laplace(-5, 0, 1) / (eta * laplace(-5, 1, 1))
    return mpmath.e * eta / (1 - eta), exact, mpmath.e * (1 - eta) / eta


def far_ones(high: float) -> Values:
    log = math.log(8000)
    radius = log / 3 + math.sqrt(2 * log + 3000 * log) / 6
    low, most = math.ceil(500 - radius), math.floor(min(500 + radius, high))
    return 0.0005, 1 - sum(binom.pmf(range(low, most + 1), 1000, 0.5)), None


def logit(z: Any) -> Any:
    return mpmath.log(z / (1 - z))


def h(z: Any) -> Any:
    return (2 * z - 1) * logit(z)


FLIP = mpf("0.01")


def loss(eta: Any, prior: Any, flip: Any = FLIP) -> Any:
    """The mean over label and report of the log odds gained, by Bayes."""
    total = mpf(0)
    for y, told in itertools.product((0, 1), repeat=2):
        joint = [(eta if label else 1 - eta) * (1 - flip if label == told else flip) for label in (0, 1)]
        total += joint[y] * (mpmath.log(joint[y] / joint[1 - y]) - (logit(prior) if y else -logit(prior)))
    return total


def t_low(tau: Any, prior: Any) -> Any:
    ratio = (mpmath.exp(mpf(1) / 2) + 1) / (mpmath.exp(mpf(1) / 2) - 1)
    return 1 / (mpmath.exp((ratio * (tau - h(mpf("0.01")))) ** (mpf(2) / 3) + logit(prior)) + 1)


def root(tau: Any, prior: Any, ends: tuple[str, str]) -> Any:
    return mpmath.findroot(lambda eta: loss(eta, prior) - tau, [mpf(end) for end in ends], solver="anderson")


def markov() -> Values:
    eta = [mpf("0.02"), mpf("0.98"), *[mpf("0.5")] * 18]
    losses = [loss(each, mpf("0.5")) for each in eta]
    least, mean = min(losses), sum(losses) / 20
    jeffreys = sum(map(h, eta)) / 20
    return (jeffreys - h(FLIP)) / 6, sum(each >= 6 for each in losses) / 20, (mean - least) / (6 - least)


def negative() -> Values:
    values = [loss(mpf(step) / 1000, mpf("0.9"), mpf("0.4")) for step in range(500, 901)]
    lowest = min(range(len(values)), key=values.__getitem__) + 500
    ends = (mpf(lowest - 1) / 1000, mpf(lowest + 1) / 1000)
    least = mpmath.findroot(
        lambda eta: mpmath.diff(lambda z: loss(z, mpf("0.9"), mpf("0.4")), eta), ends, solver="anderson"
    )
    return 0, loss(mpf("0.7"), mpf("0.9"), mpf("0.4")), loss(least, mpf("0.9"), mpf("0.4"))


def undercounted() -> Values:
    twice = 2 * mpmath.sqrt(2 * mpmath.log(6 * 10**8) / 10**4)
    high = root(mpf("6.2"), mpf("0.5"), ("0.7", "0.99"))
    assert mpf("0.9") - twice < high < mpf("0.9") + twice
    slack = mpmath.sqrt(mpmath.log(600) / (2 * 10**6)) + mpf("0.01") / 3
    return slack, float(loss(mpf("0.9"), mpf("0.5")) > mpf("6.2")), 1


def bias() -> Values:
    printed = mpmath.sqrt(2 * mpmath.log(6 * 10**6) / 1000) - mpf("0.2")
    corrected = mpmath.sqrt(mpmath.log(16 * 10**6) / 2000) + mpf("0.2")
    return printed, np.mean(np.arange(1000) / 10**4), corrected


def kag14_most() -> Values:
    noise, prior = logit(mpf("0.99")), logit(mpf("0.256"))
    ends = [
        noise + max(logit(mpf(high)) - prior, prior - logit(mpf(low)))
        for high in ("0.96", "0.98")
        for low in ("0.01", "0.02")
    ]
    return noise + max(mpf("3.2") - prior, mpf("5.28") + prior), max(ends), None


def mean_terms() -> Values:
    """The four terms as printed, and the loss by Bayes."""
    n, p, f = mpf("0.3"), mpf("0.256"), mpf("0.01")
    m, q, g, log = 1 - n, 1 - p, 1 - f, mpmath.log
    printed = (
        m * g * log(m * g * q / (n * f * p)) + m * f * log(m * f * q / (n * g * p))
        + n * f * log(n * f * p / (m * g * q)) + n * g * log(n * g * p / (m * f * q))
    )  # fmt: skip
    return printed, loss(n, p), loss(n, p)


def symmetric() -> Values:
    return loss(mpf("0.9"), mpf("0.256")), loss(mpf("0.1"), mpf("0.256")), None


def split_logarithm() -> Values:
    own, seen = (mpf("0.2"), mpf("0.8")), []
    drawn = ((mpf("0.7"), mpf("0.3")), (mpf("0.8"), mpf("0.2")))
    for x in (0, 1):
        seen.append(own[x] / 2 + (drawn[0][x] + drawn[1][x]) / 4)
    assert own[0] < drawn[0][0] + drawn[1][0]  # of A
    assert own[1] > drawn[0][1] + drawn[1][1]
    ratio = own[1] / drawn[0][1]
    return mpmath.log(seen[1] * ratio), mpmath.log(seen[0] + seen[1] * ratio), None


def mechanism2(features: Any, drawn: Any, lam: Any) -> list[dict[tuple[int, int], Any]]:
    """The law of (features, label) for each true label, coin by coin."""
    laws = []
    for y in (0, 1):
        law: dict[tuple[int, int], Any] = dict.fromkeys(itertools.product((0, 1), repeat=2), mpf(0))
        for x, said, made, other in itertools.product((0, 1), repeat=4):
            for new_label, new_features in itertools.product((True, False), repeat=2):
                chance = features[y][x] * (lam if new_label else 1 - lam) * (lam if new_features else 1 - lam)
                chance *= mpf(1) / 2 * mpf(1) / 2 * drawn[other][made]
                law[made if new_features else x, said if new_label else y] += chance
        laws.append(law)
    return laws


def double_response() -> Values:
    features = ((mpf("0.8"), mpf("0.2")), (mpf("0.3"), mpf("0.7")))
    drawn, lam, c = ((mpf("0.75"), mpf("0.25")), (mpf("0.35"), mpf("0.65"))), mpf("0.5"), 2
    laws = mechanism2(features, drawn, lam)
    assert all(abs(sum(law.values()) - 1) < 1e-12 for law in laws)
    exact = max(mpmath.log(sum(laws[y][o] ** 2 / laws[1 - y][o] for o in laws[y])) for y in (0, 1))
    gap = max(
        mpmath.log(sum(p**2 / q for p, q in zip(*each, strict=True)))
        for each in zip(features, drawn, strict=True)
    )
    label = mpmath.log(lam / 2 * ((1 + c) ** 2 + mpf(1) / (1 + c)))
    sharper = label + mpmath.log(1 + c) + mpmath.log(lam + (1 - lam) * mpmath.exp(gap))
    return 2 * mpmath.log(1 + c) + gap, exact, sharper


def guessed() -> Values:
    """At order 2 the printed bound is linear in delta, with a negative slope: it is 1 for every delta."""
    chances = [[mpf("0.19") if y == told else mpf("0.09") for told in range(10)] for y in (0, 1)]
    moment = sum(p**2 / q for p, q in zip(*chances, strict=True))
    assert mpf("0.9") / moment < 9
    return 1, chances[0][0], 1 - mpf("0.9") / 2 * mpf("0.9") / 2 / moment


def unbiased_risk() -> Values:
    """Each released label is the true one with probability 3/4."""
    told = (mpf("0.3") * 3 / 4 + mpf("0.7") / 4, mpf("0.7") * 3 / 4 + mpf("0.3") / 4)
    first = (told[0] + told[1] / 2 - mpf("1.5") / 4) * 4
    risk = mpf("0.3") + mpf("0.7") / 2
    return first + 2 * risk, risk, first - risk


def closed_form() -> Values:
    n = 1000
    both = 8 * mpmath.sqrt(mpmath.e * mpmath.log(4e6) / n) + 8 * mpmath.e / n
    code = mpmath.log(1 + (1 - 1 / mpmath.e) * both / (1 + 1 / (mpmath.e * (1 + both))))
    theorem = mpmath.log(1 + (mpmath.e - 1) / (mpmath.e + 1) * both)

    def worst(epsilon: float) -> float:
        return max(ends(epsilon, n1) for n1 in (0, 499, 999)) - 1e-6

    def ends(epsilon: float, n1: int) -> float:
        lie = 1 / (1 + math.e)
        ones = np.convolve(
            binom.pmf(np.arange(n1 + 1), n1, 1 - lie), binom.pmf(np.arange(n - n1), n - 1 - n1, lie)
        )
        p, q = (np.convolve(ones, law) for law in ([1 - lie, lie], [lie, 1 - lie]))
        x = math.exp(epsilon)
        return max(float(np.maximum(p - x * q, 0).sum()), float(np.maximum(q - x * p, 0).sum()))

    return code, brentq(worst, 0.01, 1), theorem


ORACLES: dict[str, Callable[[], Values]] = {
    "clustering-theorem-1": theorem1,
    "clustering-corollary-2": corollary2,
    "clustering-corollary-2-tau": lambda: (1, sum([0.6, 0.6]), None),
    "clustering-renormalization": lambda: (math.nan, mpf(1) / 9, None),
    "clustering-heterogeneity": lambda: (2, 1, 1),
    "clustering-theorem-3": theorem3,
    "clustering-eq-32": equation32,
    "clustering-eq-32-bound": equation32_bound,
    "clustering-lemma-9-share": lambda: (1, mpf("0.18"), None),
    "clustering-lemma-9-reports": lambda: (1, binom.pmf(5, 10, 0.5), None),
    "clustering-binomial": two_reports,
    "clustering-one-peer": lambda: (mpf("0.1"), mpf("0.6") / 10, mpf("0.06")),
    "clustering-theorem-5": response_of_ten,
    "attacks-corollary-1": weighted,
    "attacks-theorem-2": fair,
    "attacks-covariance": covariance,
    "unified-short-attacker": lambda: (mpf("0.1"), best_guess(mpf("0.1")), mpf("0.9")),
    "unified-short-attacker-third": lambda: (1, best_guess(mpf("0.5")), 1 - mpmath.exp(-mpf(1) / 2) / 2),
    "unified-eq-19": odds_of_zero,
    "unified-theorem-6-4": lambda: (
        (1 - 1 / mpmath.e) / 2, best_guess(mpf("0.5")) - mpf(1) / 2, (1 - mpmath.exp(-mpf(1) / 2)) / 2,
    ),
    "unified-lemma-a1": lambda: far_ones(math.inf),
    "unified-lemma-a2": lambda: far_ones(1),
    "pitfalls-flip": lambda: (mpf("0.01"), mpf("0.99"), mpf("0.99")),
    "pitfalls-markov": markov,
    "pitfalls-markov-negative": negative,
    "pitfalls-lemma-1-inside": lambda: (mpf("10.5"), loss(t_low(mpf("10.5"), mpf("0.5")), mpf("0.5")), None),
    "pitfalls-lemma-1-outside": lambda: (6, loss(t_low(6, mpf("0.256")), mpf("0.256")), None),
    "pitfalls-lemma-1-threshold": lambda: (
        t_low(6, mpf("0.256")), *[root(6, mpf("0.256"), ("0.001", "0.2"))] * 2,
    ),
    "pitfalls-lemma-1-sets": lambda: (1, float(loss(mpf("0.5"), mpf("0.5")) > 6), 0),
    "pitfalls-theorem-2": undercounted,
    "pitfalls-bias": bias,
    "pitfalls-table-2-kdd12": lambda: (logit(mpf("0.99")) + mpf("27.63") + logit(mpf("0.044")), math.inf, None),
    "pitfalls-table-2-header": lambda: (mpmath.log(mpf("0.995") / mpf("0.015")), mpf("5.28"), mpmath.log(197)),
    "pitfalls-table-2-ends": lambda: (mpmath.log(mpf("0.98") / mpf("0.04")), *[mpmath.log(24)] * 2),
    "pitfalls-table-2-nu-max": kag14_most,
    "release-static-features": lambda: (mpf("5.19"), mpmath.log(199), mpmath.log(199)),
    "release-eq-2": lambda: (0, -mpmath.log(99), -mpmath.log(99)),
    "release-lemma-d1": mean_terms,
    "release-theorem-6-2": lambda: (-mpmath.log(mpf(7) / 3), mpmath.log(mpf(7) / 3), mpmath.log(mpf(7) / 3)),
    "release-symmetry": symmetric,
    "release-eq-14-share": lambda: (1000, float(loss(mpf("0.01"), mpf("0.5")) > 6), 1),
    "release-eq-14-branch": lambda: (1, float(loss(mpf("0.5"), mpf("0.5")) > 6), 0),
    "release-theorem-7-1-proof": split_logarithm,
    "release-theorem-7-1": double_response,
    "release-theorem-5-2": guessed,
    "release-lemma-g1": unbiased_risk,
    "shuffle-closed-form": closed_form,
}  # fmt: skip
BY_NORMAL_LAW = {"clustering-theorem-3": 0.01}
"""Relative distance of the oracle where it is not exact."""


@pytest.fixture(scope="module")
def found() -> dict[str, errata_table.Found]:
    return {each.erratum.id: each for each in errata_table.found()}


def test_there_is_an_oracle_for_each() -> None:
    assert list(ORACLES) == [each.id for each in errata.ERRATA]


@pytest.mark.parametrize("id", ORACLES)
def test_numbers_are_those_of_an_oracle(found: dict[str, errata_table.Found], id: str) -> None:
    assert found[id].shows
    for here, there in zip(found[id].numbers, ORACLES[id](), strict=True):
        assert (here is None) is (there is None)
        if there is not None:
            relative = BY_NORMAL_LAW.get(id, 1e-9)
            assert here == pytest.approx(float(there), rel=relative, abs=1e-12, nan_ok=True)


def test_the_event_of_theorem_1_is_the_one_whose_chances_are_computed() -> None:
    """Where q~(1) is 0.6, and nowhere else, the noisy share of ones is at least 0.6 and that of zeros at most 0.4."""
    grid = [(step + 0.5) / 40 for step in range(-40, 80)]
    for one, zero in itertools.product(grid, repeat=2):
        reached = renormalized([one, zero], 0.4)[0] >= 0.6 - 1e-12
        assert reached is (one > 0.6 and zero < 0.4)


def test_the_renormalization_of_nine_equal_shares_divides_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        renormalized([-1.0] * 9, 1 / 9)


SAMPLE = Erratum(
    "a", "A paper", "Theorem 1", "exceeded", "it is 1", "it is 2", "one", lambda: Numbers(1, 2, 2)
)


@pytest.mark.parametrize(
    ("relation", "numbers", "shows"),
    [
        ("exceeded", Numbers(1, 2, 2), True),
        ("exceeded", Numbers(1, 2), True),
        ("exceeded", Numbers(1, 2, 1.5), False),
        ("exceeded", Numbers(2, 1, 3), False),
        ("exceeded", Numbers(1, 1 + 1e-8), False),
        ("exceeded", Numbers(1, math.inf), True),
        ("undercut", Numbers(2, 1, 0.5), True),
        ("undercut", Numbers(2, 1, 1.5), False),
        ("undercut", Numbers(1, 2), False),
        ("unequal", Numbers(1, 2, 2), True),
        ("unequal", Numbers(1, 2, 2 + 1e-7), False),
        ("unequal", Numbers(1, 1, 1), False),
        ("unequal", Numbers(math.nan, 1), True),
        ("code", Numbers(1, 2), True),
        ("code", Numbers(1, 1), False),
        ("loose", Numbers(3, 1, 2), True),
        ("loose", Numbers(3, 2.5, 2), False),
        ("loose", Numbers(2, 1, 2), False),
        ("loose", Numbers(3, 1), False),
    ],
)
def test_what_shows(relation: Any, numbers: Numbers, shows: bool) -> None:
    assert replace(SAMPLE, relation=relation).shows(numbers) is shows


def test_ids_tell_errata_apart_and_are_known() -> None:
    ids = [each.id for each in errata.ERRATA]
    assert len(set(ids)) == len(ids)
    assert all(errata.named(id).id == id for id in ids)
    with pytest.raises(InputError, match="no erratum 'clustering': known are clustering-theorem-1"):
        errata.named("clustering")


def test_lines_of_python_give_the_numbers(found: dict[str, errata_table.Found]) -> None:
    for each in found.values():
        imported, call = each.erratum.line.split("; ")
        names: dict[str, Any] = {}
        exec(imported, names)
        module, function = call.removesuffix("()").split(".")
        assert getattr(names[module], function) is each.erratum.numbers


def test_the_page_is_that_of_the_numbers(found: dict[str, errata_table.Found]) -> None:
    """After ``python -m experiments --gallery``."""
    assert (ROOT / "docs/errata.md").read_text() == errata_table.page(found.values())


def test_the_page_says_what_no_longer_shows() -> None:
    gone = errata_table.found([replace(SAMPLE, numbers=lambda: Numbers(2, 1))])
    assert "| 2 | 1 |  | **no longer shown** |" in errata_table.page(gone)
    assert "printed 2, exact 1: no longer shown" in errata_table.as_text(gone)
    assert errata_table.as_text(gone).endswith("0 of 1 corrections show.\n")

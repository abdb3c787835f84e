"""Epsilon of PATE: against dp-accounting, the papers' bound, closed forms, and small cases, integrated."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from p2p_sim.core import exact
from p2p_sim.core.errors import InputError
from p2p_sim.learning.training import pate_accounting as accounting

DELTA = 1e-5

KINDS = accounting.KINDS


def hockey_stick(p: Any, q: Any, epsilon: float) -> float:
    return float(np.maximum(np.asarray(p) - math.exp(epsilon) * np.asarray(q), 0).sum())


# --- closed forms, and others' accountants ---


@pytest.mark.parametrize(("sigma", "queries"), [(20.0, 1), (40.0, 100), (300.0, 5000)])
def test_gaussian_histograms_are_one_gaussian(sigma: float, queries: int) -> None:
    """Balle and Wang 2018, Theorem 8, with mu = sqrt(2 q) / sigma."""
    mu = math.sqrt(2 * queries) / sigma
    for epsilon in (0.01, 0.5, 2.0):
        expected = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
            -mu / 2 - epsilon / mu
        )
        found = accounting.profile(sigma, queries).delta(epsilon)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_laplace_histograms_are_binary_losses_added_up() -> None:
    """Of a count that moves by one the loss is 1/b or -1/b: delta is a sum over how many of 2 q are up."""
    b, queries = 7.0, 12
    up = stats.binom(2 * queries, math.exp(1 / b) / (1 + math.exp(1 / b))).pmf(np.arange(2 * queries + 1))
    for epsilon in (0.0, 0.3, 1.1, 3.0):
        expected = hockey_stick(up, up[::-1], epsilon)
        assert accounting.profile(b, queries, "laplace").delta(epsilon) == pytest.approx(expected, rel=1e-10)
    assert accounting.profile(b, queries, "laplace").epsilon(0.0) == pytest.approx(2 * queries / b, rel=1e-12)
    assert accounting.profile(b, 1, "laplace").epsilon(0.0) == pytest.approx(2 / b, rel=1e-12)


def test_beside_dp_accounting() -> None:
    dp = pytest.importorskip("dp_accounting")
    pld = pytest.importorskip("dp_accounting.pld")
    sigma, queries = 40.0, 60
    theirs = pld.PLDAccountant(value_discretization_interval=1e-4)
    theirs.compose(dp.GaussianDpEvent(sigma / math.sqrt(2)), queries)
    mine = accounting.profile(sigma, queries).epsilon(DELTA)
    assert mine <= theirs.get_epsilon(DELTA) <= mine + 1e-3

    b = 15.0
    lattice = pld.privacy_loss_distribution.from_discrete_laplace_mechanism(
        1 / b, value_discretization_interval=1e-4
    )
    mine = accounting.profile(b, queries, "laplace").epsilon(DELTA)
    rounded = 2 * queries * 1e-4  # every loss is rounded up by at most the interval
    assert mine <= lattice.self_compose(2 * queries).get_epsilon_for_delta(DELTA) + 1e-9
    assert lattice.self_compose(2 * queries).get_epsilon_for_delta(DELTA) <= mine + rounded

    plain = pld.PLDAccountant(value_discretization_interval=1e-4)
    plain.compose(dp.LaplaceDpEvent(b), 2 * queries)  # continuous noise shows hardly less
    assert plain.get_epsilon(DELTA) == pytest.approx(mine, rel=0.02)


def test_below_the_papers_own_bound() -> None:
    """Papernot et al. 2017, Theorem 2 with Theorem 1: 2 gamma^2 l (l + 1) a query."""
    b, queries = 20.0, 100
    printed = min((queries * 2 / b**2 * l * (l + 1) - math.log(DELTA)) / l for l in range(1, 200))  # noqa: E741
    assert 0.5 * printed < accounting.profile(b, queries, "laplace").epsilon(DELTA) < printed


@pytest.mark.parametrize("kind", KINDS)
def test_several_labels_move_counts_by_as_many(kind: str) -> None:
    one, three = (accounting.profile(30.0, 20, kind, members=m) for m in (1, 3))
    assert three.epsilon(DELTA) > one.epsilon(DELTA)
    assert three.members == 3
    if kind == "gaussian":
        assert three.epsilon(DELTA) == pytest.approx(accounting.profile(10.0, 20).epsilon(DELTA), rel=1e-9)
    else:
        assert three.epsilon(0.0) == pytest.approx(2 * 20 * 3 / 30, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_moves_spread_over_more_counts_show_less(kind: str) -> None:
    """Two labels: both votes from one count to another, or from and to different ones."""
    noise, support = 2.0, np.arange(-60, 61)
    weights = np.exp(-np.abs(support) / noise) if kind == "laplace" else np.exp(-((support / noise) ** 2) / 2)
    weights /= weights.sum()

    def shifted(by: int) -> Any:
        return np.roll(weights, by)

    together = np.multiply.outer(weights, weights), np.multiply.outer(shifted(2), shifted(-2))
    apart = (
        np.multiply.outer(np.multiply.outer(weights, weights), weights),
        np.multiply.outer(np.multiply.outer(shifted(2), shifted(-1)), shifted(-1)),
    )
    for epsilon in (0.1, 0.5, 1.0):
        assert hockey_stick(*apart, epsilon) <= hockey_stick(*together, epsilon) + 1e-12
        if kind == "laplace":
            claimed = accounting.profile(noise, 1, kind, members=2).delta(epsilon)
            assert hockey_stick(*together, epsilon) == pytest.approx(claimed, rel=1e-9)


# --- an oracle of its own: small ensembles, every vote, the answers' law integrated ---


def likeliest_law(counts: tuple[int, ...], noise: float, kind: str) -> Any:
    """P(answer = c): the noisy count of c is the largest, ties shared evenly."""
    if kind == "gaussian":
        found = []
        for c, mine in enumerate(counts):
            others = [n for i, n in enumerate(counts) if i != c]

            def density(x: float, mine: int = mine, others: list[int] = others) -> float:
                below = math.prod(float(stats.norm.cdf((x - n) / noise)) for n in others)
                return float(stats.norm.pdf((x - mine) / noise)) / noise * below

            ends = (min(counts) - 12 * noise, max(counts) + 12 * noise)
            found.append(integrate.quad(density, *ends, epsabs=1e-12, limit=200)[0])
        return np.array(found)
    at = np.arange(-int(40 * noise) - 5, int(40 * noise) + 6)
    mass = np.exp(-np.abs(at) / noise) * math.tanh(1 / (2 * noise))
    found = np.zeros(len(counts))
    for values in itertools.product(range(len(at)), repeat=len(counts)):
        level = [at[v] + n for v, n in zip(values, counts, strict=True)]
        best = [i for i, x in enumerate(level) if x == max(level)]
        found[best] += math.prod(mass[v] for v in values) / len(best)
    return found


def sampled_law(counts: tuple[int, ...], noise: float, kind: str) -> Any:
    """P(answer = 1) of two labels, drawn as likely as their noisy counts, those below 0 being 0."""
    if kind == "laplace":
        at = np.arange(-int(40 * noise) - 5, int(40 * noise) + 6).astype(float)
        mass = np.exp(-np.abs(at) / noise) * math.tanh(1 / (2 * noise))
    else:  # a grid of a 60th of the noise: the trapezoid rule
        at = np.arange(-600, 601) * noise / 60
        mass = stats.norm.pdf(at / noise) / 60
    zero, one = (np.maximum(at + n, 0) for n in counts)
    total = zero[:, None] + one[None, :]
    share = np.where(total > 0, one[None, :] / np.where(total > 0, total, 1), 0.5)
    p = float(mass @ share @ mass)
    return np.array([1 - p, p])


def ballots(teachers: int, labels: int) -> list[tuple[int, ...]]:
    return [
        tuple(sum(vote == c for vote in votes) for c in range(labels))
        for votes in itertools.combinations_with_replacement(range(labels), teachers)
    ]


def neighbours(teachers: int, labels: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Histograms that differ by the vote of one teacher."""
    found = []
    for rest in ballots(teachers - 1, labels):
        for a, b in itertools.permutations(range(labels), 2):
            found.append(
                (
                    tuple(n + (i == a) for i, n in enumerate(rest)),
                    tuple(n + (i == b) for i, n in enumerate(rest)),
                )
            )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("teachers", "labels", "law"),
    [(2, 2, likeliest_law), (3, 2, likeliest_law), (2, 2, sampled_law), (3, 2, sampled_law)],
)
def test_the_claim_is_never_below_the_enumerated_answers(
    teachers: int, labels: int, law: Callable[..., Any], kind: str
) -> None:
    """One and three queries, every histogram of each, the changed teacher moving her vote in all of them."""
    noise = 1.5
    known = {counts: law(counts, noise, kind) for counts in ballots(teachers, labels)}
    for found in known.values():
        assert found.sum() == pytest.approx(1, abs=1e-9)
    pairs = neighbours(teachers, labels)
    one, three = (accounting.profile(noise, q, kind) for q in (1, 3))
    nearest = 0.0
    for epsilon in (0.0, 0.2, 0.6, 1.0, 2.0):
        claimed = one.delta(epsilon)
        for p, q in pairs:
            actual = hockey_stick(known[p], known[q], epsilon)
            assert actual <= claimed + 1e-9
            if claimed > 1e-3:
                nearest = max(nearest, actual / claimed)
        claimed = three.delta(epsilon)
        for several in itertools.combinations_with_replacement(pairs, 3):
            p, q = (functools.reduce(np.multiply.outer, [known[pair[i]] for pair in several]) for i in (0, 1))
            assert hockey_stick(p, q, epsilon) <= claimed + 1e-9
    if law is likeliest_law:
        assert nearest > 0.75  # and an answer shows nearly that much


@pytest.mark.parametrize("kind", KINDS)
def test_half_the_noise_would_be_found_by_the_oracle(kind: str) -> None:
    """The same comparison with a claim for twice the noise that is there."""
    p, q = (likeliest_law(counts, 0.75, kind) for counts in ((2, 1), (1, 2)))
    assert (
        max(hockey_stick(p, q, e) - accounting.profile(1.5, 1, kind).delta(e) for e in (0.0, 0.2, 1.0)) > 0.05
    )


@pytest.mark.slow
def test_three_labels_of_one_query() -> None:
    known = {counts: likeliest_law(counts, 1.5, "gaussian") for counts in ballots(2, 3)}
    for epsilon in (0.0, 0.4, 1.0):
        claimed = accounting.profile(1.5, 1).delta(epsilon)
        for p, q in neighbours(2, 3):
            assert hockey_stick(known[p], known[q], epsilon) <= claimed + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_sampled_votes_show_no_more(kind: str) -> None:
    """The others' votes are drawn, each with its own probabilities; the changed teacher's are (1, 0) and (0, 1)."""
    noise, shares = 1.5, [(0.3, 0.7), (0.9, 0.1)]
    chances = {0: 0.0, 1: 0.0, 2: 0.0}
    for votes in itertools.product((0, 1), repeat=2):
        chances[sum(votes)] += math.prod(s[v] for s, v in zip(shares, votes, strict=True))
    worlds = [
        sum(w * sampled_law((3 - ones - mine, ones + mine), noise, kind) for ones, w in chances.items())
        for mine in (0, 1)
    ]
    for epsilon in (0.0, 0.1, 0.5):
        for p, q in (worlds, worlds[::-1]):
            assert hockey_stick(p, q, epsilon) <= accounting.profile(noise, 1, kind).delta(epsilon) + 1e-9


# --- what is said of it ---


def test_the_basis_says_what_is_seen() -> None:
    histograms, answers = (accounting.profile(30.0, 10, released=seen) for seen in ("histograms", "answers"))
    assert (histograms.basis, answers.basis) == ("exact", "upper")
    assert histograms.view == "noisy histograms"
    assert histograms.epsilon(DELTA) == answers.epsilon(DELTA)
    assert any("no label decides" in text for text in answers.assumes)


def test_a_composition_on_a_grid_is_not_called_exact() -> None:
    """One label has two losses a count, and any number of queries is listed; thirty labels have 31."""
    one, thirty = (
        accounting.profile(3000.0, 500, "laplace", members=m, released="histograms") for m in (1, 30)
    )
    assert (one.basis, thirty.basis) == ("exact", "upper")
    many = accounting.profile(20_000.0, 10**6, "laplace", released="histograms")
    assert many.basis == "exact"
    assert many.epsilon(DELTA) == pytest.approx(accounting.profile(20_000.0, 10**6).epsilon(DELTA), rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_no_noise_is_infinite(kind: str) -> None:
    assert accounting.profile(0, 3, kind).epsilon(0.5) == math.inf


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "queries", "members"), [(0.3, 20, 1), (1.0, 100, 1), (5.0, 40, 4)])
def test_calibrated_noise_keeps_epsilon_and_less_does_not(
    kind: str, epsilon: float, queries: int, members: int
) -> None:
    noise = accounting.calibrate(epsilon, DELTA, queries, kind, members=members)
    assert accounting.profile(noise, queries, kind, members=members).delta(epsilon) <= DELTA
    less = accounting.profile(noise * (1 - 1e-6), queries, kind, members=members)
    assert less.delta(epsilon) > DELTA


def test_pure_epsilon_of_laplace_noise() -> None:
    assert accounting.calibrate(1.0, 0.0, 10, "laplace") == pytest.approx(20.0, rel=1e-8)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"noise": -1.0}, "noise = -1.0"), ({"noise": math.nan}, "noise = nan"), ({"queries": 0}, "queries = 0"),
        ({"queries": 2.5}, "queries = 2.5"), ({"kind": "other"}, "kind = 'other': must be 'gaussian' or 'laplace'"),
        ({"members": 0}, "members = 0"), ({"released": "votes"}, "released = 'votes'"),
        ({"noise": 0.01, "kind": "laplace"}, "noise = 0.01: less laplace noise than 0.05 votes hides nothing"),
        ({"noise": 30_000.0, "kind": "laplace"}, "noise = 30000.0"),
    ],
)  # fmt: skip
def test_arguments_out_of_range(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        accounting.profile(**{"noise": 10.0, "queries": 5} | wrong)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"epsilon": 0.0}, "epsilon = 0.0"), ({"epsilon": 101.0}, "epsilon = 101.0"), ({"delta": 1.0}, "delta = 1.0"),
        ({"delta": -0.1}, "delta = -0.1"), ({"delta": 0.0}, "Gaussian noise never has delta = 0"),
        ({"queries": 0}, "queries = 0"), ({"members": -1}, "members = -1"),
        ({"epsilon": 1e-4, "delta": 0.0, "kind": "laplace", "queries": 100}, "at most 20000 can be drawn"),
    ],
)  # fmt: skip
def test_targets_out_of_range(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        accounting.calibrate(**{"epsilon": 1.0, "delta": DELTA, "queries": 5} | wrong)


# --- numbers of numpy, and noise that is cut ---


@pytest.mark.parametrize("kind", KINDS)
def test_small_integers_of_numpy_do_not_overflow(kind: str) -> None:
    """2 * 200 is 144 as eight bits: too little noise."""
    plain = accounting.calibrate(1.0, DELTA, 200, kind)
    assert accounting.calibrate(1.0, DELTA, np.uint8(200), kind) == plain
    small = accounting.profile(np.uint8(40), np.uint8(200), kind)
    assert small.epsilon(DELTA) == accounting.profile(40, 200, kind).epsilon(DELTA)


@pytest.mark.parametrize(("kind", "most"), [("gaussian", 5), ("laplace", 25)])
def test_epsilon_is_infinite_where_cut_tails_would_show_votes(kind: str, most: int) -> None:
    for members in (2, 3):
        least = members / most
        assert accounting.profile(least, 2, kind, members=members).epsilon(1e-3) < math.inf
        for released in accounting.RELEASED:
            below = accounting.profile(least * 0.99, 2, kind, members=members, released=released)
            assert below.epsilon(0.5) == math.inf
            assert below.basis == "upper"
    assert accounting.calibrate(100.0, 0.5, 1, kind, members=3) == 3 / most


@pytest.mark.parametrize("kind", KINDS)
def test_what_cut_tails_add_is_said(kind: str) -> None:
    """Against the noise that is drawn: Laplace by its thresholds, Gaussian by its largest quantile."""
    noise, members = 2.0, 6
    found = accounting.unseen(noise, kind, members)
    if kind == "laplace":
        _, least = exact.laplace_thresholds(Fraction(2))
        decay = math.exp(-1 / noise)
        actual = decay ** (1 - least - members) / (1 + decay)  # P(k + members > -least)
        assert actual <= found <= 10 * actual
        assert accounting.unseen(1.0, kind, 12) < 1e-14
    else:
        assert found == pytest.approx(float(stats.norm.sf(8.2924 - 3)), rel=1e-2)
    assert any(
        f"{2 * 5 * found:.2g} larger" in text
        for text in accounting.profile(noise, 5, kind, members=6).assumes
    )


def test_more_queries_than_can_be_composed_are_named() -> None:
    with pytest.raises(InputError, match="queries = 1000000000: must be an integer from 1 to 500,000,000"):
        accounting.profile(10.0, 10**9, "laplace")

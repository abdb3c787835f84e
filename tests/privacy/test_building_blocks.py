"""Building blocks against enumeration in fractions, 40-digit integrals and dp-accounting; laws by strangers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim import InputError, privacy
from p2p_sim.privacy import building_blocks as blocks
from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.report import curves
from protocols import RandomizedResponse

F = Fraction
HALF = [F(1, 2), F(1, 4), F(1, 4)]
ROWS = [[F(6, 10), F(3, 10), F(1, 10)], [F(2, 10), F(5, 10), F(3, 10)], [F(1, 10), F(1, 10), F(8, 10)]]


def gap(p: dict, q: dict, x: Fraction) -> Fraction:
    """The hockey-stick divergence at e^epsilon = x, in fractions; the larger direction."""
    keys = p.keys() | q.keys()
    both = ((p, q), (q, p))
    return max(sum(max(F(0), a.get(k, F(0)) - x * b.get(k, F(0))) for k in keys) for a, b in both)


def table(values: list) -> dict:
    return dict(enumerate(values))


def check(found: PrivacyProfile, truth: dict[Fraction, Fraction]) -> None:
    for x, delta in truth.items():
        low, value, high = found.delta_bracket(math.log(x))
        assert float(delta) == pytest.approx(value, rel=1e-11, abs=1e-15)
        assert low <= float(delta) * (1 + 1e-12) + 1e-15
        assert float(delta) <= high * (1 + 1e-12) + 1e-15


XS = [F(1), F(11, 10), F(3, 2), F(2), F(3), F(7)]


def runs(p: list, times: int) -> dict:
    law: Counter = Counter()
    for many in itertools.product(range(len(p)), repeat=times):
        law[tuple(sorted(many))] += math.prod((p[i] for i in many), start=F(1))
    return dict(law)


def test_two_distributions_and_their_runs() -> None:
    p, q = [F(1, 2), F(3, 10), F(2, 10), F(0)], [F(1, 4), F(3, 10), F(4, 10), F(1, 20)]
    found = blocks.two_distributions(p, q)
    assert found.basis == "exact"
    check(found, {x: gap(table(p), table(q), x) for x in XS})
    four = privacy.composed(found, 4)
    assert four.basis == "exact"
    check(four, {x: gap(runs(p, 4), runs(q, 4), x) for x in XS})
    assert found.epsilon(0.0) == math.inf  # the last outcome is an infinite loss
    assert found.epsilon(0.999) == 0.0


def test_a_matrix_is_as_bad_as_its_worst_pair() -> None:
    found = blocks.randomization_matrix(ROWS)
    truth = {x: max(gap(table(a), table(b), x) for a, b in itertools.combinations(ROWS, 2)) for x in XS}
    check(found, truth)
    check(
        blocks.randomization_matrix(ROWS, labels=(2, 1)),
        {x: gap(table(ROWS[1]), table(ROWS[2]), x) for x in XS},
    )
    assert found.epsilon(0.0) == pytest.approx(math.log(8), rel=1e-14)
    same = privacy.composed(found, 3, same_case=True)
    assert same.basis == "exact"
    worst = {x: max(gap(runs(a, 3), runs(b, 3), x) for a, b in itertools.combinations(ROWS, 2)) for x in XS}
    check(same, worst)
    free = privacy.composed(found, 3)
    assert free.basis == "upper"
    assert all(free.delta(math.log(x)) >= float(delta) * (1 - 1e-12) for x, delta in worst.items())


def test_pairs_that_differ_in_names_are_one() -> None:
    rows = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    found = blocks.randomization_matrix(rows)
    assert privacy.composed(found, 5).basis == "exact"
    local = blocks.local_response(math.log(7), 4)
    assert found.delta(0.5) == pytest.approx(local.delta(0.5), rel=1e-13)
    five = privacy.composed(local, 5)
    assert privacy.composed(found, 5).epsilon(1e-3) == pytest.approx(five.epsilon(1e-3), rel=1e-11)


def histogram(rows: list, labels: tuple[int, ...]) -> dict:
    law: Counter = Counter()
    for said in itertools.product(range(len(rows[0])), repeat=len(labels)):
        chance = math.prod((rows[a][b] for a, b in zip(labels, said, strict=True)), start=F(1))
        law[tuple(sorted(said))] += chance
    return dict(law)


def test_shuffled_reports_over_all_labels_of_the_others() -> None:
    found = blocks.shuffled(ROWS, 4)
    assert found.basis == "exact"
    truth = dict.fromkeys(XS, F(0))
    for others in itertools.combinations_with_replacement(range(3), 3):
        laws = [histogram(ROWS, (victim, *others)) for victim in range(3)]
        for a, b in itertools.combinations(laws, 2):
            truth = {x: max(delta, gap(a, b, x)) for x, delta in truth.items()}
    check(found, truth)
    alone = blocks.randomization_matrix(ROWS)
    assert found.epsilon(0.0) == alone.epsilon(0.0)
    assert found.epsilon(1e-3) < alone.epsilon(1e-3)


def test_shuffled_reports_of_many_are_bounded() -> None:
    bits = [[0.75, 0.25], [0.25, 0.75]]
    assert blocks.shuffled(bits, 5000).epsilon(1e-6) == pytest.approx(
        privacy.shuffled_response(5000, math.log(3)).epsilon(1e-6), rel=1e-9
    )
    many = blocks.shuffled(ROWS, 2000)
    assert many.basis == "upper"
    budget = math.log(8)
    told = privacy.bounds.shuffle.clone(2000, budget, delta=1e-6).epsilon
    assert many.epsilon(1e-6) == pytest.approx(told, rel=1e-6)
    assert many.epsilon(1e-300) <= budget
    endless = blocks.shuffled([[1, 0, 0], [0, 1, 0], [F(1, 3)] * 3], 10**6)
    assert (endless.basis, endless.epsilon(1e-6)) == ("upper", math.inf)
    assert blocks.shuffled([[0.5, 0.5, 0], [0.5, 0.5, 0]], 10**6).epsilon(0.0) == 0.0
    for users in (1, 3, 40):
        assert blocks.shuffled(ROWS, users).epsilon(0.0) <= budget * (1 + 1e-15)


def test_sampling_that_is_seen_and_sampling_that_is_not() -> None:
    p, q, absent = [F(6, 10), F(3, 10), F(1, 10)], [F(1, 10), F(5, 10), F(4, 10)], HALF
    chance = F(1, 8)
    seen = blocks.seen_with_probability(blocks.two_distributions(p, q), 0.125)
    nothing = 1 - chance
    check(
        seen,
        {
            x: gap(table([chance * v for v in p] + [nothing]), table([chance * v for v in q] + [nothing]), x)
            for x in XS
        },
    )
    hidden = blocks.sampled_unseen(p, q, absent, 0.125)
    mixed = [[chance * a + (1 - chance) * b for a, b in zip(side, absent, strict=True)] for side in (p, q)]
    check(hidden, {x: gap(table(mixed[0]), table(mixed[1]), x) for x in XS})
    assert hidden.epsilon(0.0) < seen.epsilon(0.0)
    assert blocks.sampled_unseen(p, q, absent, 0).epsilon(0.0) == 0.0


def test_visible_cases_and_the_worst_of_several() -> None:
    one, two = blocks.two_distributions(ROWS[0], ROWS[1]), blocks.two_distributions(ROWS[1], ROWS[2])
    mixed = blocks.visible_cases([(0.25, one), (0.5, two)])
    parts = [[F(w) * v for v in row] for w, row in ((0.25, ROWS[0]), (0.5, ROWS[1]))]
    other = [[F(w) * v for v in row] for w, row in ((0.25, ROWS[1]), (0.5, ROWS[2]))]
    rest = [F(1, 4)]
    check(
        mixed,
        {
            x: gap(table([*itertools.chain(*parts), *rest]), table([*itertools.chain(*other), *rest]), x)
            for x in XS
        },
    )
    worst = blocks.worst_of([one, two])
    assert worst.delta(0.3) == max(one.delta(0.3), two.delta(0.3))
    assert blocks.worst_of([one, blocks.shuffled(ROWS, 2000)]).basis == "upper"
    refused = PrivacyProfile.refused("learner", "no law")
    assert blocks.visible_cases([(0.5, one), (0.5, refused)]).basis == "refused"
    assert blocks.worst_of([one, refused]).basis == "refused"


def test_a_table_of_noise() -> None:
    noise = [F(1, 10), F(0), F(5, 10), F(0), F(4, 10)]
    found = blocks.sum_with_noise(noise, 2)
    law = table(noise)
    truth = {x: max(gap(law, {k + move: v for k, v in law.items()}, x) for move in (1, 2)) for x in XS}
    check(found, truth)
    assert found.delta(0.0) == 1.0  # a move of 1 is told for sure, though one of 2 is not
    assert found.epsilon(0.5) == math.inf


@pytest.mark.parametrize(("scale", "steps"), [(0.7, 1), (2.0, 1), (3.0, 4), (0.05, 3)])
def test_discrete_laplace(scale: float, steps: int) -> None:
    mpmath = pytest.importorskip("mpmath")
    found = blocks.discrete_laplace(scale, steps)
    with mpmath.workdps(40):
        r = mpmath.e ** (-1 / mpmath.mpf(scale))
        reach = int(120 * scale) + steps + 10
        mass = {j: r ** abs(j) * (1 - r) / (1 + r) for j in range(-reach, reach + 1)}
        for epsilon in (0.0, 0.2, 0.9 * steps / scale):
            x = mpmath.e ** mpmath.mpf(epsilon)
            truth = sum(
                max(mpmath.mpf(0), mass[j] - x * mass.get(j - steps, mpmath.mpf(0)))
                for j in mass
                if j > -reach + steps
            )
            low, value, high = found.delta_bracket(epsilon)
            assert value == pytest.approx(float(truth), rel=1e-10, abs=1e-18)
            assert low <= float(truth) * (1 + 1e-12) <= high * (1 + 4e-12)
    assert found.epsilon(0.0) == steps / scale


def test_discrete_laplace_composes_as_dp_accounting_says() -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    ten = privacy.composed(blocks.discrete_laplace(2.0), 10)
    assert ten.basis == "exact"
    theirs = pld.from_discrete_laplace_mechanism(0.5, value_discretization_interval=1e-4).self_compose(10)
    for delta in (1e-2, 1e-4, 1e-6):
        assert ten.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=2e-3)
    single = blocks.discrete_laplace(2.0)
    listed = privacy.composed(single, 1)
    assert listed.epsilon(1e-3) == single.epsilon(1e-3)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: blocks.two_distributions([0.5, 0.4], [0.5, 0.5]), "sum to 0.9"),
        (lambda: blocks.two_distributions([F(1, 3), F(1, 3)], HALF), "exactly 1"),
        (lambda: blocks.two_distributions([0.5, 0.5], HALF), "p has 2 outcomes"),
        (lambda: blocks.two_distributions([1.5, -0.5], [0.5, 0.5]), "from 0 to 1"),
        (lambda: blocks.two_distributions([math.nan, 1], [0.5, 0.5]), "from 0 to 1"),
        (lambda: blocks.two_distributions("half", [0.5, 0.5]), "from 0 to 1"),  # type: ignore[arg-type]
        (lambda: blocks.randomization_matrix([[0.5, 0.5]]), "two at least"),
        (lambda: blocks.randomization_matrix([[0.5, 0.5], [1]]), "of one length"),
        (lambda: blocks.randomization_matrix(ROWS, labels=(0, 3)), "from 0 to 2"),
        (lambda: blocks.randomization_matrix(ROWS, labels=(1, 1)), "two different"),
        (lambda: blocks.shuffled(ROWS, 0), "users = 0"),
        (lambda: blocks.seen_with_probability(blocks.local_response(1.0), 1.1), "probability = 1.1"),
        (lambda: blocks.sampled_unseen([1], [1], [0.5, 0.5], 0.5), "outcomes"),
        (lambda: blocks.visible_cases([(0.6, blocks.local_response(1.0))] * 2), "at most 1 in all"),
        (lambda: blocks.visible_cases([]), "at least one"),
        (lambda: blocks.worst_of([]), "at least one"),
        (lambda: blocks.sum_with_noise([1.0], 0), "steps = 0"),
        (lambda: blocks.discrete_laplace(0.0), "scale = 0.0"),
        (lambda: blocks.discrete_laplace(0.001), "at most 700"),
        (lambda: blocks.local_response(-1.0), "epsilon0 = -1.0"),
    ],
)
def test_what_is_refused(make, match: str) -> None:
    with pytest.raises(InputError, match=match):
        make()


class Stranger(Law):
    """Randomized response, keep = 3/4, by someone who wrote the two methods that must be written."""

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        both = Bracket.around(0.75 - 0.25 * math.exp(min(epsilon, 700.0)), 1e-15)
        return both, both

    def pure(self) -> float:
        return math.log(3)


def test_a_law_by_a_stranger_works_everywhere() -> None:
    mine = PrivacyProfile("learner", "exact", "mine", (), "", Stranger())
    known = blocks.local_response(math.log(3))
    assert mine.epsilon(1e-3) == pytest.approx(known.epsilon(1e-3), rel=1e-10)
    for parts in ([(0, 6)], [(0, 2), (1, 4)], [(0, 3), (2, 2)]):
        others = [mine, known, privacy.gaussian(4.0)]
        found = privacy.compose([(others[i], n) for i, n in parts], view="both")
        truth = privacy.compose([(([known, known, others[2]])[i], n) for i, n in parts], view="both")
        assert found.basis == "upper"
        assert truth.epsilon_bracket(1e-4).lower <= found.epsilon(1e-4) <= 1.05 * truth.epsilon(1e-4)
        assert found.epsilon_bracket(1e-4).lower <= truth.epsilon(1e-4)
    assert privacy.composed(mine, 6, method="basic").epsilon(1e-4) <= 6 * math.log(3) * (1 + 1e-12)
    for made in (
        blocks.worst_of([mine, known]),
        blocks.visible_cases([(0.5, mine), (0.5, known)]),
        blocks.seen_with_probability(mine, 0.5),
    ):
        assert made.epsilon(1e-3) <= math.log(3)
        assert privacy.composed(made, 3).basis == "upper"
    epsilons, deltas = curves.curve(Stranger())
    assert deltas[0] == 0.5
    assert epsilons[-1] <= math.log(3)
    found = privacy.audit(RandomizedResponse(math.log(3)), against=mine, trials=2000, delta=0.0)
    assert found.claims[0].epsilon == pytest.approx(math.log(3))

"""What the default audit looks at: both statistics, the whole view, several pairs of labels; and what it says of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from p2p_sim import InputError, privacy
from p2p_sim.privacy.auditing import confidence_bounds, power_analysis, rest_of_view
from p2p_sim.privacy.auditing.evidence import BESIDE
from p2p_sim.privacy.auditing.pairs import MOST_PAIRS, given_pair
from protocols import PeerToPeer, RandomizedResponse
from tests.privacy.auditing.twins import Peers, ReusedDraw, TruthfulClass

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-9
ALGORITHM_2 = PeerToPeer(0.2, 0.5)


def audited(protocol: Any, view: str = "learner+wire", **options: Any) -> privacy.Audit:
    given = {"cluster_size": 6, "delta": 0.01, "trials": 2000, "seed": 1} | options
    return privacy.audit(protocol, view, **given)


def test_a_draw_used_twice_is_found_by_default() -> None:
    """The exact statistic alone has it consistent; the classifier beside it measures more than twice the claim."""
    exact = audited(ReusedDraw(), against=ALGORITHM_2, trials=4000, statistic="exact")
    assert exact.verdict == "consistent"
    found = audited(ReusedDraw(), against=ALGORITHM_2, trials=4000)
    assert found.verdict == "violated"
    assert found.exact is not None
    assert found.lower > 2 * found.exact
    assert found.statistic.startswith("classifier")
    assert found.law is not None
    assert found.law.rejected, "and the law test looks over the whole view"
    assert found.law.rest is not None
    assert found.law.rest < 1e-7 < exact.law.p_value  # type: ignore[union-attr]


def test_a_subsample_that_depends_on_the_label_is_found_by_default() -> None:
    twin = Peers(alpha=0.2, theta=0.5, shy=0.6)
    exact = audited(twin, against=ALGORITHM_2, trials=4000, statistic="exact")
    assert not exact.failed
    found = audited(twin, against=ALGORITHM_2, trials=4000)
    assert found.failed
    assert found.law is not None
    assert "tells more of the label than the law" in found.law.why
    assert found.law.rejected


@pytest.mark.parametrize("view", ["learner", "user", "learner+user", "wire", "learner+wire"])
def test_an_honest_program_is_not_accused_for_the_rest_of_its_view(view: str) -> None:
    found = audited(PeerToPeer(0.2, 0.5), view, trials=600, false_alarm=FALSE_ALARM)
    assert found.law is not None
    assert found.law.rest is not None
    assert not found.law.rejected


def test_bounds_of_all_looks_hold_at_once() -> None:
    found = audited(ALGORITHM_2)
    exact, learned = found.looks
    assert exact.statistic == "exact likelihood ratio"
    assert exact.trials == 2000
    assert (1 - exact.confidence) + (1 - learned.confidence) == pytest.approx(0.05)
    assert found.lower == max(exact.lower, learned.lower)
    assert found.cap == max(exact.cap, learned.cap)
    (alone,) = audited(ALGORITHM_2, statistic="exact").looks
    assert (alone.confidence, alone.trials) == (0.95, 2000)
    assert exact.lower < alone.lower, "what the classifier has of the error, the exact statistic pays"


def test_a_classifier_beside_the_law_has_few_worlds_of_its_own() -> None:
    found = privacy.audit(RandomizedResponse(1.0), delta=0.0, trials=20_000)
    exact, learned = found.looks
    assert (exact.trials, learned.trials) == (20_000, BESIDE - 2500)
    assert "learned on 2,500 other worlds" in learned.statistic


def test_the_p_value_of_the_rest_is_one_under_the_law_and_small_beside_it() -> None:
    """Worlds of randomized response with a coin that tells nothing, and with one that does."""
    found = {}
    for leak in (0.5, 0.7):
        alarms = 0
        for seed in range(40):
            rng = np.random.default_rng(seed)
            said = rng.random((2, 2000)) < np.array([[0.3], [0.7]])
            coin = rng.random((2, 2000)) < np.array([[0.5], [leak]])
            ratios = tuple(np.where(row, 1.0, -1.0) * math.log(7 / 3) for row in said)
            scores = tuple(ratio + row for ratio, row in zip(ratios, coin, strict=True))
            cuts = np.array([0.2, 1.5])
            alarms += rest_of_view.p_value(scores, ratios, cuts, -cuts) < 0.05  # type: ignore[arg-type]
        found[leak] = alarms
    assert found[0.5] <= stats.binom.isf(FALSE_ALARM, 40, 0.05)
    assert found[0.7] == 40


def test_a_class_that_tells_the_truth_is_found_among_ten() -> None:
    """δ at ε = 1 of labels 0 and 9 is at least .768, and labels 0 and 1 alone show none of it."""
    settings: dict[str, Any] = {"delta": None, "epsilon": 1.0, "cluster_size": 1, "trials": 1000}
    leaky, honest = TruthfulClass(1.0, 10, 9), RandomizedResponse(1.0, 10)
    blind = audited(leaky, "learner", against=honest, pair=(0, 1), statistic="exact", **settings)
    assert blind.verdict == "consistent"
    found = audited(leaky, "learner", against=honest, **settings)
    assert found.verdict == "violated"
    assert found.lower > 0.7
    assert len({look.labels for look in found.looks}) == MOST_PAIRS
    assert all(9 in look.labels for look in found.looks), "the pilot chose"
    assert "(labels " in found.why
    given = audited(leaky, "learner", against=honest, pair=(9, 0), **settings)
    assert {look.labels for look in given.looks} == {(0, 9)}
    assert given.lower > 0.7
    assert given.not_varied[0].startswith("pairs of labels: 1 of 45 were measured (0 and 9; as was asked)")


def test_an_honest_class_is_not_accused_for_the_choice_of_a_pilot() -> None:
    """20 seeds, of which each has at most 5 in 100 false violations."""
    violated = 0
    for seed in range(20):
        found = privacy.audit(RandomizedResponse(1.0, 5), delta=0.0, trials=500, seed=seed, statistic="exact")
        violated += found.verdict == "violated"
        assert found.law is not None
        assert not found.law.rejected
    assert violated <= stats.binom.isf(FALSE_ALARM, 20, 0.05)


def test_three_labels_are_all_compared_and_share_the_error() -> None:
    found = privacy.audit(RandomizedResponse(1.0, 3), delta=0.0, trials=400, statistic="exact")
    assert [look.labels for look in found.looks] == [(0, 1), (0, 2), (1, 2)]
    assert {look.confidence for look in found.looks} == {1 - (1 - 0.95) / 3}
    assert found.not_varied[0].startswith("what the law does not speak of")
    every = privacy.audit(RandomizedResponse(1.0, 4), delta=0.0, trials=400, statistic="exact", pair="all")
    assert len(every.looks) == 6


@pytest.mark.parametrize("pair", [(0, 0), (0, 3), (-1, 1), (0, 1, 2), "some", 3, (0.0, 1.0), (False, True)])
def test_pairs_that_cannot_be_are_refused(pair: Any) -> None:
    with pytest.raises(InputError, match="two different labels from 0 to 2"):
        given_pair(pair, 3)


def test_what_was_not_varied_is_said() -> None:
    found = audited(ALGORITHM_2)
    assert [text.partition(":")[0] for text in found.not_varied] == [
        "labels of the others", "the size of the victim's cluster",
    ]  # fmt: skip
    assert f"{found.composition} of 5 honest others" in found.not_varied[0]
    lone = privacy.audit(RandomizedResponse(1.0), delta=0.0, trials=400)
    assert lone.not_varied == ()


def rates(kind: str, at: float, true: float, q: float) -> tuple[float, float]:
    epsilon, delta = (true, at) if kind == "delta" else (at, true)
    p = delta + math.exp(epsilon) * q
    return (p, q) if p <= 1 else (1.0, (1 - delta) * math.exp(-epsilon))


@pytest.mark.parametrize(
    ("kind", "at", "claim", "q"),
    [
        ("delta", 0.0, 1.0, 0.2), ("delta", 0.01, 0.5, 0.01), ("delta", 0.0, 2.0, 0.4),
        ("epsilon", 0.5, 0.1, 0.2), ("epsilon", 0.0, 0.0, 0.3),
    ],
)  # fmt: skip
def test_the_smallest_violation_is_shown_as_often_as_it_is_said_to_be(
    kind: str, at: float, claim: float, q: float
) -> None:
    trials, audits, generator = 2000, 2000, np.random.default_rng(7)
    least = power_analysis.minimum_detectable(kind, at, claim, q, trials, 1, 0.95)
    assert least is not None
    assert least > claim
    p, other = rates(kind, at, least, q)
    shown = 0
    error = confidence_bounds.share(1, 0.95)
    low = confidence_bounds.lower(generator.binomial(trials, p, audits), trials, error)
    high = confidence_bounds.upper(generator.binomial(trials, other, audits), trials, error)
    bound = (
        confidence_bounds.ratio(low, high, at) if kind == "delta" else confidence_bounds.excess(low, high, at)
    )
    shown = int((bound > claim).sum())
    # the mean over quantiles is good to a hundredth
    assert stats.binom.ppf(FALSE_ALARM, audits, power_analysis.POWER - 0.01) <= shown
    assert shown <= stats.binom.isf(FALSE_ALARM, audits, power_analysis.POWER + 0.01)


def test_no_violation_can_be_shown_of_a_claim_beyond_the_cap() -> None:
    cap = confidence_bounds.cap_epsilon(100, 0.0, 1, 0.95)
    assert power_analysis.minimum_detectable("delta", 0.0, cap * 1.001, 0.1, 100, 1, 0.95) is None
    assert power_analysis.minimum_detectable("delta", 0.0, cap * 0.99, 0.1, 100, 1, 0.95) is not None
    assert power_analysis.minimum_detectable("delta", 0.0, math.inf, 0.1, 100, 1, 0.95) is None
    few, many = (power_analysis.minimum_detectable("delta", 0.0, 1.0, 0.2, n, 1, 0.95) for n in (500, 50_000))
    assert few is not None
    assert many is not None
    assert 1 < many < 1.1 < few


def test_an_audit_says_the_smallest_violation_of_each_claim() -> None:
    """Randomized response whose ε is what is said to be detectable is found in most of 20 audits."""
    claim = {"mine": 1.0}
    settings: dict[str, Any] = {"delta": 0.0, "trials": 2000, "statistic": "exact", "claims": claim}
    honest = privacy.audit(RandomizedResponse(1.0), **settings)
    least = {each.name: each.detectable for each in honest.claims}["mine"]
    assert least is not None
    assert 1.05 < least < 1.4
    found = sum(
        privacy.audit(RandomizedResponse(least), seed=seed, **settings).verdict == "violated"
        for seed in range(20)
    )
    assert found >= stats.binom.ppf(1e-6, 20, power_analysis.POWER)

"""Every broken twin is found violated or rejected by the law test; the same audit accuses no honest protocol."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from p2p_sim import InputError, privacy
from protocols import PeerToPeer, RandomizedResponse
from tests.privacy.auditing.twins import Answers, Counted, Leaky, Peers, Shuffled

pytestmark = pytest.mark.slow

SIZE = 20
TRIALS = 20_000
CONFIDENCE = 0.9999
FALSE_ALARM = 1e-9


def audited(twin: Any, against: Any, view: str = "learner", **options: Any) -> privacy.Audit:
    settings = {"cluster_size": SIZE, "trials": TRIALS, "confidence": CONFIDENCE, "seed": 1} | options
    return privacy.audit(twin, view, against=against, false_alarm=FALSE_ALARM, **settings)


def found_by(audit: privacy.Audit) -> set[str]:
    """What of an audit accuses; ``failed``, which is the exit status, must say the same."""
    rejected = audit.law is not None and audit.law.rejected
    found = ({"violated"} if audit.verdict == "violated" else set()) | ({"rejected"} if rejected else set())
    assert audit.failed == bool(found)
    return found


POINT, CURVE = {"delta": 0.01}, {"epsilon": 0.3}
TWINS = [  # twin, view, options, what finds it
    (Peers(alpha=0.05), "learner", POINT, {"violated", "rejected"}),
    (Peers(alpha=0.02), "user", POINT, {"violated", "rejected"}),
    (Peers(alpha=0.05), "learner+user", {"cluster_size": 5, **CURVE}, {"violated", "rejected"}),
    (Peers(alpha=0.05), "wire", POINT, {"violated", "rejected"}),
    (
        Peers(alpha=0.12),
        "learner",
        POINT,
        {"rejected"},
    ),  # more noise than was said: no violation, no such law
    (Peers(alpha=0.12), "wire", POINT, {"rejected"}),
    (Peers(theta=0.52), "learner", POINT, {"rejected"}),
    (Peers(own=0.1), "learner", POINT, {"rejected"}),
    (Peers(own=0.1), "wire", POINT, {"rejected"}),
    (Peers(near=1.0), "learner", POINT, {"violated", "rejected"}),
    (Peers(near=1.0), "user", CURVE, {"violated", "rejected"}),
    (Peers(near=1.0), "wire", CURVE, {"violated", "rejected"}),
    (Peers(shy=0.1), "learner", {"composition": 10, **POINT}, {"rejected"}),
    (Peers(shy=0.1), "learner+user", {"cluster_size": 5, "composition": 3, **CURVE}, {"rejected"}),
    (Peers(early=1.0), "learner", POINT, {"rejected"}),
    (Peers(one_sided=1.0), "learner", CURVE, {"violated", "rejected"}),
    (Peers(one_sided=1.0), "user", POINT, {"violated", "rejected"}),
    (Peers(fresh=True), "learner", POINT, {"violated", "rejected"}),
    (Peers(fresh=True), "wire", POINT, {"violated", "rejected"}),
]


@pytest.mark.parametrize(("twin", "view", "options", "expected"), TWINS)
def test_broken_twins_of_algorithm_2_are_found(twin: Any, view: str, options: Any, expected: Any) -> None:
    """By the exact statistic and its law alone; what the default finds beside them is in test_looks."""
    found = audited(twin, PeerToPeer(0.1, 0.5), view, statistic="exact", **options)
    assert found_by(found) == expected


@pytest.mark.parametrize("twin", [Peers(fresh=True), Peers(own=0.01)])
def test_a_bit_of_which_two_stories_are_told_is_seen_at_once(twin: Any) -> None:
    """Whoever flips once tells all peers the same, and a report is what its sender was told."""
    law = audited(twin, PeerToPeer(0.1, 0.5), "wire", trials=1000, **POINT).law
    assert law is not None
    assert law.rejected
    assert "have a value of 'bit' that the law gives no chance" in law.why


@pytest.mark.parametrize("view", ["learner", "user", "learner+user", "wire"])
@pytest.mark.parametrize("options", [CURVE, {"composition": 2, "cluster_size": 5, **CURVE}, POINT])
def test_the_twin_without_a_fault_is_not(view: str, options: Any) -> None:
    assert not found_by(audited(Peers(), PeerToPeer(0.1, 0.5), view, **options))


SMALL = {"cluster_size": 4, "trials": 6000, "statistic": "classifier"}


@pytest.mark.parametrize(
    ("twin", "expected"),
    [
        (Peers(), set()),
        (Peers(own=0.7), {"violated"}),
        (Peers(shy=0.9), {"violated"}),
        (Peers(early=1.0), {"violated"}),
    ],
)
def test_without_the_law_a_classifier_finds_what_is_wrong(twin: Any, expected: Any) -> None:
    assert found_by(audited(twin, PeerToPeer(0.1, 0.5), epsilon=0.5, **SMALL)) == expected


def test_one_user_among_many_who_tells_on_herself_is_found() -> None:
    """The counts of her cluster hardly move: the law test sees it by her own report, the classifier by its label."""
    twin, settings = (
        Peers(own=0.2, theta=1.0, only=200),
        {"cluster_size": 200, "epsilon": 0.1, "trials": 8000},
    )
    assert found_by(audited(twin, PeerToPeer(0.1), statistic="exact", **settings)) == {"rejected"}
    assert found_by(audited(twin, PeerToPeer(0.1), statistic="classifier", **settings)) == {"violated"}
    assert not found_by(audited(Peers(theta=1.0), PeerToPeer(0.1), statistic="classifier", **settings))


LIE = float(RandomizedResponse(0.2, 5).lying())
ANSWERS = [
    (Answers(LIE, 5), set()),
    (Answers(LIE, 5, all_values=True), {"violated", "rejected"}),
    (Answers(LIE / 2, 5), {"violated", "rejected"}),
    (Answers(LIE * 1.1, 5), {"rejected"}),
    (Answers(LIE, 5, copies=2), {"rejected"}),  # one answer of the two is as private as it should be
    (Answers(LIE, 5, copies=5), {"rejected"}),
]


@pytest.mark.parametrize(("twin", "expected"), ANSWERS)
def test_every_randomizer_is_audited_at_a_small_budget(twin: Any, expected: Any) -> None:
    found = audited(
        twin, RandomizedResponse(0.2, 5), cluster_size=1, delta=0.0, statistic="exact", pair=(0, 1)
    )
    assert found_by(found) == expected


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 1.2])
def test_a_budget_beyond_the_claim_is_measured_beyond_it(epsilon: float) -> None:
    """At epsilon = 1 and more the law gives its own event no chance: another one must be counted."""
    twin = audited(RandomizedResponse(1.5), RandomizedResponse(1.0), cluster_size=1, epsilon=epsilon)
    truth = privacy.profile(RandomizedResponse(1.5)).delta(epsilon)
    assert found_by(twin) == {"violated", "rejected"}
    assert truth - 0.07 < twin.lower <= truth


def test_a_message_that_the_law_does_not_know_is_not_overlooked() -> None:
    """The law's statistic would read the reports alone; ``auto`` therefore learns what there is to see."""
    twin, honest = Leaky(1.0), RandomizedResponse(1.0)
    assert found_by(audited(twin, honest, cluster_size=1, trials=4000, delta=0.0)) == {"violated"}
    with pytest.raises(InputError, match="no law of view 'learner' of these messages"):
        audited(twin, honest, cluster_size=1, delta=0.0, statistic="exact")


FLIP = 0.25


def shuffled(twin: Shuffled, **options: Any) -> privacy.Audit:
    law = privacy.shuffled_response(twin.size, math.log((1 - FLIP) / FLIP))
    return audited(twin, law, cluster_size=twin.size, trials=8000, **options)


@pytest.mark.parametrize("size", [3, 6])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_a_shuffler_that_keeps_order_is_found(size: int, epsilon: float) -> None:
    assert found_by(shuffled(Shuffled(size, FLIP, keeps_order=True), epsilon=epsilon)) == {"violated"}
    honest = shuffled(Shuffled(size, FLIP), epsilon=epsilon)
    assert not found_by(honest)
    assert honest.exact is not None
    assert honest.lower <= honest.exact
    assert epsilon > 0 or honest.lower > 0.3 * honest.exact, "and much of what it shows is measured"


def test_a_shuffler_that_tells_everything_locally_allowed_is_not_found_at_delta_0() -> None:
    """At delta = 0 a shuffler helps nobody (all others may say the same), so order is no violation there."""
    assert not found_by(shuffled(Shuffled(3, FLIP, keeps_order=True), delta=0.0))


def test_what_a_shuffler_itself_sees_is_sealed() -> None:
    """Its worlds are told apart by a field that it cannot read."""
    audit = privacy.audit(
        Shuffled(4, FLIP), "shuffler", cluster_size=4, trials=2000, delta=0.0, claims={"nothing": 0.0}
    )
    assert (audit.lower, audit.verdict) == (0.0, "consistent")
    both = privacy.audit(
        Shuffled(4, FLIP), "shuffler+learner", cluster_size=4, trials=4000, delta=0.0,
        claims={"shuffled": 0.3, "local": math.log(3)},
    )  # fmt: skip
    assert [claim.verdict for claim in both.claims] == ["violated", "consistent"]


SCALE = Fraction(2)


def counted(scale: Fraction, **options: Any) -> privacy.Audit:
    # Discrete Laplace noise has the pure epsilon of the continuous one, 1/scale, and at other deltas not its curve.
    twin = Counted(3, scale, **options)
    return audited(twin, privacy.laplace(float(SCALE)), cluster_size=3, delta=0.0, trials=8000)


def test_noise_with_an_inverted_scale_is_found() -> None:
    assert found_by(counted(1 / SCALE)) == {"violated"}
    assert found_by(counted(SCALE, noisy=False)) == {"violated"}
    honest = counted(SCALE)
    assert not found_by(honest)
    assert 0.3 < honest.lower <= 0.5


def test_the_curve_of_continuous_noise_is_no_bound_for_discrete_noise() -> None:
    """At epsilon = 0 and scale 1, steps of a user: tanh(1/2) = .462 against 1 - e^(-1/2) = .393."""
    audit = audited(
        Counted(3, Fraction(1)), privacy.laplace(1.0), cluster_size=3, epsilon=0.0, trials=20_000,
        claims={"discrete": math.tanh(0.5)},
    )  # fmt: skip
    assert [claim.verdict for claim in audit.claims] == ["violated", "consistent"]

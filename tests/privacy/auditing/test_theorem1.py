"""The audit finds by itself that Theorem 1 of Clustering 2022 is wrong as printed; the corrected one stands."""

from __future__ import annotations

from fractions import Fraction

import pytest

from p2p_sim import privacy
from p2p_sim.privacy.bounds.clustering2022 import theorem1_corrected, theorem1_printed
from tests.privacy.auditing.twins import Centralized

pytestmark = pytest.mark.slow

SIZE, SIGMA = 4, 1


def audited(lam: Fraction, tau: Fraction, seed: int, view: str = "learner") -> privacy.Audit:
    """One cluster of four, in which one or two labels are 1; nothing tells the audit where to look."""
    claims = {
        "printed": theorem1_printed(SIGMA, float(lam), float(tau)).epsilon,
        "corrected": theorem1_corrected(SIGMA, float(lam), float(tau)).epsilon,
    }
    return privacy.audit(
        Centralized(SIZE, SIGMA, tau, lam), view, cluster_size=SIZE, composition=1, delta=0.0, trials=12_000,
        confidence=0.999, seed=seed, claims=claims,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lam", "tau", "printed", "truth"),
    [
        (Fraction(1), Fraction(1, 10), 1.0, 2.0),  # the case of docs/laws.md: only q~ tells
        (Fraction(1, 2), Fraction(2, 5), 2.2528, 2.9808),  # lambda < 1: q~(1) = .6 and the victim's label 1
    ],
)
def test_theorem_1_is_violated_as_printed_and_not_as_corrected(
    lam: Fraction, tau: Fraction, printed: float, truth: float
) -> None:
    audit = audited(lam, tau, seed=1)
    first, second = audit.claims
    assert audit.statistic.startswith("classifier"), "no law of this mechanism is known to the audit"
    assert first.epsilon == pytest.approx(printed, abs=1e-4)
    assert [claim.verdict for claim in (first, second)] == ["violated", "consistent"]
    assert (audit.verdict, audit.failed) == ("violated", True)
    assert "printed claims" in audit.why
    assert printed < audit.lower <= truth <= second.epsilon


def test_users_of_the_central_model_see_nothing() -> None:
    audit = audited(Fraction(1), Fraction(1, 10), seed=2, view="2*user")
    assert audit.lower == 0
    assert not audit.failed

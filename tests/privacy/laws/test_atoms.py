"""Listed outcomes: the certified ends of pure epsilon."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np

from p2p_sim.privacy.laws.finite import Atoms


def test_pure_epsilon_lies_between_its_ends() -> None:
    """Probabilities are rounded to floats; their log ratios, to 50 digits, may be outside of what floats give."""
    rng, outside = np.random.default_rng(5), 0
    with mpmath.workdps(50):
        for _ in range(300):
            p, q = ([Fraction(int(w), int(row.sum())) for w in row] for row in rng.integers(1, 10**6, (2, 4)))
            truth = max(
                abs(mpmath.log(mpmath.mpf(a.numerator * b.denominator) / (a.denominator * b.numerator)))
                for a, b in zip(p, q, strict=True)
            )
            law = Atoms.of(p, q)
            bracket = law.pure_bracket()
            assert bracket.lower <= truth <= bracket.upper
            assert bracket.upper - bracket.lower < 1e-13
            outside += truth > law.pure()
    assert outside > 50  # the value alone is no upper end

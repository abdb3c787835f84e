"""Labels that are replaced by uniform ones, their own among them, as the mechanisms of Release 2023 do."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

from p2p_sim.privacy.auditing.common_statistics import Answered
from p2p_sim.privacy.laws.randomized_response import LocalResponse

_DIGITS = Context(prec=50)


def response(lam: float, labels: int) -> LocalResponse:
    """Return the law of a label that is replaced by a uniform one of ``labels`` with probability ``lam``, in [0, 1].

    *Source:* randomized response with e^epsilon = 1 + (1 - lam) labels / lam; infinite at 0.
    """
    return LocalResponse(budget(lam, labels), labels)


def budget(lam: float, labels: int) -> float:
    """Return ln(1 + (1 - lam) labels / lam) in nats, the same on every machine; infinite at 0."""
    rate = Fraction(lam)
    if not rate:
        return math.inf
    ratio = 1 + (1 - rate) * labels / rate
    return float(_DIGITS.ln(_DIGITS.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))))


def lying(lam: float, labels: int) -> Fraction:
    """Return how likely the label that is said is another one of ``labels`` than the true one, exactly."""
    return Fraction(lam) * (labels - 1) / labels


def answered(lam: float, labels: int) -> Answered:
    """Return the statistic of the victim's answer."""
    return Answered(budget(lam, labels), float(Fraction(lam) / labels), labels)

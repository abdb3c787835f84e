"""One figure of privacy: value, certified ends, basis; and how it is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from p2p_sim.privacy.profile import PrivacyProfile

_DIGITS = 4


def figure(profile: PrivacyProfile, delta: float) -> dict[str, Any]:
    """Return epsilon at delta, in nats, with ends, basis, source and assumptions; raises RefusedError."""
    low, value, high = profile.epsilon_bracket(delta)
    return {
        "epsilon": value, "lower": low, "upper": high, "basis": profile.basis, "source": profile.source,
        "assumes": list(profile.assumes),
    }  # fmt: skip


def number_text(value: Any) -> str:
    """Return a number in four digits; infinity is ``inf``."""
    return f"{float(value):.{_DIGITS}g}"


def bracket_text(found: Mapping[str, Any]) -> str:
    """Return a figure in four digits, or both ends where they differ by more than those show; infinity is ``inf``.

    Ends, and what is nothing but an upper or a lower bound, are rounded outward: as printed it still holds.
    """
    low, value, high = (float(found[name]) for name in ("lower", "epsilon", "upper"))
    if not math.isfinite(high) or high <= 0:
        return number_text(value) if low == high else f"{number_text(low)} to {number_text(high)}"
    step = Decimal(1).scaleb(math.floor(math.log10(high)) - _DIGITS + 1)
    ends = [
        number_text(Decimal(repr(end)).quantize(step, way))
        for end, way in ((low, ROUND_FLOOR), (high, ROUND_CEILING))
    ]
    if high - low > float(step) / 10:
        return " to ".join(ends)
    outward = {"lower": ends[0], "upper": ends[1]}
    return outward.get(found["basis"], number_text(value))


def bound_text(epsilon: float, basis: str) -> str:
    """Return what a theorem promises in four digits: what is proven is rounded up, as printed it still holds."""
    return bracket_text({"lower": epsilon, "epsilon": epsilon, "upper": epsilon, "basis": basis})

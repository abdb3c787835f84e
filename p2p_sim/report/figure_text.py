"""Privacy figures with their bounds, and other numbers, formatted for readers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.render import text_labels
from p2p_sim.report import terminal
from p2p_sim.result_summary import settled

_DIGITS = 4


def figure(profile: PrivacyProfile, delta: float) -> dict[str, Any]:
    """Return epsilon (in nats) at delta, with its bracket, basis, source and assumptions; raises RefusedError."""
    low, value, high = profile.epsilon_bracket(delta)
    return {
        "epsilon": value, "lower": low, "upper": high, "basis": profile.basis, "source": profile.source,
        "assumes": list(profile.assumes),
    }  # fmt: skip


def number_text(value: Any) -> str:
    """Return a number with four digits; infinity is ``inf``."""
    return f"{float(value):.{_DIGITS}g}"


def bracket_text(found: Mapping[str, Any]) -> str:
    """Return a figure with four digits, or both ends if they differ in these digits; infinity is ``inf``.

    Ends, and figures that are only upper or lower bounds, are rounded outward, so that they hold as printed, to 1e-12.
    """
    low, value, high = (float(found[name]) for name in ("lower", "epsilon", "upper"))
    if not math.isfinite(high) or high <= 0:
        return number_text(value) if low == high else f"{number_text(low)} to {number_text(high)}"
    step = Decimal(1).scaleb(math.floor(math.log10(high)) - _DIGITS + 1)
    ends = [
        number_text(settled(end).quantize(step, way))
        for end, way in ((low, ROUND_FLOOR), (high, ROUND_CEILING))
    ]
    if high - low > float(step) / 10:
        return " to ".join(ends)
    outward = {"lower": ends[0], "upper": ends[1]}
    return outward.get(found["basis"], number_text(value))


def bound_text(epsilon: float, basis: str) -> str:
    """Return a theorem's epsilon with four digits; a proven one is rounded up, so that it holds as printed."""
    return bracket_text({"lower": epsilon, "epsilon": epsilon, "upper": epsilon, "basis": basis})


_POWER = re.compile(r"(\d(?:\.\d+)?)e([+-]\d+)")
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


class Number(str):
    """A number that is already text; tables align it as a number."""

    __slots__ = ()


def typeset(text: str) -> str:
    """Return text with ``4.8e-07`` as ``4.8 × 10⁻⁷`` and ``inf`` as ``∞``."""

    def power(found: re.Match[str]) -> str:
        exponent = str(int(found[2])).translate(_RAISED)
        return f"10{exponent}" if found[1] == "1" else f"{found[1]} × 10{exponent}"

    return re.sub(r"\binf\b", "∞", _POWER.sub(power, text))


def number(value: Any) -> Number:
    """Return a number with four digits."""
    return Number(typeset(number_text(value)))


def epsilon(found: Mapping[str, Any]) -> Number:
    """Return a privacy figure with four digits, or its certified ends if they differ in these digits."""
    return Number(typeset(bracket_text(found)))


def bound(found: Mapping[str, Any]) -> Number:
    """Return a theorem's epsilon with four digits; a proven one is rounded up."""
    return Number(typeset(bound_text(found["epsilon"], found["basis"])))


def size(nbytes: float) -> Number:
    """Return bytes with a suitable unit: ``900 B``, ``1.2 MB``."""
    return Number(text_labels.size(round(nbytes)))


def seconds(value: float) -> Number:
    """Return seconds with a suitable unit and three digits: ``621 µs``, ``10.6 s``."""
    if not value or not math.isfinite(value):
        return Number(f"{value:g} s")
    name, unit = next(((name, unit) for name, unit in _UNITS if abs(value) >= 0.9995 * unit), _UNITS[-1])
    shown = value / unit
    return Number(f"{shown:,.0f} {name}" if shown >= 99.95 else f"{shown:.3g} {name}")


def percent(share: float) -> Number:
    """Return a share as a percentage with two decimals."""
    return Number(f"{100 * share:.2f} %")


def cell(value: Any) -> str:
    """Return one value of a table as text; empty for None."""
    if isinstance(value, float):
        return number(value)
    return "" if value is None else terminal.cell(value)


def right_of_100(epsilon: float) -> str:
    """Return how many of 100 labels, each one of two with equal chances, are guessed right at most, rounded up.

    *Source:* the best test of two laws of which each is at most exp(epsilon) times the other is right with probability
    exp(epsilon) / (1 + exp(epsilon)) at most (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
    """
    return f"{math.ceil(1000 / (1 + math.exp(-epsilon)) - 1e-9) / 10:g}"

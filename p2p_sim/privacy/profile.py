"""Privacy profiles: delta as a function of epsilon, both directions, with brackets and a stated basis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, overload

from p2p_sim import result_picture
from p2p_sim.core.errors import InputError
from p2p_sim.privacy import delta_curve, many_values
from p2p_sim.privacy.law import LARGE, ZERO, AdditiveNoise, Bracket, Law, largest, root
from p2p_sim.privacy.many_values import Array, Brackets, Values
from p2p_sim.result_summary import Rows, Summary, down, up

__all__ = [
    "BASES",
    "ZERO",
    "AdditiveNoise",
    "Bracket",
    "Brackets",
    "Law",
    "PrivacyProfile",
    "RefusedError",
    "largest",
    "root",
    "worst_basis",
]

BASES = ("exact", "upper", "lower", "claimed", "measured", "refused")

_LEAST_SURE_FIRST = ("measured", "lower", "claimed", "upper", "exact")

_SHOWN = 1e-6  # delta of the figure that a profile shows of itself
_SHOWN_CASES = 64  # of which the worst is shown; of more it takes long to find
_DRAWN = 8  # pieces of the curve that notebooks show
_FAR = 1e-100  # deltas below this are bounded by the one at which it is reached


class RefusedError(InputError):
    """A figure was asked of a view that has no law; the text says why and what could be audited instead."""


@dataclass(frozen=True)
class PrivacyProfile(Summary):
    """How well a party's view hides one label: delta as a function of epsilon, with basis and source.

    ``view``: who looks.  ``basis``: one of ``BASES``; "exact" where every composition is computed or lies below a
    bound (the bracket holds what numbers can be wrong by), "lower" where the value may be too small (the bracket's
    upper end still holds for all), "upper" where it may be too large.
    ``source``: paper and section of the law.  ``assumes``: what it relies on.  ``why``: the reason of a refusal and
    what could be audited instead.  ``one_composition``: whether it holds for one composition of the others' labels
    alone.  ``members``: in how many labels, replaced, neighbours differ at most.  Epsilon in nats.
    """

    view: str
    basis: str
    source: str
    assumes: tuple[str, ...] = ()
    why: str = ""
    law: Law | None = None
    one_composition: bool = False
    members: int = 1

    def __post_init__(self) -> None:
        if self.basis not in BASES or (self.law is None) != (self.basis == "refused"):
            raise InputError(
                f"basis = {self.basis!r}: must be one of {BASES}, 'refused' where there is no law"
            )

    def __repr__(self) -> str:
        return f"<PrivacyProfile of {self.view}: {self.basis}>"

    def summary(self) -> tuple[str, Rows]:
        """Return what printing the profile and notebooks show: epsilon at delta = 1e-6, unless that takes long."""
        title = f"What view {self.view} learns of one label"
        if self.law is None:
            return title, [("basis", self.basis), ("why", self.why)]
        rows = [
            ("basis", self.basis),
            *self._shown,
            ("source", self.source),
            ("assumes", "; ".join(self.assumes)),
        ]
        return title, [(name, text) for name, text in rows if text]

    def picture(self) -> str:
        """Return the curve of delta over epsilon, down to the delta that the table shows, unless that takes long."""
        if self.law is None or self._takes_long() or math.isinf(end := self.epsilon(_SHOWN)):
            return ""
        grid = [
            end * (1 - (1 - i / _DRAWN) ** 2) for i in range(_DRAWN + 1)
        ]  # close where the curve is steep
        points = [(epsilon, max(_SHOWN, self.delta(epsilon))) for epsilon in grid]
        return result_picture.curve(f"δ over ε, view {self.view}, {self.basis}", points, "ε (nats)", "δ(ε)")

    def _takes_long(self) -> bool:
        law = self._law()
        return law.slow or len(law.alternatives()) > _SHOWN_CASES

    @cached_property
    def _shown(self) -> list[tuple[str, str]]:
        """The rows with figures, computed once."""
        if self._takes_long():
            return [("ε", "takes long: ask epsilon(delta)")]
        low, value, high = self.epsilon_bracket(_SHOWN)
        return [(f"ε at δ = {_SHOWN:g}", f"{value:.4g} nats ({down(low)} to {up(high)})")]

    @classmethod
    def refused(cls, view: str, why: str) -> PrivacyProfile:
        """Return a profile that refuses every figure and says why."""
        return cls(view, "refused", "no law", (), why)

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: Values) -> Array: ...
    def delta(self, epsilon: Any) -> Any:
        """Return delta in [0, 1] at epsilon >= 0 (nats, may be infinite), or at each of several, in their shape.

        ``epsilon``: a number, or an array, sequence or Series of numbers.  Raises InputError that names the value and
        where it stands, RefusedError where there is no law.
        """
        return self.delta_bracket(epsilon).value

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: Values) -> Array: ...
    def epsilon(self, delta: Any) -> Any:
        """Return the least epsilon >= 0 (nats, may be infinite) whose delta is at most ``delta``, in [0, 1].

        ``delta``: a number, or an array, sequence or Series of numbers; then an array of its shape comes back.
        Raises InputError for a delta outside or one that is no number, RefusedError where there is no law.
        """
        law = self._law()
        if many_values.several(delta):
            wanted, shape = many_values.checked("delta", delta, probability)
            return many_values.floats([_epsilon(law, one) for one in wanted], shape)
        return _epsilon(law, probability("delta", delta))

    @overload
    def delta_bracket(self, epsilon: float) -> Bracket: ...
    @overload
    def delta_bracket(self, epsilon: Values) -> Brackets: ...
    def delta_bracket(self, epsilon: Any) -> Any:
        """Return ``delta`` with certified ends, rounded outward; of several values three arrays of their shape."""
        law = self._law()
        if many_values.several(epsilon):
            at, shape = many_values.checked("epsilon", epsilon, number)
            return many_values.brackets([_delta_bracket(law, one) for one in at], shape)
        return _delta_bracket(law, number("epsilon", epsilon))

    @overload
    def epsilon_bracket(self, delta: float) -> Bracket: ...
    @overload
    def epsilon_bracket(self, delta: Values) -> Brackets: ...
    def epsilon_bracket(self, delta: Any) -> Any:
        """Return ``epsilon`` with certified ends, rounded outward; of several values three arrays of their shape."""
        law = self._law()
        if many_values.several(delta):
            wanted, shape = many_values.checked("delta", delta, probability)
            return many_values.brackets([_epsilon_bracket(law, one) for one in wanted], shape)
        return _epsilon_bracket(law, probability("delta", delta))

    @overload
    def directions(self, epsilon: float) -> tuple[float, float]: ...
    @overload
    def directions(self, epsilon: Values) -> tuple[Array, Array]: ...
    def directions(self, epsilon: Any) -> Any:
        """Return (delta from label 0 to 1, delta from 1 to 0) at epsilon >= 0, in nats; of several, two arrays."""
        law = self._law()
        if many_values.several(epsilon):
            at, shape = many_values.checked("epsilon", epsilon, number)
            pairs = [_directions(law, one) for one in at]
            return tuple(many_values.floats([pair[i] for pair in pairs], shape) for i in (0, 1))
        return _directions(law, number("epsilon", epsilon))

    def curve(self, epsilon: Values | None = None) -> Any:
        """Return delta(epsilon) as a pandas DataFrame, one row a point; its ``to_csv`` and ``to_parquet`` write files.

        ``epsilon``: where, in nats; None: at most 60 points from 0 to where delta is below 1e-12, closer where the
        curve is steep.  Columns: ``epsilon_nats``; ``delta_lower``, ``delta``, ``delta_upper`` (ends of the
        bracket, see ``delta_bracket``; of a bound, where the basis is "upper"); ``basis``; ``view``.  Raises InputError
        as ``delta`` does.
        """
        law = self._law()
        given = epsilon if epsilon is not None else delta_curve.points(law)[0]
        at, _ = many_values.checked("epsilon", given, number)
        return delta_curve.frame([(one, _delta_bracket(law, one)) for one in at], self.view, self.basis)

    def _law(self) -> Law:
        if self.law is None:
            raise RefusedError(f"view {self.view!r}: {self.why}")
        return self.law


def worst_basis(parts: Sequence[PrivacyProfile]) -> str:
    """Return the basis of the worst of several profiles, each of which has a law.

    A value that may be too small makes the largest too small, whatever the rest: "lower" comes first.  "upper" comes
    next: none is too small, one may be too large.
    """
    found = {part.basis for part in parts}
    return next(basis for basis in _LEAST_SURE_FIRST if basis in found)


def _epsilon(law: Law, delta: float) -> float:
    if delta >= 1:
        return 0.0
    return law.epsilon(delta) if delta > 0 else law.pure()


def _epsilon_bracket(law: Law, delta: float) -> Bracket:
    if delta >= 1:
        return ZERO
    return law.epsilon_bracket(delta) if delta > 0 else law.pure_bracket()


def _delta_bracket(law: Law, at: float) -> Bracket:
    low, pure, high = law.pure_bracket()
    if at >= high and math.isfinite(at):
        return ZERO
    if low < at < math.inf:  # whether delta is 0 is rounding
        value = law.delta(at).value if at < pure else 0.0
        return Bracket(0.0, value, max(value, law.delta(low).upper))
    found = law.delta(min(at, LARGE))
    if (
        found.upper > _FAR and found.value < _FAR and math.isfinite(at)
    ):  # delta falls: an earlier end bounds it
        before = law.delta(min(at, law.epsilon(_FAR)))
        return found._replace(upper=min(1.0, found.upper, before.upper))
    return found._replace(upper=min(1.0, found.upper))


def _directions(law: Law, at: float) -> tuple[float, float]:
    if at >= law.pure() and math.isfinite(at):
        return 0.0, 0.0
    first, second = law.directions(min(at, LARGE))
    return first.value, second.value


def probability(name: str, value: Any) -> float:
    """Return a number from 0 to 1; raises InputError that begins with ``name``."""
    found = number(name, value)
    if found > 1:
        raise InputError(f"{name} = {value!r}: must be a probability, from 0 to 1")
    return found


def number(name: str, value: Any) -> float:
    """Return a number >= 0, which may be infinite; raises InputError that begins with ``name``."""
    if isinstance(value, bool) or not isinstance(value, Real) or not value >= 0:  # type: ignore[operator]
        raise InputError(f"{name} = {value!r}: must be a number, at least 0")
    try:
        return float(value)
    except OverflowError:  # an integer or fraction beyond all floats: any law treats it as infinite
        return math.inf

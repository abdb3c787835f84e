"""Laws and profiles that the tests of compositions share."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.profile import PrivacyProfile

FOUR = Atoms.of([0.5, 0.3, 0.15, 0.05], [0.45, 0.25, 0.2, 0.1])
ENDLESS = Atoms.of([Fraction(9, 10), Fraction(1, 10), 0], [Fraction(8, 10), Fraction(1, 10), Fraction(1, 10)])


def of(law: Law, view: str = "learner", basis: str = "exact") -> PrivacyProfile:
    return PrivacyProfile(view, basis, "a test", (), "", law)


def rr(epsilon0: float, labels: int = 2) -> PrivacyProfile:
    return of(LocalResponse(epsilon0, labels))


@cache
def shuffled(users: int, ones: int, flip: float = 0.25) -> Atoms:
    """The law of the sum of noisy bits, from its definition: no tails, no cuts."""
    lie, whole = Fraction(flip).as_integer_ratio()  # counted in units of 1 / whole ** users

    def law(count: int) -> list[Fraction]:
        mass = [1]
        for i in range(users):
            p = whole - lie if i < count else lie
            mass = [k * p + m * (whole - p) for k, m in zip([0, *mass], [*mass, 0], strict=True)]
        return [Fraction(m, whole**users) for m in mass]

    return Atoms.of(law(ones), law(ones + 1))


class Unheard(Law):
    """A law of a kind that nobody knows."""

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        raise AssertionError(epsilon)

    def pure(self) -> float:
        raise AssertionError

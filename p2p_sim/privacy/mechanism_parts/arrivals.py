"""Faults in laws: the probability that a label arrives, and among how many others it then hides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2p_sim.core.faults import Faults
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.mixtures import Mixture
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.setting import Setting

Array = npt.NDArray[np.float64]

ARRIVES = "no message is lost, late or doubled, so nobody asks again"
"""What ``faults`` take the place of."""

CUT = 1e-13
"""Probability that is left out of a mixture, once or a few times; it counts as seen in the clear."""


def silent(faults: Faults) -> bool:
    """Whether something that is sent, or would have been, may not be read."""
    return bool(faults.drop) or missing(faults)


def missing(faults: Faults) -> bool:
    """Whether one recipient may lack what another one has."""
    return bool(faults.loss or faults.late or faults.tamper or faults.misdirect)


def label_arrives(faults: Faults, hops: int, *, sealed: bool) -> float:
    """Return the probability that what a user has to say is there after so many hops, each read by who passes it on.

    ``sealed``: whether every hop is, and opened at its end.  At the last hop it may be late: whoever looks has it,
    though her program has read the others by then.
    """
    opened = (1 - faults.tamper) * (1 - faults.misdirect) if sealed else 1.0
    chance: float = (1 - faults.drop) * ((1 - faults.loss) * opened) ** hops * (1 - faults.late) ** (hops - 1)
    return chance


def upper(profile: PrivacyProfile, faults: Faults, why: str = "") -> PrivacyProfile:
    """Return a profile as an upper bound under faults."""
    if profile.law is None:
        return profile
    notes = f"faults: {', '.join(faults.texts())}" + (f"; {why}" if why else "")
    others = tuple(text for text in profile.assumes if text != ARRIVES)
    law = profile.law
    if faults.lie is not None and law.alternatives()[0] is not law:
        law = Mixture(((1.0, law),))  # who lies is drawn anew in each run, so no case is the same in several
    return replace(profile, basis="upper", assumes=(*others, notes), law=law)


def lies_at(setting: Setting, faults: Faults) -> PrivacyProfile | None:
    """Return a refusal where users lie and a composition is given."""
    if faults.lie is None or setting.composition is None:
        return None
    why = "users who lie change how many ones there are: give composition 'worst'"
    return PrivacyProfile.refused(setting.text, why)


@dataclass(frozen=True, eq=False)
class Counts:
    """Among how many others a label hides, if it is there: ``chances[i]`` that it is, among ``low`` + i others.

    ``lost``: the probability of fewer, which count as none.
    """

    low: int
    chances: Array
    lost: float = 0.0

    @classmethod
    def of(cls, others: int, chance: float, there: float) -> Counts:
        """Return the law of how many of ``others`` come, each with probability ``chance``, if the label does."""
        from scipy.stats import binom

        low = max(0, int(binom.ppf(CUT, others, chance)) - 1)
        high = min(others, int(binom.isf(CUT, others, chance)) + 1)
        mass = np.asarray(binom.pmf(np.arange(low, high + 1), others, chance))
        mass[-1] += binom.sf(high, others, chance)  # as if they were fewer
        return cls(low, there * mass, there * float(binom.cdf(low - 1, others, chance)))

    def groups(self, most: int) -> Iterator[tuple[float, int]]:
        """Yield (probability, least number) of groups of equal width, at most ``most`` and one of few users.

        The last group takes all that is well above the mean, where one more hardly matters.
        """
        numbers, summed = np.arange(len(self.chances)), np.cumsum(self.chances)
        if not summed[-1]:
            yield self.lost, 0
            return
        mean = float(numbers @ self.chances) / float(summed[-1])
        spread = math.sqrt(float((numbers - mean) ** 2 @ self.chances) / float(summed[-1]))
        first = int(np.searchsorted(summed, CUT))
        last = min(len(numbers) - 1, math.ceil(mean + 2 * spread))
        edges = list(range(first, last + 1, math.ceil((last + 1 - first) / most)))
        for low, high in zip(edges, [*edges[1:], len(numbers)], strict=True):
            yield float(self.chances[low:high].sum()), self.low + low
        few = self.lost + float(summed[first - 1] if first else 0.0)
        if few:
            yield few, 0

    def law(self, law_among: Callable[[int], Law], most: int) -> Law:
        """Return an upper bound: the mixture of ``law_among(m)``, the law of a label among m others."""
        if not self.chances.any() and not self.lost:
            return Nothing()
        return Mixture(tuple((weight, law_among(others)) for weight, others in self.groups(most)))

"""Algorithm 2 with retries, where users drop out or collude with the learner: an upper bound by shuffles.

Suppose that who is there at each step is revealed.  The victim answers up to some attempt, or to the last.  The bits
of those who could answer at that attempt are a crowd from which every report of an attempt up to it is drawn evenly:
what is reported is computed from their shuffle.  Reports of later attempts are revealed, and the users whose bits they
show leave the crowd; lost messages make a report likelier to show its sender's own bit, and with that excess
probability the sender is revealed and leaves the crowd, too.

*Source:* ``docs/laws.md``, "Faults of Algorithm 2".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from p2p_sim.core.faults import Faults
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.mixtures import Mixture
from p2p_sim.privacy.laws.random_size_shuffle import CUT, CoinTails, crowded
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanisms.peer_to_peer.tilted import TiltedLaw

_LESS = 1 - 1e-12  # what chances are multiplied by, more than any rounding in them


@dataclass(frozen=True)
class RetriedReports:
    """A cluster of ``size`` users, ``colluders`` of whom join the learner; each asks up to ``turns`` times.

    ``alpha``, ``theta``: of the protocol; ``faults``: under which it runs.  All who look follow the protocol.
    """

    alpha: float
    theta: float
    size: int
    colluders: int
    turns: int
    faults: Faults

    @property
    def others(self) -> int:
        """Honest users beside the victim."""
        return self.size - 1 - self.colluders

    @property
    def relayed(self) -> float:
        """The chance that an ask and its answer come in time."""
        return ((1 - self.faults.loss) * (1 - self.faults.late)) ** 2

    def answers(self, turn: int) -> float:
        """Return the chance that a user is there to answer in a turn, 0 the first."""
        return float((1 - self.faults.drop) ** (2 * turn + 2))

    @property
    def failing(self) -> float:
        """Return at most the chance that one ask of a user who stays fails, except with a chance of ``CUT``."""
        from scipy.stats import binom

        least = 0
        if self.size > 2:  # of all but the victim, so many could answer at least, herself counted beside
            least = max(0, int(binom.ppf(CUT, self.size - 1, self.answers(self.turns - 1))) - 1)
        return min(1.0, 1 - (1 + self.relayed * least) / self.size * _LESS)

    @property
    def own(self) -> float:
        """Return at most the chance that a report shows its sender's bit beyond what it shows of any other's."""
        asked = math.fsum(self.failing**turn for turn in range(self.turns))
        return min(1.0, self.theta * (1 - self.faults.loss) * asked * (1 - self.relayed) / self.size / _LESS)

    def law(self) -> Law:
        """Return the bound."""
        local = LocalResponse.flipping(self.alpha)
        asked = (
            -math.expm1(self.colluders * self.turns * math.log1p(-1 / self.size)) if self.size > 1 else 0.0
        )
        cases: list[tuple[float, Law]] = [(asked * self.answers(0) + 4 * CUT, local)]
        last = self.turns - 1
        for turn in range(last):
            weight = self.answers(turn) - self.answers(turn + 1)
            if weight > 0:
                gone = min(1.0, self.own + self.failing ** (turn + 1))
                cases.append(((1 - asked) * weight, self._crowd(self.answers(turn) * (1 - gone))))
        drawn = self._crowd(self.answers(last) * (1 - self.own))
        cases.append(((1 - asked) * self.answers(last), self._leaning(drawn, local)))
        return Mixture(tuple(cases))

    def _crowd(self, chance: float) -> Law:
        """Return the law of a shuffle of the victim's bit among others, each of whom is in it with a chance.

        Of them, as many are left out as colluders may know: each asks so often.
        """
        known = self.colluders * self.turns
        if self.others <= known:
            return LocalResponse.flipping(self.alpha)
        tails = CoinTails(self.others, max(0.0, chance * _LESS), known)
        return crowded(tails, LocalResponse.flipping(self.alpha).epsilon0)

    def _leaning(self, drawn: Law, local: Law) -> Law:
        """Return the law where the victim's own report may show her bit more often than others' reports do."""
        if not self.own:
            return drawn
        if not self.relayed:
            return Mixture(((1 - self.own, drawn), (self.own, local)))
        rate = self.own / (1 / self.relayed - 1 + self.own)
        return TiltedLaw(1.0, self.own, rate, drawn, drawn, local)

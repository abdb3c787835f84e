"""The best attacker of a protocol's runs: her mean advantage over seeds, and an interval that knows of choosing her.

Who looks at several attackers and reports the best one reports luck, too: of attackers who are all worthless the best
one looks good.  So each one's interval is made at a stricter confidence, such that all hold together at 95 %, and then
so does that of whichever is reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p2p_sim.leakage.advantage import by_law_of
from p2p_sim.leakage.attacker_names import OPTIMAL, PRIOR, SHIPPED
from p2p_sim.leakage.intervals import FEW_GROUPS
from p2p_sim.sweep.summary import CONFIDENCE, interval

ENOUGH_SEEDS = 3
"""Seeds whose spread says something: Student's t of two is thirteen times as wide as their mean is off."""

TOLD = len(SHIPPED) - 1
"""Attackers who look at messages."""


def strict(attackers: int = TOLD) -> float:
    """Return the confidence of each of several intervals at which all hold together at 95 %.

    *Source:* Bonferroni: whatever they have to do with each other.
    """
    return 1 - (1 - CONFIDENCE) / attackers


@dataclass(frozen=True)
class Attacked:
    """One attacker of one run.

    ``lower`` and ``upper``: of her advantage, at ``strict`` confidence; ``groups``: of how many groups of users that do
    not depend on each other.
    """

    value: float
    lower: float
    upper: float
    baseline: float
    basis: str
    groups: int


@dataclass(frozen=True)
class Best:
    """The best attacker.  ``advantage``, ``lower``, ``upper``, ``baseline``: shares of labels, the mean over ``seeds``.

    ``of``: what the interval knows of: "users", "coins" or both.
    """

    name: str
    advantage: float
    lower: float
    upper: float
    baseline: float
    basis: str
    seeds: int
    of: str


def best(attackers: Mapping[str, Sequence[Attacked]], *, same_users: bool) -> Best | None:
    """Return the best of several attackers, each of the same runs, one for each seed; None of none.

    The best attack by the law of the reports, where that is known, is nobody's choice: she is the best.  Otherwise she
    is chosen by her mean.  The interval is Student's t of the mean over seeds.  Where all seeds have the
    ``same_users``, that knows of the protocol's coins alone: then it reaches as far as the mean ends of the runs'
    intervals, too, which are of users like these, where at least 20 groups of them do not depend on each other.
    Of fewer than three seeds it is these mean ends.

    *Source:* Bonferroni over ``attackers``; a mean of numbers strays no further than they do in the mean, whatever they
    have to do with each other.
    """
    known = {name: runs for name, runs in attackers.items() if runs and name != PRIOR}
    if not known:
        return None
    law = by_law_of(OPTIMAL)
    name = (
        law
        if law in known
        else max(sorted(known), key=lambda each: _mean([run.value for run in known[each]]))
    )
    runs = known[name]
    chosen_of = 1 if name == law else len(known)
    value, half = interval([run.value for run in runs], strict(chosen_of))
    lower, upper, of = value - half, value + half, "users and coins"
    ends = _mean([run.lower for run in runs]), _mean([run.upper for run in runs])
    if len(runs) < ENOUGH_SEEDS:
        lower, upper = ends
    elif same_users and min(run.groups for run in runs) >= FEW_GROUPS:
        lower, upper = min(lower, ends[0]), max(upper, ends[1])
    elif same_users:
        of = "coins"
    bases = {run.basis for run in runs}
    return Best(
        name, value, max(-1.0, lower), min(1.0, upper), _mean([run.baseline for run in runs]),
        bases.pop() if len(bases) == 1 else "measured", len(runs), of,
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)

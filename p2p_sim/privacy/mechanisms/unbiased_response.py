"""The optimal unbiased randomizer: who reads the report sees one output.

The law is that of the integers that are drawn, not of the real numbers that they are rounded from.

*Source:* Badanidiyuru et al. 2023; ``docs/laws.md``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.exact import WORD
from p2p_sim.core.label_kinds import NUMERIC
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.statistic import Statistic
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.mechanism_parts.label_reports import by_matrix, check_prior_rows
from p2p_sim.privacy.mechanism_parts.one_report import answer, read_by, under_faults
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, register
from p2p_sim.privacy.setting import Setting
from protocols import UnbiasedResponse
from protocols._unbiased_outputs import Randomizer

SOURCE = "Badanidiyuru et al. 2023, the integers that are drawn; the worst pairs of labels, see docs/laws.md"
LIKELIHOOD = "Badanidiyuru et al. 2023: P(output | label), from the integers that are drawn"
GIVEN = "the prior is public and depends on no user's label"

Counts = tuple[int, ...]
Pair = tuple[Counts, Counts]


def law(protocol: UnbiasedResponse, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: the outputs of the worst pairs of labels."""
    randomizer = protocol.randomizer()
    pairs = worst_pairs(randomizer)
    if len(pairs) > 1 and len(randomizer.nodes) < protocol.labels:
        # several runs on labels between nodes mix different pairs, of which the worst by itself need not be the worst
        return read_by(setting, dominating_law(pairs), SOURCE, GIVEN, basis="upper")
    return read_by(setting, _atoms(pairs), SOURCE, GIVEN)


def matrix(protocol: UnbiasedResponse) -> npt.NDArray[np.float64]:
    """Return P(output | label), shape (k, outputs), row by label."""
    return _floats(protocol.randomizer().chances)


def _floats(rows: tuple[Counts, ...]) -> npt.NDArray[np.float64]:
    return np.array([[float(Fraction(count, WORD)) for count in row] for row in rows])


def _atoms(pairs: tuple[Pair, ...]) -> Law:
    first, second = zip(*pairs, strict=True)
    return Atoms(_floats(first), _floats(second))


def dominating_law(pairs: tuple[Pair, ...]) -> Law:
    """Return three outcomes that dominate every pair: as far apart, and with as high a ratio r.

    E_x of every pair is convex in x, so between x = 1 and r it is below the straight line to 0 at r.  E_x of these
    three outcomes is that line.
    """
    ratio = max(Fraction(max(each), min(each)) for pair in pairs for each in zip(*pair, strict=True))
    least = max(Fraction(_excess(pair, 1, 1), WORD) for pair in pairs) / (ratio - 1)
    rest = 1 - (ratio + 1) * least
    return Atoms.of([ratio * least, least, rest], [least, ratio * least, rest])


@lru_cache(maxsize=64)  # an account asks for every view
def worst_pairs(randomizer: Randomizer) -> tuple[Pair, ...]:
    """Return pairs of labels, the lower first, as counts of words: every other one is dominated by one of them."""
    rows = [
        randomizer.chances[node] for node in (randomizer.nodes[:2] if randomizer.alike else randomizer.nodes)
    ]
    pairs = sorted(
        itertools.combinations(rows, 2), key=lambda pair: -sum(abs(p - q) for p, q in zip(*pair, strict=True))
    )
    kept: list[Pair] = []
    for pair in pairs:
        # in its own order: the reverse may not be composed
        if not any(dominates(other, pair) for other in kept):
            kept.append(pair)
    return tuple(kept)


def dominates(pair: Pair, other: Pair) -> bool:
    """Whether no divergence E_x of another pair, at any x > 0, is above that of a pair.

    Of the pair it is straight between the ratios of its outcomes, and of the other convex: these ratios are enough.
    Floats decide where they are far apart, whole numbers where they are not.
    """
    ratios = list(dict.fromkeys(zip(*pair, strict=True)))
    over, under = _columns(ratios)
    less = _excesses(pair, over, under) - _excesses(other, over, under)
    unsure = _UNSURE * (over + under)
    if bool((less < -unsure).any()):
        return False
    near = (ratios[place] for place in np.flatnonzero(less <= unsure).tolist())
    return all(_excess(other, p, q) <= _excess(pair, p, q) for p, q in near)


_UNSURE = 1e-12
"""Of shares that sum to 1: sums of a few hundred floats are off by less than 1e-13."""


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[Floats, Floats]:
    """Return counts of words as shares, those of the first label and those of the second."""
    first, second = np.array(pairs, np.float64).T / WORD
    return first, second


def _excesses(pair: Pair, over: Floats, under: Floats) -> Floats:
    """Return ``_excess`` at several x, divided by WORD twice, in floats."""
    p, q = _columns(list(zip(*pair, strict=True)))
    return np.asarray(np.maximum(under[:, None] * p - over[:, None] * q, 0.0).sum(axis=1), np.float64)


def _excess(pair: Pair, over: int, under: int) -> int:
    """Return the sum of the positive parts of under P - over Q: of E_x, x = over / under, times WORD and under."""
    return sum(max(0, under * p - over * q) for p, q in zip(*pair, strict=True))


def statistic(
    protocol: UnbiasedResponse, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic:
    """Return the output that the victim reported, for a view that reads it."""
    return answer(coalition, channels, matrix(protocol), "output")


def local_epsilon(protocol: UnbiasedResponse) -> float:
    """Return the largest log ratio of the integers that are drawn, in nats; below the budget by less than 1e-6."""
    return max(_atoms((pair,)).pure() for pair in worst_pairs(protocol.randomizer()))


def attack(protocol: UnbiasedResponse, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what each output that the view reads says of its sender's label."""
    check_prior_rows(view, eta, protocol.labels)
    return by_matrix(view, matrix(protocol), LIKELIHOOD, field="output")


register(
    UnbiasedResponse,
    Accounting(
        labels=(NUMERIC,),
        law=law,
        under_faults=under_faults,
        statistic=statistic,
        local_epsilon=local_epsilon,
        attack=attack,
        others_matter=False,
    ),
)

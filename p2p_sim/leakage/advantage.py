"""Attack utility and advantage: expected (EAU), without the messages (L-EAU), and their difference.

Three ways: by enumeration of the outcomes of each user's report, by integration over a known P(y | x) (the same, with
rows of ``eta`` as nodes of a quadrature and their weights), and by simulation, with confidence intervals.

*Source:* Attacks 2023, sections 3.2 and 4; Unified 2023, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, near
from p2p_sim.leakage import intervals
from p2p_sim.leakage.attack_results import AttackRow, Floats, Interval, LabelInference, Least
from p2p_sim.leakage.eta import checked
from p2p_sim.leakage.intervals import Ends, Groups
from p2p_sim.privacy.bounds.attacks2023 import checked_utility, weighted_utility
from p2p_sim.privacy.bounds.bound import Figure, mean

UTILITIES = ("0/1", "weighted")

ADVANTAGE = "attack advantage"
"""The quantity of the figures that bound an advantage."""

UTILITY = "attack utility (1 - expected loss)"
"""The quantity of those that bound a utility."""

EPSILON = "epsilon of a label (nats)"
"""The quantity of the promise that the epsilon is held against which guesses of coins imply."""

CANARIES = "canaries"

ANYBODY = "whoever is attacked"
"""Among the parameters of a figure that holds for any users and any P(y | x)."""

FALSE_ALARM = 1e-6
"""How often ``violations`` finds one, for each row and bound, where there is none."""

SURE = 1 - FALSE_ALARM
"""The confidence of intervals that bounds are made of: each end is wrong half a time in 1e6."""

PROVEN = ("exact", "upper")
"""Bases of bounds that no attack may exceed; a claim may be wrong itself."""


def of_canaries(name: str) -> bool:
    """Whether a row of this name is of planted users, by any model."""
    return name == CANARIES or name.startswith(f"{CANARIES}, ")


def utility_matrix(utility: Any, shares: Floats) -> Floats:
    """Return u(guess, truth) as a matrix (k, k): 1 for a right guess, or "weighted", 1 / (2 p_y) for it, or the given.

    ``shares`` (k,): p_y; a label of share 0 never is the truth, and counts 0.  Raises InputError for another name, for
    a matrix that ``checked_utility`` refuses, and for a weighted utility where only one label occurs.

    *Source:* Attacks 2023, Equation 8: any guess that is blind to the user then has utility 1/2, for two labels.
    """
    k = len(shares)
    if not isinstance(utility, str):
        return checked_utility(utility, k)
    if utility not in UTILITIES:
        raise InputError(
            f"utility = {utility!r}: must be one of {', '.join(UTILITIES)}"
            f"{near(str(utility), UTILITIES)}, or a matrix ({k}, {k}): guess, truth"
        )
    if utility == "0/1":
        return np.eye(k)
    occurs = np.flatnonzero(shares)
    if len(occurs) < 2:
        raise InputError(
            "utility = 'weighted': only one label occurs, so there is nothing to weigh; give '0/1'"
        )
    gains = np.zeros((k, k))
    gains[np.ix_(occurs, occurs)] = weighted_utility(shares[occurs])
    return gains


def utility_name(utility: Any, gains: Floats) -> str:
    """Return what a table calls a utility: "0/1", "weighted", or "given" of a matrix that is another."""
    if isinstance(utility, str):
        return utility
    return "0/1" if np.array_equal(gains, np.eye(len(gains))) else "given"


def decide(chances: Floats, utility: Floats) -> npt.NDArray[np.int64]:
    """Return the guess with the largest expected utility for each row of ``chances`` (n, k); ties go to the first."""
    return np.asarray((chances @ utility.T).argmax(axis=1), np.int64)


class Expected(NamedTuple):
    """Expected utilities of each row of eta, (n,): ``with_messages`` (EAU) and ``without`` (L-EAU)."""

    with_messages: Floats
    without: Floats

    @property
    def advantage(self) -> Floats:
        """EAU - L-EAU, never below 0."""
        return np.maximum(self.with_messages - self.without, 0.0)


def by_enumeration(eta: Any, channel: Any, utility: Any = None) -> Expected:
    """Return the expected utilities of the best attack on a report with finitely many outcomes, exactly.

    ``eta`` (n, k): rows P(y | x); ``channel`` (k, m): P(outcome | label), a row a label; ``utility`` (k, k): u(guess,
    truth), None: 0/1.  Sums over outcomes of the largest expected utility.  Raises InputError for others.

    *Source:* Attacks 2023, section 4; for binary randomized response Unified 2023, Theorem 3.7.
    *Assumes:* the report is all that a view sees that depends on the label.
    """
    rows = checked(eta)
    k = rows.shape[1]
    law = np.asarray(channel, np.float64)
    if (
        law.ndim != 2
        or len(law) != k
        or not bool((law >= 0).all())
        or not np.allclose(law.sum(axis=1), 1, atol=1e-9)
    ):
        raise InputError(
            f"channel of shape {law.shape}: needs {k} rows of probabilities that sum to 1, one a label"
        )
    gains = checked_utility(utility, k)
    seen = np.zeros(len(rows))
    for outcome in range(law.shape[1]):
        seen += ((rows * law[:, outcome]) @ gains.T).max(axis=1)
    return Expected(seen, (rows @ gains.T).max(axis=1))


def integrated(expected: Expected, weights: Any = None) -> tuple[float, float, float]:
    """Return (EAU, L-EAU, advantage) over a known law of eta: the mean of rows with ``weights`` (None: equal ones).

    Raises InputError for weights below 0, all 0, or of another length.

    *Source:* Unified 2023, section 3: the expectations over features.
    """
    return (
        mean(expected.with_messages, weights),
        mean(expected.without, weights),
        mean(expected.advantage, weights),
    )


@dataclass(frozen=True, eq=False)
class Baseline:
    """The best guess without messages: ``guess`` (n,) of each user, and what it is worth.

    ``expected``: its expected utility where P(y | x) is known, None where it is measured.  ``regret``: what a better
    estimate of P(y | x) might add to it, at least 0; what it might add to an attack is not known.  ``rivals``: guesses
    (n,) of which one is the best, and ``guess`` was picked by other users' labels; empty where there is none but it.
    """

    guess: npt.NDArray[np.int64]
    expected: float | None = None
    regret: float = 0.0
    rivals: tuple[npt.NDArray[np.int64], ...] = ()


def measured(
    name: str,
    guess: npt.NDArray[np.int64],
    baseline: Baseline,
    y: npt.NDArray[np.int64],
    utility: Floats,
    *,
    confidence: float,
    source: str,
    groups: Groups | None = None,
    basis: Literal["measured", "lower"] = "measured",
) -> AttackRow:
    """Return the row of an attacker by simulation: her guesses against the true labels ``y`` (n,) of the victims.

    The advantage is measured on pairs: each user's utility of the guess less that of the baseline's guess, so that
    what is alike in both, as the labels' chance, cancels.  ``groups``: as in ``intervals.of_mean``.  Shares of
    independent users have Clopper-Pearson intervals, all else those of means over groups.  No message is in the
    baseline, so its users are independent.  Where P(y | x) is known, the baseline is exact, and the utility is the
    baseline plus the advantage.  Otherwise intervals are of the advantage over the best of the baseline's rivals, and
    of that one's utility, whichever it is.  The regret of the baseline lowers the lower end of the advantage and of the
    ratio, and raises the baseline's upper end.  ``least`` is of the same at ``SURE``.

    *Source:* Attacks 2023, section 3.2, measured; ``intervals``.
    *Assumes:* users of two groups do not depend on each other.
    """
    won, blind = utility[guess, y], utility[baseline.guess, y]
    unknown = intervals.UNKNOWN
    made = AttackRow(name, unknown, unknown, unknown, unknown, basis, source)
    if baseline.expected is not None and baseline.expected > 0:
        return _over_the_known(made, won, blind, baseline.expected, utility, confidence, groups)
    return _over_the_best(made, won, baseline, y, utility, confidence, groups)


def _over_the_known(
    row: AttackRow,
    won: Floats,
    blind: Floats,
    known: float,
    utility: Floats,
    confidence: float,
    groups: Groups | None,
) -> AttackRow:
    """Return the row with its figures, where the baseline is ``known`` exactly."""
    largest, gained = float(utility.max()), intervals.spread(won - blind, groups)

    def advantage(confidence: float) -> Interval:
        found = intervals.within(gained.interval(confidence, largest), -largest, largest)
        return intervals.within(found, -known, largest - known)

    found, least = advantage(confidence), advantage(SURE).lower
    ends = intervals.within(Interval(*(end + known for end in found)), 0.0, largest)
    return replace(
        row, utility=ends, baseline=intervals.exactly(known), advantage=found,
        ratio=Interval(*(end / known for end in ends)), least=Least(max(0.0, least + known), least),
    )  # fmt: skip


def _over_the_best(
    row: AttackRow,
    won: Floats,
    baseline: Baseline,
    y: npt.NDArray[np.int64],
    utility: Floats,
    confidence: float,
    groups: Groups | None,
) -> AttackRow:
    """Return the row with its figures, over the best of the baseline's rivals, around what it picked."""
    largest, blind = float(utility.max()), utility[baseline.guess, y]
    gained: list[Ends] = []
    without: list[Ends] = []
    times: list[Ends] = []
    for guess in baseline.rivals or (baseline.guess,):  # there may be many: no column of any is kept
        each = utility[guess, y]
        gained.append(partial(intervals.spread(won - each, groups).interval, largest=largest))
        without.append(_mean_ends(each, utility))
        times += [intervals.ratio_ends(won, each, largest, groups)] if each.any() else []

    def advantage(confidence: float) -> Interval:
        found = intervals.of_least(gained, confidence, float((won - blind).mean()))
        return intervals.shifted(intervals.within(found, -largest, largest), lower=baseline.regret)

    base = intervals.of_largest(without, confidence, float(blind.mean()))
    ratio = intervals.UNKNOWN
    if blind.any():
        ratio = intervals.of_least(times, confidence, float(won.mean() / blind.mean()))
    utilities = _mean_ends(won, utility, groups)
    return replace(
        row,
        utility=utilities(confidence),
        baseline=intervals.within(intervals.shifted(base, upper=baseline.regret), 0.0, largest),
        advantage=advantage(confidence),
        ratio=_regretted(ratio, base.value, baseline.regret),
        least=Least(utilities(SURE).lower, advantage(SURE).lower),
    )


def silent(row: AttackRow) -> AttackRow:
    """Return the row of an attacker whose view says nothing of labels: the best guess without messages, exactly.

    *Source:* her posterior is P(y | x), whatever is drawn.
    """
    least = None if row.least is None else row.least._replace(advantage=0.0)
    zero, one = intervals.exactly(0.0), intervals.exactly(1.0)
    return replace(row, utility=row.baseline, advantage=zero, ratio=one, least=least)


def over_any_baseline(row: AttackRow, utility: Floats) -> AttackRow:
    """Return the row of an attacker who may know more of P(y | x) than its baseline, as a model of messages may.

    Bounds are of the advantage over the best guess there can be, which is worth ``utility``'s maximum at most: so they
    are held against what she wins beyond that.
    """
    if row.least is None:
        return row
    return replace(row, least=row.least._replace(advantage=row.least.utility - float(utility.max())))


def by_law_of(name: str) -> str:
    """Return the name of the row of an attacker by the law of the reports."""
    return f"{name}, by its law"


def by_law(name: str, expected: Expected) -> AttackRow:
    """Return the row of the best attacker by the law of the reports, exactly."""
    with_messages, without, gained = integrated(expected)
    ratio = with_messages / without if without else float("nan")
    eau, base, advantage, times = map(intervals.exactly, (with_messages, without, gained, ratio))
    return AttackRow(
        name, eau, base, advantage, times, "exact", "Attacks 2023, section 4, summed over all reports"
    )


def refused(name: str, why: str) -> AttackRow:
    """Return the row of an attack that cannot be made with what a view contains."""
    unknown = intervals.UNKNOWN
    return AttackRow(name, unknown, unknown, unknown, unknown, "refused", "", why)


def _mean_ends(values: Floats, utility: Floats, groups: Groups | None = None) -> Ends:
    """Return the interval of a mean utility at any confidence: Clopper-Pearson's of a share of independent users."""
    if groups is None and bool(np.isin(utility, (0.0, 1.0)).all()):
        return partial(intervals.of_share, int(values.sum()), len(values))
    largest, found = float(utility.max()), intervals.spread(values, groups)
    return lambda confidence: intervals.within(found.interval(confidence, largest), 0.0, largest)


def _regretted(ratio: Interval, baseline: float, regret: float) -> Interval:
    return (
        ratio
        if not regret
        else Interval(ratio.lower * baseline / (baseline + regret), ratio.value, ratio.upper)
    )


class Violation(NamedTuple):
    """A row of a table whose advantage, or utility, lies above what a bound allows, beyond its interval."""

    row: AttackRow
    bound: Figure

    def __str__(self) -> str:
        of, found = _bounded(self.row, self.bound)
        return (
            f"{self.row.name}: {of} {found.value:.4g}, at least {found.lower:.4g}, is above {_limit(self.bound):.4g} "
            f"({self.bound.source})"
        )


def violations(found: LabelInference) -> list[Violation]:
    """Return every row whose advantage is above a proven bound that holds; none where all is well.

    Bounds of the bases "exact" and "upper" count, and those alone.  Intervals are those at half a false alarm in 1e6
    rows and bounds (``AttackRow.least``), the other half is for what bounds take from the data (``SURE``): a bound
    that is the exact value would otherwise be exceeded by chance once in forty tables.

    *Assumes:* labels independent of each other given P(y | x), as the bounds do.
    """
    return _above(found, PROVEN)


def exceeded_claims(found: LabelInference) -> list[Violation]:
    """Return the same of bounds on their authors' word, basis "claimed": then the theorem may be what is wrong.

    *Assumes:* as ``violations``.
    """
    return _above(found, ("claimed",))


def _above(found: LabelInference, bases: Sequence[str]) -> list[Violation]:
    return [
        Violation(row, bound)
        for row in found.rows
        if row.basis != "refused"
        for bound in found.bounds
        if bound.basis in bases and _concerns(bound, row)
        and _least(row, bound) > _limit(bound) + 1e-9
    ]  # fmt: skip


def _concerns(bound: Figure, row: AttackRow) -> bool:
    """Whether a bound holds and says something of a row; canaries are no users of the population."""
    if bound.quantity == EPSILON:
        return bound.holds and row.epsilon is not None
    whom = not of_canaries(row.name) or ANYBODY in bound.parameters
    return bound.holds and bound.quantity in (ADVANTAGE, UTILITY) and whom


def _limit(bound: Figure) -> float:
    """Return what a row's least is held against: of an epsilon, that at the delta at which the row's is sure."""
    return bound.parameters.get("sure", bound.value) if bound.quantity == EPSILON else bound.value


def _bounded(row: AttackRow, bound: Figure) -> tuple[str, Interval]:
    if bound.quantity == EPSILON:
        assert row.epsilon is not None
        return "implied epsilon", Interval(row.epsilon.sure, row.epsilon.value, math.inf)
    return ("advantage", row.advantage) if bound.quantity == ADVANTAGE else ("utility", row.utility)


def _least(row: AttackRow, bound: Figure) -> float:
    of, found = _bounded(row, bound)
    if row.least is None or bound.quantity == EPSILON:
        return found.lower
    return row.least.advantage if of == "advantage" else row.least.utility

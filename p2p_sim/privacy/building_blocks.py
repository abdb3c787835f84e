"""Privacy profiles built from probabilities, matrices, noise, and from other profiles.

*Assumes:* that a view is distributed as the arguments say, which is for the caller to show.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds.bound import real, whole
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws import shuffled_categories
from p2p_sim.privacy.laws.finite import Atoms, Nothing
from p2p_sim.privacy.laws.mixtures import Mixture, Scaled, Worst
from p2p_sim.privacy.laws.noise import DiscreteLaplace, Gaussian, Laplace
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import FAR, ShuffledBits
from p2p_sim.privacy.laws.shuffled_categories import (
    LARGEST_TABLE,
    Clones,
    Histogram,
    histograms,
    matrix_table_size,
)
from p2p_sim.privacy.profile import PrivacyProfile, worst_basis


def shuffled_response(users: int, epsilon0: float, labels: int = 2, *, colluders: int = 0) -> PrivacyProfile:
    """Return what the shuffled reports of randomized response show of one label.

    ``users``: at least 1.  ``epsilon0``: local budget, at least 0, nats.  ``labels``: 2 to 256.  ``colluders``: users
    who give their reports away, 0 to users - 1: what is left is the shuffle of the others.  Two labels: exact up to
    20,000 users; beyond, a value from a search with certified ends, basis "lower".  More labels: exact over all
    compositions while they fit in a table (21 users of 3 labels do); beyond, the privacy blanket, basis "upper".
    A local budget above 700 is answered by the local guarantee, basis "upper" ("exact" if it is infinite).  Raises
    InputError for parameters out of range.

    *Source:* exact by convolution; Balle, Bell, Gascon, Nissim 2019 (blanket).  *Assumes:* an honest shuffler.
    """
    n, kinds = whole("users", users, 1, 10**10), whole("labels", labels, 2, 256)
    t, local = whole("colluders", colluders, 0, n - 1), real("epsilon0", epsilon0, 0.0, infinite=True)
    if local == 0:
        return PrivacyProfile("shuffled reports", "exact", "no report depends on a label", (), "", Nothing())
    found = shuffled_categories.shuffled_response(n - t, local, kinds)
    return replace(found, assumes=(*found.assumes, f"{t} of {n} users give their reports away"))


def laplace(scale: float, sensitivity: float = 1.0) -> PrivacyProfile:
    """Return what a sum released with Laplace noise of scale ``scale`` > 0 shows of one label.

    ``sensitivity``: how far one label, replaced, moves the sum (not a mean), at least 0: 1 for a count of one label, 2
    in L1 for a histogram of labels.  Raises InputError for parameters out of range.

    *Source:* Dwork, McSherry, Nissim, Smith 2006; the hockey-stick divergence integrated.  *Assumes:* continuous noise.
    """
    return _noisy(
        Laplace(real("scale", scale, 0.0), real("sensitivity", sensitivity, 0.0)), "Dwork et al. 2006"
    )


def gaussian(sigma: float, sensitivity: float = 1.0) -> PrivacyProfile:
    """Return what a sum released with Gaussian noise of standard deviation ``sigma`` > 0 shows of one label.

    ``sensitivity``: how far one label, replaced, moves the sum (not a mean), at least 0: 1 for a count of one label,
    sqrt(2) in L2 for a histogram of labels.  Raises InputError for parameters out of range.

    *Source:* Balle and Wang 2018, Theorem 8.  *Assumes:* continuous noise.
    """
    law = Gaussian(real("sigma", sigma, 0.0), real("sensitivity", sensitivity, 0.0))
    return _noisy(law, "Balle and Wang 2018, Theorem 8")


def _noisy(law: Laplace | Gaussian, source: str) -> PrivacyProfile:
    return PrivacyProfile("noisy sum", "exact", source, ("continuous noise",), "", law)


Array = npt.NDArray[np.float64]
Numbers = Sequence[Fraction | float]

TOLERANCE = 1e-12
"""How far probabilities given as floats may be from a sum of 1; fractions must sum to exactly 1."""

_SUMMED = "the hockey-stick divergence, summed outcome by outcome"


def two_distributions(p: Numbers, q: Numbers, *, view: str = "learner") -> PrivacyProfile:
    """Return what a view with finitely many outcomes shows: ``p`` under one value of the label, ``q`` under another.

    Probabilities of the same outcomes in the same order, floats or fractions, at least 0; each of both sums to 1
    (fractions exactly, floats within ``TOLERANCE``).  An outcome that only one of both has is an infinite loss.
    Basis "exact", in compositions too.  Raises InputError for anything else.

    *Source:* the hockey-stick divergence, summed outcome by outcome.
    """
    first, second = _distribution("p", p), _distribution("q", q)
    if len(first) != len(second):
        raise InputError(f"p has {len(first)} outcomes, q has {len(second)}: give the same outcomes in both")
    return PrivacyProfile(view, "exact", _SUMMED, (), "", _atoms(first[None], second[None]))


def randomization_matrix(
    rows: Sequence[Numbers] | Array, *, labels: tuple[int, int] | None = None, view: str = "learner"
) -> PrivacyProfile:
    """Return what one report of a randomizer shows; ``rows[label][output]`` is P(output | label).

    At least two rows (labels), of one length; each is a distribution as in ``two_distributions``.  ``labels``: the two
    labels to be told apart; by default the worst pair, looked up among all.  Basis "exact".  Pairs that differ only in
    the names of outputs are one; if there is more than one, ``compose`` takes the worst pair of each run, an upper
    bound, unless ``same_case=True`` says that all runs are about the same two labels.  Raises InputError.

    *Source:* the hockey-stick divergence, summed outcome by outcome.
    """
    matrix = _matrix(rows)
    return PrivacyProfile(view, "exact", _SUMMED, (), "", _pairs(matrix, labels))


def shuffled(
    rows: Sequence[Numbers] | Array, users: int, *, view: str = "shuffled reports"
) -> PrivacyProfile:
    """Return what the shuffled reports of ``users`` >= 1 users show of one of them, in the worst case.

    ``rows``: of the randomizer, as in ``randomization_matrix``.  The worst case is over the victim's two labels and
    all labels of the others.  Basis "exact" where all cases fit in a table (of up to ``LARGEST_TABLE`` numbers), and
    for binary randomized response up to 20,000 users; beyond "upper", by e^-epsilon0 clones.  Without a finite
    local budget, or with one above 700 nats, the upper bound is what one report shows by itself.  Raises InputError.

    *Source:* convolution; Feldman, McMillan, Talwar 2021.  *Assumes:* an honest shuffler.
    """
    matrix, n = _matrix(rows), whole("users", users, 1, 10**10)
    assumes = ("the shuffler hides who sent what, and does not collude",)
    alone = _pairs(matrix, None)
    budget = alone.pure()
    if n == 1:
        return PrivacyProfile(view, "exact", _SUMMED, assumes, "", alone)
    if matrix_table_size(len(matrix), matrix.shape[1], n) <= LARGEST_TABLE:
        first, second = histograms(matrix, n)
        law: Law = Histogram(first, second, budget)
        return PrivacyProfile(view, "exact", "exact law of the histogram", assumes, "", law)
    alpha = _flip_probability(matrix)
    if alpha is not None and 0 < alpha < 0.5:
        bits = ShuffledBits(alpha, n)
        basis = "exact" if bits.covered else "lower"
        return PrivacyProfile(view, basis, "exact law of the number of ones", assumes, "", bits)
    if not 0 < budget <= FAR:
        return PrivacyProfile(view, "upper" if budget else "exact", "one report by itself", (), "", alone)
    return PrivacyProfile(
        view, "upper", "Feldman, McMillan, Talwar 2021: clones", assumes, "", Clones(n, budget)
    )


def seen_with_probability(profile: PrivacyProfile, probability: float) -> PrivacyProfile:
    """Return what is shown if the view of ``profile`` comes about with ``probability`` in [0, 1], and else nothing.

    The view can tell whether it did: a report that is lost or not asked for.  Basis of ``profile``.  This is not
    subsampling whose outcome is hidden: for that, ``sampled_unseen``.  Raises InputError.

    *Source:* delta is averaged over visible cases.
    """
    chance = real("probability", probability, 0.0, 1.0)
    if profile.law is None:
        return profile
    source = f"seen with probability {chance:g}: {profile.source}"
    return replace(profile, source=source, law=Scaled(chance, profile.law))


def sampled_unseen(
    p: Numbers, q: Numbers, absent: Numbers, probability: float, *, view: str = "learner"
) -> PrivacyProfile:
    """Return what is shown if the victim takes part with ``probability`` in [0, 1], and nobody sees whether she does.

    ``p``, ``q``: the distributions of the view if she takes part, under the two values of her label; ``absent``: if she
    does not.  All three are of the same outcomes, as in ``two_distributions``.  Neighbours differ in her label: she is
    sampled or not in both.  Basis "exact".  Raises InputError.

    *Source:* the pair probability * p + (1 - probability) * absent, and the same with q.
    """
    chance = Fraction(real("probability", probability, 0.0, 1.0))
    sides = [_distribution(name, side) for name, side in (("p", p), ("q", q), ("absent", absent))]
    if len({len(side) for side in sides}) > 1:
        raise InputError(f"p, q, absent have {[len(s) for s in sides]} outcomes: give the same in all")
    exact = [[Fraction(v) for v in side] for side in (p, q, absent)]
    first, second = (
        np.array([float(chance * a + (1 - chance) * b) for a, b in zip(side, exact[2], strict=True)])
        for side in exact[:2]
    )
    source = f"{_SUMMED}, with a label that counts with probability {float(chance):g}, unseen"
    return PrivacyProfile(view, "exact", source, (), "", _atoms(first[None], second[None]))


def visible_cases(
    cases: Sequence[tuple[float, PrivacyProfile]], *, view: str | None = None
) -> PrivacyProfile:
    """Return what is shown if one of several cases comes about by chance, and the view can tell which.

    ``cases``: (probability, profile); the probabilities do not depend on the label, and sum to at most 1: in the rest
    nothing is seen.  Basis: the least sure of the cases'; a refused case refuses all.  Raises InputError.

    *Source:* delta is averaged over visible cases.
    """
    weights = [real("probability", weight, 0.0, 1.0) for weight, _ in cases]
    profiles = [profile for _, profile in cases]
    if not weights or math.fsum(weights) > 1 + TOLERANCE:
        raise InputError(f"cases of probability {weights}: give at least one, and at most 1 in all")
    laws = _laws(profiles)
    law = None if laws is None else Mixture(tuple(zip(weights, laws, strict=True)))
    return _joined(profiles, law, view, "mean over visible cases")


def worst_of(profiles: Sequence[PrivacyProfile], *, view: str | None = None) -> PrivacyProfile:
    """Return the worst of several profiles at every epsilon: whichever of them is true, it holds.

    Basis: the least sure of theirs; a refused one refuses all.  Raises InputError for none.
    """
    if not profiles:
        raise InputError("profiles = []: give at least one profile")
    laws = _laws(profiles)
    return _joined(profiles, None if laws is None else Worst(tuple(laws)), view, "the worst of several")


def sum_with_noise(noise: Numbers, steps: int = 1, *, view: str = "noisy sum") -> PrivacyProfile:
    """Return what a sum of whole numbers with noise from a finite table shows; a label moves it by at most ``steps``.

    ``noise``: probabilities of consecutive whole numbers, as in ``two_distributions``; ``steps`` from 1 on.  Every move
    from 1 to ``steps`` is looked at, since noise of any shape may hide a large one better.  Beyond the ends of the
    table losses are infinite.  Basis "exact".  Raises InputError.

    *Source:* the hockey-stick divergence, summed outcome by outcome.
    """
    table, most = _distribution("noise", noise), whole("steps", steps, 1, 10**4)
    first = np.tile(np.append(table, np.zeros(most)), (most, 1))
    second = np.stack([np.roll(first[0], move) for move in range(1, most + 1)])
    assumes = (f"one label moves the sum by a whole number of at most {most}",)
    return PrivacyProfile(view, "exact", _SUMMED, assumes, "", _atoms(first, second))


def discrete_laplace(scale: float, steps: int = 1, *, view: str = "noisy sum") -> PrivacyProfile:
    """Return what a sum of whole numbers shows with noise P(j) proportional to e^(-|j| / scale), j any whole number.

    ``scale`` > 0; ``steps``: the most that one label moves the sum, from 1 to 10,000; the pure epsilon is steps /
    scale, at most 700 nats.  Basis "exact", in compositions too: there are steps + 1 losses.  Raises InputError.

    *Source:* Ghosh, Roughgarden, Sundararajan 2009.  *Assumes:* noise whose tails are not cut.
    """
    width, most = real("scale", scale, 0.0), whole("steps", steps, 1, 10**4)
    if width == 0 or most / width > FAR:
        raise InputError(f"scale = {scale!r}: the pure epsilon, {most} / scale, must be at most {FAR:g} nats")
    law = DiscreteLaplace(most / width, most)
    source = "Ghosh, Roughgarden, Sundararajan 2009; its losses, listed"
    assumes = (f"one label moves the sum by at most {most}", "noise whose tails are not cut")
    return PrivacyProfile(view, "exact", source, assumes, "", law)


def local_response(epsilon0: float, labels: int = 2, *, view: str = "learner") -> PrivacyProfile:
    """Return what one label, said by randomized response with local budget ``epsilon0`` >= 0 (nats), shows.

    ``labels``: 2 to 256.  Basis "exact".  Raises InputError.  *Source:* Warner 1965; Kairouz, Oh, Viswanath 2014.
    """
    law = LocalResponse(real("epsilon0", epsilon0, 0.0, infinite=True), whole("labels", labels, 2, 256))
    return PrivacyProfile(view, "exact", "Warner 1965; Kairouz, Oh, Viswanath 2014", (), "", law)


def _distribution(name: str, values: Any) -> Array:
    """Return probabilities as floats; raises InputError unless they are a distribution."""
    given = list(values) if isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, str) else []
    try:
        numbers = [v if isinstance(v, (Fraction, int)) else float(v) for v in given]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(0 <= v <= 1 + TOLERANCE for v in numbers):
        raise InputError(f"{name} = {values!r}: give a list of at least one probability, each from 0 to 1")
    exact = all(isinstance(v, (Fraction, int)) for v in numbers)
    total = sum((Fraction(v) for v in numbers), Fraction(0))
    if (exact and total != 1) or abs(total - 1) > TOLERANCE:
        wanted = "exactly 1" if exact else f"1 within {TOLERANCE:g}; divide each by their sum"
        raise InputError(f"{name}: {len(numbers)} probabilities sum to {float(total)!r}, must be {wanted}")
    return np.array([float(v) for v in numbers])


def _matrix(rows: Any) -> Array:
    given = list(rows) if isinstance(rows, (Sequence, np.ndarray)) and not isinstance(rows, str) else []
    found = [_distribution(f"row {i}", row) for i, row in enumerate(given)]
    if len(found) < 2 or len({len(row) for row in found}) > 1:
        raise InputError(
            f"rows of lengths {[len(row) for row in found]}: give one a label, two at least, of one length"
        )
    return np.stack(found)


def _pairs(matrix: Array, labels: tuple[int, int] | None) -> Atoms:
    """Return the pairs of rows, without those that only differ in the names of outputs."""
    known = range(len(matrix))
    if labels is not None and (len(set(labels)) != 2 or not set(labels) <= set(known)):
        raise InputError(f"labels = {labels!r}: give two different ones from 0 to {len(matrix) - 1}, or None")
    pairs = [labels] if labels is not None else itertools.combinations(known, 2)
    found = {}
    for one, two in pairs:
        first, second = matrix[one], matrix[two]
        order = np.lexsort((second, first))
        found[(first[order] + 0.0).tobytes() + (second[order] + 0.0).tobytes()] = first[order], second[order]
    first, second = (np.stack(side) for side in zip(*found.values(), strict=True))
    return _atoms(first, second)


def _atoms(first: Array, second: Array) -> Atoms:
    keep = ((first > 0) | (second > 0)).any(axis=0)  # outcomes that never come
    return Atoms(first[:, keep], second[:, keep])


def _flip_probability(matrix: Array) -> float | None:
    """Return the flip probability of binary randomized response, None for other randomizers."""
    if matrix.shape != (2, 2) or not np.array_equal(matrix, matrix[::-1, ::-1]):
        return None
    return float(matrix[0].min())


def _laws(profiles: Sequence[PrivacyProfile]) -> list[Law] | None:
    laws = [profile.law for profile in profiles if profile.law is not None]
    return laws if len(laws) == len(profiles) else None


def _joined(
    profiles: Sequence[PrivacyProfile], law: Law | None, view: str | None, how: str
) -> PrivacyProfile:
    """Return the profile of a law made of those of several profiles, with the least sure basis of them."""
    refused = next((profile for profile in profiles if profile.law is None), None)
    if refused is not None:
        return refused
    names, basis = list(dict.fromkeys(p.view for p in profiles)), worst_basis(profiles)
    sources = "; ".join(dict.fromkeys(p.source for p in profiles))
    assumes = tuple(dict.fromkeys(note for p in profiles for note in p.assumes))
    fixed = any(profile.one_composition for profile in profiles)
    return PrivacyProfile(view or " or ".join(names), basis, f"{how}: {sources}", assumes, "", law, fixed)

"""Epsilon of PATE: of all noisy histograms exactly, and so an upper bound for the answers and the student.

``noise`` is everywhere in votes, on each count of a histogram: the standard deviation of Gaussian noise, or the scale b
of discrete Laplace noise, P(j) proportional to e^(-|j| / b).
"""

from __future__ import annotations

import math
from dataclasses import replace

from p2p_sim.core import seeds
from p2p_sim.core.argument_checks import check_range, check_whole
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.exact import LAPLACE_LIMIT
from p2p_sim.privacy.building_blocks import discrete_laplace, gaussian, local_response
from p2p_sim.privacy.calibrate import calibrate_noise
from p2p_sim.privacy.composition.compose import composed
from p2p_sim.privacy.profile import PrivacyProfile

FRESH = "noise of its own in every fit, from a fresh seed that nobody keeps"

GIVEN = (
    "the seed that was given is secret, random (secrets.randbits(64)) and of this fit alone: another with the same "
    "seed has the same noise, and their difference has none"
)

GUESSABLE = f"{GIVEN}; it is a small number, which can be guessed: good for a simulation, not for a release"

CLASSES = "the classes, taken from the labels, are public: a rare label shows by its presence; give classes"

GAUSSIAN, LAPLACE = "gaussian", "laplace"
KINDS = (GAUSSIAN, LAPLACE)

HISTOGRAMS, ANSWERS = "histograms", "answers"
RELEASED = {HISTOGRAMS: "noisy histograms", ANSWERS: "answers and student"}
"""What is seen, and its name as a view."""

LEAST = {GAUSSIAN: 1e-6, LAPLACE: 0.05}
"""The least noise but 0: less Laplace noise is hardly ever drawn, since chances below 2^-64 are cut."""

MOST = {GAUSSIAN: 1e9, LAPLACE: float(LAPLACE_LIMIT)}

MAX_EPSILON = 100.0
"""The largest epsilon that noise is calibrated to."""

MOST_MEMBERS = 10_000

MOST_QUERIES = 500_000_000
"""Of two counts each; so many are composed."""

FARTHEST = {GAUSSIAN: 5.0, LAPLACE: 25.0}
"""How far votes may move, over the noise.  Beyond it drawn noise, whose tails are cut, shows too often which votes
there were for the law of noise that is not cut to say anything: epsilon is infinite."""

_ASSUMES = (
    "queries are fixed in advance, and no label decides which rows they are of",
    "teachers have disjoint users, and no label decides whose",
)
_SOURCE = {
    GAUSSIAN: "GNMax (Papernot et al. 2018): all histograms are one Gaussian; Balle and Wang 2018, Theorem 8",
    LAPLACE: "LNMax (Papernot et al. 2017): two counts a query, whose losses add up",
}


def check_noise(noise: float, kind: str) -> None:
    """Check noise, 0 or as much as can be drawn, and its kind; raises InputError."""
    if kind not in KINDS:
        raise InputError(f"kind = {kind!r}: must be {GAUSSIAN!r} or {LAPLACE!r}")
    check_range("noise", noise, 0, MOST[kind])
    if 0 < noise < LEAST[kind]:
        raise InputError(
            f"noise = {noise!r}: less {kind} noise than {LEAST[kind]:g} votes hides nothing; give 0 or more than that"
        )


def profile(
    noise: float, queries: int, kind: str = GAUSSIAN, *, members: int = 1, released: str = ANSWERS
) -> PrivacyProfile:
    """Return what ``queries`` answers of PATE show of one label, or of ``members`` labels that change together.

    ``noise``: of the kind, "gaussian" or "laplace", see above; 0: everything is shown, epsilon is infinite; so it is of
    noise below ``members`` / 5 (Gaussian) or / 25 (Laplace), whose cut tails count.  ``queries``: 1 to 500,000,000,
    fixed in advance.  ``members``: 1 to 10,000; of no more than there are teachers.
    ``released``: "histograms", all noisy ones: exact (with Laplace noise as long as the losses of all queries can be
    listed), attained by a teacher whose vote another label changes in every query; "answers": the labels made of them,
    and the student: the same figures as an upper bound.  Raises InputError
    for arguments out of range.

    A label is read by one teacher, whose vote moves from one count to another.  So m labels move two counts of each
    query by at most m.  Moved counts with Gaussian noise are one Gaussian, moved by m sqrt(2 queries).  With discrete
    Laplace noise they are 2 ``queries`` counts, each moved by m; spread over more counts they show less.

    *Source:* Papernot et al. 2017 (Laplace noise) and 2018 (Gaussian noise), independent of the data.
    *Assumes:* disjoint teachers and queries chosen without labels; exactly Gaussian noise; discrete Laplace noise whose
    tails are not cut.  Noise that is drawn is cut, at 8.29 standard deviations or chances of 2^-64: ``assumes`` says by
    how much delta may be larger for it.  So delta = 0 of Laplace noise holds up to 1e-14 a count where the noise is at
    least a twelfth of ``members``.
    """
    check_noise(noise, kind)
    check_whole("queries", queries, 1, MOST_QUERIES)
    check_whole("members", members, 1, MOST_MEMBERS)
    noise, queries, members = float(noise), int(queries), int(members)
    if released not in RELEASED:
        raise InputError(
            f"released = {released!r}: must be one of {', '.join(map(repr, RELEASED))}{near(str(released), RELEASED)}"
        )
    hidden = members <= FARTHEST[kind] * noise
    if not hidden:
        found = local_response(math.inf)
    elif kind == GAUSSIAN:
        found = gaussian(noise, math.sqrt(2 * queries) * members)
    else:
        found = composed(discrete_laplace(noise, members), 2 * queries)
    source = _SOURCE[kind] if hidden else "too little noise" if noise else "no noise"
    own: tuple[str, ...] = ("continuous noise",) if kind == GAUSSIAN else ()
    if hidden:
        more = 2 * queries * unseen(noise, kind, members)
        own += (f"noise whose tails are not cut: those drawn are, and delta may be {more:.2g} larger for it",)
    basis = found.basis if released == HISTOGRAMS and (hidden or not noise) else "upper"
    return replace(
        found,
        view=RELEASED[released],
        basis=basis,
        source=source,
        assumes=(*_ASSUMES, *own),
        members=members,
    )


def unseen(noise: float, kind: str, members: int) -> float:
    """Return the chance, at most, that a count moved by ``members`` is where one that is not moved cannot be.

    Gaussian noise that is drawn ends where half a part in 2^53 remains (see ``keyed_noise``), Laplace noise where less
    than one part in 2^64 does.
    """
    from scipy.special import ndtr, ndtri

    if kind == GAUSSIAN:
        return float(ndtr(members / noise + ndtri(2.0**-54)))
    return math.exp(members / noise) * 2.0**-64


def calibrate(epsilon: float, delta: float, queries: int, kind: str = GAUSSIAN, *, members: int = 1) -> float:
    """Return the least noise, to 1e-9 of itself, with which ``queries`` answers keep ``epsilon`` at ``delta``.

    ``epsilon``: in (0, 100], in nats.  ``delta``: in (0, 1); 0 for Laplace noise alone.  The rest as for ``profile``;
    never less noise than that with which its epsilon is finite.
    Raises InputError for arguments out of range, and where the noise would be too large to be drawn.
    """
    check_range("epsilon", epsilon, 0, MAX_EPSILON, open_low=True)
    profile(0, queries, kind, members=members)
    queries, members = int(queries), int(members)

    def mechanism(scale: float, moved: float) -> PrivacyProfile:
        if kind == GAUSSIAN:
            return gaussian(scale, moved)
        return composed(discrete_laplace(scale, members), 2 * queries)

    moved = float(members) * (math.sqrt(2 * queries) if kind == GAUSSIAN else 1.0)
    found = calibrate_noise(mechanism, epsilon=epsilon, delta=delta, sensitivity=moved).scale
    if found > MOST[kind]:
        raise InputError(
            f"epsilon = {epsilon!r}: {queries} queries would need {kind} noise of {found:.4g} votes, and at most "
            f"{MOST[kind]:g} can be drawn; ask fewer queries, or allow more"
        )
    return max(found, LEAST[kind], members / FARTHEST[kind])


def assumed_of_seed(seed: int | None) -> str:
    """Return what is assumed of a seed that was given, or of the fresh one of None."""
    if seed is None:
        return FRESH
    return GUESSABLE if seeds.guessable(int(seed), seeds.GIVEN) else GIVEN

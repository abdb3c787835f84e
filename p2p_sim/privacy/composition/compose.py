"""Composition of several runs on the same labels into one privacy profile.

Runs of one seed draw the same random words, and do not add up: a user whom one run shows lying at a small probability
lies in every run at a larger one, and two answers that differ say both her label and that she lied.

*Source:* ``docs/laws.md``, "Shared coins", for runs of one seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.composition.composed_law import one_with_cases, together
from p2p_sim.privacy.composition.same_case import listed_cases
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.profile import PrivacyProfile, worst_basis

MOST = 10**9
"""Largest number of runs of one part."""

_SOURCE = "privacy losses of independent runs add up"
_SAME = "all runs read the same labels, each with its own randomness; the next protocol may depend on earlier views"
_SAME_CASE = "the victim's cluster has the same users in every run, and the same users collude"
_ONE_CASE = "the worst case, the same in every run"
_EACH_CASE = "the worst case of each run, as no case is composed by itself"
_SAME_COINS = "all runs read the same labels and draw the same random words"
_ONE_RUN = "the runs of a part are of one protocol with the same parameters, so they send the same messages"
_ONE_WORD = "in every run a user lies where the same random word lies below the run's probability of a lie"
Part = PrivacyProfile | tuple[PrivacyProfile, int]


@dataclass(frozen=True)
class LocalBudget:
    """What a local randomizer promises for one user's report by itself: ``epsilon`` in nats, >= 0.

    It is no guarantee of a view: local budgets add up with each other (runs of one user), never with a profile.
    """

    epsilon: float

    def __post_init__(self) -> None:
        value = self.epsilon
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value >= 0:
            raise InputError(f"local epsilon = {value!r}: must be a number, at least 0 (nats)")

    def __add__(self, other: Any) -> LocalBudget:
        """Return the budget of two reports about one label (basic composition); TypeError for anything else."""
        if isinstance(other, LocalBudget):
            return LocalBudget(self.epsilon + other.epsilon)
        raise TypeError(_mixed(self, other))

    __radd__ = __add__


def composed(profile: PrivacyProfile, times: int, **options: Any) -> PrivacyProfile:
    """Return what ``times`` runs show together, 0 to 10^9; see ``compose``."""
    return compose([(profile, times)], **options)


def repeated(profile: PrivacyProfile, times: int) -> PrivacyProfile:
    """Return what ``times`` >= 1 runs on the same labels show, each with fresh coins; refused if that is not known.

    The runs have the same clusters too, so one case holds in all of them.  The worst one is searched for if the cases
    are few and list their outcomes.
    """
    if times == 1 or profile.law is None:
        return profile
    listed = listed_cases(profile.law)
    try:
        together = composed(profile, times, same_case=listed)
    except InputError as error:
        return PrivacyProfile.refused(profile.view, str(error))
    if listed or together.basis != "upper" or profile.law.one_pair() is profile.law:
        return together
    return replace(together, source=f"{together.source}; {_EACH_CASE}")


def check_times(times: Any) -> None:
    """Check a number of runs, 1 to 10^9; raises InputError."""
    if isinstance(times, bool) or not isinstance(times, (int, np.integer)) or not 1 <= times <= MOST:
        raise InputError(f"times = {times!r}: must be a whole number from 1 to {MOST:,}")


def compose(
    parts: Sequence[Part],
    *,
    view: str | None = None,
    method: Literal["auto", "basic"] = "auto",
    same_case: bool = False,
    coins: Literal["independent", "shared"] = "independent",
) -> PrivacyProfile:
    """Return what one party learns of one label from several runs on the same labels.

    ``parts``: profiles, or (profile, times) with 0 <= times <= 10^9.  ``view``: a name of the joint view; needed
    where the parts' views differ (whoever holds them all).  ``same_case``: where a law is the worst of several cases
    (clusters, pairs of labels, compositions of up to 40 users without colluders, which list their outcomes) and all
    parts are of that law, the worst case is the same in every run, as it is where the victim's cluster has the same
    users; by default any case may be the worst in each run, an upper bound.  ``coins``: "shared" for runs of one seed,
    whose users draw the same words: the ``times`` of a part are one run, randomized responses of one protocol have a
    law, and anything else is refused.

    Basis "exact": Gaussians; Laplace noise, alone, with one other scale, or beside a Gaussian; finitely many outcomes
    counted by types or on a lattice, also beside one of these (brackets hold rounding and cut tails).  Otherwise
    "upper": the value is a certified upper end, and the brackets are certified on both sides.  Losses then lie on a
    grid, rounded up and down, which is refined until the bracket of epsilon(1e-6) is about 1e-4 wide.  Laws without
    outcomes (tails, worst cases) are dominated by a pair that has some; their lower end is only what one run, or the
    other parts, show.  "basic" adds epsilons and deltas: quicker and far looser.  A "claimed"
    part makes the result "claimed".  A "lower" part whose upper end holds for every case (peer-to-peer reports, whose
    worst composition is searched for) counts by that end: the result is "upper".

    Raises InputError for what is no profile (TypeError for a local budget), bad times, views that differ, or any other
    part whose basis is "lower" or "measured".  A refused part makes the result refused.
    *Source:* convolution of privacy losses (Sommer et al. 2019), see ``docs/laws.md``, "Composition", for the proof.
    *Assumes:* the same victim in all parts, independent randomness; protocols may be chosen adaptively.
    """
    if method not in ("auto", "basic"):
        raise InputError(f"method = {method!r}: must be 'auto' or 'basic'")
    if coins not in ("independent", "shared"):
        raise InputError(f"coins = {coins!r}: must be 'independent' or 'shared'")
    pairs = _checked(parts)
    name = _name([profile for profile, _ in pairs], view)
    for profile, _ in pairs:
        if profile.law is None:
            return PrivacyProfile.refused(name, f"a part has no law: view {profile.view!r}: {profile.why}")
    live = [(profile, n) for profile, n in pairs if n > 0]
    if coins == "shared" and live:
        return _shared([profile for profile, _ in live], name)
    laws = [(p.law, n) for p, n in live if p.law is not None]
    law, exact = together(laws, method, same_case)
    apart = same_case and one_with_cases(laws)
    bases = {profile.basis for profile, _ in live}
    basis = "claimed" if "claimed" in bases else "exact" if exact and bases <= {"exact"} else "upper"
    if exact and "lower" in bases:  # one run as it is: the value is still that of the cases looked at
        basis = "lower"
    assumes = tuple(dict.fromkeys([a for profile, _ in live for a in profile.assumes] + [_SAME]))
    sources = "; ".join(dict.fromkeys(f"{n} x {profile.source}" for profile, n in live)) or "no run"
    if apart or (same_case and not exact):
        sources += f"; {_ONE_CASE if apart else _EACH_CASE}"
    assumes += (_SAME_CASE,) if apart else ()
    fixed = any(profile.one_composition for profile, _ in live)
    return PrivacyProfile(name, basis, f"{_SOURCE}: {sources}", assumes, "", law, fixed)


def _shared(profiles: list[PrivacyProfile], name: str) -> PrivacyProfile:
    """Return what runs show whose users draw the same words."""
    found = shared_law(profiles)
    if isinstance(found, str):
        return PrivacyProfile.refused(name, found)
    law, shared = found
    assumes = dict.fromkeys([a for profile in profiles for a in profile.assumes] + [_SAME_COINS, shared])
    sources = "; ".join(dict.fromkeys(profile.source for profile in profiles))
    fixed = any(profile.one_composition for profile in profiles)
    return PrivacyProfile(
        name, worst_basis(profiles), f"runs that share their coins: {sources}", tuple(assumes), "", law, fixed
    )


def _mixed(local: Any, other: Any) -> str:
    named = f"the guarantee of view {other.view!r}" if isinstance(other, PrivacyProfile) else repr(other)
    return (
        f"{local!r} is the budget of a local randomizer, {named} is not: they don't add up; "
        "compose profiles of views"
    )


def _checked(parts: Any) -> list[tuple[PrivacyProfile, int]]:
    if isinstance(parts, (PrivacyProfile, LocalBudget)) or not isinstance(parts, Sequence):
        raise InputError(f"parts = {parts!r}: give a list of profiles or of (profile, times)")
    pairs: list[tuple[PrivacyProfile, int]] = []
    for part in parts:
        profile, count = part if isinstance(part, tuple) and len(part) == 2 else (part, 1)
        if isinstance(profile, LocalBudget):
            others = [p for p in parts if isinstance(p, PrivacyProfile)]
            raise TypeError(_mixed(profile, others[0] if others else "a view's guarantee"))
        if not isinstance(profile, PrivacyProfile):
            raise InputError(f"part = {part!r}: give a PrivacyProfile or (PrivacyProfile, times)")
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not 0 <= count <= MOST:
            raise InputError(f"times = {count!r}: must be a whole number from 0 to {MOST}")
        upper = (
            profile.basis == "lower" and profile.law is not None and profile.law.cases_covered == "searched"
        )
        if profile.basis in ("lower", "measured") and not upper:
            raise InputError(
                f"part of view {profile.view!r} has basis {profile.basis!r}: only exact, upper and claimed profiles,"
                " and those whose upper end holds for every case, compose to a guarantee"
            )
        pairs.append((profile, int(count)))
    if not pairs:
        raise InputError("parts = []: give at least one profile")
    return pairs


def _name(profiles: list[PrivacyProfile], view: str | None) -> str:
    names = list(dict.fromkeys(profile.view for profile in profiles))
    if view is None and len(names) > 1:
        raise InputError(
            f"views {names}: these differ; name who holds them all, for instance view={'+'.join(names)!r}"
        )
    return names[0] if view is None else view


def shared_law(profiles: list[PrivacyProfile]) -> tuple[Law, str] | str:
    """Return the law of runs that share their coins, and what it assumes; or why none is known.

    ``profiles``: at least one, each with a law.
    """
    laws = [profile.law for profile in profiles]
    if len(laws) == 1 and laws[0] is not None:
        return laws[0], _ONE_RUN
    responses = [response for law in laws if law is not None and (response := law.response()) is not None]
    alike = {(labels, profile.source) for (_, labels), profile in zip(responses, profiles, strict=False)}
    if len(responses) < len(laws) or len(alike) > 1:
        return (
            "runs that share their coins have a known law only where they are one part, (profile, times), or where "
            "each is one randomized response of one protocol over the same labels; give the runs different seeds "
            "(p2p-sim run without --seed)"
        )
    return one_word([budget for budget, _ in responses], responses[0][1]), _ONE_WORD


def one_word(budgets: list[float], labels: int) -> Law:
    """Return the law of answers of one user to several randomized responses that compare one random word.

    ``budgets``: their local epsilons, at least one, over ``labels`` values.  An answer that differs from another gives
    the label away: that is so with probability (largest - smallest probability of a lie), at every epsilon.
    """
    rarest, commonest = LocalResponse(max(budgets), labels), LocalResponse(min(budgets), labels)
    lie, truth, apart = (1 - rarest.keep) / (labels - 1), commonest.keep, rarest.keep - commonest.keep
    # label 0 in all runs; label 1 in all; a third one in all; 0 first and a lie then; 1 first and a lie then
    p = [truth, lie, (labels - 2) * lie, apart, 0.0]
    q = [lie, truth, (labels - 2) * lie, 0.0, apart]
    return Atoms(np.array([p]), np.array([q]))

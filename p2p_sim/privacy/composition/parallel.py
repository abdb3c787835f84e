"""``parallel``: what a view learns of one label where disjoint groups of users take part in different mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.laws.mixtures import Worst
from p2p_sim.privacy.profile import PrivacyProfile, worst_basis

DISJOINT = (
    "each user takes part in one of {} mechanisms, the same in every run, which depends on nobody's label"
)


def parallel(profiles: Sequence[PrivacyProfile]) -> PrivacyProfile:
    """Return what a view learns of one label, if every user takes part in one of several mechanisms: the worst of them.

    ``profiles``: of one view of each mechanism, at least one.  A mechanism may be chosen by what the view has seen of
    those before it, of other users; then its profile holds for every choice.  Which user is in which group depends on
    no label.  Budgets do not add up, as they do in ``compose``, where the same users take part in all.  The basis is
    that of the profiles: an exact one is of a user who is sure to be in the worst group.  A refused profile refuses
    all.  Raises InputError for no profile, for profiles of several views, for one that holds for one composition alone,
    and for labels of several users that change together, who may be in several groups: apply ``grouped`` to the result.

    *Source:* ``docs/laws.md``, "Disjoint users"; McSherry 2009, theorem 4.
    *Assumes:* users draw independently of each other, and whoever is in a group that is left out shows nothing.
    """
    parts = list(profiles)
    if not parts:
        raise InputError("profiles = []: give one profile for each group of users")
    views = list(dict.fromkeys(part.view for part in parts))
    if len(views) > 1:
        raise InputError(f"profiles of views {', '.join(views)}: give what one view learns of each group")
    refused = next((part for part in parts if part.law is None), None)
    if refused is not None:
        return refused
    if any(part.one_composition for part in parts):
        raise InputError(
            "a profile holds for one composition alone, and groups have their own: give that of the worst"
        )
    if any(part.members > 1 for part in parts):
        raise InputError(
            "a profile is of several labels that change together, whose users may be in several groups: give profiles "
            "of one label, and apply privacy.grouped to what comes out"
        )
    exact = [part.law for part in parts if part.basis == "exact"]
    # a bound that an exact profile reaches adds nothing
    open_ = [part for part in parts if part.basis != "upper" or part.law not in exact]
    laws = tuple(dict.fromkeys(part.law for part in open_ if part.law is not None))
    assumes = tuple(dict.fromkeys(text for part in parts for text in part.assumes))
    return replace(
        parts[0],
        basis=worst_basis(open_),
        source="; ".join(dict.fromkeys(part.source for part in parts)),
        assumes=(*assumes, DISJOINT.format(len(parts))) if len(parts) > 1 else assumes,
        law=laws[0] if len(laws) == 1 else Worst(laws),
    )

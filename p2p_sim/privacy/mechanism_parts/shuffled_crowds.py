"""Profiles of views that see the labels of a crowd without their owners, with and without faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.group_counts import WORK as WORK_OF_GROUPS
from p2p_sim.privacy.laws.group_counts import GroupCounts
from p2p_sim.privacy.laws.random_size_shuffle import Ceiling
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits, guarantee
from p2p_sim.privacy.laws.shuffled_categories import LARGEST_TABLE, one_composition, shuffled_response
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import LawOf, P
from p2p_sim.privacy.setting import Setting

MOST_GROUPS = 12
"""Groups of crowd sizes, at most."""

WORK = 4_000
"""Users of all groups together, beyond which there are fewer groups."""

NOT_THERE = "whose reports come does not depend on labels, and is told"


def of_crowd(
    setting: Setting, crowd: int, budget: float, k: int, about: str, assumes: tuple[str, ...] = ()
) -> PrivacyProfile:
    """Return what the shuffled labels of ``crowd`` users show, some of whom look.

    ``budget``: local epsilon, above 0.  ``k``: labels.  ``about``: what is seen.
    """
    c = setting.view.user_count
    if k == 2:
        law = ShuffledBits.of(crowd, budget, colluders=c, composition=setting.composition)
        return bits(setting, law, about, assumes)
    return _categories(setting, crowd - c, budget, k, about, assumes)


def shuffled_group(
    one: PrivacyProfile, honest: int, budget: float, members: int, k: int = 2
) -> PrivacyProfile | None:
    """Return what the shuffled bits of ``honest`` users show of ``members`` of their labels; None for large crowds.

    ``one``: the profile of one label.  ``budget``: local epsilon, above 0.  ``k``: labels; None for more than two.
    """
    if k > 2 or guarantee(budget) is not None:
        return None
    law = GroupCounts(ShuffledBits.of(1, budget).alpha, honest, members)
    return replace(one, law=law) if law.work <= WORK_OF_GROUPS else None


def exact_profile(setting: Setting, law: Law, about: str) -> PrivacyProfile:
    """Return the profile of a view with an exact law."""
    assumes = ("one run", "users randomize once")
    return PrivacyProfile(setting.text, "exact", about, assumes, "", law)


def bits(setting: Setting, law: ShuffledBits, about: str, assumes: tuple[str, ...]) -> PrivacyProfile:
    """Return the profile of a view of shuffled bits."""
    if (far := guarantee(law.local)) is not None:
        return replace(exact_profile(setting, far[0], "the local guarantee"), basis=far[1])
    found = exact_profile(setting, law, f"exact law of the number of ones: {about}")
    return replace(found, basis="exact" if law.covered else "lower", assumes=(*found.assumes, *assumes))


def _categories(
    setting: Setting, honest: int, budget: float, k: int, about: str, assumes: tuple[str, ...]
) -> PrivacyProfile:
    """Return the profile for more than two labels; at one composition, labels 0 and 1 are hers and the others'."""
    if setting.real:
        return PrivacyProfile.refused(
            setting.text,
            f"composition = 'population': counts two labels, the protocol has {k}; ask for the worst",
        )
    if (far := guarantee(budget, k)) is not None:
        return replace(exact_profile(setting, far[0], "the local guarantee"), basis=far[1])
    known, ones = ("one run", "users randomize once", *assumes), setting.composition
    if ones is not None and honest**k <= LARGEST_TABLE:
        law, source = one_composition(honest, budget, k, ones), f"exact law of the histogram: {about}"
        pair = "her label and the others' are 0 or 1"
        return PrivacyProfile(setting.text, "exact", source, (*known, pair), "", law)
    found = shuffled_response(honest, budget, k)
    basis = found.basis if ones is None else "upper"  # over all compositions
    return replace(found, view=setting.text, basis=basis, source=f"{found.source}: {about}", assumes=known)


def among_others(law: LawOf[P], protocol: P, setting: Setting) -> Callable[[int], Law]:
    """Return a function: from the number of others, all honest, to the law of one label in their worst composition."""
    view = replace(setting.view, users=frozenset(), some_users=0)

    def of(others: int) -> Law:
        alone = replace(setting, view=view, size=others + 1, composition=None, real=False)
        found = law(protocol, alone)
        assert found.law is not None
        return Ceiling(found.law) if found.basis == "lower" else found.law

    return of


def groups_of(users: int) -> int:
    """Return into how many groups the sizes of a crowd are put."""
    return min(MOST_GROUPS, max(1, WORK // users))

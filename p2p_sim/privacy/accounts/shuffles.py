"""Shuffles: whoever cannot undo the permutation sees the labels of a crowd, everybody else the victim's own coin."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.privacy.accounts.setting import LEARNER, Setting, fits
from p2p_sim.privacy.laws.categories import LARGEST_TABLE, one_composition, shuffled_response
from p2p_sim.privacy.laws.combine import Nothing, Scaled
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffle import ShuffledBits, guarantee
from p2p_sim.privacy.profile import Law, PrivacyProfile
from p2p_sim.views import Coalition
from protocols import EncryptedShuffle, PeerPermutation


def chain(protocol: Any) -> frozenset[str]:
    """Return the servers whose keys and permutations it takes, all of them, to undo an encrypted shuffle."""
    return frozenset(protocol.roles()) - {USER, LEARNER} - set(protocol.idle_roles())


def encrypted_shuffle(protocol: Any, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: nothing without the learner, all with every shuffler, else the shuffled labels."""
    if setting.size is not None:
        fits(setting, setting.size)
    k, budget = protocol.labels, float(protocol.epsilon)
    if not protocol.randomizer.lying():
        budget = math.inf  # a lie is rarer than any random word: nobody lies
    if not setting.learner:
        return _told(setting, Nothing(), "every report is sealed for the learner")
    if budget == 0:
        return _told(setting, Nothing(), "no report depends on a label")
    if chain(protocol) <= setting.view.servers:
        local = LocalResponse(budget, k)
        return _told(setting, local, "Warner 1965: the shufflers tell the learner whose report is whose")
    about = "labels in a random order" + ("" if protocol.over == "cluster" else ", of everybody")
    assumes = ("a shuffler of the chain outside this view is honest", "a report handed in twice is refused")
    return of_crowd(protocol, setting, _crowd(setting), about, assumes)


def of_crowd(
    protocol: Any, setting: Setting, crowd: int, about: str, assumes: tuple[str, ...] = ()
) -> PrivacyProfile:
    """Return what the shuffled labels of ``crowd`` users show, some of whom look, for a budget above 0.

    ``protocol``: with ``epsilon``, ``labels`` and a ``randomizer``.  ``about``: what is seen.
    """
    k, c = protocol.labels, setting.view.user_count
    budget = float(protocol.epsilon) if protocol.randomizer.lying() else math.inf
    if k == 2:
        law = ShuffledBits.of(crowd, budget, colluders=c, composition=setting.composition)
        return _bits(setting, law, about, assumes)
    return _categories(setting, crowd - c, budget, k, about, assumes)


def peer_permutation(protocol: Any, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: a peer knows the permutation, the wire sees it, the learner alone does not."""
    view, n = setting.view, _crowd(setting)
    c, alpha = fits(setting, n), float(protocol.alpha)
    local = LocalResponse.flipping(alpha)
    if alpha == 0.5:
        return _told(setting, Nothing(), "no label depends on its owner's")
    if setting.deviating and c:
        return _told(setting, local, "who contributes last chooses the seed, and who gets the victim's label")
    if view.wire and not setting.encrypted:
        return _told(setting, local, "the victim's label, or the report of who got none, is seen on its way")
    if setting.learner and (view.wire or c):
        who = "traffic shows" if view.wire else "a member knows"
        return _told(setting, local, f"{who} whose label each report is")
    if setting.learner:
        assumes = ("SHAKE-256 of the secret seed is as good as random",)
        law = ShuffledBits(alpha, n, 0, setting.composition)
        return _bits(setting, law, "labels in a random order", assumes)
    if not c:
        return _told(setting, Nothing(), "who writes to whom does not depend on a label")
    about = "a member gets one label, whose she knows, and each other's is as likely"
    return _told(setting, Scaled(c / n, local), about)


def shuffled(protocol: Any, view: Coalition) -> bool:
    """Whether a view, to which the labels are shown, sees them shuffled."""
    if isinstance(protocol, EncryptedShuffle):
        return LEARNER in view.servers and not chain(protocol) <= view.servers
    return str(view) == LEARNER


def hides_worse_among_few(protocol: Any, view: Coalition, faulty: bool) -> bool:
    """Whether a view is proven to learn most in the smallest cluster: of one user more, it could be told the label.

    ``faulty``: whether users may be missing, which in a permutation is not the same as having one user less.
    """
    kinds = (EncryptedShuffle,) if faulty else (EncryptedShuffle, PeerPermutation)
    return isinstance(protocol, kinds) and shuffled(protocol, view)


def _crowd(setting: Setting) -> int:
    if setting.size is None:
        raise InputError("cluster_size = None: the law depends on it; give cluster_size or population")
    return setting.size


def _told(setting: Setting, law: Law, about: str) -> PrivacyProfile:
    assumes = ("one run", "users randomize once")
    return PrivacyProfile(setting.text, "exact", about, assumes, "", law)


def _bits(setting: Setting, law: ShuffledBits, about: str, assumes: tuple[str, ...]) -> PrivacyProfile:
    if (told := guarantee(law.local)) is not None:
        return replace(_told(setting, told[0], "the local guarantee"), basis=told[1])
    found = _told(setting, law, f"exact law of the number of ones: {about}")
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
        return replace(_told(setting, far[0], "the local guarantee"), basis=far[1])
    known, ones = ("one run", "users randomize once", *assumes), setting.composition
    if ones is not None and honest**k <= LARGEST_TABLE:
        law, source = one_composition(honest, budget, k, ones), f"exact law of the histogram: {about}"
        pair = "her label and the others' are 0 or 1"
        return PrivacyProfile(setting.text, "exact", source, (*known, pair), "", law)
    found = shuffled_response(honest, budget, k)
    basis = found.basis if ones is None else "upper"  # over all compositions
    return replace(found, view=setting.text, basis=basis, source=f"{found.source}: {about}", assumes=known)

"""Label proportions: exact counts hide nothing, noisy counts hide what their noise hides; who sees more, sees all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from p2p_sim.core.faults import Faults
from p2p_sim.network.bags import largest, smallest
from p2p_sim.privacy.accounts.arrivals import heard, missing, upper
from p2p_sim.privacy.accounts.setting import LawOf, Setting, fits
from p2p_sim.privacy.laws import shares
from p2p_sim.privacy.laws.combine import Atoms, Nothing, Scaled
from p2p_sim.privacy.profile import Law, PrivacyProfile
from protocols import LabelProportions, LaplaceLabelProportions, SecureAggregation

AGGREGATOR = "aggregator"

PAPER = "Unified 2023"
BLIND = "no message that this view can read depends on a label"
OWN_BAG = "a user is taken into her own bag only"
TOO_FINE = "the noise has too many steps for its law to be computed; give a smaller grid or a larger epsilon"


def label_proportions(_protocol: Any, setting: Setting) -> PrivacyProfile:
    """Return what a view learns of label proportions: the learner, the label, if she knows the others of the bag."""
    why = f"{PAPER}, section 2: the exact count of a bag gives a label away to whoever knows the others of the bag"
    return _trusted(setting, _everything(), why)


def laplace_label_proportions(protocol: Any, setting: Setting) -> PrivacyProfile:
    """Return what a view learns of noisy label proportions."""
    law = shares.DiscreteLaplace(float(protocol.epsilon), int(protocol.grid))
    return _trusted(setting, law, f"{PAPER}, section 6: discrete Laplace noise on the count of a bag")


def secure_aggregation(protocol: Any, setting: Setting) -> PrivacyProfile:
    """Return what a view learns of sums under secure aggregation, noisy or not, if everybody stays.

    Colluders who deviate may leave whenever they like; a server who deviates may do anything, see ``_open_to``.
    """
    n = protocol.bag_size if setting.size is None else setting.size
    bag = smallest(n, protocol.bag_size)
    c = min(fits(setting, n), bag - 1)
    if setting.servers_deviate and AGGREGATOR in setting.view.servers:
        return _open_to(protocol, setting, bag)
    found = _summed(protocol, setting, n, bag, bag - c)
    if not setting.deviating or not c:
        return replace(found, assumes=(*found.assumes, "everybody stays"))
    here = bag - c if _fed(protocol, bag, c) else least_together(protocol, setting, n, None)
    worse = _summed(protocol, setting, n, max(bag - c, min(bag, int(protocol.least))), here)
    same = (worse.law is None) == (found.law is None) and worse.assumes == found.assumes
    notes = ("everybody but colluders stays", OWN_BAG)
    return replace(worse, basis=worse.basis if same else "upper", assumes=(*worse.assumes, *notes))


def under_faults(law: LawOf, protocol: Any, setting: Setting, faults: Faults) -> PrivacyProfile:
    """Return the profile under faults, which do not depend on labels: whoever is missing shows less.

    Of noise in shares only those are sure that must be in whatever can be summed up.
    """
    if isinstance(protocol, SecureAggregation):
        if setting.servers_deviate and AGGREGATOR in setting.view.servers:
            return upper(law(protocol, setting), faults, "faults help nobody more than she can help herself")
        n = protocol.bag_size if setting.size is None else setting.size
        staying = min(smallest(n, protocol.bag_size), protocol.least)
        found = _summed(protocol, setting, n, staying, least_together(protocol, setting, n, faults))
        if setting.deviating and setting.view.user_count:
            found = replace(found, assumes=(*found.assumes, OWN_BAG))
    else:
        found = law(protocol, setting)
        if found.law is not None and setting.learner and not _masked(setting):
            found = replace(found, law=Scaled(heard(faults, 2, sealed=False), found.law))
    return upper(found, faults, "a label that does not arrive shows nothing, and none counts twice")


def least_together(protocol: Any, setting: Setting, users: int, faults: Faults | None) -> int:
    """Return of how many honest users together, at least, a view can tell the sum, whatever number from t on join.

    The learner is told sums of at least t users.  The aggregator knows which users have a mask in common; masks with
    colluders, and with users who are gone, whose keys are recovered, hide nothing from her.  So she can add up any set
    of honest users who stay and have no other masks, if each one's own mask can be recovered, by ``needed`` of her
    neighbours in that set or among the colluders.  What colluders do not send changes none of the masks between honest
    users, so all of this is true of colluders who deviate, too.  There is no such set but all who stay where

    - nobody colludes: a bag whose masks fall apart is refused;
    - no message is missing and all are neighbours: all of them have a mask in common;
    - no message is missing and one colludes: on a ring, the user before a gap has half of her neighbours on its
      other side, and needs one more;
    - all are neighbours and one colludes: two sets apart would need more than half of the bag each.
    """
    colluders, bag = setting.view.user_count, smallest(users, protocol.bag_size)
    all_who_stay = min(bag, int(protocol.least)) - colluders
    everybody = largest(users, protocol.bag_size) - 1 <= protocol.degree
    whole = faults is None or not missing(faults)
    alone = not _masked(setting) or not colluders
    if alone or (whole and everybody) or (colluders == 1 and (whole or everybody)):
        return all_who_stay
    return min(all_who_stay, _needed(protocol, bag, protocol.least) + 1 - colluders)


def _masked(setting: Setting) -> bool:
    """Whether a view has what the aggregator has."""
    return AGGREGATOR in setting.view.servers or (setting.view.wire and not setting.encrypted)


def _needed(protocol: Any, bag: int, staying: int) -> int:
    """Return how many neighbours recover a user's secrets, at least, in a bag of which so many join at least.

    Never fewer than ``protocol.fewest``: below t nobody shares.
    """
    joined = np.arange(min(staying, bag), bag + 1)
    return int(np.min(protocol.needed(joined, np.minimum(joined - 1, protocol.degree))))


def _fed(protocol: Any, bag: int, colluders: int) -> bool:
    """Whether honest users have neighbours enough to stay without colluders, and masks in common with all of them.

    Otherwise colluders who keep back their shares can choose whom they leave out of the sum.
    """
    neighbours = min(bag - 1, int(protocol.degree))
    return neighbours - colluders >= _needed(protocol, bag, bag)


def _open_to(protocol: Any, setting: Setting, bag: int) -> PrivacyProfile:
    """Return the profile of an aggregator who deviates: the victim's value is open to her but for its own noise.

    She names neighbours with keys for masks of her own making, which nobody signs, and asks for the seed of who stayed
    as the protocol says; all that leaves the victim depends on her label by that value.
    """
    if bag < protocol.least:
        why = f"users of a bag of {bag} hand in nothing, whatever the server says: at least {protocol.least} must stay"
        return PrivacyProfile(setting.text, "exact", why, (), "", Nothing())
    why = "the aggregator puts keys of her own in the place of neighbours' keys, and takes every mask off"
    if not protocol.noisy:
        return PrivacyProfile(setting.text, "exact", why, (), "", _everything())
    law = _noise(protocol, 1 / protocol.least)
    if law is None:
        return PrivacyProfile.refused(setting.text, TOO_FINE)
    assumes = (
        f"the victim's own share of the noise hides the label; {protocol.least} shares are the whole noise",
    )
    return PrivacyProfile(setting.text, "exact", f"{PAPER}, section 6; {why}", assumes, "", law)


def _summed(protocol: Any, setting: Setting, users: int, staying: int, together: int) -> PrivacyProfile:
    """Return the profile of sums in the smallest bag of a cluster, of which at least so many stay.

    ``together``: honest users, at least, of whom a view can tell the sum.
    """
    bag, least = smallest(users, protocol.bag_size), protocol.least
    colluders = min(fits(setting, users), bag - 1)
    masked = _masked(setting)
    assumes = ["masks, secret sharing and sealing hide what they should"]
    if bag < least:
        why = f"in a bag of {bag} nobody shares or reports: at least {least} must stay"
        return PrivacyProfile(setting.text, "exact", why, tuple(assumes), "", Nothing())
    if not (masked or setting.learner):
        return PrivacyProfile(setting.text, "exact", BLIND, tuple(assumes), "", Nothing())
    if not protocol.noisy:
        why = "the exact sum of a bag gives a label away to whoever knows the others of the bag"
        return PrivacyProfile(setting.text, "exact", why, tuple(assumes), "", _everything())
    opened = masked and colluders >= _needed(protocol, bag, staying)
    honest = 1 if opened else max(1, together)
    assumes.append(
        f"{honest} of {bag} users' shares of the noise hide the label; {least} shares are the whole noise"
    )
    basis, source = "exact", f"{PAPER}, section 6, with Polya shares of the noise under secure aggregation"
    if opened:
        # in a sparse bag it takes that so many of them are neighbours of the victim
        basis = "exact" if protocol.degree >= bag - 1 else "upper"
        source += "; so many colluders recover the victim's key, and her value is open but for her own share"
    law = _noise(protocol, honest / least)
    if law is None:
        return PrivacyProfile.refused(setting.text, TOO_FINE)
    return PrivacyProfile(setting.text, basis, source, tuple(assumes), "", law)


def _trusted(setting: Setting, told: Law, source: str) -> PrivacyProfile:
    """Return the profile of a view where the aggregator, and the wire towards her, see labels as they are."""
    if setting.size is not None:
        fits(setting, setting.size)
    view = setting.view
    assumes = ("each user reports once", "the learner may know all other labels of the bag")
    if AGGREGATOR in view.servers or (view.wire and not setting.encrypted):
        return PrivacyProfile(setting.text, "exact", "sees the label itself", assumes[:1], "", _everything())
    if setting.learner:
        return PrivacyProfile(setting.text, "exact", source, assumes, "", told)
    return PrivacyProfile(setting.text, "exact", BLIND, assumes[:1], "", Nothing())


def _everything() -> Law:
    """Return the law of a view that tells the labels apart for sure: delta is 1 at every epsilon."""
    return Atoms(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))


def _noise(protocol: Any, parts: float) -> Law | None:
    epsilon, steps = float(protocol.epsilon), int(protocol.grid)
    if parts == 1:
        return shares.DiscreteLaplace(epsilon, steps)
    return shares.NoiseShares(epsilon, steps, parts) if shares.fits(epsilon / steps, parts, steps) else None


LAWS: dict[type, LawOf] = {
    LabelProportions: label_proportions,
    LaplaceLabelProportions: laplace_label_proportions,
    SecureAggregation: secure_aggregation,
}

COVERED: dict[type, Any] = dict.fromkeys(LAWS, under_faults)
"""What covers faults."""

"""Secure aggregation: sums of bags by a server who sees masked labels; noise, if any, in shares of users.

*Source:* ``docs/laws.md``, "Secure aggregation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.label_kinds import BINARY
from p2p_sim.core.population import Population
from p2p_sim.network.bags import bag_numbers, largest, smallest
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing import common_statistics
from p2p_sim.privacy.auditing.statistic import Blind, Statistic
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws import noise
from p2p_sim.privacy.laws.finite import BLIND, Nothing
from p2p_sim.privacy.mechanism_parts.arrivals import missing, upper
from p2p_sim.privacy.mechanism_parts.bag_sums import (
    AGGREGATOR,
    AT_MOST_ONCE,
    PAPER,
    full_disclosure,
    sees_aggregator,
)
from p2p_sim.privacy.mechanism_parts.label_groups import Ints, clusters_of
from p2p_sim.privacy.mechanism_parts.label_reports import (
    check_nothing_missing,
    check_prior_rows,
    members,
    readable,
    rows_of,
)
from p2p_sim.privacy.mechanism_parts.likelihoods_from_sums import LogNoise, ReadSums, of_sums, without_noise
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LawOf, register
from p2p_sim.privacy.setting import LEARNER, Setting, fits
from p2p_sim.privacy.theorems import Promise, noise_on_the_count
from protocols import SecureAggregation

OWN_BAG = "a user is taken into her own bag only"
TOO_FINE = "the noise has too many steps for its law to be computed; give a smaller grid or a larger epsilon"


def secure_aggregation(protocol: SecureAggregation, setting: Setting) -> PrivacyProfile:
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
    here = bag - c if _fed(protocol, bag, c) else _least_in_any_bag(protocol, setting, None)
    worse = _summed(protocol, setting, n, max(bag - c, min(bag, int(protocol.least))), here)
    same = (worse.law is None) == (found.law is None) and worse.assumes == found.assumes
    notes = ("everybody but colluders stays", OWN_BAG)
    return replace(worse, basis=worse.basis if same else "upper", assumes=(*worse.assumes, *notes))


def under_faults(
    law: LawOf[SecureAggregation], protocol: SecureAggregation, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile under faults, which do not depend on labels: whoever is missing shows less.

    Of noise in shares only those are sure that must be in whatever can be summed up.
    """
    if setting.servers_deviate and AGGREGATOR in setting.view.servers:
        return upper(law(protocol, setting), faults, "faults help nobody more than she can help herself")
    n = protocol.bag_size if setting.size is None else setting.size
    staying = min(smallest(n, protocol.bag_size), protocol.least)
    found = _summed(protocol, setting, n, staying, _least_in_any_bag(protocol, setting, faults))
    if setting.deviating and setting.view.user_count:
        found = replace(found, assumes=(*found.assumes, OWN_BAG))
    return upper(found, faults, AT_MOST_ONCE)


def _least_in_any_bag(protocol: SecureAggregation, setting: Setting, faults: Faults | None) -> int:
    """Return ``least_together`` of a cluster; where no size is given, of any bag: the last may have 2 k - 1 users."""
    k = protocol.bag_size
    sizes = (k, 2 * k - 1) if setting.size is None else (setting.size,)
    return min(least_together(protocol, setting, size, faults) for size in sizes)


def least_together(protocol: SecureAggregation, setting: Setting, users: int, faults: Faults | None) -> int:
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
    all_staying = min(bag, int(protocol.least)) - colluders
    everybody = largest(users, protocol.bag_size) - 1 <= protocol.degree
    whole = faults is None or not missing(faults)
    alone = not sees_aggregator(setting) or not colluders
    if alone or (whole and everybody) or (colluders == 1 and (whole or everybody)):
        return all_staying
    return min(all_staying, _needed(protocol, bag, protocol.least) + 1 - colluders)


def _needed(protocol: SecureAggregation, bag: int, staying: int) -> int:
    """Return how many neighbours recover a user's secrets, at least, in a bag of which so many join at least.

    Never fewer than ``protocol.fewest``: below t nobody shares.
    """
    joined = np.arange(min(staying, bag), bag + 1)
    return int(np.min(protocol.needed(joined, np.minimum(joined - 1, protocol.degree))))


def _fed(protocol: SecureAggregation, bag: int, colluders: int) -> bool:
    """Whether honest users have neighbours enough to stay without colluders, and masks in common with all of them.

    Otherwise colluders who keep back their shares can choose whom they leave out of the sum.
    """
    neighbours = min(bag - 1, int(protocol.degree))
    return neighbours - colluders >= _needed(protocol, bag, bag)


def _open_to(protocol: SecureAggregation, setting: Setting, bag: int) -> PrivacyProfile:
    """Return the profile of an aggregator who deviates: the victim's value is open to her except for its own noise.

    She names neighbours with keys for masks of her own making, which nobody signs, and asks for the seed of who stayed
    as the protocol says; all that leaves the victim depends on her label by that value.
    """
    if bag < protocol.least:
        why = f"users of a bag of {bag} hand in nothing, whatever the server says: at least {protocol.least} must stay"
        return PrivacyProfile(setting.text, "exact", why, (), "", Nothing())
    why = "the aggregator puts keys of her own in the place of neighbours' keys, and takes every mask off"
    if not protocol.noisy:
        return PrivacyProfile(setting.text, "exact", why, (), "", full_disclosure())
    law = _noise(protocol, 1 / protocol.least)
    if law is None:
        return PrivacyProfile.refused(setting.text, TOO_FINE)
    assumes = (
        f"the victim's own share of the noise hides the label; {protocol.least} shares are the whole noise",
    )
    return PrivacyProfile(setting.text, "exact", f"{PAPER}, section 6; {why}", assumes, "", law)


def _summed(
    protocol: SecureAggregation, setting: Setting, users: int, staying: int, together: int
) -> PrivacyProfile:
    """Return the profile of sums in the smallest bag of a cluster, of which at least so many stay.

    ``together``: honest users, at least, of whom a view can tell the sum.
    """
    bag, least = smallest(users, protocol.bag_size), protocol.least
    colluders = min(fits(setting, users), bag - 1)
    masked = sees_aggregator(setting)
    assumes = ["masks, secret sharing and sealing hide what they should"]
    if bag < least:
        why = f"in a bag of {bag} nobody shares or reports: at least {least} must stay"
        return PrivacyProfile(setting.text, "exact", why, tuple(assumes), "", Nothing())
    if not (masked or setting.learner):
        return PrivacyProfile(setting.text, "exact", BLIND, tuple(assumes), "", Nothing())
    if not protocol.noisy:
        why = "the exact sum of a bag gives a label away to whoever knows the others of the bag"
        return PrivacyProfile(setting.text, "exact", why, tuple(assumes), "", full_disclosure())
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


def _noise(protocol: SecureAggregation, parts: float) -> Law | None:
    epsilon, steps = float(protocol.epsilon), int(protocol.grid)
    if parts == 1:
        return noise.DiscreteLaplace(epsilon, steps)
    return noise.NoiseShares(epsilon, steps, parts) if noise.fits(epsilon / steps, parts, steps) else None


def _shares(protocol: SecureAggregation, view: str, _sizes: Sequence[int], _delta: float) -> list[Promise]:
    """Return the guarantee of the shares of the noise, of which colluders take theirs away."""
    few = "colluding users take their shares of the noise away" if "user" in view else ""
    why = few if protocol.noisy else "epsilon = inf: no noise is added"
    source = f"Unified 2023, section 6; {protocol.least} users' shares are the whole noise"
    return [noise_on_the_count(float(protocol.epsilon), why, source)]


def secure(
    protocol: SecureAggregation, coalition: Coalition, size: int, composition: int, channels: str
) -> Statistic | None:
    """Return the statistic of a view of sums; None with colluders, whose shares of the noise no message shows."""
    bag = smallest(size, protocol.bag_size)
    sees = (
        LEARNER in coalition.servers
        or AGGREGATOR in coalition.servers
        or (coalition.wire and channels == "plain")
    )
    if not sees or bag < protocol.least:
        return Blind()
    alone = coalition.servers == {LEARNER} and not coalition.user_count and not coalition.wire
    if not alone:
        return None
    situation = (coalition.user_count, size, composition)
    if not protocol.noisy:
        return common_statistics.BagCount.exact("total", protocol.bag_size, *situation)
    return common_statistics.BagCount.noisy(
        "total", protocol.bag_size, *situation, protocol.epsilon, protocol.grid, bag / protocol.least
    )


def attack(protocol: SecureAggregation, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what the sums of bags say of each label in them; colluders take their shares of the noise away.

    "lower" where users of the view collude with who sees masked values: a user with so many of them among her
    neighbours that they recover her secrets is not looked at; and in bags where users are missing, for a view that may
    know who.
    """
    check_prior_rows(view, eta, 2)
    totals = readable(view, "total", "bag")
    there = ~totals["refused"].astype(np.bool_)
    if not there.any():
        return LabelLikelihoods.silent(2, "the view reads no sum")
    check_nothing_missing(view)
    sums = ReadSums(*(totals[name][there].astype(np.int64) for name in ("bag", "size", "total")))
    known, gone = _own_noise(protocol, view, sums)
    of_honest = _shares_of(protocol, sums.size - gone) if protocol.noisy else without_noise
    honest = ReadSums(sums.bag, sums.size, sums.total - known)
    source = f"{PAPER}, Theorem 6.3, with the noise of those who stayed"
    found = of_sums(view, eta, protocol.bag_size, honest, of_honest, protocol.grid, source)
    masked = AGGREGATOR in view.coalition.servers or view.coalition.wire
    return replace(found, basis="lower") if masked and view.coalition.users else found


def _own_noise(protocol: SecureAggregation, view: View, sums: ReadSums) -> tuple[Ints, Ints]:
    """Return the noise of the view's own users in each sum, in steps, and how many of them are in it."""
    noise, many = np.zeros(len(sums.bag), np.int64), np.zeros(len(sums.bag), np.int64)
    own = members(view)
    if not len(own):
        return noise, many
    number = bag_numbers(clusters_of(view), np.arange(len(view.public["user"])), protocol.bag_size)
    stayed = np.isin(own, view.messages["report"]["sender"])
    bag = np.where(stayed, number[rows_of(view, own)], -1)
    place = {int(each): at for at, each in enumerate(sums.bag.tolist())}
    for each in bag.tolist():
        if each in place:
            many[place[each]] += 1
    for stream, sign in (("noise up", 1), ("noise down", -1)):
        for name, drawn in view.draws.items() if protocol.noisy else ():
            if name.startswith(f"user/{stream}/"):
                for user, value in zip(drawn["party"].tolist(), drawn["value"].tolist(), strict=True):
                    at = place.get(int(bag[np.searchsorted(own, user)]))
                    if at is not None:
                        noise[at] += sign * value
    return noise, many


def _shares_of(protocol: SecureAggregation, sharers: Ints) -> LogNoise:
    """Return ln P(the noise that so many users of each bag add together); raises InputError if it is too fine."""
    rate, steps = float(protocol.epsilon) / protocol.grid, int(protocol.grid)
    tables = {}
    for count in np.unique(sharers).tolist():
        if count and not noise.fits(rate, count / protocol.least, steps):
            raise InputError(f"grid = {steps}: {TOO_FINE}")
        with np.errstate(divide="ignore"):
            tables[count] = np.log(noise.table(rate, count / protocol.least)[0] if count else np.ones(1))

    def log_noise(rest: Ints, which: Ints) -> Floats:
        found = np.full(len(rest), -np.inf)
        for count, logs in tables.items():
            at = rest + len(logs) // 2
            mine = (sharers[which] == count) & (at >= 0) & (at < len(logs))
            found[mine] = logs[at[mine]]
        return found

    return log_noise


def opened(protocol: SecureAggregation, coalition: Coalition, people: Population) -> Floats | None:
    """Return what an aggregator who deviates reads of a victim: her value, except for her own share of the noise.

    None where a bag is so small that its users hand in nothing.
    """
    clusters = people.clusters or Members(np.zeros(people.users, np.int32), np.array([0, people.users]), None)
    sizes = np.bincount(bag_numbers(clusters, np.arange(people.users), protocol.bag_size))
    if AGGREGATOR not in coalition.servers or coalition.users or sizes[sizes > 0].min() < protocol.least:
        return None
    if not protocol.noisy:
        return np.eye(2)
    rate, steps = float(protocol.epsilon) / protocol.grid, int(protocol.grid)
    if not noise.fits(rate, 1 / protocol.least, steps):
        return None
    own = noise.table(rate, 1 / protocol.least)[0]
    rows = np.stack([np.pad(own, (label * steps, (1 - label) * steps)) for label in (0, 1)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), np.float64)


register(
    SecureAggregation,
    Accounting(
        labels=(BINARY,),
        law=secure_aggregation,
        under_faults=under_faults,
        theorems=_shares,
        statistic=secure,
        servers_may_deviate=True,
        opened=opened,
        attack=attack,
    ),
)

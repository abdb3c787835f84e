"""Multi-stage response: every user answers once, under a prior that shows nothing of her; stages are disjoint users.

*Source:* ``docs/laws.md``, "Disjoint users".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.faults import Faults
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.core.population import Population
from p2p_sim.observed_view import View
from p2p_sim.privacy.composition.parallel import parallel
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import Evidence
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import BLIND, Nothing
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.arrivals import upper
from p2p_sim.privacy.mechanism_parts.label_reports import check_prior_rows, of_senders, readable
from p2p_sim.privacy.mechanism_parts.one_report import ONCE
from p2p_sim.privacy.mechanisms import prior_response
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, LawOf, register
from p2p_sim.privacy.setting import Setting, fits
from protocols import MultiStage
from protocols.multi_stage import CHANCE, Beliefs

Array = npt.NDArray[Any]
Columns = Mapping[str, Array]

SOURCE = "Ghazi et al. 2021, LP-MST; parallel composition over disjoint users, see docs/laws.md"
LIKELIHOOD = "Ghazi et al. 2021, LP-MST: P(report | label), by the priors that were told"
GIVEN = "a prior comes from other users' reports; the worst prior there may be"


def law(protocol: MultiStage, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: of one report, in whatever stage shows most."""
    if setting.size is not None:
        fits(setting, setting.size)
    if setting.learner or (setting.view.wire and not setting.encrypted):
        found = parallel(_stages(protocol, setting.text, protocol.stages))
        drawn = protocol.split == CHANCE and protocol.stages > 1
        # stage 1 alone is known exactly, and nobody is sure to be drawn into it
        return replace(found, basis="upper") if drawn else found
    if not setting.view.user_count or protocol.stages == 1:
        return PrivacyProfile(setting.text, "exact", BLIND, (ONCE,), "", Nothing())
    earlier = parallel(_stages(protocol, setting.text, protocol.stages - 1))
    why = "a peer sees the prior of her stage, which is computed from the reports of the stages before"
    return replace(earlier, basis="upper", assumes=(*earlier.assumes, why))


def _stages(protocol: MultiStage, view: str, stages: int) -> list[PrivacyProfile]:
    """Return what whoever sees all reports learns in each of the first stages."""

    def profile(basis: str, law: Law, *assumes: str) -> PrivacyProfile:
        return PrivacyProfile(view, basis, SOURCE, (ONCE, *assumes), "", law)

    epsilon = local_epsilon(protocol)
    first = profile("exact", LocalResponse(epsilon, protocol.labels) if epsilon else Nothing())
    later = profile("upper", LocalResponse(epsilon) if epsilon else Nothing(), GIVEN)
    return [first, *[later] * (stages - 1)]


def under_faults(
    law: LawOf[MultiStage], protocol: MultiStage, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile under faults: every user says one noisy label at most."""
    return upper(law(protocol, setting), faults, "one noisy label at most is said")


def local_epsilon(protocol: MultiStage) -> float:
    """Return the budget; infinite where no lie can be drawn."""
    return float(protocol.epsilon) if protocol.response.lying(2) else math.inf


def noise(protocol: MultiStage) -> LabelNoise:
    """Return how often users lie, if there is one stage; else what each report says under the prior of its user."""
    k = protocol.labels
    if protocol.stages == 1:
        return LabelNoise(protocol.response.lying(k), k)
    return LabelNoise(Fraction(0), k, reports=lambda columns, people: evidence(protocol, columns, people))


STAGE_1 = "take the reports of stage 1 alone (rows of each column with stage == 1), under whose prior all can be said"


def evidence(protocol: MultiStage, columns: Columns, people: Population) -> Evidence:
    """Return what the reports say; weights of an unbiased loss exist where all k labels can be reported.

    Given the prior, which comes from other users' reports, the weights of a report have the mean of the one-hot true
    label, as if the prior had been public.  Whether all k labels can be reported in every later stage depends on the
    reports of the earlier ones, though: given that it is so, their weights are biased.  Weights of stage 1 alone always
    have the right mean, and the likelihood needs no weights.  ``columns``: ``sender``, ``stage`` and ``y`` of all
    reports of the first stages.
    """
    prior, sender = priors(protocol, columns, people), columns["sender"].astype(np.int64)
    return prior_response.of_reports(protocol.response, prior, sender, columns["y"].astype(np.int64), STAGE_1)


def priors(protocol: MultiStage, columns: Columns, people: Population) -> Array:
    """Return the prior under which each report was made, (m, k): what the learner sent of the sender's cluster.

    The learner's arithmetic, repeated on what she received.  *Assumes:* reports name the public cluster of their
    sender, and arrive in their stage, as they do without faults.
    """
    cluster, stage = _clusters(columns, people), columns["stage"]
    found = np.full((len(stage), protocol.labels), 1 / protocol.labels)
    beliefs = Beliefs(protocol.response)
    for number in range(1, protocol.stages + 1):
        mine = stage == number
        if number > 1:
            found[mine] = beliefs.as_read(cluster[mine])
        beliefs.learn(cluster[mine], columns["y"][mine])
    return found


def matrix(protocol: MultiStage, columns: Columns, people: Population) -> npt.NDArray[np.float64]:
    """Return P(report | label) of all reports together, the mean of their matrices (k, k), a row for each label.

    For the correction after training (``any_classifier.after_training``) of a model that was trained on all of them.
    *Assumes:* given her label, the prior under which a user answers does not depend on her features: one cluster, or
    clusters that tell nothing of features.  Otherwise take the reports of stage 1 alone.
    """
    kinds, which = np.unique(
        np.stack([columns["stage"].astype(np.int64), _clusters(columns, people)]), axis=1, return_inverse=True
    )
    which = which.ravel()
    first = np.zeros(kinds.shape[1], np.intp)
    first[which] = np.arange(len(which))
    each = prior_response.matrices(protocol.response, priors(protocol, columns, people)[first])
    share = np.bincount(which, minlength=len(each)) / len(which)
    return np.asarray(np.tensordot(share, each, axes=1))


def _clusters(columns: Columns, people: Population) -> npt.NDArray[np.int64]:
    """Return the public number of each sender's cluster, (m,)."""
    sender = columns["sender"].astype(np.int64)
    return (
        np.zeros(len(sender), np.int64)
        if people.clusters is None
        else people.clusters.codes[sender].astype(np.int64)
    )


def attack(protocol: MultiStage, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what each report that the view reads says of its sender's label, under the prior that she was given.

    A view that reads reports reads the priors, too, since both are of the learner.  Peers who do not read reports are
    given a prior, which comes from those of their cluster: that is left out, and the basis is "lower".
    """
    check_prior_rows(view, eta, protocol.labels)
    reports, priors_read = readable(view, "report"), readable(view, "prior", "recipient")
    prior = np.full((len(reports["y"]), protocol.labels), 1 / protocol.labels)
    asked = np.isin(reports["sender"], priors_read["recipient"])
    place = np.searchsorted(priors_read["recipient"], reports["sender"][asked])
    prior[asked] = priors_read["p"].reshape(-1, protocol.labels)[place]
    chances = prior_response.likelihoods(protocol.response, prior, reports["y"].astype(np.int64))
    peers = set(priors_read["recipient"].tolist()) & view.coalition.users
    blind = bool(peers) and not np.isin(reports["sender"], list(view.coalition.users), invert=True).any()
    with np.errstate(divide="ignore"):
        return of_senders(view, reports["sender"], np.log(chances), LIKELIHOOD, "lower" if blind else "exact")


register(
    MultiStage,
    Accounting(
        labels=(BINARY, CLASSES),
        law=law,
        under_faults=under_faults,
        local_epsilon=local_epsilon,
        noise=noise,
        attack=attack,
    ),
)

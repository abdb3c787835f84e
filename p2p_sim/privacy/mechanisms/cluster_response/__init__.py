"""Cluster response (Algorithm 1 of Clustering 2022): the learner is told q~ of each cluster, and labels drawn from it.

The learner's model is trained with the modified loss of lines 28 to 30: what labels say of which some were drawn from
q~.

*Source:* ``docs/laws.md``, "Cluster response".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.core.faults import Faults
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.core.population import Population
from p2p_sim.privacy.bounds.clustering2022 import theorem1_corrected, theorem1_printed
from p2p_sim.privacy.label_matrices import Evidence, ResamplingMatrices
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import BLIND, Atoms, Nothing
from p2p_sim.privacy.laws.mixtures import Scaled
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.arrivals import label_arrives, upper
from p2p_sim.privacy.mechanism_parts.bag_sums import full_disclosure
from p2p_sim.privacy.mechanism_parts.entry_difference import differences
from p2p_sim.privacy.mechanism_parts.one_report import ONCE
from p2p_sim.privacy.mechanisms.cluster_response.attack import attack
from p2p_sim.privacy.mechanisms.cluster_response.statistic import CURATOR, sees_curator, statistic, unaudited
from p2p_sim.privacy.mechanisms.cluster_response.view_pmf import listed
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, LawOf, register
from p2p_sim.privacy.setting import Setting, fits
from p2p_sim.privacy.theorems import Promise, nothing, promise
from protocols import ClusterResponse
from protocols.cluster_response import CLUSTER, total

Columns = Mapping[str, npt.NDArray[np.int64]]

PAPER = "Clustering 2022, Algorithm 1"
TRUSTED = "the curator is trusted: she sees every label"
PUBLIC = "clusters are public and depend on no label"
PUBLIC_PHI = "phi is public and depends on no label: epsilon includes nothing for it"
SAMPLED_PHI = (
    "phi is that of a public sample, which depends on no user's label: epsilon includes nothing for it"
)
KNOWN = "the learner may know all other labels of the cluster"


def law(protocol: ClusterResponse, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: the curator and a plain wire see the label; the learner q~ and what was drawn."""
    if setting.size is not None:
        fits(setting, setting.size)
    if sees_curator(setting.view, encrypted=setting.encrypted):
        return PrivacyProfile(setting.text, "exact", "sees the label itself", (ONCE,), "", full_disclosure())
    if not setting.learner:
        return PrivacyProfile(setting.text, "exact", BLIND, (ONCE, TRUSTED), "", Nothing())
    if setting.real and protocol.labels > 2:
        why = f"composition = 'population': counts two labels, the protocol has {protocol.labels}; ask for the worst"
        return PrivacyProfile.refused(setting.text, why)
    basis, source, found = _of_learner(protocol, setting)
    known = [ONCE, TRUSTED, PUBLIC, KNOWN]
    if protocol.preset == CLUSTER and not protocol.phi_share:
        known.append(SAMPLED_PHI if protocol.phi_sample else PUBLIC_PHI)
    known += ["noise whose tails are not cut"] if protocol.settings().sigma is not None else []
    if setting.composition is not None and protocol.labels > 2:
        known.append("her label and the others' are 0 or 1")
    return PrivacyProfile(setting.text, basis, source, tuple(known), "", found)


def _of_learner(protocol: ClusterResponse, setting: Setting) -> tuple[str, str, Law]:
    """Return basis, source and law of the learner's view."""
    tau, sigma, lam, _ = protocol.settings()
    if protocol.phi_share:
        cost = float(protocol.phi_cost())
        source = f"{PAPER}, Theorem 1 corrected, after an estimate of phi from the same labels, for {cost:.4g} of ε"
        return (
            "upper",
            source,
            LocalResponse(protocol.epsilon),
        )  # no mechanism of that pure epsilon shows more
    if lam == 0:
        return "exact", f"{PAPER} with lambda = 0: every label is released as it is", full_disclosure()
    if sigma is None or tau * protocol.labels == 1:
        source = f"{PAPER}: q~ is uniform, so the label is randomized as by Warner 1965"
        uniform = total(protocol.settings()._replace(sigma=None))
        return "exact", source, LocalResponse(uniform, protocol.labels) if uniform else Nothing()
    if (
        setting.size is not None and not setting.deviating
    ):  # who stays away, or names another cluster, changes n
        exact = _listed(protocol, setting.size, setting.view.user_count, setting.composition)
        if exact is not None:
            return "exact", f"{PAPER}: q~ of the cluster and the label of the user, listed", exact
    source = f"{PAPER}, Theorem 1 corrected: the noise of two counts, and a draw from q~ at its floor"
    return "upper", source, bound(protocol)


@lru_cache(maxsize=16)
def _listed(protocol: ClusterResponse, size: int, colluders: int, composition: int | None) -> Law | None:
    return listed(protocol, size, colluders, composition)


@lru_cache(maxsize=64)  # of all sizes of clusters it is the same
def bound(protocol: ClusterResponse) -> Atoms:
    """Return the law of two noisy counts and of one draw where both labels have probability tau.

    Its pure epsilon is that of Theorem 1 as corrected.

    *Source:* ``docs/laws.md``, "Cluster response".
    """
    tau, sigma, lam, _ = protocol.settings()
    noise = np.ones(1) if sigma is None else differences(float(2 / sigma), protocol.grid)
    kept, drawn = float(1 - lam + lam * tau), float(lam * tau)
    label = np.array(
        [drawn, float(lam * (1 - 2 * tau)), kept]
    )  # label 0, another, label 1, for who has label 1
    q = np.multiply.outer(noise, label).ravel()
    return Atoms(q[None, ::-1], q[None])


def under_faults(
    law: LawOf[ClusterResponse], protocol: ClusterResponse, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile under faults, which do not depend on labels: a label that does not arrive shows nothing."""
    if setting.size is not None:
        fits(setting, setting.size)
    found = law(protocol, replace(setting, size=None))  # how many others arrive is left to chance
    if (
        found.law is not None
        and setting.learner
        and not sees_curator(setting.view, encrypted=setting.encrypted)
    ):
        # what arrives at the curator counts, though not all that she tells need arrive
        found = replace(found, law=Scaled(label_arrives(faults, 1, sealed=False), found.law))
    return upper(found, faults, "a label that does not arrive shows nothing, and none counts twice")


def theorems(protocol: ClusterResponse, view: str, _sizes: Sequence[int], _delta: float) -> list[Promise]:
    """Return Theorem 1, corrected and as printed; whoever sees labels has no guarantee."""
    names = ("Theorem 1, corrected", "Theorem 1, as printed")
    parts = view.split("+")
    if CURATOR in parts or "wire" in parts:
        why = "the curator, and a plain wire to her, see labels as they are"
        return [nothing(name, why, source=PAPER) for name in names]
    tau, sigma, lam, _ = protocol.settings()
    given = (math.inf if sigma is None else float(sigma), lam, float(tau))
    cost = float(protocol.phi_cost()) if protocol.phi_share else 0.0  # sequential composition
    bounds = (theorem1_corrected(*given), theorem1_printed(*given))
    return [
        promise(name, replace(found, epsilon=found.epsilon + cost))
        for name, found in zip(names, bounds, strict=True)
    ]


def noise(protocol: ClusterResponse) -> LabelNoise | None:
    """Return what released labels say by the matrix (1 - beta) I + beta 1 q~^T of each cluster.

    None with beta = 0, as in Corollary 2: there the modified loss is the loss itself, and so is its model.
    """
    if not protocol.settings().beta:
        return None

    def reports(columns: Columns, people: Population) -> Evidence:
        return evidence(protocol, columns, people)

    return LabelNoise(Fraction(0), protocol.labels, reports=reports)


def evidence(protocol: ClusterResponse, columns: Columns, people: Population) -> Evidence:
    """Return what the learner's labels say; those of a cluster whose q~ was lost are left out, and counted.

    Its weights are those of the modified loss, (l(y) - beta q~ . l) / (1 - beta).  *Source:* Clustering 2022, Lemma 3.
    """
    clusters, first = np.unique(columns["q_cluster"], return_index=True)
    q = columns["weights"][first] / columns["weights"][first].sum(axis=1, keepdims=True)
    known = np.isin(columns["cluster"], clusters)
    users = columns["sender"][known]
    group = np.zeros(people.users, np.int64)
    group[users] = np.searchsorted(clusters, columns["cluster"][known])
    if not len(clusters):
        return Evidence(users, np.ones((0, protocol.labels)), lambda: np.ones((0, protocol.labels)))
    matrices = ResamplingMatrices(float(protocol.settings().beta), q, group=group)
    found = matrices.evidence(users, columns["y"][known].astype(np.int64))
    left = int(np.count_nonzero(~known))
    return (
        replace(found, note=f"{left:,} labels are of clusters whose distribution was lost") if left else found
    )


register(
    ClusterResponse,
    Accounting(
        labels=(BINARY, CLASSES),
        law=law,
        under_faults=under_faults,
        theorems=theorems,
        statistic=statistic,
        noise=noise,
        attack=attack,
        unaudited=unaudited,
    ),
)

"""Profiles of sums of labels over bags, released by an aggregator who sees labels, or masked ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from p2p_sim.core.faults import Faults
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import BLIND, Atoms, Nothing
from p2p_sim.privacy.laws.mixtures import Scaled
from p2p_sim.privacy.mechanism_parts.arrivals import label_arrives, upper
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import LawOf, P
from p2p_sim.privacy.setting import Setting, fits

AGGREGATOR = "aggregator"

PAPER = "Unified 2023"
AT_MOST_ONCE = "a label that does not arrive shows nothing, and none counts twice"


def trusted(setting: Setting, law: Law, source: str) -> PrivacyProfile:
    """Return the profile of a view where the aggregator is trusted: she, and the wire to her, see the labels."""
    if setting.size is not None:
        fits(setting, setting.size)
    assumes = ("each user reports once", "the learner may know all other labels of the bag")
    if sees_aggregator(setting):
        return PrivacyProfile(
            setting.text, "exact", "sees the label itself", assumes[:1], "", full_disclosure()
        )
    if setting.learner:
        return PrivacyProfile(setting.text, "exact", source, assumes, "", law)
    return PrivacyProfile(setting.text, "exact", BLIND, assumes[:1], "", Nothing())


def trusted_under_faults(law: LawOf[P], protocol: P, setting: Setting, faults: Faults) -> PrivacyProfile:
    """Return the profile under faults: an upper bound, as they do not depend on labels, and hide those they hit."""
    found = law(protocol, setting)
    if found.law is not None and setting.learner and not sees_aggregator(setting):
        found = replace(found, law=Scaled(label_arrives(faults, 2, sealed=False), found.law))
    return upper(found, faults, AT_MOST_ONCE)


def sees_aggregator(setting: Setting) -> bool:
    """Return whether a view has what the aggregator receives."""
    return AGGREGATOR in setting.view.servers or (setting.view.wire and not setting.encrypted)


def full_disclosure() -> Law:
    """Return the law of a view that always tells two labels apart: delta is 1 at every epsilon."""
    return Atoms(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))

"""Privacy of labels: exact laws, bounds of theorems, audits, and registration of laws of one's own.

Each name is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2p_sim.core.lazy_package import lazily

if TYPE_CHECKING:
    from p2p_sim.privacy import bounds, building_blocks, mechanisms
    from p2p_sim.privacy.accountant import by_cluster, profile
    from p2p_sim.privacy.auditing.audit import Audit, audit
    from p2p_sim.privacy.auditing.own_attack import AttackStatistic
    from p2p_sim.privacy.auditing.statistic import Blind, Statistic
    from p2p_sim.privacy.auditing.worlds import Seen
    from p2p_sim.privacy.building_blocks import gaussian, laplace, shuffled_response
    from p2p_sim.privacy.calibrate import Calibration, NoiseCalibration, calibrate, calibrate_noise
    from p2p_sim.privacy.composition.compose import LocalBudget, compose, composed
    from p2p_sim.privacy.composition.grouped import grouped
    from p2p_sim.privacy.composition.parallel import parallel
    from p2p_sim.privacy.enumeration.enumerate import EnumeratedView, enumerate_view, enumerate_views
    from p2p_sim.privacy.label_likelihoods import LabelLikelihoods
    from p2p_sim.privacy.label_matrices import DenseMatrices, Evidence, LabelMatrices, ResamplingMatrices
    from p2p_sim.privacy.law import Bracket, Law
    from p2p_sim.privacy.laws.finite import Atoms, Nothing
    from p2p_sim.privacy.laws.mixtures import Mixture, Scaled
    from p2p_sim.privacy.laws.randomized_response import LocalResponse
    from p2p_sim.privacy.many_values import Brackets
    from p2p_sim.privacy.profile import PrivacyProfile, RefusedError
    from p2p_sim.privacy.registry import Accounting, LabelNoise, accounting, label_noise, register
    from p2p_sim.privacy.setting import Setting, crowd, fits
    from p2p_sim.privacy.theorems import Promise

__all__ = [
    "Accounting", "Atoms", "AttackStatistic", "Audit", "Blind", "Bracket", "Brackets", "Calibration", "DenseMatrices",
    "EnumeratedView", "Evidence", "LabelLikelihoods", "LabelMatrices", "LabelNoise", "Law", "LocalBudget",
    "LocalResponse", "Mixture", "NoiseCalibration", "Nothing", "PrivacyProfile", "Promise", "RefusedError",
    "ResamplingMatrices", "Scaled", "Seen", "Setting", "Statistic", "accounting", "audit", "bounds",
    "building_blocks", "by_cluster", "calibrate", "calibrate_noise", "compose", "composed", "crowd",
    "enumerate_view", "enumerate_views", "fits", "gaussian", "grouped", "label_noise", "laplace", "mechanisms",
    "parallel", "profile", "register", "shuffled_response",
]  # fmt: skip

lazily(
    __name__,
    {
        "by_cluster": "accountant",
        "profile": "accountant",
        "Audit": "auditing.audit",
        "audit": "auditing.audit",
        "AttackStatistic": "auditing.own_attack",
        "Blind": "auditing.statistic",
        "Statistic": "auditing.statistic",
        "Seen": "auditing.worlds",
        "gaussian": "building_blocks",
        "laplace": "building_blocks",
        "shuffled_response": "building_blocks",
        "Calibration": "calibrate",
        "NoiseCalibration": "calibrate",
        "calibrate": "calibrate",
        "calibrate_noise": "calibrate",
        "LocalBudget": "composition.compose",
        "compose": "composition.compose",
        "composed": "composition.compose",
        "grouped": "composition.grouped",
        "parallel": "composition.parallel",
        "EnumeratedView": "enumeration.enumerate",
        "enumerate_view": "enumeration.enumerate",
        "enumerate_views": "enumeration.enumerate",
        "LabelLikelihoods": "label_likelihoods",
        "DenseMatrices": "label_matrices",
        "Evidence": "label_matrices",
        "LabelMatrices": "label_matrices",
        "ResamplingMatrices": "label_matrices",
        "Bracket": "law",
        "Law": "law",
        "Atoms": "laws.finite",
        "Nothing": "laws.finite",
        "Mixture": "laws.mixtures",
        "Scaled": "laws.mixtures",
        "LocalResponse": "laws.randomized_response",
        "Brackets": "many_values",
        "PrivacyProfile": "profile",
        "RefusedError": "profile",
        "Accounting": "registry",
        "LabelNoise": "registry",
        "accounting": "registry",
        "label_noise": "registry",
        "register": "registry",
        "Setting": "setting",
        "crowd": "setting",
        "fits": "setting",
        "Promise": "theorems",
    },
)

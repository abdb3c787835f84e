"""Privacy of labels: exact laws, bounds of theorems, audits, and registration of laws of one's own.

Each name is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from p2p_sim.core.lazy_package import keep_from_files

if TYPE_CHECKING:
    from p2p_sim.privacy import bounds, building_blocks, mechanisms
    from p2p_sim.privacy.accountant import by_cluster, profile
    from p2p_sim.privacy.auditing.audit import Audit, audit
    from p2p_sim.privacy.auditing.own_attack import AttackStatistic
    from p2p_sim.privacy.auditing.seen import Seen
    from p2p_sim.privacy.auditing.statistic import Blind, Statistic
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
    from p2p_sim.privacy.registered import accounting, label_noise
    from p2p_sim.privacy.registry import Accounting, LabelNoise, register
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

keep_from_files(__name__, "calibrate", "profile")


def __getattr__(name: str) -> Any:
    """Import a name from the file that defines it."""
    match name:
        case "bounds":
            import p2p_sim.privacy.bounds

            return p2p_sim.privacy.bounds
        case "building_blocks":
            import p2p_sim.privacy.building_blocks

            return p2p_sim.privacy.building_blocks
        case "mechanisms":
            import p2p_sim.privacy.mechanisms

            return p2p_sim.privacy.mechanisms
        case "by_cluster" | "profile":
            global by_cluster, profile
            from p2p_sim.privacy.accountant import by_cluster, profile
        case "Audit" | "audit":
            global Audit, audit
            from p2p_sim.privacy.auditing.audit import Audit, audit
        case "AttackStatistic":
            global AttackStatistic
            from p2p_sim.privacy.auditing.own_attack import AttackStatistic
        case "Blind" | "Statistic":
            global Blind, Statistic
            from p2p_sim.privacy.auditing.statistic import Blind, Statistic
        case "Seen":
            global Seen
            from p2p_sim.privacy.auditing.seen import Seen
        case "gaussian" | "laplace" | "shuffled_response":
            global gaussian, laplace, shuffled_response
            from p2p_sim.privacy.building_blocks import gaussian, laplace, shuffled_response
        case "Calibration" | "NoiseCalibration" | "calibrate" | "calibrate_noise":
            global Calibration, NoiseCalibration, calibrate, calibrate_noise
            from p2p_sim.privacy.calibrate import Calibration, NoiseCalibration, calibrate, calibrate_noise
        case "LocalBudget" | "compose" | "composed":
            global LocalBudget, compose, composed
            from p2p_sim.privacy.composition.compose import LocalBudget, compose, composed
        case "grouped":
            global grouped
            from p2p_sim.privacy.composition.grouped import grouped
        case "parallel":
            global parallel
            from p2p_sim.privacy.composition.parallel import parallel
        case "EnumeratedView" | "enumerate_view" | "enumerate_views":
            global EnumeratedView, enumerate_view, enumerate_views
            from p2p_sim.privacy.enumeration.enumerate import EnumeratedView, enumerate_view, enumerate_views
        case "LabelLikelihoods":
            global LabelLikelihoods
            from p2p_sim.privacy.label_likelihoods import LabelLikelihoods
        case "DenseMatrices" | "Evidence" | "LabelMatrices" | "ResamplingMatrices":
            global DenseMatrices, Evidence, LabelMatrices, ResamplingMatrices
            from p2p_sim.privacy.label_matrices import (
                DenseMatrices,
                Evidence,
                LabelMatrices,
                ResamplingMatrices,
            )
        case "Bracket" | "Law":
            global Bracket, Law
            from p2p_sim.privacy.law import Bracket, Law
        case "Atoms" | "Nothing":
            global Atoms, Nothing
            from p2p_sim.privacy.laws.finite import Atoms, Nothing
        case "Mixture" | "Scaled":
            global Mixture, Scaled
            from p2p_sim.privacy.laws.mixtures import Mixture, Scaled
        case "LocalResponse":
            global LocalResponse
            from p2p_sim.privacy.laws.randomized_response import LocalResponse
        case "Brackets":
            global Brackets
            from p2p_sim.privacy.many_values import Brackets
        case "PrivacyProfile" | "RefusedError":
            global PrivacyProfile, RefusedError
            from p2p_sim.privacy.profile import PrivacyProfile, RefusedError
        case "accounting" | "label_noise":
            global accounting, label_noise
            from p2p_sim.privacy.registered import accounting, label_noise
        case "Accounting" | "LabelNoise" | "register":
            global Accounting, LabelNoise, register
            from p2p_sim.privacy.registry import Accounting, LabelNoise, register
        case "Setting" | "crowd" | "fits":
            global Setting, crowd, fits
            from p2p_sim.privacy.setting import Setting, crowd, fits
        case "Promise":
            global Promise
            from p2p_sim.privacy.theorems import Promise
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]

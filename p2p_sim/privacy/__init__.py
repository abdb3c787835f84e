"""What every party learns of a label: exact, promised by theorem, and measured."""

from __future__ import annotations

# Imported here and not on demand: a function must take the name that the file of the same name leaves behind.
from p2p_sim.privacy import bounds, building_blocks
from p2p_sim.privacy.accountant import by_cluster, profile
from p2p_sim.privacy.audit import Audit, audit
from p2p_sim.privacy.calibrate import Calibration, calibrate
from p2p_sim.privacy.calibrate_noise import NoiseCalibration, calibrate_noise
from p2p_sim.privacy.compose import LocalBudget, compose, composed
from p2p_sim.privacy.enumerate import EnumeratedView, enumerate_view
from p2p_sim.privacy.mechanisms import gaussian, laplace, shuffled_response
from p2p_sim.privacy.profile import Bracket, Law, PrivacyProfile, RefusedError

__all__ = [
    "Audit",
    "Bracket",
    "Calibration",
    "EnumeratedView",
    "Law",
    "LocalBudget",
    "NoiseCalibration",
    "PrivacyProfile",
    "RefusedError",
    "audit",
    "bounds",
    "building_blocks",
    "by_cluster",
    "calibrate",
    "calibrate_noise",
    "compose",
    "composed",
    "enumerate_view",
    "gaussian",
    "laplace",
    "profile",
    "shuffled_response",
]

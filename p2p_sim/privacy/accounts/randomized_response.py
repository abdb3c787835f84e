"""Randomized response: whoever reads the report sees the victim's own coin."""

from __future__ import annotations

import math
from typing import Any

from p2p_sim.privacy.accounts.setting import Setting, fits
from p2p_sim.privacy.laws.combine import Nothing
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.profile import Law, PrivacyProfile


def randomized_response(protocol: Any, setting: Setting) -> PrivacyProfile:
    """Return what a view learns."""
    view = setting.view
    lie = protocol.lying()
    budget = protocol.epsilon
    if protocol.lie is not None:
        budget = LocalResponse.flipping(float(lie)).epsilon0
    if lie == 0:  # so it is from ``NEVER`` on
        budget = math.inf
    if setting.size is not None:
        fits(setting, setting.size)
    sees = setting.learner or (view.wire and not setting.encrypted)
    law: Law = LocalResponse(float(budget), protocol.labels) if sees else Nothing()
    source = "Warner 1965; closed form" if sees else "no message that this view can read depends on a label"
    return PrivacyProfile(setting.text, "exact", source, ("each user reports once",), "", law)

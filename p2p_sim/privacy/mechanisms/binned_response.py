"""Randomized response on bins: every observer of the report sees a bin, which many labels may share."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.label_kinds import NUMERIC
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.statistic import Statistic
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.label_reports import by_matrix, check_prior_rows
from p2p_sim.privacy.mechanism_parts.one_report import answer, read_by, under_faults
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, register
from p2p_sim.privacy.setting import Setting
from protocols import BinnedResponse

SOURCE = "Ghazi et al. 2023, RR-on-Bins: randomized response, of two labels in different bins"
LIKELIHOOD = "Ghazi et al. 2023, RR-on-Bins: P(bin | label)"
GIVEN = "the prior is public and depends on no user's label"


def law(protocol: BinnedResponse, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: randomized response among the bins."""
    bins = len(protocol.bins()[1])
    found: Law = LocalResponse(local_epsilon(protocol), bins) if bins > 1 else Nothing()
    return read_by(setting, found, SOURCE, GIVEN)


def matrix(protocol: BinnedResponse) -> npt.NDArray[np.float64]:
    """Return P(bin | label), shape (k, bins), row by label."""
    bin_of, values = protocol.bins()
    lie = float(protocol.lying(len(values))) if len(values) > 1 else 0.0
    rows = np.full((protocol.labels, len(values)), lie / max(1, len(values) - 1))
    rows[np.arange(protocol.labels), bin_of] = 1 - lie
    return rows


def statistic(
    protocol: BinnedResponse, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic:
    """Return the bin that the victim reported, for a view that reads it."""
    return answer(coalition, channels, matrix(protocol), "bin")


def local_epsilon(protocol: BinnedResponse) -> float:
    """Return the budget; 0 where there is one bin, infinite where no lie can be drawn."""
    bins = len(protocol.bins()[1])
    if bins == 1:
        return 0.0
    return math.inf if protocol.never_lies(bins) else float(protocol.epsilon)


def attack(protocol: BinnedResponse, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what each bin that the view reads says of its sender's label."""
    check_prior_rows(view, eta, protocol.labels)
    return by_matrix(view, matrix(protocol), LIKELIHOOD, field="bin")


register(
    BinnedResponse,
    Accounting(
        labels=(NUMERIC,),
        law=law,
        under_faults=under_faults,
        statistic=statistic,
        local_epsilon=local_epsilon,
        attack=attack,
        others_matter=False,
    ),
)

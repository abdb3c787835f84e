"""Randomized response: every observer of the report sees one randomized label."""

from __future__ import annotations

import math
from collections.abc import Sequence

from p2p_sim.coalition import Coalition
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.common_statistics import Answered
from p2p_sim.privacy.auditing.statistic import Blind, Statistic
from p2p_sim.privacy.composition.grouped import apart
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import channel
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.label_reports import by_matrix, check_prior_rows
from p2p_sim.privacy.mechanism_parts.one_report import read_by, reads, under_faults
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, register
from p2p_sim.privacy.setting import Setting
from p2p_sim.privacy.theorems import Promise, nothing, promise
from protocols import RandomizedResponse


def law(protocol: RandomizedResponse, setting: Setting) -> PrivacyProfile:
    """Return what a view learns."""
    law = LocalResponse(_budget(protocol), protocol.labels)
    return read_by(setting, law, "Warner 1965; closed form")


def _budget(protocol: RandomizedResponse) -> float:
    """Return epsilon, from the chance of a lie where that was given; infinite where no lie can be drawn."""
    if not protocol.lying():
        return math.inf
    if protocol.lie is None:
        return float(protocol.epsilon)
    return LocalResponse.flipping(float(protocol.lie)).epsilon0


def group(protocol: RandomizedResponse, setting: Setting, members: int) -> PrivacyProfile:
    """Return what a view learns of several labels: their reports are independent, and it sees whose each is."""
    return apart(law(protocol, setting), members)


def theorems(protocol: RandomizedResponse, _view: str, _sizes: Sequence[int], _delta: float) -> list[Promise]:
    """Return the corollary on randomized response alone."""
    from p2p_sim.privacy.bounds import clustering2022

    if not protocol.lying():
        return [nothing("Corollary 1", f"epsilon = {protocol.epsilon:g}: nobody lies")]
    return [promise("Corollary 1", clustering2022.corollary1(protocol.epsilon, protocol.labels))]


def statistic(
    protocol: RandomizedResponse, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic:
    """Return the victim's answer, for a view that reads it."""
    if not reads(coalition, channels):
        return Blind()
    return Answered.of(_budget(protocol), protocol.lying(), protocol.labels)


def local_epsilon(protocol: RandomizedResponse) -> float:
    """Return the budget; infinite where nobody lies."""
    return float(protocol.epsilon) if protocol.lying() else math.inf


def noise(protocol: RandomizedResponse) -> LabelNoise:
    """Return that senders lie."""
    return LabelNoise(protocol.lying(), protocol.labels)


def attack(protocol: RandomizedResponse, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what each report that the view reads says of its sender."""
    check_prior_rows(view, eta, protocol.labels)
    rows = channel(protocol.labels, float(protocol.lying()))
    return by_matrix(view, rows, "Unified 2023, Theorem 3.7, and its form for k labels")


register(
    RandomizedResponse,
    Accounting(
        labels=(BINARY, CLASSES),
        law=law,
        under_faults=under_faults,
        theorems=theorems,
        statistic=statistic,
        local_epsilon=local_epsilon,
        noise=noise,
        group=group,
        attack=attack,
        others_matter=False,
    ),
)

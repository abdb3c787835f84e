"""Uniform randomized response with dummy features: every observer of the report sees one randomized label."""

from __future__ import annotations

from collections.abc import Sequence

from p2p_sim.coalition import Coalition
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.statistic import Blind, Statistic
from p2p_sim.privacy.composition.grouped import apart
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import channel
from p2p_sim.privacy.mechanism_parts.label_reports import by_matrix, check_prior_rows
from p2p_sim.privacy.mechanism_parts.one_report import read_by, reads, under_faults
from p2p_sim.privacy.mechanism_parts.uniform_labels import answered, budget, lying, response
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, register
from p2p_sim.privacy.setting import Setting
from p2p_sim.privacy.theorems import Promise, local
from protocols import DummyFeatures

SOURCE = "Release 2023, Mechanism 3; closed form"


def law(protocol: DummyFeatures, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: nothing but the label, so it is the same whatever law features have."""
    return read_by(setting, response(protocol.lam, protocol.labels), SOURCE)


def group(protocol: DummyFeatures, setting: Setting, members: int) -> PrivacyProfile:
    """Return what a view learns of several labels: their reports are independent, and it sees whose each is."""
    return apart(law(protocol, setting), members)


def theorems(protocol: DummyFeatures, _view: str, _sizes: Sequence[int], _delta: float) -> list[Promise]:
    """Return the budget of the label.  Theorem 7.2 says what Mechanism 3 costs at least: it promises nothing."""
    return [local(budget(protocol.lam, protocol.labels), "Release 2023, Corollary E.2")]


def statistic(
    protocol: DummyFeatures, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic:
    """Return the victim's answer, for a view that reads it."""
    return answered(protocol.lam, protocol.labels) if reads(coalition, channels) else Blind()


def local_epsilon(protocol: DummyFeatures) -> float:
    """Return the budget; infinite where no label is replaced."""
    return budget(protocol.lam, protocol.labels)


def noise(protocol: DummyFeatures) -> LabelNoise:
    """Return how often labels are lies, and that each may be anybody's: they go with no features.

    So no model of features can be corrected; the shares of labels can (``losses.undo``), which a constant one needs.
    """
    return LabelNoise(lying(protocol.lam, protocol.labels), protocol.labels, "everybody")


def attack(protocol: DummyFeatures, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what each report that the view reads says of its sender: messages have senders, though releases do not."""
    check_prior_rows(view, eta, protocol.labels)
    rows = channel(protocol.labels, float(lying(protocol.lam, protocol.labels)))
    return by_matrix(view, rows, SOURCE)


register(
    DummyFeatures,
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

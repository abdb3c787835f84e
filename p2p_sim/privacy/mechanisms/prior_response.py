"""Randomized response with a prior: every observer of the report sees one of the m labels that can be reported."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.core.population import Population
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.statistic import Blind, Statistic
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import SHOWN, Evidence, ResamplingMatrices
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.label_reports import check_prior_rows, of_senders, readable, rows_of
from p2p_sim.privacy.mechanism_parts.one_report import answer, read_by, reads, under_faults
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, register
from p2p_sim.privacy.setting import Setting
from protocols import PriorResponse
from protocols.prior_response import check_prior

SOURCE = "Ghazi et al. 2021, RRWithPrior; the worst pair of labels, see docs/laws.md"
LIKELIHOOD = "Ghazi et al. 2021, RRWithPrior: P(report | label)"
GIVEN = "the prior is public and depends on no user's label"


def law(protocol: PriorResponse, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: randomized response among the m labels that can be reported."""
    m = reportable(protocol)
    found: Law = LocalResponse(local_epsilon(protocol), 2 if m is None else m) if m != 1 else Nothing()
    basis, assumes = (
        ("exact", GIVEN) if m is not None else ("upper", f"{GIVEN}; the worst prior there may be")
    )
    return read_by(setting, found, SOURCE, assumes, basis=basis)


def reportable(protocol: PriorResponse) -> int | None:
    """Return m, how many labels can be reported; None if every user has a prior of her own."""
    shared = protocol.shared_prior()
    return None if shared is None else int(protocol.reportable(shared[None])[1][0])


def matrix(protocol: PriorResponse) -> npt.NDArray[np.float64] | None:
    """Return P(report | label), shape (k, k), row by label; None if every user has a prior of her own."""
    shared = protocol.shared_prior()
    return None if shared is None else matrices(protocol, shared[None])[0]


def matrices(protocol: PriorResponse, prior: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return P(report | label) for each prior, shape (n, k, k), row by label; ``prior``: (n, k)."""
    said, m = _reportable(protocol, prior)
    k = protocol.labels
    truth, lie = _chances(protocol, m)
    found: npt.NDArray[np.float64] = (
        np.where(said[:, :, None], lie[:, None, None], 1 / m[:, None, None]) * said[:, None, :]
    )
    found[:, np.arange(k), np.arange(k)] = truth[:, None] * said
    return found


def noise(protocol: PriorResponse) -> LabelNoise:
    """Return how often users lie, if all can report all labels; else what each report says under the sender's prior."""
    if reportable(protocol) == protocol.labels:
        return LabelNoise(protocol.lying(protocol.labels), protocol.labels)
    return LabelNoise(
        Fraction(0), protocol.labels, reports=lambda columns, people: evidence(protocol, columns, people)
    )


def evidence(
    protocol: PriorResponse, columns: Mapping[str, npt.NDArray[Any]], people: Population
) -> Evidence:
    """Return what the reports say; weights of an unbiased loss exist where all k labels can be reported."""
    sender, y = columns["sender"].astype(np.int64), columns["y"].astype(np.int64)
    shared = protocol.shared_prior()
    if shared is not None:
        return of_reports(protocol, shared[None], sender, y)
    prior = check_prior('public column "prior"', people.public["prior"], protocol.labels)
    return of_reports(protocol, prior[sender], sender, y)


OTHERWISE = "give a prior closer to uniform, or more epsilon"


def of_reports(
    protocol: PriorResponse,
    prior: npt.NDArray[Any],
    sender: npt.NDArray[np.int64],
    y: npt.NDArray[np.int64],
    otherwise: str = OTHERWISE,
) -> Evidence:
    """Return what reports ``y`` (m,) of ``sender`` (m,) say; ``prior``: that of each, (m, k), or one of all, (1, k).

    ``otherwise``: what to do, beside the forward correction, where there is no unbiased loss.
    """
    said, m = (np.broadcast_to(each, (len(sender), *each.shape[1:])) for each in _reportable(protocol, prior))
    likelihood = likelihoods(protocol, prior, y)

    def unbiased() -> npt.NDArray[np.float64]:
        if (m < protocol.labels).any():
            raise InputError(_alike(protocol, said, m, otherwise))
        every = ResamplingMatrices.uniform(protocol.labels, float(protocol.lying(protocol.labels)))
        return every.weights(sender, y)

    short = int(np.count_nonzero(m < protocol.labels))
    note = ""
    if short:
        note = (
            f"{short:,} of {len(m):,} reports are of users who can report only some of the {protocol.labels} labels: "
            "their noise has no inverse, so the corrected model uses the forward loss, which needs none"
        )
    return Evidence(sender, likelihood, unbiased, note)


def likelihoods(
    protocol: PriorResponse, prior: npt.NDArray[Any], y: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return P(report | label), (m, k), of reports ``y`` (m,); ``prior``: of each, (m, k), or one of all, (1, k)."""
    said, m = (np.broadcast_to(each, (len(y), *each.shape[1:])) for each in _reportable(protocol, prior))
    truth, lie = _chances(protocol, m)
    chances = np.where(said, lie[:, None], 1 / m[:, None])
    chances[np.arange(len(y)), y] = truth
    return chances


def _reportable(
    protocol: PriorResponse, prior: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return which labels can be reported under each prior, a mask (n, k), and how many, (n,)."""
    order, m = protocol.reportable(prior)
    said = np.zeros(prior.shape, np.bool_)
    np.put_along_axis(said, order, np.arange(protocol.labels) < m[:, None], axis=1)
    return said, m


def _chances(
    protocol: PriorResponse, m: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return, of users who can report ``m`` labels, the probabilities of the truth, and of each single lie, (n,)."""
    lies = np.array([0.0, *(float(protocol.lying(few)) for few in range(1, protocol.labels + 1))])[m]
    return 1 - lies, lies / np.maximum(m - 1, 1)


def _alike(protocol: PriorResponse, said: npt.NDArray[Any], m: npt.NDArray[Any], otherwise: str) -> str:
    """Return why there is no unbiased loss, of users who cannot report all labels."""
    row, few = int(np.argmax(m < protocol.labels)), int(np.count_nonzero(m < protocol.labels))
    some = f"labels {np.flatnonzero(~said[row]).tolist()[:SHOWN]} from a mixture of the others"
    return (
        f"{few:,} reports come from users who can report fewer than {protocol.labels} labels, one of them the labels "
        f"{np.flatnonzero(said[row]).tolist()[:SHOWN]}: a report does not tell {'any labels' if m[row] == 1 else some} "
        "apart, so no weights make the loss unbiased; use the forward correction (losses.match_reports), which needs "
        f"no inverse, or {otherwise}"
    )


def statistic(
    protocol: PriorResponse, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic | None:
    """Return the victim's answer, for a view that reads it and a prior that all users share."""
    if not reads(coalition, channels):
        return Blind()
    rows = matrix(protocol)
    return None if rows is None else answer(coalition, channels, rows)


def local_epsilon(protocol: PriorResponse) -> float:
    """Return the budget; 0 where only one label can be reported, infinite where no lie can be drawn."""
    if reportable(protocol) == 1:
        return 0.0
    return float(protocol.epsilon) if protocol.lying(2) else math.inf


def attack(protocol: PriorResponse, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what each report that the view reads says of its sender's label, under her public prior."""
    check_prior_rows(view, eta, protocol.labels)
    reports, prior = readable(view, "report"), protocol.shared_prior()
    if prior is not None:
        prior = prior[None]
    elif "public/prior" in view.public:
        prior = view.public["public/prior"][rows_of(view, reports["sender"])]
    else:
        raise InputError(f'view = {view.name!r}: has no public column "prior", under which users answered')
    chances = likelihoods(protocol, prior, reports["y"].astype(np.int64))
    with np.errstate(divide="ignore"):
        return of_senders(view, reports["sender"], np.log(chances), LIKELIHOOD)


register(
    PriorResponse,
    Accounting(
        labels=(BINARY, CLASSES),
        law=law,
        under_faults=under_faults,
        statistic=statistic,
        local_epsilon=local_epsilon,
        noise=noise,
        attack=attack,
        others_matter=False,
    ),
)

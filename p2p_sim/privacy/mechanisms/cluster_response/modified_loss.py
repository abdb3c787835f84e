"""The modified loss of Algorithm 1 (lines 28 to 30): what labels say of which some were drawn from q~."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from p2p_sim.core.population import Population
from p2p_sim.privacy.label_matrices import Evidence, ResamplingMatrices
from p2p_sim.privacy.registry import LabelNoise
from protocols import ClusterResponse

Columns = Mapping[str, npt.NDArray[np.int64]]


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
    told, first = np.unique(columns["q_cluster"], return_index=True)
    q = columns["weights"][first] / columns["weights"][first].sum(axis=1, keepdims=True)
    known = np.isin(columns["cluster"], told)
    users = columns["sender"][known]
    group = np.zeros(people.users, np.int64)
    group[users] = np.searchsorted(told, columns["cluster"][known])
    if not len(told):
        return Evidence(users, np.ones((0, protocol.labels)), lambda: np.ones((0, protocol.labels)))
    matrices = ResamplingMatrices(float(protocol.settings().beta), q, group=group)
    found = matrices.evidence(users, columns["y"][known].astype(np.int64))
    left = int(np.count_nonzero(~known))
    return (
        replace(found, note=f"{left:,} labels are of clusters whose distribution was lost") if left else found
    )

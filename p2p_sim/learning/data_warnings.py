"""What to beware of in examples before a figure is read: rare labels, few users, ids and constant features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.data.label_columns import RARE

if TYPE_CHECKING:
    from p2p_sim.learning.data_split import Examples

CROWD = 30
"""Users below which a crowd hides nobody: shuffled among 20, randomized response of epsilon = 1 keeps 0.999 of it."""

LOST = (
    "so few hide little: what peers, shuffling and aggregation add to privacy is small or gone (randomized response of "
    "ε = 1 that is shuffled among 20 users keeps ε = 1.00 at δ = 1e-6, among 50 0.75, among 100 0.48), and a sum of "
    "few labels tells much of each; what users do to their own label, as in randomized response, protects as before"
)


def data_warnings(examples: Examples, protocol: Protocol | None = None) -> list[str]:
    """Return what to beware of in examples, a sentence each, with what to do; empty if nothing.

    ``protocol``: that runs among them; small crowds are warned of only if they hide somebody in it; None: any.
    """
    return [*rare_labels(examples), *few_users(examples, protocol), *examples.cautions]


def rare_labels(examples: Examples) -> list[str]:
    """Return that a class is so rare that accuracy says little; nothing of numbers."""
    rare = rarest(examples)
    if rare is None:
        return []
    label, share = rare
    data, shares = examples.about["data"], _shares(examples)
    count = int((examples.population.y.astype(np.int64) == label).sum())
    meant = data["classes"][label]
    what = meant if data["positive"] is not None else f"{data['label']} = {meant}"
    why = "accuracy says little of so rare a class"
    if len(shares) == 2:
        why = f"always the other label is right on {100 * shares.max():.6g} %, so accuracy says little"
    return [
        f"only {100 * share:.2g} % of the users ({count:,} of {examples.population.users:,}) have {what}: {why}; read "
        "balanced accuracy, AUC and average precision"
    ]


def rarest(examples: Examples) -> tuple[int, float] | None:
    """Return the rarest class and its share of the users, where it is rare; None otherwise, and of numbers."""
    if examples.values is not None:
        return None
    shares = _shares(examples)
    label = int(shares.argmin())
    return (label, float(shares[label])) if shares[label] < RARE / len(shares) else None


def utility_metric(examples: Examples) -> str:
    """Return the metric by which protocols are compared on examples: as ``p2p_sim.evaluate`` calls its column.

    "accuracy"; "auc" where a class is rare, which no share of classes changes; "rmse" of numbers.
    """
    if examples.values is not None:
        return "rmse"
    return "accuracy" if rarest(examples) is None else "auc"


def few_users(examples: Examples, protocol: Protocol | None = None) -> list[str]:
    """Return that the crowd, a cluster or everybody, is too small to hide anybody, and what stays."""
    from p2p_sim.privacy.registered import known

    people = examples.population
    if protocol is not None and not known(protocol).others_matter:
        return []
    everybody = not people.divided or (protocol is not None and protocol.mixes_everybody())
    sizes = np.array([people.users]) if everybody else people.sizes
    small = int((sizes < CROWD).sum())
    if not small:
        return []
    if everybody:
        return [f"there are {people.users} users: {LOST}"]
    least = int(sizes.min())
    if len(sizes) == 1:
        return [f"the cluster has {least} users: {LOST}"]
    return [
        f"{small:,} of the {len(sizes):,} clusters have fewer than {CROWD} users, the smallest {least}: {LOST}"
    ]


def _shares(examples: Examples) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the share of each class among the users, (k,)."""
    classes = len(examples.about["data"]["classes"])
    counts = np.bincount(examples.population.y.astype(np.int64), minlength=classes)
    return np.asarray(counts / examples.population.users, np.float64)

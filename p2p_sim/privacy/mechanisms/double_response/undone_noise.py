"""What released features and labels say of true labels, for learners: the noise of double randomized response undone.

A released row of features is the user's own with probability w, which depends on the row, and then its label is hers
with uniform noise.  Otherwise the label is that of a user with other features: it has the label shares of all.

*Source:* ``docs/laws.md``, "Release 2023".
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.privacy.label_matrices import Evidence, ResamplingMatrices
from p2p_sim.privacy.mechanism_parts import release_weights
from p2p_sim.privacy.mechanism_parts.uniform_labels import lying
from p2p_sim.privacy.mechanisms.double_response.feature_table import Table, joint, perfect, places, table_of
from p2p_sim.privacy.registry import LabelNoise
from protocols import DoubleResponse
from protocols.double_response import FEATURES, PUBLIC, UNKNOWN

Array = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]

LEAST_SHARE = 1e-9
"""Of a label that seems to be nobody's, so that features which go with it alone are not taken for impossible."""

OWN = (
    "features are public, so the corrected model is trained on those of the senders, not on the released ones"
)
COUNTED = "how often features were generated is estimated from how often each row was released"


def noise(protocol: DoubleResponse) -> LabelNoise:
    """Return what each released example says of the label that goes with its features."""
    k = protocol.labels
    if not protocol.lam:
        return LabelNoise(Fraction(0), k)
    return LabelNoise(Fraction(0), k, reports=lambda columns, people: evidence(protocol, columns, people))


def evidence(protocol: DoubleResponse, columns: Columns, _people: Population) -> Evidence:
    """Return what the released examples say.

    Public features are those of the senders; then this is uniform randomized response.  Otherwise features are the
    released ones, and the weights of an unbiased loss are those of Lemma G.1, corrected, which takes further rows of
    the generator.  Raises InputError where the law of released features is not known.
    """
    sender, y = columns["sender"].astype(np.int64), columns["y"].astype(np.int64)
    uniform = ResamplingMatrices.uniform(protocol.labels, float(lying(protocol.lam, protocol.labels)))
    if protocol.truth == PUBLIC:
        return uniform.evidence(sender, y, OWN)
    shares = label_shares(protocol, y)
    own, note = _own(protocol, columns["x"], _inside(shares))
    seen = np.isfinite(own)  # what neither users nor the generator can have drawn says nothing
    left = int(np.count_nonzero(~seen))
    if left:
        note = "; ".join(
            filter(None, [note, f"{left:,} rows of features that nobody can have were left out"])
        )
    own, y, x = own[seen], y[seen], columns["x"][seen]
    said = uniform.dense()
    likelihood = own[:, None] * said[:, y].T + ((1 - own) * (_inside(shares) @ said)[y])[:, None]
    table = table_of(protocol.model())
    rows = None if table is None else FEATURES.decoded(table[0])
    return Evidence(sender[seen], likelihood, lambda: _weights(protocol, y, shares, table), note, x, rows)


def label_shares(protocol: DoubleResponse, y: npt.NDArray[np.int64]) -> Array:
    """Return the shares of true labels (k,), from reports ``y`` (m,): unbiased, so they may lie outside [0, 1].

    Without a report, or where every label is replaced, all are alike.
    """
    k, lam = protocol.labels, protocol.lam
    if not len(y) or lam == 1:
        return np.full(k, 1 / k)
    return np.asarray((np.bincount(y, minlength=k) / len(y) - lam / k) / (1 - lam))


def _inside(shares: Array) -> Array:
    """Return shares cut to ``LEAST_SHARE`` and above, which sum to 1."""
    cut = np.maximum(shares, LEAST_SHARE)
    return np.asarray(cut / cut.sum())


def _own(protocol: DoubleResponse, x: npt.NDArray[Any], shares: Array) -> tuple[Array, str]:
    """Return how likely released features ``x`` (m, d) are the user's own, (m,), and a note; NaN where neither fits."""
    lam, listed = protocol.lam, joint(protocol) if protocol.truth != UNKNOWN else None
    if listed is not None:
        own, other = _listed(listed, x, shares)
        return _part((1 - lam) * own, lam * other), ""
    each = protocol.model().likelihood(x) if perfect(protocol) else None
    if each is not None:
        return _part((1 - lam) * (each @ shares), lam * each.mean(axis=1)), ""
    made = table_of(protocol.model())
    if made is None:
        raise InputError(_why(protocol))
    rows, chances = made
    _, which, counts = np.unique(_codes(x), axis=0, return_inverse=True, return_counts=True)
    at = places(rows, _codes(x))
    other = np.where(at < 0, 0.0, chances.mean(axis=0)[at])
    released = counts[which.ravel()] / max(len(x), 1)
    return 1 - np.minimum(lam * other / released, 1), COUNTED


def _listed(table: Table, x: npt.NDArray[Any], shares: Array) -> tuple[Array, Array]:
    """Return how likely users have each row, and how likely it is generated, (m,); 0 for a row of no table."""
    at = places(table.rows, _codes(x))
    both = (shares @ table.true)[at], table.made.mean(axis=0)[at]
    own, other = (np.where(at < 0, 0.0, side) for side in both)
    return own, other


def _part(own: Array, other: Array) -> Array:
    """Return own / (own + other), NaN where both are 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(own / (own + other))


def _codes(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return FEATURES.encoded(x, "features")


def _why(protocol: DoubleResponse) -> str:
    """Return why the law of released features is not known."""
    if perfect(protocol):
        return (
            f"generator = {protocol.generator!r}: does not say how likely its features are; give it a method "
            "likelihood(x), or a table"
        )
    return (
        f"truth = {protocol.truth!r}: it is not known which of the released features are generated; give what draws "
        'features as both truth and generator, a table as generator, or truth = "public" if everybody knows them'
    )


def _weights(
    protocol: DoubleResponse,
    y: npt.NDArray[np.int64],
    shares: Array,
    table: tuple[npt.NDArray[Any], Array] | None,
) -> Array:
    """Return the weights of the losses of released examples and of the generator's rows, (m + s, k)."""
    if protocol.lam == 1:
        raise InputError(
            "lam = 1: every label and all features are replaced, so that nothing is left of the true ones to undo; "
            "take a release with lam below 1"
        )
    if table is None:
        raise InputError(
            f"generator = {protocol.generator!r}: its rows are not listed, and the unbiased loss takes their mean; "
            "draw rows of each label from it (DoubleResponse(0, generator, labels, truth=generator) releases them), "
            "and give learning.training.release_loss.double_response as chances how often each is among those of its "
            "label"
        )
    released = release_weights.of_released(y, protocol.lam, protocol.labels)
    return np.concatenate([released, len(y) * release_weights.of_generated(protocol.lam, table[1], shares)])

"""The unbiased risk of examples whose labels and features were replaced by chance: double randomized response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.losses import undo
from p2p_sim.privacy.label_matrices import channel
from p2p_sim.privacy.mechanism_parts import release_weights

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ReleaseLoss:
    """The true risk as a sum of losses, each with a weight that may be negative.

    ``released`` (n, k): the weight of the loss of each released example if its label were y, for all y.
    ``synthetic`` (m, k): the same of m examples from the generator.  All weights together sum to 1.
    """

    released: Array
    synthetic: Array

    def risk(self, losses: Any, synthetic_losses: Any) -> float:
        """Return the weighted sum; ``losses`` (n, k) and ``synthetic_losses`` (m, k) of a model, by label.

        Of a model that was not fitted to these examples its expectation is the model's true risk.  Raises InputError
        for other shapes.
        """
        parts = (("losses", losses, self.released), ("synthetic_losses", synthetic_losses, self.synthetic))
        return float(sum((weights * _shaped(name, given, weights)).sum() for name, given, weights in parts))

    def cross_entropy(self, scores: Any, synthetic_scores: Any) -> tuple[float, Array, Array]:
        """Return the risk of the softmax of ``scores`` (n, k) and ``synthetic_scores`` (m, k), and both gradients.

        Unbiased, but neither convex nor bounded below: weights of whole examples are negative.  Raises InputError for
        other shapes.
        """
        from scipy.special import logsumexp

        parts = (("scores", scores, self.released), ("synthetic_scores", synthetic_scores, self.synthetic))
        value, gradients = 0.0, []
        for name, given, weights in parts:
            each = _shaped(name, given, weights)
            total, whole = logsumexp(each, axis=1, keepdims=True), weights.sum(axis=1, keepdims=True)
            value += float((weights * (total - each)).sum())
            gradients.append(np.exp(each - total) * whole - weights)
        return value, gradients[0], gradients[1]


def double_response(
    released: Any, lam: Any, chances: Any, shares: Any = None, counts: Any = None
) -> ReleaseLoss:
    """Return the unbiased risk of a release of double randomized response.

    ``released`` (n,): labels, from 0 to k - 1.  ``lam``: in [0, 1), the probability that the label is replaced by a
    uniform one, and that the features are replaced by generated ones.  ``chances`` (k, m): row j has the probabilities
    with which the generator of label j draws each of m rows of features; it sums to 1.  ``shares`` (k,): of the true
    labels; None: those of ``released``, noise undone, which is unbiased, too.  ``counts`` (n,): how often each was
    released; None: once.  Raises InputError for arguments out of range.

    R(h) = [E l(h(X), Y) - lam/k sum_j E l(h(X), j)]/(1-lam)^2 - lam/((1-lam) k) sum_j E_{x~j, y~shares} l(h(x), y).

    *Source:* Release 2023, Lemma G.1, corrected: docs/laws.md, "Release 2023".
    *Assumes:* the generator draws independently of all users; labels and features are replaced independently.
    """
    rate = _rate(lam)
    drawn = _laws("chances", chances, "a class that the generator lacks has no row")
    k = len(drawn)
    labels = _labels(released, k)
    often = np.ones(len(labels)) if counts is None else _counts(counts, len(labels))
    often = often / often.sum()
    if shares is None:
        found = undo(channel(k, rate * (k - 1) / k), np.bincount(labels, often, minlength=k))
    else:
        found = _laws("shares", [shares], f"give {k} shares")[0]
        if len(found) != k:
            raise InputError(f"shares = {shares!r}: give {k} shares, one a label of the generator")
    weights = often[:, None] * release_weights.of_released(labels, rate, k)
    return ReleaseLoss(weights, release_weights.of_generated(rate, drawn, found))


def _rate(lam: Any) -> float:
    number = isinstance(lam, (int, float, np.floating, np.integer)) and not isinstance(lam, bool)
    if not number or not 0 <= lam <= 1:
        raise InputError(f"lam = {lam!r}: must be a number from 0 to below 1")
    if lam == 1:
        raise InputError(
            "lam = 1: every label and all features are replaced, so that nothing is left of the true ones to undo; "
            "take a release with lam below 1"
        )
    return float(lam)


def _laws(name: str, values: Any, why: str) -> Array:
    rows = np.asarray(values, np.float64)
    good = rows.ndim == 2 and min(rows.shape) > 0 and bool((rows >= 0).all())
    if not good or not bool((np.abs(rows.sum(axis=1) - 1) < 1e-9).all()):
        raise InputError(f"{name} = {values!r}: needs rows of numbers from 0 up, each summing to 1; {why}")
    if name == "chances" and len(rows) < 2:
        raise InputError(f"{name} of shape {rows.shape}: needs a row for each of at least two labels")
    return rows


def _labels(released: Any, k: int) -> npt.NDArray[np.intp]:
    labels = np.asarray(released)
    whole = labels.ndim == 1 and labels.dtype.kind in "bui" and len(labels) > 0
    if not whole or int(labels.min()) < 0 or int(labels.max()) >= k:
        raise InputError(
            f"released = {released!r}: needs at least one label, whole numbers from 0 to {k - 1}, for which "
            "the generator has a row of chances"
        )
    return labels.astype(np.intp)


def _counts(counts: Any, n: int) -> Array:
    often = np.asarray(counts, np.float64)
    if often.shape != (n,) or not bool((often >= 0).all()) or not 0 < float(often.sum()) < np.inf:
        raise InputError(f"counts = {counts!r}: needs {n} numbers from 0 up, not all 0, one a released label")
    return often


def _shaped(name: str, given: Any, weights: Array) -> Array:
    values = np.asarray(given, np.float64)
    if values.shape != weights.shape:
        raise InputError(f"{name} of shape {values.shape}: needs {weights.shape}, one number a row and label")
    return values

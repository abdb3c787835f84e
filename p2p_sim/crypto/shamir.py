"""Shamir's secret sharing over the field of field.py: any ``threshold`` shares give the secret, fewer say nothing.

Nothing is random here: the caller gives the coefficients, as uniform words of a keyed draw.
Source: Shamir 1979.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.random_words import Words
from p2p_sim.crypto import field as gf
from p2p_sim.crypto.octets import Octets


class ShareError(InputError):
    """Shares that give no secret; the text says how many are needed and how many there are."""


def share(secrets: Words, threshold: int, shares: int, words: Words) -> Words:
    """Share secrets (m, l) so that ``threshold`` of ``shares`` give them back: (m, shares, l), share i at x = i + 1.

    ``words``: uniform words (m, threshold - 1, l), the coefficients.  Raises InputError for a threshold outside
    1 .. shares, secrets that are no field elements, or words of another shape.
    """
    if not 1 <= threshold <= shares < gf.PRIME:
        raise InputError(f"threshold = {threshold} of {shares} shares: needs 1 <= threshold <= shares")
    constant = gf.elements("secrets", secrets)
    if constant.ndim != 2:
        raise InputError(f"secrets: needs the shape (m, elements), not {constant.shape}")
    need = (constant.shape[0], threshold - 1, constant.shape[1])
    if words.dtype != np.uint64 or words.shape != need:
        raise InputError(f"words: needs uint64 of shape {need}, not {words.dtype} of {words.shape}")
    points = np.arange(1, shares + 1, dtype=np.uint64)[None, :, None]
    value = np.zeros((constant.shape[0], shares, constant.shape[1]), np.uint64)
    for power in reversed(range(threshold - 1)):  # Horner, from the highest coefficient down
        value = gf.multiply(gf.add(value, gf.from_words(words[:, None, power])), points)
    return gf.add(value, constant[:, None, :])


def recover(shares: Words, points: npt.NDArray[np.integer], threshold: int) -> Words:
    """Recover secrets (m, l) from shares (m, k, l) at ``points`` (k,) or (m, k), k >= threshold.

    Shares beyond the threshold must agree with the others.  Raises ShareError for too few shares, a point given
    twice, the point 0, or shares that disagree.  With exactly ``threshold`` shares a changed one cannot be detected.
    """
    values = gf.elements("shares", shares)
    if values.ndim != 3:
        raise InputError(f"shares: needs the shape (secrets, shares, elements), not {values.shape}")
    at = _points(points, values.shape[0], values.shape[1], threshold)
    through = _Through(at[:, :threshold], values[:, :threshold])
    for extra in range(threshold, values.shape[1]):
        differs = (through.at(at[:, extra]) != values[:, extra]).any(axis=1)
        if differs.any():
            raise ShareError(
                f"{int(differs.sum())} of {len(differs)} secrets: share {extra + 1} of {values.shape[1]} does not "
                f"agree with {threshold} others; one of them was changed"
            )
    return through.at(np.zeros(len(at), np.uint64))


def _points(points: npt.NDArray[np.integer], secrets: int, given: int, threshold: int) -> Words:
    at = gf.elements("points", points)
    if at.shape not in ((given,), (secrets, given)):
        raise ShareError(f"points: needs one a share, ({given},) or ({secrets}, {given}), not {at.shape}")
    at = np.atleast_2d(at)  # points in common are worked out once
    if threshold < 1:
        raise InputError(f"threshold = {threshold}: needs at least 1")
    if given < threshold:
        raise ShareError(f"too few shares: {threshold} are needed, {given} given")
    if bool((at == 0).any()):
        raise ShareError("a share at x = 0 would be the secret itself; shares are at x = 1, 2, ...")
    distinct = 1 + (np.diff(np.sort(at, axis=1), axis=1) != 0).sum(axis=1)
    if at.size and int(distinct.min()) < given:
        raise ShareError(
            f"the same share twice: {given} shares at {int(distinct.min())} different points; "
            f"{threshold} different ones are needed"
        )
    return at


class _Through:
    """The polynomials through values (m, t, l) at points (m, t), or (1, t) in common, in Lagrange's form."""

    def __init__(self, points: Words, values: Words):
        self.points, self.values = points, values
        self.scale = gf.invert(self._products(lambda others: points[:, others]))

    def at(self, x: Words) -> Words:
        """Evaluate at x (m,) or (1,): (m, l)."""
        weights = gf.multiply(self._products(lambda _: x[:, None]), self.scale)
        return gf.modular_sum(gf.multiply(weights[:, :, None], self.values), gf.PRIME, axis=1)

    def _products(self, minuend: Callable[[npt.NDArray[np.bool_]], Words]) -> Words:
        """Multiply, for each point, (minuend - other) over all other points."""
        count = self.points.shape[1]
        result = np.ones_like(self.points)
        for other in range(count):
            rest = np.arange(count) != other
            difference = gf.subtract(minuend(rest), self.points[:, other, None])
            result[:, rest] = gf.multiply(result[:, rest], difference)
        return result


def join_octets(elements: Words, width: int) -> Octets:
    """Return recovered elements (m, l) as byte rows (m, width); raises ShareError where they are none."""
    try:
        return gf.to_octets(elements, width)
    except InputError as error:
        raise ShareError(f"the recovered secret is not one of {width} bytes: a share was changed") from error

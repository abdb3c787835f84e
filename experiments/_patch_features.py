"""Features of images learnt without a label: how near the patches of each quarter are to centres of patches.

A single layer, by k-means (Coates, Lee and Ng 2011, "An analysis of single-layer networks in unsupervised feature
learning"), and a linear model on it: what two cores can train in place of the papers' deep networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.random_words import order, own_words, stream
from p2p_sim.learning.training.models import one_thread

Array = npt.NDArray[Any]

ROLE = "patch features"
PATCH, SAMPLE = 6, 30_000
"""Pixels along a side of a patch, and how many patches the centres are learnt from."""
CONTRAST, WHITE = 10.0, 0.1
"""Added to the variance of a patch of pixels from 0 to 255, and to the eigenvalues when it is whitened."""
BLOCK = 500


@dataclass(frozen=True, eq=False)
class Filters:
    """Whitening, (width) and (width, width), and centres (k, width) of patches of ``channels`` colours."""

    mean: Array
    white: Array
    centres: Array
    channels: int

    def features(self, images: Array, side: int, stride: int) -> Array:
        """Return features (n, 4 k) of images (n, side * side * channels): the sums of each quarter.

        *Source:* Coates et al. 2011, Equation 2 ("triangle").
        """
        found = np.empty((len(images), 4 * len(self.centres)), np.float32)
        with one_thread():
            for low in range(0, len(images), BLOCK):
                few = images[low : low + BLOCK]
                found[low : low + BLOCK] = self._pooled(_patches(few, side, self.channels, stride))
        return found

    def _pooled(self, patches: Array) -> Array:
        """Return features of patches (n, places, places, width)."""
        n, places = patches.shape[:2]
        rows = ((_evened(patches.reshape(n * places**2, -1)) - self.mean) @ self.white).astype(np.float32)
        squares = (rows**2).sum(axis=1)[:, None] + (self.centres**2).sum(axis=1) - 2 * rows @ self.centres.T
        away = np.sqrt(np.maximum(squares, 0))
        near = np.maximum(away.mean(axis=1, keepdims=True) - away, 0).reshape(n, places, places, -1)
        half = places // 2
        quarters = [near[:, a, b].sum(axis=(1, 2)) for a in _halves(half) for b in _halves(half)]
        return np.concatenate(quarters, axis=1)


def _halves(half: int) -> tuple[slice, slice]:
    return slice(None, half), slice(half, None)


def learnt(images: Array, side: int, channels: int, centres: int, seed: int) -> Filters:
    """Learn centres from patches of images (n, side * side * channels), pixels 0 to 255; labels are not looked at."""
    from sklearn.cluster import MiniBatchKMeans

    few = images[order(own_words(seed, stream(ROLE, "images", 0), 0, len(images)))[: SAMPLE // 10]]
    rows = _patches(few, side, channels, 1).reshape(-1, PATCH * PATCH * channels)
    rows = _evened(rows[order(own_words(seed, stream(ROLE, "patches", 0), 0, len(rows)))[:SAMPLE]])
    mean = rows.mean(axis=0)
    with one_thread():
        values, vectors = np.linalg.eigh(np.cov(rows - mean, rowvar=False))
        white = ((vectors / np.sqrt(values + WHITE)) @ vectors.T).astype(np.float32)
        found = MiniBatchKMeans(centres, n_init=1, max_iter=20, random_state=seed).fit((rows - mean) @ white)
    return Filters(mean, white, found.cluster_centers_.astype(np.float32), channels)


def _patches(images: Array, side: int, channels: int, stride: int) -> Array:
    """Return the patches of images, (n, places, places, patch * patch * channels)."""
    shaped = images.astype(np.float32).reshape(-1, side, side, channels)
    windows = np.lib.stride_tricks.sliding_window_view(shaped, (PATCH, PATCH), axis=(1, 2))
    chosen = windows[:, ::stride, ::stride]
    return np.ascontiguousarray(chosen).reshape(*chosen.shape[:3], -1)


def _evened(rows: Array) -> Array:
    """Return patches of mean 0 and a variance of about 1."""
    off = rows - rows.mean(axis=1, keepdims=True)
    return np.asarray(off / np.sqrt(off.var(axis=1, keepdims=True) + CONTRAST), np.float32)

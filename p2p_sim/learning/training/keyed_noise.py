"""Gaussian noise of trainers, from the project's own random words: equal seeds, equal noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.random_words import own_words


def gaussian(seed: int, stream: int, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return standard Gaussian noise of a stream.

    Each random word picks the middle of one of 2^53 equal parts of (0, 1); its normal quantile is returned.  None is
    beyond 8.3 standard deviations.
    """
    from scipy.special import ndtri

    drawn = own_words(seed, stream, 0, math.prod(shape)) >> np.uint64(11)
    below = drawn < np.uint64(
        1 << 52
    )  # the upper half as the lower's mirror image: 1 - u would be rounded to 1
    part = np.where(below, drawn, np.uint64((1 << 53) - 1) - drawn)
    found: npt.NDArray[Any] = ndtri((part.astype(np.float64) + 0.5) * 2.0**-53)
    return np.asarray(np.where(below, found, -found)).reshape(shape)

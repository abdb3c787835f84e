"""Labels as the numbers of their classes, for trainers whose classes are public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError

Array = npt.NDArray[Any]


def numbered(y: Array, given: Sequence[Any] | None) -> tuple[Array, Array]:
    """Return the classes, those ``given`` or else those of y, and the number of each label among them."""
    if isinstance(given, (set, frozenset)) or (given is not None and np.ndim(given) != 1):
        raise InputError(f"classes = {given!r}: give a list of all that a label can be, in ascending order")
    classes = np.unique(y) if given is None else np.asarray(given)
    if len(classes) < 2:
        raise InputError(
            f"Classifier can't train when only one class is present: {classes.tolist()}; name two or more"
        )
    if not (classes[:-1] < classes[1:]).all():
        raise InputError(f"classes = {given!r}: must be different and in ascending order")
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise InputError(f"y has labels that are not in classes: {unknown[:5].tolist()}; name them there")
    return classes, np.searchsorted(classes, y)

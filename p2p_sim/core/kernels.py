"""Chooses the inner loops of a run, numba or numpy; both give the same bits."""

from __future__ import annotations

import os
import sys
import warnings
from types import ModuleType

from p2p_sim.core.errors import InputError

NUMPY, NUMBA = "kernels_numpy", "kernels_numba"
WORTH_COMPILING = 1_000_000
"""Users from which loading the compiled kernels (half a second or so) is repaid by protocols that compute much."""
WORTH_CALLING = 10_000
"""Users from which the kernels are used where this process has loaded them already."""


def choose(users: int) -> ModuleType:
    """Return the inner loops of one kind; P2P_SIM_NUMBA=0 forbids numba, =1 demands it, unset decides by size."""
    setting = os.environ.get("P2P_SIM_NUMBA", "")
    if setting not in ("", "0", "1"):
        raise InputError(
            f"P2P_SIM_NUMBA={setting!r}: set it to 0 (numpy only), 1 (always numba) or leave it unset"
        )
    least = WORTH_CALLING if f"{__package__}.{NUMBA}" in sys.modules else WORTH_COMPILING
    if setting == "0" or (setting == "" and users < least):
        return load(NUMPY)
    try:
        return load(NUMBA)
    except (RuntimeError, OSError) as error:  # numba finds no folder that it can write to
        fix = "set NUMBA_CACHE_DIR to a folder that can be written to"
        if setting == "1":
            raise InputError(f"P2P_SIM_NUMBA=1, but numba cannot compile here ({error}): {fix}") from error
        warnings.warn(f"numba cannot compile here ({error}): running without it, slower; {fix}", stacklevel=2)
        return load(NUMPY)


def at_hand(rows: int) -> ModuleType:
    """Return the inner loops for a call on so many rows; numba's only if this process has loaded them already."""
    return choose(rows) if f"{__package__}.{NUMBA}" in sys.modules else load(NUMPY)


def load(name: str) -> ModuleType:
    """Import the inner loops of one kind, ``NUMPY`` or ``NUMBA``."""
    if name == NUMPY:
        from p2p_sim.core import kernels_numpy

        return kernels_numpy
    from p2p_sim.core import kernels_numba

    return kernels_numba

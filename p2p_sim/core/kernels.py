"""Which inner loops a run uses: numba where it pays, numpy otherwise; their bits are equal."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from types import ModuleType

from p2p_sim.core.errors import InputError

_PLACE = "p2p_sim.core"
WORTH_COMPILING = 1_000_000
"""Users from which loading the compiled kernels (half a second or so) is repaid by protocols that compute much."""
WORTH_CALLING = 10_000
"""Users from which the kernels are used where this process has loaded them already."""


def choose(users: int) -> ModuleType:
    """Return ``plain`` or ``kernels``; P2P_SIM_NUMBA=0 forbids numba, =1 demands it, unset decides by size."""
    wish = os.environ.get("P2P_SIM_NUMBA", "")
    if wish not in ("", "0", "1"):
        raise InputError(
            f"P2P_SIM_NUMBA={wish!r}: set it to 0 (numpy only), 1 (always numba) or leave it unset"
        )
    least = WORTH_CALLING if f"{_PLACE}.kernels" in sys.modules else WORTH_COMPILING
    if wish == "0" or (wish == "" and users < least):
        return load("plain")
    try:
        return load("kernels")
    except (RuntimeError, OSError) as error:  # numba finds no folder that it can write to
        fix = "set NUMBA_CACHE_DIR to a folder that can be written to"
        if wish == "1":
            raise InputError(f"P2P_SIM_NUMBA=1, but numba cannot compile here ({error}): {fix}") from error
        warnings.warn(f"numba cannot compile here ({error}): running without it, slower; {fix}", stacklevel=2)
        return load("plain")


def load(name: str) -> ModuleType:
    """Import the module of inner loops called ``plain`` or ``kernels``."""
    return importlib.import_module(f"{_PLACE}.{name}")

"""Chooses the inner loops of a run, numba or numpy, or first numpy's and then numba's; all give the same bits."""

from __future__ import annotations

import os
import sys
import warnings
from types import ModuleType

from p2p_sim.core.errors import InputError

NUMPY, NUMBA, TRIAL = "kernels_numpy", "kernels_numba", "numba_trial"
WORTH_COMPILING = 1_000_000
"""Users from which loading the compiled kernels (half a second or so) is repaid by protocols that compute much."""
WORTH_CALLING = 10_000
"""Users from which the kernels are used where this process has loaded them already."""
WORTH_AT_ONCE = 20_000_000
"""Users from which any protocol repays the loading."""
WORTH_SECONDS = 1.0
"""CPU seconds after which a run that began with numpy loads the kernels: twice what that takes.

So a run takes no more than this and the loading longer than if it had known, and most runs of a few million users,
whose work numpy does in less, never load them.
"""


REFUSED = (RuntimeError, OSError, ValueError)
"""What numba raises where it finds no folder that it can write to, and for values of its own variables."""


def choose(users: int) -> ModuleType:
    """Return the inner loops of one kind; P2P_SIM_NUMBA=0 forbids numba, =1 demands it, unset decides by size."""
    setting = numba_setting()
    least = WORTH_CALLING if f"{__package__}.{NUMBA}" in sys.modules else WORTH_COMPILING
    if setting == "0" or (setting == "" and users < least):
        return load(NUMPY)
    try:
        return load(NUMBA)
    except REFUSED as error:
        if setting == "1":
            raise InputError(
                f"P2P_SIM_NUMBA=1, but numba cannot compile here ({error}): {_fix(error)}"
            ) from error
        warnings.warn(missing_numba_text(error), stacklevel=2)
        return load(NUMPY)


def numba_setting() -> str:
    """Return P2P_SIM_NUMBA: "0", "1", or "" if it is unset; raises InputError for anything else."""
    setting = os.environ.get("P2P_SIM_NUMBA", "")
    if setting not in ("", "0", "1"):
        raise InputError(
            f"P2P_SIM_NUMBA={setting!r}: set it to 0 (numpy only), 1 (always numba) or leave it unset"
        )
    return setting


def why_not_compiled() -> str:
    """Return why numba cannot compile here, and what to do; empty if it can.

    It compiles one small loop: all of them take 16 s of CPU where numba has not kept them yet.
    """
    try:
        load(TRIAL)
    except REFUSED as error:
        return missing_numba_text(error)
    return ""


def missing_numba_text(error: Exception) -> str:
    """Return what to say where numba cannot compile, of one of ``REFUSED``."""
    return f"numba cannot compile here ({error}): running without it, slower; {_fix(error)}"


def _fix(error: Exception) -> str:
    """Return what to do where numba cannot compile."""
    if not isinstance(error, ValueError):
        return "set NUMBA_CACHE_DIR to a folder that can be written to"
    had = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_")]
    return f"correct or unset {', '.join(had) or 'its settings'}"


def compiles(users: int, seconds: float | None = None) -> bool:
    """Return whether a run of so many users takes the compiled loops; see ``choose``.

    ``seconds``: that numpy's would take, of a run in one process, which begins with them; see ``choose_or_switch``.
    """
    setting = os.environ.get("P2P_SIM_NUMBA", "")
    if seconds is None:
        worth = users >= WORTH_COMPILING
    else:
        worth = users >= WORTH_AT_ONCE or (users >= WORTH_CALLING and seconds > WORTH_SECONDS)
    return setting == "1" or (setting == "" and worth)


class NumpyThenNumba(ModuleType):
    """Inner loops that begin as numpy's, and become numba's when ``switch`` is called, between two steps of a run."""

    def __init__(self) -> None:
        numpy_loops = load(NUMPY)
        super().__init__(numpy_loops.__name__)
        self._take(numpy_loops)
        self._seconds, self._switched = 0.0, False

    def due(self, seconds: float) -> bool:
        """Take down CPU seconds that a run spent; return whether it is time to switch."""
        self._seconds += seconds
        return not self._switched and self._seconds > WORTH_SECONDS

    def switch(self) -> None:
        """Load the compiled loops; where numba cannot compile, warn and stay as it is."""
        self._switched = True
        self._take(choose(WORTH_COMPILING))

    def _take(self, loops: ModuleType) -> None:
        vars(self).update({name: getattr(loops, name) for name in loops.__all__})


def choose_or_switch(users: int) -> ModuleType:
    """Return the inner loops of one process that need not know beforehand how much there is to do; see ``choose``."""
    undecided = os.environ.get("P2P_SIM_NUMBA", "") == "" and f"{__package__}.{NUMBA}" not in sys.modules
    return NumpyThenNumba() if undecided and WORTH_CALLING <= users < WORTH_AT_ONCE else choose(users)


def at_hand(rows: int) -> ModuleType:
    """Return the inner loops for a call on so many rows; numba's only if this process has loaded them already."""
    return choose(rows) if f"{__package__}.{NUMBA}" in sys.modules else load(NUMPY)


def load(name: str) -> ModuleType:
    """Import the inner loops of one kind, ``NUMPY`` or ``NUMBA``; or ``TRIAL``, one loop by numba."""
    if name == NUMPY:
        from p2p_sim.core import kernels_numpy

        return kernels_numpy
    if name == TRIAL:
        from p2p_sim.core import numba_trial

        return numba_trial
    from p2p_sim.core import kernels_numba

    return kernels_numba

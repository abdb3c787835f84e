"""The δ of privacy figures: the default, its check, and a warning where it hides too much."""

from __future__ import annotations

from p2p_sim.core.errors import InputError

DELTA = 1e-6
"""The default delta of every table, whoever makes it: a figure asked for twice is the same."""

LITTLE = 10
"""Delta should be below 1 / (this factor times the size of the largest cluster)."""


def check_delta(delta: float) -> float:
    """Return a delta that is asked for; raises InputError outside of [0, 1)."""
    if not 0 <= delta < 1:
        raise InputError(f"delta = {delta!r}: must be a number in [0, 1)")
    return delta


def delta_warning(delta: float, users: int) -> str:
    """Return a warning if delta is not far below 1 / users, otherwise an empty text."""
    if delta < 1 / (LITTLE * users):
        return ""
    return (
        f"δ = {delta:g} is not far below 1/{users:,}: a peer who sees one user's label in the clear with that "
        f"chance counts as learning nothing"
    )

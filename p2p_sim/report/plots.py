"""Curves delta(epsilon) of several views, in colours and dashes that anybody can tell apart."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.laws.combine import Worst
from p2p_sim.privacy.profile import Law, PrivacyProfile

Array = npt.NDArray[np.float64]

KINDS = ("svg", "png")
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_LEAST = 1e-12
_SHARES = np.array([*np.linspace(0, 0.9, 19), *(1 - 10.0**-k for k in (1.5, 2, 3, 6, 11)), 1.0])
"""Where a curve is drawn, in parts of its length: many fall only at their very end."""
_EVERY = (
    4  # the composition is searched for at every so many points; between them the worse of both neighbours
)


def kind_of(path: str) -> str:
    """Return svg or png; raises InputError for another ending or a folder that is not there."""
    place = Path(path)
    kind = place.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise InputError(f"--plot {path!r}: the name must end in .svg or .png")
    if not place.absolute().parent.is_dir() or place.is_dir():
        raise InputError(f"--plot {path!r}: give a file in a folder that exists")
    return kind


def curve(law: Law) -> tuple[Array, Array]:
    """Return epsilons and deltas as exact as a picture shows: shape (points,) each."""
    parts = [part.with_floor(_LEAST / 10) for part in (law.laws if isinstance(law, Worst) else (law,))]

    def worst(epsilon: float) -> Law:
        return max((p.at_worst(epsilon).quick() for p in parts), key=lambda p: p.delta(epsilon).value)

    grid = _SHARES * _end(law.pure(), lambda epsilon: worst(epsilon).delta(epsilon).value)
    looked = [worst(float(epsilon)) for epsilon in grid[::_EVERY]]
    deltas = []
    for i, epsilon in enumerate(grid):
        near = set(looked[i // _EVERY : i // _EVERY + 2])
        deltas.append(max(part.delta(float(epsilon)).value for part in near))
    return grid, np.maximum(deltas, _LEAST)


def _end(pure: float, delta: Callable[[float], float]) -> float:
    """Return where delta comes to ``_LEAST``, to a percent above; 10 if it never does."""
    low, high = 0.0, pure
    if math.isinf(high):
        high = next((2.0**k for k in range(-20, 20) if delta(2.0**k) <= _LEAST), 0.0)
        if not high:
            return 10.0
    elif delta(high * (1 - 1e-11)) > _LEAST:
        return high
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > _LEAST else (low, middle)
    return high


def curves(profiles: Mapping[str, PrivacyProfile], title: str, path: str) -> None:
    """Draw delta(epsilon) of each view into a file, whole or not at all; raises InputError."""
    kind = kind_of(path)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("--plot needs matplotlib: pip install matplotlib") from error
    drawing = Figure(figsize=(8, 5), layout="constrained")
    axes = drawing.subplots()
    for i, (name, profile) in enumerate(profiles.items()):
        if profile.law is None:
            continue
        j = i % len(_COLOURS)
        axes.plot(*curve(profile.law), color=_COLOURS[j], linestyle=_DASHES[j], linewidth=1.8, label=name)
    axes.set(yscale="log", ylim=(_LEAST, 2), xlabel="ε (nats)", ylabel="δ(ε)", title=title)
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize="small")
    place = Path(path)
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        drawing.savefig(fresh, format=kind)
        fresh.replace(place)
    finally:
        fresh.unlink(missing_ok=True)

"""Plots of delta(epsilon) of several views, in colours and dashes that everybody can tell apart."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.report import matplotlib_settings, output_files

Array = npt.NDArray[np.float64]
Progress = Callable[[str, int, int], None]

KINDS = ("svg", "png")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_LEAST = 1e-12
_POINTS, _FEW, _SECONDS = 60, 24, 6.0
"""Points of a curve: ``_POINTS``, or ``_FEW`` after ``_SECONDS``."""

_FIRST = 7  # of them evenly over the curve
_NARROW = 1e-3  # parts of the curve's length that are not divided further
_FLAT = 0.5  # what the whole length counts beside the whole height, when the widest gap is looked for
_FILL = 5  # pieces of the line between two points


def _silent(_label: str, _done: int, _total: int) -> None:
    """Say nothing."""


def kind_of(path: str) -> str:
    """Return svg or png, by the name's ending; raises InputError for another ending or a place that is not writable."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise InputError(f"--plot {path!r}: the name must end in .svg or .png")
    output_files.check(path, "--plot")
    return kind


def curve(law: Law) -> tuple[Array, Array]:
    """Return epsilons and the law's deltas, at least ``_LEAST``: shape (points,) each.

    Every delta is evaluated, at the composition that is worst there.  Points are denser where the curve is steep, and
    fewer for a law that is slow to evaluate.
    """
    start = time.monotonic()
    drawn = law.with_floor(_LEAST / 10)

    def delta(epsilon: float) -> float:
        return max(_LEAST, drawn.delta(epsilon).value if epsilon < drawn.pure() else 0.0)

    end = _end(law.pure(), delta)
    grid = [float(share) * end for share in np.linspace(0, 1, _FIRST)] if end else [0.0]
    points = [(epsilon, delta(epsilon)) for epsilon in grid]
    while len(points) < (_POINTS if time.monotonic() - start < _SECONDS else _FEW):
        gaps = [_gap(*pair, end) for pair in pairwise(points)]
        if max(gaps, default=0.0) <= 0:
            break
        widest = gaps.index(max(gaps))
        middle = (points[widest][0] + points[widest + 1][0]) / 2
        points.insert(widest + 1, (middle, delta(middle)))
    found = np.array(points)
    return found[:, 0], found[:, 1]


def _gap(one: tuple[float, float], two: tuple[float, float], end: float) -> float:
    """Return how much of a curve lies between two points, by height and by length; 0 if it is too narrow."""
    width = (two[0] - one[0]) / end
    return math.log(one[1] / two[1]) / math.log(1 / _LEAST) + _FLAT * width if width > _NARROW else 0.0


def line(epsilons: Array, deltas: Array) -> tuple[Array, Array]:
    """Return interpolated points that lie nowhere below the curve: delta is convex in e^epsilon."""
    share = np.linspace(0, 1, _FILL, endpoint=False)
    low, high = epsilons[:-1, None], epsilons[1:, None]
    at = low + share * (high - low)
    part = np.expm1(at - low) / np.expm1(high - low)
    over = deltas[:-1, None] + part * (deltas[1:, None] - deltas[:-1, None])
    return np.append(at.ravel(), epsilons[-1]), np.append(over.ravel(), deltas[-1])


def _end(pure: float, delta: Callable[[float], float]) -> float:
    """Return the epsilon where delta reaches ``_LEAST``, up to 1 % too large; 10 if it never does."""
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


def curves(
    profiles: Mapping[str, PrivacyProfile],
    title: str,
    path: str,
    asked: float = 0.0,
    progress: Progress = _silent,
) -> None:
    """Plot delta(epsilon) of each view into a file, completely or not at all; raises InputError.

    ``asked``: a delta to mark by a horizontal line, if it is in the picture.
    """
    kind = kind_of(path)
    with matplotlib_settings.shipped({"svg.hashsalt": "p2p-sim"}):
        drawn = _drawn(kind, profiles, title, asked, progress)
    output_files.write(Path(path), drawn)


def _drawn(
    kind: str, profiles: Mapping[str, PrivacyProfile], title: str, asked: float, progress: Progress
) -> bytes:
    """Return the plot's file, the same bytes for the same curves."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 5), layout="constrained")
    axes = drawing.subplots()
    for i, (name, profile) in enumerate(profiles.items()):
        if profile.law is None:
            continue
        progress(f"drawing {name}", i, len(profiles))
        j = i % len(COLOURS)
        drawn = line(*curve(profile.law))
        label = f"{name} ({profile.basis})"
        axes.plot(*drawn, color=COLOURS[j], linestyle=_DASHES[j], linewidth=1.8, label=label)
    if _LEAST <= asked < 1:
        axes.axhline(asked, color="#666666", linewidth=0.8, label=f"δ = {asked:g}")
    axes.set(yscale="log", ylim=(_LEAST, 2), xlabel="ε (nats)", ylabel="δ(ε)", title=title)
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize="small")
    drawn_bytes = io.BytesIO()
    drawing.savefig(drawn_bytes, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return drawn_bytes.getvalue()

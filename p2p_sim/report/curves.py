"""Plots of delta(epsilon) of several views, in colours and dashes that everybody can tell apart."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy import delta_curve
from p2p_sim.privacy.delta_curve import LEAST
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.progress import silent
from p2p_sim.report import matplotlib_settings, output_files

Array = npt.NDArray[np.float64]
Progress = Callable[[str, int, int], None]

KINDS, TABLES = ("svg", "png"), ("csv", "parquet")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_POINTS = 48
"""Points of a curve: of many users, one may take a second; the line between so many lies close to the curve."""
_FILL = 5  # pieces of the line between two points


def kind_of(path: str) -> str:
    """Return svg, png, csv or parquet, by the name's ending; raises InputError for another, or an unwritable place."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in KINDS + TABLES:
        raise InputError(
            f"--plot {path!r}: the name must end in .svg or .png, or for a table in .csv or .parquet"
        )
    output_files.check(path, "--plot")
    return kind


def curve(law: Law) -> tuple[Array, Array]:
    """Return epsilons and the law's deltas, at least ``LEAST``, as ``delta_curve.points`` chooses them."""
    return delta_curve.points(law, most=_POINTS)


def line(epsilons: Array, deltas: Array) -> tuple[Array, Array]:
    """Return interpolated points that lie nowhere below the curve: delta is convex in e^epsilon."""
    share = np.linspace(0, 1, _FILL, endpoint=False)
    low, high = epsilons[:-1, None], epsilons[1:, None]
    at = low + share * (high - low)
    part = np.expm1(at - low) / np.expm1(high - low)
    over = deltas[:-1, None] + part * (deltas[1:, None] - deltas[:-1, None])
    return np.append(at.ravel(), epsilons[-1]), np.append(over.ravel(), deltas[-1])


def curves(
    profiles: Mapping[str, PrivacyProfile],
    title: str,
    path: str,
    asked: float = 0.0,
    progress: Progress = silent,
) -> None:
    """Write delta(epsilon) of each view into a file, completely or not at all; raises InputError.

    By the name's ending a plot, or a table with the rows of ``PrivacyProfile.curve`` for each view.  ``asked``: a delta
    to mark by a horizontal line, if it is in the picture.
    """
    kind = kind_of(path)
    if kind in TABLES:
        output_files.write(Path(path), _table(kind, profiles, progress))
        return
    with matplotlib_settings.shipped({"svg.hashsalt": "p2p-sim"}):
        drawn = _drawn(kind, profiles, title, asked, progress)
    output_files.write(Path(path), drawn)


def _table(kind: str, profiles: Mapping[str, PrivacyProfile], progress: Progress) -> bytes:
    """Return the rows of all curves as a CSV or Parquet file; a view goes by its title."""
    import pandas

    frames = []
    for i, (name, profile) in enumerate(profiles.items()):
        progress(f"computing the curve of {name}", i, len(profiles))
        frames.append(profile.curve().assign(view=name))
    whole = pandas.concat(frames, ignore_index=True) if frames else delta_curve.frame((), "", "")
    if kind == "csv":
        return bytes(whole.to_csv(index=False, lineterminator="\n").encode())
    return bytes(whole.to_parquet(index=False))


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
    if LEAST <= asked < 1:
        axes.axhline(asked, color="#666666", linewidth=0.8, label=f"δ = {asked:g}")
    axes.set(yscale="log", ylim=(LEAST, 2), xlabel="ε (nats)", ylabel="δ(ε)", title=title)
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize="small")
    drawn_bytes = io.BytesIO()
    drawing.savefig(drawn_bytes, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return drawn_bytes.getvalue()

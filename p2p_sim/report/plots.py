"""Curves delta(epsilon) of several views, in colours and dashes that anybody can tell apart."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.profile import PrivacyProfile

KINDS = ("svg", "png")
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_LEAST, _POINTS, _FEW = 1e-12, 24, 7


def kind_of(path: str) -> str:
    """Return svg or png; raises InputError for another ending or a folder that is not there."""
    place = Path(path)
    kind = place.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise InputError(f"--plot {path!r}: the name must end in .svg or .png")
    if not place.absolute().parent.is_dir() or place.is_dir():
        raise InputError(f"--plot {path!r}: give a file in a folder that exists")
    return kind


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
        end = profile.epsilon(_LEAST)
        points = _FEW if "*user" in name else _POINTS  # these laws take a while
        last = end if np.isfinite(end) else 10.0
        near = [1 - 10.0**-k for k in (1.5, 2, 3, 5, 8, 11)]  # many curves fall only at their very end
        grid = last * np.array([*np.linspace(0, 0.9, points), *near, 1.0])
        delta = np.maximum([profile.delta(float(e)) for e in grid], _LEAST)
        j = i % len(_COLOURS)
        axes.plot(grid, delta, color=_COLOURS[j], linestyle=_DASHES[j], linewidth=1.8, label=name)
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

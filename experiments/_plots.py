"""Plots of experiments: colours that all can tell apart, and files that are equal bytes for equal rows."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p_sim.report import matplotlib_settings, output_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, RED, GREEN, PINK, ORANGE, BLACK, SKY = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9",
)  # fmt: skip
"""Okabe and Ito."""
COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, BLACK, SKY)
MARKERS = ("o", "s", "D", "^", "P", "X", "v")

_STYLE = {"svg.hashsalt": "p2p-sim", "svg.fonttype": "none"}


def panels(rows: int, columns: int, size: tuple[float, float] | None = None) -> tuple[Figure, Any]:
    """Return a figure and its axes, (rows, columns); ``size`` in inches, default 4.2 by 3.4 a panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size or (4.2 * columns, 3.4 * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(plot: Callable[[], Figure], path: Path) -> None:
    """Draw with the shipped settings and write path.png and path.svg, each whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib_settings.shipped(_STYLE):
        figure = plot()
        for kind, about in (("png", {"Software": None}), ("svg", {"Date": None})):
            drawn = io.BytesIO()
            figure.savefig(drawn, format=kind, dpi=110, metadata=about)
            output_files.write(path.parent / f"{path.name}.{kind}", drawn.getvalue())

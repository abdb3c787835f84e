"""J(tau), the share of people whose expected loss is above tau, with its bounds: rows of a table, and their picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import _plots
from experiments._neighbours import People

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TAUS = tuple(float(tau) for tau in np.arange(3.0, 14.01, 0.5))


def j_rows(of: People, flip: float) -> list[dict[str, Any]]:
    """Return J(tau) of one data set, a row a tau, with its bounds."""
    rows = []
    for tau in TAUS:
        found = of.found.above(tau, flip)
        rows.append(
            of.described()
            | {"flip": flip, "tau": tau, "lower": found.lower, "J": found.value, "upper": found.upper}
        )
    return rows


def plot_j(rows: Sequence[dict[str, Any]], name: str, by: str = "flip") -> Figure:
    """Draw J(tau) with its bounds, a panel a setting of ``by``."""
    settings = list(dict.fromkeys(row[by] for row in rows))
    figure, axes = _plots.panels(1, len(settings), (4.6 * len(settings), 3.6))
    for axis, setting in zip(axes[0], settings, strict=True):
        for colour, data in zip(_plots.COLOURS, dict.fromkeys(row["data"] for row in rows), strict=False):
            mine = [row for row in rows if (row["data"], row[by]) == (data, setting)]
            tau, about = [row["tau"] for row in mine], mine[0]["about"]
            axis.plot(tau, [row["J"] for row in mine], color=colour, label=f"{data} ({about})")
            axis.fill_between(
                tau,
                [row["lower"] for row in mine],
                [row["upper"] for row in mine],
                color=colour,
                alpha=0.15,
                lw=0,
            )
        axis.set(title=f"{by} {setting:g}", xlabel="τ (nats)", ylabel=name, ylim=(0, 1.02))
    axes[0, 0].legend(fontsize=7)
    return figure

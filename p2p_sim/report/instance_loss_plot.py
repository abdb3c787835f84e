"""A figure of instance-based losses: the share of people who lose more than tau.

Apart from ``instance_loss_table``, which has the same numbers, so that a table does not load matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p2p_sim.report.curves import COLOURS
from p2p_sim.report.plots import Plot, legend, panels, short, style


def draw(losses: Mapping[str, Any]) -> Plot:
    """Draw J(tau), estimated and between confidence bounds; ``losses``: a document of ``p2p-sim leakage``."""
    curve = losses["curve"]
    taus = [row["tau"] for row in curve]
    lower, estimate, upper = ([100 * row[name] for row in curve] for name in ("lower", "estimate", "upper"))
    with style():
        figure, grid = panels(1, 1, 3.6)
        axes = grid[0, 0]
        axes.fill_between(taus, lower, upper, color=COLOURS[5], alpha=0.35, lw=0, label="between the bounds")
        axes.plot(taus, estimate, color=COLOURS[0], lw=1.8, label="estimated")
        axes.axvline(
            losses["epsilon"],
            color=COLOURS[1],
            ls="--",
            lw=1.2,
            label="ε of the flip, if features said nothing",
        )
        axes.set(
            xlim=(taus[0], taus[-1]), ylim=(0, 102), xlabel="τ (nats)", ylabel="people who lose more than τ, %",
            title=f"{short(str(losses['data']))}, flip {losses['flip']:.4g}",
        )  # fmt: skip
        axes.grid(True, alpha=0.35)
        legend(figure)
    rows = [
        [row["tau"], low, mid, high]
        for row, low, mid, high in zip(curve, lower, estimate, upper, strict=True)
    ]
    largest = losses["nu_max"]
    description = (
        f"Share of people whose expected loss is more than tau, falling from 100 % to {estimate[-1]:.3g} %; "
        f"largest loss between {largest['lower']:.4g} and {largest['upper']:.4g} nats"
    )
    columns = ("tau_nats", "at_least_percent", "estimated_percent", "at_most_percent")
    return Plot("loss", figure, description, columns, rows)

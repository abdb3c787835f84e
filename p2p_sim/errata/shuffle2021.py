"""Hiding among the clones, 2021: the closed form of the theorem, and the one that its code computes."""

from __future__ import annotations

from p2p_sim.errata.erratum import Erratum, Numbers
from p2p_sim.privacy import building_blocks
from p2p_sim.privacy.bounds import shuffle


def closed_form() -> Numbers:
    """Return epsilon of 1,000 shuffled bits at 1 nat each, delta = 1e-6: the code's, exact, the theorem's."""
    return Numbers(
        shuffle.fmt2021_code(1000, 1.0, 1e-6).epsilon,
        building_blocks.shuffled_response(1000, 1.0).epsilon(1e-6),
        shuffle.fmt2021_theorem(1000, 1.0, 1e-6).epsilon,
    )


ERRATA = (
    Erratum(
        "shuffle-closed-form", "Feldman, McMillan, Talwar 2021", "published code", "loose",
        "the code computes ln(1 + (1 − e^−ε₀)(A + C)/(1 + e^−ε₀/(1 + A + C)))",
        "the theorem gives ln(1 + (e^ε₀ − 1)/(e^ε₀ + 1)·(A + C)), which is less; exact is far less",
        "n = 1000, ε₀ = 1, δ = 1e-6",
        closed_form,
    ),
)  # fmt: skip

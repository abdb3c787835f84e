"""Which protocols are as good as others in everything: the Pareto front, and what dominates the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.comparison.promises import Promises
from p2p_sim.comparison.table import DOMINATED, FITS, FRONT, WORST_PARTY, Row

_DIGITS = 3
"""Figures that agree in so many digits are alike: a calibrated ε is 0.9999999996 in one row and 1 in another."""

COSTS = ("bytes[a user]", "seconds[network]")


def columns(promises: Promises) -> list[str]:
    """Return what is held against each other beside utility; of all these less is better, and each ε is proven."""
    return [*(f"epsilon_upper[{each.view.key}]" for each in promises.every), WORST_PARTY, *COSTS]


def marked(rows: Sequence[Row], promises: Promises) -> list[Row]:
    """Return rows with "front" or "dominated" in place of "fits", and ``dominated_by``, the first that does."""
    names = columns(promises)
    fit = [row for row in rows if row["status"] == FITS and row.get("utility") is not None]
    found = []
    for row in rows:
        if not any(row is each for each in fit):
            found.append(row)
            continue
        better = next((each["protocol"] for each in fit if dominates(each, row, names)), "")
        found.append({**row, "status": DOMINATED if better else FRONT, "dominated_by": better})
    return found


def dominates(one: Mapping[str, Any], other: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether one row is nowhere worse than another, and somewhere better."""
    mine, its = _figures(one, names), _figures(other, names)
    return all(a <= b for a, b in zip(mine, its, strict=True)) and mine != its


def _figures(row: Mapping[str, Any], names: Sequence[str]) -> list[float]:
    """Return the figures of a row, less is better; one that is missing is the worst."""
    return [-_rounded(row["utility"]), *(_rounded(row.get(name)) for name in names)]


def _rounded(value: Any) -> float:
    if value is None or math.isnan(value):
        return math.inf
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else float(value)

"""One audited view in words: what was measured, what it must not exceed, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from p2p_sim.privacy.auditing.claims import EXACT, INCONCLUSIVE, VIOLATED
from p2p_sim.report.figures import number_text

REJECTED = "law rejected"
_UNCLAIMED = "measured; nothing is claimed"

Row = Mapping[str, Any]


def title(row: Row) -> str:
    """Return who looked, and through what channels where that matters."""
    return f"{row['view']}, {row['channels']} channels" if "wire" in row["name"] else str(row["view"])


def bound(row: Row) -> str:
    """Return the lower bound, and where it was measured: ``ε ≥ 1.2 at δ = 0.01``."""
    figure, at = ("ε", "δ") if row["kind"] == "delta" else ("δ", "ε")
    return f"{figure} ≥ {down(row['lower'])} at {at} = {number_text(row['at'])}"


def attack(row: Row) -> tuple[str, str]:
    """Return the attack's name, and how it was made, if there is more to say."""
    name, learned, how = row["statistic"].partition(", learned ")
    return name, f"learned {how}" if learned else ""


def confidence(row: Row) -> str:
    """Return the confidence of the bound."""
    return f"{100 * row['confidence']:.5g} %"


def limit(row: Row) -> str:
    """Return the figures that must not be exceeded, with their bases: the accountant's, and others that are violated.

    Where the accountant has none, the first of the others.
    """
    holding = [claim for claim in row["claims"] if claim["holds"]]
    shown = [claim for claim in holding if claim["name"] == EXACT or claim["verdict"] == VIOLATED]
    figure = "epsilon" if row["kind"] == "delta" else "delta"
    told = [f"{number_text(claim[figure])} ({_basis(claim)})" for claim in shown or holding[:1]]
    return "; ".join(told) or "nothing is claimed"


def held(row: Row) -> str:
    """Return what the bound is held against, as a sentence: ``ε must not exceed 1.4 (exact)``."""
    figure = "ε" if row["kind"] == "delta" else "δ"
    return f"{figure} must not exceed {limit(row)}" if any(c["holds"] for c in row["claims"]) else limit(row)


def verdict_of(row: Row) -> str:
    """Return the verdict in words."""
    return _UNCLAIMED if _unclaimed(row) else str(row["verdict"])


def why(row: Row) -> str:
    """Return what the verdict rests on, and what would decide."""
    text = str((row["law"] or row)["why"] if row["verdict"] == REJECTED else row["why"])
    if _unclaimed(row):
        return "to check a figure of your own, give --claim"
    if row["verdict"] != INCONCLUSIVE:
        return text
    needed = row["needed"]
    more = (
        "how many would decide is not known" if needed is None else f"about {needed:,} a label would decide"
    )
    return f"{text}; {more}"


def down(value: float) -> str:
    """Return a lower bound in four digits, rounded down."""
    text = number_text(value)
    return text if float(text) <= value else number_text(value - 10.0 ** (math.floor(math.log10(value)) - 3))


def _unclaimed(row: Row) -> bool:
    """Whether there was nothing to hold the measurement against."""
    return row["verdict"] == INCONCLUSIVE and not any(claim["holds"] for claim in row["claims"])


def _basis(claim: Row) -> str:
    basis, name = str(claim["basis"]), claim["name"]
    return basis if name in (basis, EXACT) else f"{basis}: {name}"

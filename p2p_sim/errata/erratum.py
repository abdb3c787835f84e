"""What an erratum is: a claim as a paper prints it, the corrected one, and numbers that tell them apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Relation = Literal["exceeded", "undercut", "unequal", "loose", "code"]
"""How the exact number stands to the printed one: above a bound from above, below a bound from below, other than a
value that is said to be exact, far below a bound that is true, or what the paper's own code has instead of its text."""

_CLOSE = 1e-9
"""Relative difference that rounding may make; a printed number must be further away than a thousand times that."""


class Numbers(NamedTuple):
    """What a claim gives in one case as printed, what is exact there, and what the corrected claim gives, if any."""

    printed: float
    exact: float
    corrected: float | None = None


@dataclass(frozen=True)
class Erratum:
    """One correction of a paper.  ``numbers`` computes, at each call, from laws, bounds and small enumerations."""

    id: str
    paper: str
    place: str
    relation: Relation
    printed: str
    """What the paper claims."""
    corrected: str
    """What is true instead."""
    case: str
    """Where the numbers are of."""
    numbers: Callable[[], Numbers]

    @property
    def command(self) -> str:
        """Return the command that shows it."""
        return f"p2p-sim errata --only {self.id}"

    @property
    def line(self) -> str:
        """Return the line of Python that shows it."""
        package, _, module = self.numbers.__module__.rpartition(".")
        return f"from {package} import {module}; {module}.{self.numbers.__name__}()"

    def shows(self, found: Numbers) -> bool:
        """Whether the numbers still tell the printed claim from the truth, and the corrected one holds."""
        far = _apart(found.printed, found.exact, 1e3 * _CLOSE)
        if self.relation == "exceeded":
            return far and found.exact > found.printed and _at_most(found.exact, found.corrected)
        if self.relation == "undercut":
            return far and found.exact < found.printed and _at_most(found.corrected, found.exact)
        if self.relation == "loose":
            better = found.corrected is not None and found.corrected < found.printed
            return far and better and _at_most(found.exact, found.corrected)
        same = found.corrected is None or not _apart(found.corrected, found.exact, _CLOSE)
        return far and same


def _apart(one: float, other: float, relative: float) -> bool:
    """Whether two numbers differ; not-a-number, from 0/0, differs from every number."""
    if math.isinf(one) or math.isinf(other):
        return one != other
    return not abs(one - other) <= relative * max(abs(one), abs(other))


def _at_most(low: float | None, high: float | None) -> bool:
    """Whether one number is at most another, up to rounding; one that is not given does not count."""
    return low is None or high is None or low <= high or not _apart(low, high, _CLOSE)

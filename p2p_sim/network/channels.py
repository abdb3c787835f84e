"""Links between a party and the network: latency and bandwidth, as text, as distributions, as keyed draws.

``20ms,10Mbit``: constants.  ``10-50ms,5-20Mbit``: each user's latency and bandwidth are uniform between the two.
``exp:20ms,10Mbit``: her latency is exponential with this mean.  A link is drawn once a run, for each user, on a grid of
1 microsecond and 1 kbit a second; samplers are integer functions of words, so every machine draws the same links.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import exact
from p2p_sim.core.errors import InputError
from p2p_sim.core.kernels_numpy import below
from p2p_sim.core.number_texts import DECIMAL
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import stream, words

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEPS = 64
"""Steps of the exponential's grid in one mean."""

_LATENCY = {"us": 1, "ms": 1_000, "s": 1_000_000}  # microseconds
_BANDWIDTH = {"kbit": 1, "Mbit": 1_000, "Gbit": 1_000_000}  # kbit a second
_LIMIT = 10**12  # grid steps: 11 days, or 1,000 Gbit a second
_LONGEST = 100  # characters
_FORM = re.compile(rf"(exp:)?({DECIMAL})(?:-({DECIMAL}))?([A-Za-z]+)")


@dataclass(frozen=True)
class Distribution:
    """A law on whole grid steps: ``uniform`` on low .. high (constant if equal), or ``exp`` with mean ``low``."""

    kind: str
    low: int
    high: int

    @property
    def varies(self) -> bool:
        """Whether parties may differ."""
        return self.low != self.high or self.kind != "uniform"

    def draw(self, seed: int, name: str, users: int) -> Ints:
        """Return one value a user, shape (users,): a keyed draw of role "graph"."""
        if not self.varies:
            return np.full(users, self.low, np.int64)
        drawn = words(check_seed(seed), stream("graph", f"link/{name}", 0), 0, users)
        if self.kind == "uniform":
            return self.low + below(drawn, np.uint64(self.high - self.low + 1))
        return (2 * exact.pick(_exponential(), drawn) + 1) * self.low // (2 * STEPS)


@dataclass(frozen=True)
class Channel:
    """The law of links: ``latency`` in microseconds, one way; ``bandwidth`` in kbit a second, each way."""

    latency: Distribution
    bandwidth: Distribution

    @property
    def varies(self) -> bool:
        """Whether parties may have different links."""
        return self.latency.varies or self.bandwidth.varies

    def links(self, seed: int, users: int, role: str = "user") -> Links:
        """Return the links of a role's parties in a run: a function of seed, role and party."""
        latency = self.latency.draw(seed, f"{role}/latency", users).astype(np.float64) / 1e6
        bandwidth = self.bandwidth.draw(seed, f"{role}/bandwidth", users).astype(np.float64)
        return Links(latency, bandwidth * 125)


@dataclass(frozen=True)
class Links:
    """Links of some parties: ``latency`` in seconds, ``bandwidth`` in bytes a second, both of shape (parties,)."""

    latency: Floats
    bandwidth: Floats

    def sending(self, nbytes: float) -> float:
        """Return the seconds until the slowest party's bytes are out and have crossed: bytes / bandwidth + latency."""
        return float((nbytes / self.bandwidth + self.latency).max())

    def receiving(self, nbytes: float) -> float:
        """Return the seconds that the slowest party needs to take in so many bytes."""
        return nbytes / float(self.bandwidth.min())


def parse(text: str) -> Channel:
    """Read a channel such as ``20ms,10Mbit``; raises InputError for other text and numbers off the grid."""
    parts = text.split(",") if isinstance(text, str) else []
    if len(parts) != 2:
        raise InputError(f"channel = {text!r}: give a latency and a bandwidth, such as 20ms,10Mbit")
    latency = _read(text, "latency", parts[0], _LATENCY)
    bandwidth = _read(text, "bandwidth", parts[1], _BANDWIDTH)
    if bandwidth.kind == "exp" or bandwidth.low < 1:
        raise InputError(f"channel = {text!r}: a bandwidth is a number or a range, of 1kbit or more")
    return Channel(latency, bandwidth)


def _read(text: str, what: str, part: str, units: dict[str, int]) -> Distribution:
    found = _FORM.fullmatch(part) if len(part) <= _LONGEST else None
    if not found or found[4] not in units or (found[1] and found[3]):
        raise InputError(
            f"channel = {text!r}: {what} {part!r} is not read; allowed are 20{list(units)[1]}, "
            f"10-50{list(units)[1]}{', exp:20ms' if what == 'latency' else ''}, with units {', '.join(units)}"
        )
    steps = [Fraction(number) * units[found[4]] for number in (found[2], found[3] or found[2])]
    if any(step.denominator != 1 or step > _LIMIT for step in steps) or steps[0] > steps[1]:
        raise InputError(
            f"channel = {text!r}: {what} {part!r} must be in whole {next(iter(units))}, at most {_LIMIT:,}, "
            "and a range in ascending order"
        )
    return Distribution("exp" if found[1] else "uniform", int(steps[0]), int(steps[1]))


@cache
def _exponential() -> npt.NDArray[Any]:
    """Return thresholds of the geometric law P(k) = (1 - q) q^k, q = e^(-1/64): value (k + 1/2) / 64 of the mean."""
    q, least, tail, table = exact.exp(-1 / STEPS), Fraction(1, exact.WORD), Fraction(1), []
    while tail > least:
        tail = Fraction(math.floor(tail * q * 2**192), 2**192)  # kept short: 192 bits
        table.append(math.floor((1 - tail) * exact.WORD))
    return np.array([bound for bound in table if bound < exact.WORD], np.uint64)

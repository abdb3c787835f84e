"""The claims about a view, and the verdict on each from the measured lower bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.privacy import accountant, theorems
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.theorems import Promise

EXACT = "exact"

VIOLATED, CONSISTENT, INCONCLUSIVE, SILENT = "violated", "consistent", "inconclusive", "not applicable"


@dataclass(frozen=True)
class Claim:
    """One claim: the view is (``epsilon``, ``delta``)-private.

    ``basis``: as of a profile.  ``holds``: whether it applies here, ``why`` not.  ``verdict``: "violated" if a lower
    bound is above it, "consistent", "inconclusive" if nothing was measured that could be, or "not applicable".
    ``detectable``: the least true ε or δ, whichever is measured, that the trials would have shown to be above the claim
    with probability 0.9 (``power_analysis.minimum_detectable``); None if there is none.
    """

    name: str
    epsilon: float
    delta: float
    basis: str
    holds: bool
    why: str
    source: str
    verdict: str = ""
    detectable: float | None = None


def claims_of(
    against: Any,
    law: PrivacyProfile,
    size: int,
    reads: bool,
    point: tuple[str, float],
    extra: Mapping[str, float],
) -> list[Claim]:
    """Return the claims on a view: exact, of theorems, local, and a caller's own.

    ``against``: the protocol, None for a profile alone.  ``point``: ("delta", δ) if claims are on ε at δ, and
    ("epsilon", ε) if they are on δ at ε.  ``extra``: names to such figures.
    """
    kind, at = point
    found = [] if law.law is None else [_of_profile(law, kind, at)]
    for promise in (
        [] if against is None else accountant.of(against, law.view, [size], _wanted(kind, at), reads)
    ):
        found.append(_of_promise(promise, kind, at))
    local = None if against is None else accountant.local_epsilon(against)
    if local is not None and not any(claim.name.startswith("local") for claim in found):
        local_claim = theorems.local(local)
        local_claim["source"] = "a user's own coin"
        found.append(_of_promise(local_claim, kind, at))
    for name, value in extra.items():
        first, second = (float(value), at) if kind == "delta" else (at, float(value))
        found.append(Claim(name, first, second, "claimed", True, "", "given"))
    return found


def check_given(extra: Any, kind: str) -> None:
    """Check a caller's claims, of ε if ``kind`` is "delta" and of δ otherwise; raises InputError."""
    if not isinstance(extra, Mapping):
        raise InputError(f"claims = {extra!r}: give a dict of names to numbers")
    most, upper_text = (math.inf, "") if kind == "delta" else (1.0, " and at most 1")
    for name, value in extra.items():
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not 0 <= value <= most:
            raise InputError(f"claims[{name!r}] = {value!r}: must be a number, at least 0{upper_text}")


def judged(claims: list[Claim], kind: str, lower: float, cap: float) -> tuple[Claim, ...]:
    """Return the claims with their verdicts; ``lower``: measured ε or δ; ``cap``: the most that could have been."""
    return tuple(replace(claim, verdict=_verdict(claim, kind, lower, cap)) for claim in claims)


def _verdict(claim: Claim, kind: str, lower: float, cap: float) -> str:
    if not claim.holds:
        return SILENT
    value = claim.epsilon if kind == "delta" else claim.delta
    if lower > value:
        return VIOLATED
    # An infinite epsilon claims nothing, so no number of trials could contradict it.
    return INCONCLUSIVE if cap <= value < math.inf or (lower == 0 and value > 0) else CONSISTENT


def _of_profile(law: PrivacyProfile, kind: str, at: float) -> Claim:
    name = EXACT if law.basis in ("exact", "lower", "upper") else law.basis
    if kind == "delta":
        value = law.epsilon(at) if law.basis == "exact" else law.epsilon_bracket(at).upper
        return Claim(name, value, at, law.basis, True, "", law.source)
    value = law.delta(at) if law.basis == "exact" else law.delta_bracket(at).upper
    return Claim(name, at, value, law.basis, True, "", law.source)


def _of_promise(promise: Promise, kind: str, at: float) -> Claim:
    epsilon, delta = promise["epsilon"], promise["delta"]
    holds, why = bool(promise["holds"]), promise["why"]
    if holds and kind == "epsilon" and at < epsilon:
        holds, why = False, f"speaks of epsilon >= {epsilon:.6g}"
    if holds and kind == "delta" and delta > at:
        holds, why = False, f"speaks of delta >= {delta:.3g}"
    first, second = (epsilon, at) if kind == "delta" else (at, delta)
    return Claim(promise["name"], first, second, promise["basis"], holds, why, promise["source"])


def _wanted(kind: str, at: float) -> float:
    return at if kind == "delta" else 1e-6

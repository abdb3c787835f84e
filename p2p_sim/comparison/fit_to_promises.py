"""Calibrates one protocol to several promises at once, and says what would have to be relaxed where that fails."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from p2p_sim import privacy
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.calibrate import UnreachableError
from p2p_sim.privacy.table_rows import TableRow, rows
from p2p_sim.report.figure_text import figure
from p2p_sim.report.privacy_table import AccountRequest

_DIGITS = 3
"""Of what a promise is relaxed to, rounded up."""

NOBODY = "no such party"
"""The basis for a view that the protocol does not have: it learns 0, whatever happens."""


@dataclass(frozen=True)
class RowPromise:
    """One promise.  ``key``: how tables call the view; ``row``: None if the protocol has no such party."""

    key: str
    row: TableRow | None
    epsilon: float


@dataclass(frozen=True)
class Fitted:
    """What a calibration found.

    ``value``: of the parameter, the most useful one that keeps all promises; None if there is nothing to calibrate or
    nothing fits.  ``bound_by``: the promise that decided it.  ``figures``: what each view learns there, as
    ``figure_text.figure`` has it.  ``why``: empty if all promises are kept; ``relax``: the epsilons to which promises
    would have to be relaxed, by view, each found by calibration; empty where nothing is known to help.  ``instead``: in
    words what else would help, where no epsilon does.
    """

    value: float | None
    bound_by: str
    figures: Mapping[str, Mapping[str, Any]]
    why: str = ""
    relax: Mapping[str, float] | None = None
    instead: str = ""


def too_many_users(
    protocol: Protocol, promises: Sequence[RowPromise], delta: float, people: Population
) -> Fitted | None:
    """Return that a promise names more users than the largest cluster has beside the victim; None if none does."""
    request = AccountRequest(protocol, delta, population=people)
    for each in promises:
        if each.row is None or not request.why_impossible(each.row):
            continue
        largest, looking = request.sizes()[-1], each.row.colluders
        why = (
            f"{each.key} is {looking} users who look at another one, and the largest cluster has only {largest} users, "
            "so there is no such view"
        )
        instead = (
            f"make the clusters larger (one of {looking + 1} users at least: fewer --clusters, or a larger "
            f"--cluster-size), or name a coalition of at most {largest - 1} instead of {each.key}"
        )
        return Fitted(None, "", {}, f"{why}: {instead}", {}, instead)
    return None


def fitted(
    kind: type[Protocol],
    fixed: Mapping[str, Any],
    vary: str | None,
    promises: Sequence[RowPromise],
    delta: float,
    people: Population,
    beside: Sequence[RowPromise] | None = None,
) -> Fitted:
    """Find the most useful value of ``vary`` that keeps every promise among some users, the target first.

    ``beside``: whose figures are looked up, too; None: all views of the privacy table.

    Raises InputError for a view without a law, and for a protocol that cannot have these users.

    *Source:* ``privacy.calibrate`` for each promise that the others do not imply; the value at which all are kept is
    the most private of these, as more private is presumed so for every view, and it is accounted for again.
    """
    target, delta = promises[0], float(delta)
    if vary is None:
        return _as_it_is(kind(**fixed), promises, delta, people, beside)
    try:
        values = {target.key: _solved(kind, fixed, vary, target, delta, people)}
    except UnreachableError as error:
        return _out_of_reach(kind, fixed, vary, promises, delta, people, error)
    protocol = kind(**fixed, **{vary: values[target.key]})
    broken = _broken(protocol, promises, delta, people)
    relax = {each.key: rounded_up(epsilon) for each, epsilon in broken}
    for each, epsilon in broken:
        try:
            values[each.key] = _solved(kind, fixed, vary, each, delta, people)
        except UnreachableError as error:
            why = (
                f"{vary} = {values[target.key]:.4g} keeps the target, but {each.key} learns {epsilon:.4g} there, more "
                f"than {each.epsilon:g}, and {error.best:.4g} at least"
            )
            return Fitted(None, "", {}, why, relax if all(map(math.isfinite, relax.values())) else {})
    for key, value in values.items():
        protocol = kind(**fixed, **{vary: value})
        if not _broken(protocol, promises, delta, people):
            return Fitted(value, key, figures_of(protocol, promises, delta, people, beside))
    return Fitted(None, "", {}, f"no {vary} was found that keeps all promises", relax)


def figures_of(
    protocol: Protocol,
    promises: Sequence[RowPromise],
    delta: float,
    people: Population,
    beside: Sequence[RowPromise] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return what the views learn that are named, and those ``beside``, or all of the privacy table; by their keys."""
    request = AccountRequest(protocol, delta, population=people)
    named = {each.key: each.row for each in (*promises, *(beside or ()))}
    found: dict[str, dict[str, Any]] = {}
    for key, row in named.items():
        found[key] = _nobody() if row is None else _figure(request, row, delta)
    for row in rows(protocol) if beside is None else ():
        if row.key not in found:
            found[row.key] = _figure(request, row, delta)
    return found


def rounded_up(epsilon: float) -> float:
    """Return an epsilon with three digits that is no smaller."""
    if not math.isfinite(epsilon) or epsilon <= 0:
        return epsilon
    exact = Decimal(epsilon)
    step = Decimal(1).scaleb(exact.adjusted() - _DIGITS + 1)
    return float(exact.quantize(step, ROUND_CEILING))


def _solved(
    kind: type[Protocol],
    fixed: Mapping[str, Any],
    vary: str,
    promise: RowPromise,
    delta: float,
    people: Population,
) -> float:
    if promise.row is None:
        raise InputError(f"it has no party {promise.key!r}, so there is nothing to calibrate")
    found = privacy.calibrate(
        kind, vary=vary, view=promise.row.name, users=promise.row.users, epsilon=promise.epsilon, delta=delta,
        population=people, progress=False, **fixed,
    )  # fmt: skip
    return found.value


def _broken(
    protocol: Protocol, promises: Sequence[RowPromise], delta: float, people: Population
) -> list[tuple[RowPromise, float]]:
    """Return the promises that a protocol does not keep, each with the epsilon that it gives."""
    request, found = AccountRequest(protocol, delta, population=people), list[tuple[RowPromise, float]]()
    for each in promises:
        if each.row is None:
            continue
        profile = request.profile(each.row)
        if profile.law is None:
            raise InputError(f"no law is known of view {each.key}: {profile.why}")
        if not profile.law.keeps(each.epsilon, delta):
            found.append((each, profile.epsilon_bracket(delta).upper))
    return found


def _as_it_is(
    protocol: Protocol,
    promises: Sequence[RowPromise],
    delta: float,
    people: Population,
    beside: Sequence[RowPromise] | None,
) -> Fitted:
    """Return what a protocol without a parameter to calibrate gives."""
    broken = _broken(protocol, promises, delta, people)
    if not broken:
        return Fitted(None, "", figures_of(protocol, promises, delta, people, beside))
    learned = ", ".join(
        f"{each.key} learns {epsilon:.4g}, more than {each.epsilon:g}" for each, epsilon in broken
    )
    relax = {each.key: rounded_up(epsilon) for each, epsilon in broken}
    finite = all(map(math.isfinite, relax.values()))
    return Fitted(None, "", {}, f"it has no parameter to calibrate, and {learned}", relax if finite else {})


def _out_of_reach(
    kind: type[Protocol],
    fixed: Mapping[str, Any],
    vary: str,
    promises: Sequence[RowPromise],
    delta: float,
    people: Population,
    error: UnreachableError,
) -> Fitted:
    """Return why the target cannot be reached, and to what all promises would have to be relaxed."""
    why = f"no {vary} keeps the target: {promises[0].key} learns {error.best:.4g} at least"
    relax = {promises[0].key: rounded_up(error.best)}
    broken = _broken(kind(**fixed, **{vary: error.at}), promises[1:], delta, people)
    relax |= {each.key: rounded_up(epsilon) for each, epsilon in broken}
    return Fitted(None, "", {}, why, relax if all(map(math.isfinite, relax.values())) else {})


def _figure(request: AccountRequest, row: TableRow, delta: float) -> dict[str, Any]:
    why = request.why_impossible(row)
    profile = None if why else request.profile(row)
    if profile is None or profile.law is None:
        return _refused(why or (profile.why if profile is not None else ""))
    return figure(profile, delta) | {"why": ""}


def _refused(why: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("epsilon", "lower", "upper"), math.nan)
    return {**nothing, "basis": "refused", "source": "", "assumes": [], "why": why}


def _nobody() -> dict[str, Any]:
    return {
        "epsilon": 0.0,
        "lower": 0.0,
        "upper": 0.0,
        "basis": "exact",
        "source": NOBODY,
        "assumes": [],
        "why": "",
    }

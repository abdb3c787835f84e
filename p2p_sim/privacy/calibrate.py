"""Solves for the parameter, or the scale of noise, that gives a named view a required (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, get_type_hints

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.faults import Faults
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.accountant import LARGEST, profile
from p2p_sim.privacy.bounds.bound import real, whole
from p2p_sim.privacy.composition.compose import check_times, composed, repeated
from p2p_sim.privacy.law import Bracket
from p2p_sim.privacy.profile import PrivacyProfile, RefusedError
from p2p_sim.privacy.table_rows import TableRow, rows
from p2p_sim.progress import Asked, reporter_of, showing
from p2p_sim.protocol_parameters import constructed
from p2p_sim.result_summary import Rows, Summary, counted, down, up

_STEPS = 60
_MOST = 1e300
_NEAR = 1e-9
_NEAR_OF_SEVERAL = 1e-3  # a composition may take seconds; what is found keeps the promise itself
_TARGET = ("epsilon", "delta")
_KEPT = 4  # profiles; of many runs together they are large


@dataclass(frozen=True)
class Range:
    """Where a parameter is looked for.  ``private``, ``useful``: the ends; more private is never more useful.

    ``whole``: only whole numbers.  ``spread``: whether steps are factors, not differences.
    """

    private: float
    useful: float
    whole: bool = False
    spread: bool = True

    def read(self, value: float) -> float:
        """Return a value as the parameter takes it: an int of a whole number."""
        return int(value) if self.whole else float(value)


RANGES = {
    "alpha": Range(0.5, 1e-12),
    "theta": Range(1e-4, 1.0),
    "lam": Range(1.0, 0.0, spread=False),
    "epsilon": Range(0.0, 100.0, spread=False),
    "cluster_size": Range(1e8, 1, whole=True),
}
"""Parameters of which it is known where to look, by name."""


class UnreachableError(InputError):
    """That no value in range keeps a promise.  ``best``: the least epsilon, in nats; ``at``: the value that has it."""

    def __init__(self, text: str, best: float, at: float):
        super().__init__(text)
        self.best, self.at = best, at


@dataclass(frozen=True)
class Calibration(Summary):
    """The most useful value that keeps a promise, and what it gives every view.

    ``protocol``: with that value; ``vary``, ``value``: which and what.  ``achieved``: ε at ``delta`` of ``view``, in
    nats, with certified ends, on the basis of ``profile``, of all ``times`` runs together; ``slack``: how far its upper
    end stays below the target.
    ``views``: the profiles of the other views at that value, by name, "user (deviating)" too: a calibration for one
    view says nothing of the rest.
    """

    protocol: Protocol
    vary: str
    value: float
    cluster_size: int | None
    view: str
    epsilon: float
    delta: float
    achieved: Bracket
    slack: float
    profile: PrivacyProfile
    views: dict[str, PrivacyProfile]
    times: int = 1

    def __repr__(self) -> str:
        return (
            f"<Calibration of {type(self.protocol).__name__}: {self.vary} = {self.value:.6g} keeps {self.view} at "
            f"ε <= {self.epsilon:g}, δ = {self.delta:g}>"
        )

    def summary(self) -> tuple[str, Rows]:
        """Return what printing the calibration and notebooks show."""
        times = "" if self.times == 1 else f", of {self.times:,} runs together"
        rows = [
            (self.vary, f"{self.value!r}"),
            ("asked for", f"ε <= {self.epsilon:g} at δ = {self.delta:g} for view {self.view}{times}"),
            ("achieved", f"ε from {down(self.achieved.lower)} to {up(self.achieved.upper)} nats, {self.profile.basis}"),
            ("other views", f"{', '.join(self.views)}: see .views, nothing is promised for them" if self.views else ""),
        ]  # fmt: skip
        title = f"Calibration of {type(self.protocol).__name__}"
        return title, [(name, text) for name, text in rows if text]


@showing
def calibrate(
    kind: type[Protocol],
    *,
    vary: str,
    view: str = "learner",
    cluster_size: int | None = None,
    population: Population | None = None,
    epsilon: float,
    delta: float,
    channels: str = "plain",
    users: str = "curious",
    faults: Faults | Sequence[str] | None = None,
    between: tuple[float, float] | None = None,
    times: int | None = None,
    progress: Asked = None,
    **fixed: Any,
) -> Calibration:
    """Find the most useful value of one parameter at which a view is (ε, δ)-private; ``fixed``: the others.

    ``vary``: "alpha" (the least), "theta", "epsilon" (the largest) or "cluster_size" (the least that is *proven* to
    do: of a bracket the upper end counts, so a slightly smaller one may do too); or any other number, with ``between``:
    the most private value to look at, and the most useful one.  ``cluster_size``, or ``population``: the promise holds
    in each of its clusters, or for each user of its graph.  ``faults``: under which it holds, as in ``profile``.
    ``times``, 1 to 10^9: of so many runs together, on the same labels and clusters with fresh coins; then the value is
    found to one part in a thousand.  Of a protocol with a parameter ``times`` it is that one.  ``progress``: as in
    ``p2p_sim.run``.
    ``epsilon`` >= 0 in nats and ``delta`` in [0, 1) are the target; a protocol's own epsilon can only be solved for.
    The value found is accounted for again, with certified ends.
    Raises InputError where nothing in range keeps the promise, with the best that can be reached, for a refused view,
    and for parameters that are missing, unknown or out of range.

    For the scale of noise: ``calibrate_noise``.

    *Source:* bisection over the accountant's δ(ε), which grows with theta and epsilon and falls with alpha; for
    cluster_size, and ``between`` two values, that it is monotonic is presumed, and what is found itself is checked.
    """
    if "times" in {parameter.name for parameter in fields(kind)}:  # type: ignore[arg-type]  # its own parameter
        fixed, times = fixed if times is None else {**fixed, "times": times}, None
    times = 1 if times is None else times
    check_times(times)
    where, lookers = _range(kind, vary, fixed, between), Coalition.parse(view, kind.roles()).user_count
    check_target(epsilon, delta)
    if vary == "cluster_size":
        where = replace(where, useful=lookers + 1)
        for name, given in (("cluster_size", cluster_size), ("population", population)):
            if given is not None:
                raise InputError(f"{name} is fixed and cluster_size is to be found: leave it out")
    options = {"cluster_size": cluster_size, "channels": channels, "users": users, "population": population}
    solver = _Solver(
        kind, vary, view, epsilon, delta, where, fixed, {**options, "faults": faults}, times, reporter_of(progress)
    )  # fmt: skip
    fits = []
    if population is not None and population.graph is None:
        fits = [int(n) for n in population.sizes if n > lookers]
    value = solver.solve(min(fits, default=None))
    solved = solver.account(value)
    reached = solved.epsilon_bracket(delta)
    achieved = reached._replace(upper=min(reached.upper, epsilon))  # delta was checked at the target
    protocol, size = solver.setting(value)
    largest = size if population is None else int(population.sizes.max())
    views = {
        row.key: solver.account(value, row.name, users=row.users)
        for row in others(protocol, view, users)
        if row.colluders < (LARGEST if largest is None else largest)
    }
    slack = epsilon - achieved.upper
    return Calibration(
        protocol, vary, where.read(value), size, view, epsilon, delta, achieved, slack, solved, views, times
    )


@dataclass(frozen=True)
class _Solver:
    """Looks for a value, and keeps what it accounted for last: what is found is looked at more than once.

    ``where``: the range.  ``fixed``: the other parameters.  ``options``: of ``profile``.  ``tell``: reports progress.
    """

    kind: type[Protocol]
    vary: str
    view: str
    epsilon: float
    delta: float
    where: Range
    fixed: Mapping[str, Any]
    options: Mapping[str, Any]
    times: int
    tell: Progress | None
    _found: dict[Any, PrivacyProfile] = field(default_factory=dict)
    _tried: set[float] = field(default_factory=set)

    def setting(self, value: float) -> tuple[Protocol, int | None]:
        """Return the protocol with a value, and the size of its clusters; None where a population has them."""
        if self.vary == "cluster_size":
            return constructed(self.kind, self.fixed), int(value)
        made = constructed(self.kind, {**self.fixed, self.vary: self.where.read(value)})
        return made, self.options["cluster_size"]

    def account(
        self, value: float, view: str | None = None, *, runs: int | None = None, **other: Any
    ) -> PrivacyProfile:
        """Return the profile of all runs together at a value; ``other``: instead of ``options``."""
        view, runs = view or self.view, runs or self.times
        asked = (value, view, runs, *sorted(other.items()))
        if asked not in self._found:
            self._tried.add(value)
            if self.tell is not None:
                self.tell(_doing(self.vary, self.view, view, len(self._tried)), 0, 0)
            protocol, size = self.setting(value)
            one = profile(protocol, view, **{**self.options, "cluster_size": size, **other})
            if len(self._found) == _KEPT:
                del self._found[next(iter(self._found))]  # the oldest
            self._found[asked] = repeated(one, runs)
        return self._found[asked]

    def solve(self, smallest: int | None) -> float:
        """Return the most useful value that keeps the promise; raises InputError where none does.

        ``smallest``: the size of a population's smallest cluster, None where there are no clusters to choose from.
        """
        where, near = self.where, _NEAR if self.times == 1 else _NEAR_OF_SEVERAL
        if self.times > 1:  # they show what one does, and more: start at what one allows, found quickly
            once = _search(where, self._keeps(runs=1))
            if once is None:
                raise self._unreachable()
            where = replace(where, useful=once)
        value = None
        if smallest is not None:  # the smallest cluster is mostly the worst one, and quicker than all of them
            value = _search(where, self._keeps(population=None, cluster_size=smallest), near, self._guesses())
        if value is None or not self._keeps()(value):
            value = _search(where, self._keeps(), near, self._guesses())
        if value is None:
            raise self._unreachable()
        return _settled(
            where, value, lambda at: self.account(at).epsilon_bracket(self.delta).upper <= self.epsilon
        )

    def _guesses(self) -> Sequence[float]:
        """Return values between which the one that is sought may be: of what users do by themselves, at its ε."""
        if self.vary != "epsilon" or self.times > 1:
            return ()
        return [self.epsilon + times * self.delta for times in _JUST_ABOVE]

    def _keeps(self, **other: Any) -> Callable[[float], bool]:
        return lambda value: _keeps(self.account(value, **other), self.epsilon, self.delta)

    def _unreachable(self) -> UnreachableError:
        best = self.account(self.where.private).epsilon_bracket(self.delta).upper
        return UnreachableError(
            f"no {self.vary} keeps epsilon = {self.epsilon:g} at delta = {self.delta:g} for view {self.view!r}: the "
            f"best that can be reached is epsilon = {best:.6g}; allow more, or change another parameter",
            best,
            self.where.read(self.where.private),
        )


def _doing(vary: str, view: str, what: str, values: int) -> str:
    """Return what a calibration is at, for who waits."""
    return (
        f"solving for {vary}, value {values:,}" if what == view else f"accounting for the other views: {what}"
    )


def _keeps(found: PrivacyProfile, epsilon: float, delta: float) -> bool:
    """Whether a certified upper end of delta keeps the promise; deltas far below the target need not be told apart."""
    if found.law is None:
        raise RefusedError(f"view {found.view!r}: {found.why}")
    return found.law.keeps(epsilon, delta)


@dataclass
class _Monotone:
    """Whether values keep a promise; of those more private than one that does, and more useful than one that does not,
    nothing is computed."""

    where: Range
    holds: Callable[[float], bool]
    _keeping: float = -math.inf
    _breaking: float = math.inf

    def __call__(self, value: float) -> bool:
        useful = value if self.where.useful > self.where.private else -value
        if useful <= self._keeping or useful >= self._breaking:
            return useful <= self._keeping
        found = self.holds(value)
        if found:
            self._keeping = useful
        else:
            self._breaking = useful
        return found


def _search(
    where: Range, computed: Callable[[float], bool], near: float = 1e-9, guesses: Sequence[float] = ()
) -> float | None:
    """Bisect to a relative ``near``; return the most useful value found that keeps the promise, or None.

    ``guesses``: values of which it is good to know first; what is found does not depend on them.
    """
    holds = _Monotone(where, computed)
    for guess in guesses:
        if not min(where.private, where.useful) < guess < max(where.private, where.useful) or not holds(
            guess
        ):
            break
    if holds(where.useful):
        return where.useful
    good, bad = where.private, where.useful
    if where.whole and 0 < bad < good:  # far ends are slow: grow from the useful one
        while bad * 2 < where.private and not holds(bad * 2):
            bad *= 2
        good = min(bad * 2, where.private)
    if not holds(good):
        return None
    for _ in range(_STEPS):
        middle = math.sqrt(good * bad) if where.spread else (good + bad) / 2
        middle = float(round(middle)) if where.whole else middle
        if middle in (good, bad) or abs(good - bad) <= near * abs(good):
            break
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


_JUST_ABOVE = (0.0, 4.0, 100.0)
"""How many δ lie between ε and the largest parameter of a randomizer that keeps it: (1 + exp(-ε)) for two labels."""

_NUDGES = (1e-10, 1e-9, 1e-8, 1e-7)


def _settled(where: Range, value: float, certified: Callable[[float], bool]) -> float:
    """Return a value, a little more private where epsilon's certified end would else be above the target.

    Both are rounded outward, each by itself, so they can differ by some units in the ninth digit.
    """
    tried = [value + part * (where.private - value) for part in (0.0, *_NUDGES)]
    return next((at for at in tried if certified(at)), value) if not where.whole else value


def _range(
    kind: type[Protocol], vary: str, fixed: dict[str, Any], between: tuple[float, float] | None
) -> Range:
    parameters = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    where = _known(kind, vary) if between is None else _between(kind, vary, between)
    if vary in fixed:
        raise InputError(f"{vary} = {fixed[vary]!r} is fixed and to be found: leave it out")
    for name in fixed:
        if name not in parameters:
            raise InputError(
                f"{kind.__name__} has no parameter {name!r}{near(name, parameters)}; it has {', '.join(parameters)}"
            )
    for name, parameter in parameters.items():
        needed = parameter.default is MISSING and parameter.default_factory is MISSING
        if needed and name not in fixed and name != vary:
            advice = f"give {name}=..., or vary={name!r}"
            if name in _TARGET:
                advice = f"here {name} is the target, so it can't be given: vary={name!r} is all that can be solved for"
            raise InputError(f"{name} of {kind.__name__} is missing: {advice}")
    if between is None and vary == "alpha":
        return _of_labels(where, fixed.get("labels"))
    return _accepted(kind, vary, fixed) if vary == "epsilon" and between is None else where


def _known(kind: type[Protocol], vary: str) -> Range:
    """Return where to look for a parameter of which that is known by its name; raises InputError for another."""
    every, numbers = {f.name for f in fields(kind)}, _numbers(kind)  # type: ignore[arg-type]
    named = [name for name in RANGES if name in every or (name == "cluster_size" and kind.in_clusters())]
    if vary in named:
        return RANGES[vary]
    how = "say where to look: between=(the most private value, the most useful one), or --between A,B"
    if vary in numbers:
        raise InputError(f"vary = {vary!r}: of {kind.__name__} it is a parameter of its own, so {how}")
    solvable = ", ".join(named) or (f"{', '.join(numbers)}; {how}" if numbers else "nothing")
    raise InputError(
        f"vary = {vary!r}: of {kind.__name__}, one can solve for {solvable}{near(vary, [*named, *numbers])}"
    )


def _numbers(kind: type[Protocol]) -> dict[str, type]:
    """Return the parameters of a protocol that are one number each, and whether they are whole."""
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind) if f.init and hints[f.name] in (int, float)}  # type: ignore[arg-type]


def _between(kind: type[Protocol], vary: str, between: tuple[float, float]) -> Range:
    """Return where to look between two values that were given, the most private one first; raises InputError."""
    numbers = _numbers(kind)
    if vary not in numbers:
        raise InputError(
            f"vary = {vary!r}: between={between!r} is for a parameter that is a number; {kind.__name__} has "
            f"{', '.join(numbers) or 'none'}"
        )
    whole_numbers = numbers[vary] is int
    kinds = (int, np.integer) if whole_numbers else (int, float, np.integer, np.floating)
    ends = tuple(between)
    if len(ends) != 2 or any(isinstance(end, bool) or not isinstance(end, kinds) for end in ends):
        what = "whole numbers" if whole_numbers else "numbers"
        raise InputError(f"between = {between!r}: give two {what}, the most private value first")
    if not all(map(math.isfinite, ends)) or ends[0] == ends[1]:
        raise InputError(f"between = {between!r}: both ends must be finite, and differ")
    return Range(float(ends[0]), float(ends[1]), whole_numbers, spread=min(ends) > 0)


def _of_labels(where: Range, labels: Any) -> Range:
    """Return the range of a chance to say another label: of k labels it hides most at (k - 1)/k, of two at 1/2."""
    many = isinstance(labels, (int, np.integer)) and labels > 2
    return replace(where, private=float((labels - 1) / labels)) if many else where


def _accepted(kind: type[Protocol], vary: str, fixed: dict[str, Any]) -> Range:
    """Return the range between values that the protocol accepts: noise of epsilon = 0 has no end, nor some of 100."""
    where = RANGES[vary]

    def first(values: Iterable[float], otherwise: float) -> float:
        return next((value for value in values if accepts(value)), otherwise)

    def accepts(value: float) -> bool:
        try:
            constructed(kind, {**fixed, vary: value})
        except InputError:
            return False
        return True

    least = first((where.private, 1e-4, 1e-3, 1e-2, 0.1, 1.0), where.private)
    most = first((where.useful, 80.0, 60.0, 40.0, 30.0, 20.0, 10.0), where.useful)
    return replace(where, private=least, useful=most)


def check_target(epsilon: Any, delta: Any) -> None:
    """Check what is asked for: epsilon >= 0 in nats, delta in [0, 1); raises InputError."""
    for name, value, high in (("epsilon", epsilon, _MOST), ("delta", delta, 1)):
        number = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
        if not number or not 0 <= value < high:
            raise InputError(
                f"{name} = {value!r}: must be a number, at least 0" + (" and below 1" if high == 1 else "")
            )


def others(protocol: Protocol, view: str, users: str = "curious") -> list[TableRow]:
    """Return the rows of a table beside the view that was asked for."""
    coalition = Coalition.parse(view, protocol.roles())
    return [row for row in rows(protocol) if (row.coalition, row.users) != (coalition, users)]


_FAR = 1e12  # sensitivities; no sum is worth anything under more noise


@dataclass(frozen=True)
class NoiseCalibration(Summary):
    """The least noise that keeps a promise.

    ``scale``: sigma of Gaussian noise, the scale of Laplace noise, in units of the sum.  ``profile``: of one release.
    ``achieved``: ε at ``delta`` of all ``times`` releases, in nats, with certified ends; ``slack``: how far its upper
    end stays below ``epsilon``.
    """

    scale: float
    times: int
    epsilon: float
    delta: float
    achieved: Bracket
    slack: float
    profile: PrivacyProfile

    def __repr__(self) -> str:
        return f"<NoiseCalibration: scale = {self.scale:.6g} keeps ε <= {self.epsilon:g}, δ = {self.delta:g}>"

    def summary(self) -> tuple[str, Rows]:
        """Return what printing the calibration and notebooks show."""
        low, _, high = self.achieved
        return "Calibration of noise", [
            ("scale", f"{self.scale!r}"),
            (
                "asked for",
                f"ε <= {self.epsilon:g} at δ = {self.delta:g}, of {counted(self.times, 'release')}",
            ),
            ("achieved", f"ε from {down(low)} to {up(high)} nats, {self.profile.basis}"),
        ]


def calibrate_noise(
    mechanism: Callable[[float, float], PrivacyProfile],
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    times: int = 1,
) -> NoiseCalibration:
    """Find the least noise with which ``times`` releases of a sum are together (ε, δ)-private.

    ``mechanism``: ``privacy.laplace`` or ``privacy.gaussian``.  ``epsilon`` >= 0 in nats, ``delta`` in [0, 1).
    ``sensitivity`` > 0: how far one label, replaced, moves the sum (in L1 for Laplace, in L2 for Gaussian noise).
    Raises InputError for arguments out of range, and where no noise will do: delta = 0 for a Gaussian, or epsilon = 0.

    *Source:* bisection over the accountant's δ(ε), which falls with the scale; the scale found is accounted for again.
    """
    check_target(epsilon, delta)
    moved, count = real("sensitivity", sensitivity, 0.0), whole("times", times, 1)
    if moved == 0:
        raise InputError("sensitivity = 0: the sum does not depend on the label; no noise is needed")

    def account(scale: float) -> PrivacyProfile:
        found = mechanism(scale * moved, moved)
        return found if count == 1 else composed(found, count)

    def holds(scale: float) -> bool:
        found = account(scale)
        if delta == 0:  # a delta too small for floats is not 0
            return found.epsilon(0.0) <= epsilon
        return found.delta_bracket(epsilon).upper <= delta

    good = 1.0
    while not holds(good):
        good *= 4
        if good > _FAR:
            raise InputError(
                f"no noise keeps epsilon = {epsilon:g} at delta = {delta:g}: allow more"
                + ("; Gaussian noise never has delta = 0" if delta == 0 else "")
            )
    bad = good / 4
    while holds(bad) and bad > 1 / _FAR:
        good, bad = bad, bad / 4
    while good - bad > _NEAR * good:
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    reached = account(good).epsilon_bracket(delta)
    achieved = reached._replace(upper=min(reached.upper, epsilon))  # delta was checked at the target
    slack = epsilon - achieved.upper
    profile = mechanism(good * moved, moved)
    return NoiseCalibration(good * moved, count, float(epsilon), float(delta), achieved, slack, profile)

"""Rates of excess risk as measured slopes: over n, epsilon and phi, peer-to-peer and centralized.

*What*: Table 1 of Clustering 2022, and UniformRR (Corollary 1) beside it.

*How*: on problems whose best model is known (`experiments/_clustering_risk.py`) the mechanisms run, a model is fitted
to what the learner received, and its excess risk is computed exactly.  Each number is that of the hardest of a fixed
family of problems, as rates are of the worst case; a slope is a least-squares fit of logarithms, its 95 % interval a
bootstrap over clusters.  Where the table has a rate that is no power of epsilon, the slope is over that rate, and 1 is
expected.  Of the centralized mechanism epsilon is that of Corollary 2; `epsilon_corrected`, three times as much, is
what it costs.  Peer-to-peer has theta and alpha as Theorem 3 asks; beside them, as our own statements, stands the least
alpha that the exact accountant finds for the same promise: with the same theta, or with theta = 1.  The dimension d is
the same all along a line over n / d, and K = 2 everywhere, so that neither d nor K^2 is measured.  The table's other
rates, of Beimel et al. and Bassily et al., are of mechanisms that are not built here.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import _clustering_risk as risk
from experiments import _plots
from experiments._clustering_risk import Problems
from experiments._common import OWN, Claim, Experiment, Options, Outcome, Verdict, main
from experiments._rows import Case
from p2p_sim import privacy
from p2p_sim.core.protocol import Protocol
from protocols import ClusterResponse, PeerToPeer, RandomizedResponse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]

WHERE = "Clustering 2022, Table 1"
PLAIN, UNIFORM, CENTRAL = "not private", "UniformRR", "centralized"
PEERS, EXACT, ALL_REPORT = (
    "peer-to-peer, alpha of Theorem 3",
    "peer-to-peer, exact alpha",
    "exact alpha, theta = 1",
)
OURS = f"{OWN}: {WHERE}, with the exact accountant's alpha"
TREND = 0.5
"""The least share of the printed exponent that a slope of the same trend has."""

MARGINS = tuple(2.0 ** (-step / 2) for step in range(3, 16))

papers = privacy.bounds.clustering2022


@dataclass(frozen=True)
class Size:
    """How much is computed: users a point, phis and thetas of the sweeps, points and clusters of each margin."""

    each: tuple[int, ...]
    each_peers: tuple[int, ...]
    points: int
    clusters: int
    thetas: tuple[float, ...]
    theta_size: int
    phis: tuple[float, ...]
    phi_each: int
    phi_clusters: int
    phi_margins: int
    runs: int


FULL = Size(
    (16, 32, 64, 128, 256, 512, 1024), (256, 512, 1024, 2048, 4096), 64, 16, (1.0, 0.5, 0.25, 0.125), 1 << 20,
    (0.04, 0.08, 0.16, 0.32), 1 << 16, 8, 16, 2,
)  # fmt: skip
QUICK = Size(
    (16, 64, 256), (256, 1024), 64, 4, (1.0, 0.5, 0.25), 1 << 17, (0.08, 0.16, 0.32), 1 << 12, 16, 8, 1,
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """One number of a sweep: what it is over, the problems, the mechanism, and its parameters for the table."""

    x: float
    problems: Problems
    protocol: Protocol | None
    epsilon: float | str = ""
    epsilon_corrected: float | str = ""
    alpha: float | str = ""
    theta: float | str = ""


@dataclass(frozen=True)
class Sweep:
    """A line: excess risk of a mechanism over ``over``, whose printed exponent is ``exponent``."""

    mechanism: str
    over: str
    exponent: float
    says: str
    why: str
    points: tuple[Point, ...]


def sweeps(size: Size) -> Iterator[Sweep]:
    """Yield all lines of the table."""
    yield from _over_users(size)
    yield from _over_epsilon(size)
    yield from _over_phi(size)


def _over_users(size: Size) -> Iterator[Sweep]:
    same = [Problems(MARGINS, 0.0, size.clusters, size.points, each) for each in size.each]
    rules: tuple[tuple[str, Callable[[], Protocol | None], float | str, float | str, str], ...] = (
        (PLAIN, lambda: None, math.inf, math.inf, "the optimal rate falls as 1 / sqrt(n)"),
        (UNIFORM, lambda: RandomizedResponse(1.0), 1.0, 1.0, "the risk falls as 1 / sqrt(n)"),
        (
            CENTRAL,
            lambda: central(1.0, 1e-3),
            1.0,
            3.0,
            "the first term falls as 1 / sqrt(n), as without privacy",
        ),
    )
    for name, protocol, epsilon, corrected, says in rules:
        points = [Point(one.users / _dimension(one), one, protocol(), epsilon, corrected) for one in same]
        why = (
            "clusters of one label distribution (phi = 0), so that nothing else is lost; the paper leaves "
            "constants open; d is fixed"
        )
        yield Sweep(name, "n / d", -0.5, says, why, tuple(points))
    for name in (PEERS, EXACT):
        many = [
            Problems(MARGINS, 0.0, max(2, size.clusters // 4), size.points, each) for each in size.each_peers
        ]
        points = [peers(name, 1.0, one, one.users / _dimension(one)) for one in many]
        yield Sweep(
            name, "n / d", -0.5, "at theta = 1 the risk falls as 1 / sqrt(n)", _alpha_why(name), tuple(points)
        )  # fmt: skip


def _over_epsilon(size: Size) -> Iterator[Sweep]:
    each = size.each[len(size.each) // 2]
    one = Problems(MARGINS, 0.0, size.clusters, size.points, 4 * each)
    epsilons = (0.125, 0.25, 0.5, 1.0)
    points = [Point(epsilon, one, RandomizedResponse(epsilon), epsilon, epsilon) for epsilon in epsilons]
    yield Sweep(
        UNIFORM, "epsilon", -1.0, "the risk grows as 1 / epsilon, for epsilon below 1",
        "phi = 0; d and n are fixed", tuple(points),
    )  # fmt: skip
    one = Problems(MARGINS[1:12], 0.0, 2, size.theta_size >> 9, 512)
    grows = "the risk grows as sqrt(1 / epsilon), epsilon = theta and more"
    for name, exponent, says in (
        (PEERS, -0.5, grows), (EXACT, -0.5, grows), (ALL_REPORT, 0.0, "the risk is the same for every epsilon"),
    ):  # fmt: skip
        found = [peers(name, theta, one) for theta in size.thetas]
        yield Sweep(name, "epsilon", exponent, says, _alpha_why(name), tuple(found))
    phi = 0.1
    points = [_resampled(size, epsilon, phi) for epsilon in (0.25, 1.0, 2.0, 3.0)]
    yield Sweep(
        CENTRAL, "phi / (1 + (e^epsilon - 1) phi), over epsilon", 1.0,
        "the second term falls as phi / (1 + (e^epsilon - 1) phi) as epsilon grows",
        f"phi = {phi:g}, enough users that the first term is small; its K^2 is that of K = 2 alone", tuple(points),
    )  # fmt: skip


def _over_phi(size: Size) -> Iterator[Sweep]:
    points = [_resampled(size, 1.0, phi) for phi in size.phis]
    yield Sweep(
        CENTRAL, "phi / (1 + (e^epsilon - 1) phi), over phi", 1.0,
        "the second term grows as phi / (1 + (e^epsilon - 1) phi) as phi grows",
        "epsilon = 1, enough users that the first term is small; its K^2 is that of K = 2 alone", tuple(points),
    )  # fmt: skip
    found = [Point(phi, _mixed(size, phi), PeerToPeer(0.01), alpha=0.01, theta=1.0) for phi in size.phis]
    yield Sweep(
        EXACT, "phi", 1.0, "the second term is phi",
        "alpha = 0.01, theta = 1, enough users that the first term is small", tuple(found),
    )  # fmt: skip


def _dimension(one: Problems) -> int:
    return len(one.margins) * one.clusters * one.points


def _mixed(size: Size, phi: float) -> Problems:
    """Return problems whose margins are below phi / 2: beyond, all points of a cluster have one likelier label."""
    margins = tuple(step / size.phi_margins * phi / 2 for step in range(1, size.phi_margins))
    return Problems(margins, phi, size.phi_clusters, 2, size.phi_each)


def _resampled(size: Size, epsilon: float, phi: float) -> Point:
    rate = phi / (1 + math.expm1(epsilon) * phi)
    return Point(rate, _mixed(size, phi), central(epsilon, phi), epsilon, 3 * epsilon)


def central(epsilon: float, phi: float) -> ClusterResponse:
    """Return Corollary 2 at its own epsilon: it costs three times as much."""
    return ClusterResponse(3 * epsilon, 2, "cluster", phi, 2 / 3)


def peers(rule: str, theta: float, one: Problems, x: float | None = None) -> Point:
    """Return peer-to-peer with what Theorem 3 promises at theta; over that epsilon where ``x`` is None."""
    bound = papers.theorem3(one.cluster_size, theta)
    reports = 1.0 if rule == ALL_REPORT else theta
    if rule == PEERS:
        alpha = bound.parameters["alpha"]
    else:
        alpha = privacy.calibrate(
            PeerToPeer, vary="alpha", cluster_size=one.cluster_size, theta=reports, epsilon=bound.epsilon,
            delta=bound.delta,
        ).value  # fmt: skip
    return Point(
        bound.epsilon if x is None else x, one, PeerToPeer(alpha, reports), bound.epsilon, bound.epsilon, alpha, reports
    )  # fmt: skip


def _alpha_why(name: str) -> str:
    return {
        PEERS: "with more users alpha falls, with a smaller theta it rises, so that the risk changes faster than the "
        "rate says; the table asks for clusters of 1 / (phi epsilon^2), which at phi = 0, as here, none has",
        EXACT: "the least alpha for the same promise to the learner is so small that only theta counts",
        ALL_REPORT: "everybody may report: the exact accountant needs no smaller theta for a smaller epsilon, so the "
        "rate, an upper bound, is that of the theorem and not of the mechanism",
    }[name]


def run(options: Options) -> Outcome:
    """Measure every line and fit its slope."""
    size = QUICK if options.quick else FULL
    runs = options.seeds or size.runs
    rows: list[Row] = []
    slopes: list[Row] = []
    lines = list(sweeps(size))
    measured = iter(options.kept("clustering_table1", "points").each([
        _case(sweep, point, runs) for sweep in lines for point in sweep.points
    ]))  # fmt: skip
    for sweep in lines:
        found = [np.array([row["excess"] for row in next(measured)]) for _ in sweep.points]
        rows += [_row(sweep, point, each) for point, each in zip(sweep.points, found, strict=True)]
        fitted, low, high = risk.slope([point.x for point in sweep.points], found)
        slopes.append(
            {
                "mechanism": sweep.mechanism, "over": sweep.over, "printed": sweep.exponent,
                "slope": round(fitted, 4), "low": round(low, 4), "high": round(high, 4),
            }
        )  # fmt: skip
    claims = [_claim(sweep, row) for sweep, row in zip(lines, slopes, strict=True)]
    return Outcome({"": rows, "slopes": slopes}, claims, {"": functools.partial(figure, rows, slopes)})


def _case(sweep: Sweep, point: Point, runs: int) -> Case:
    settings = {
        "mechanism": sweep.mechanism, "over": sweep.over, "x": point.x, "problems": asdict(point.problems),
        "protocol": repr(point.protocol), "runs": runs,
    }  # fmt: skip
    return settings, functools.partial(_measured, point.protocol, point.problems, runs)


def _measured(protocol: Protocol | None, problems: Problems, runs: int) -> list[Row]:
    """Return the excess risk in each cluster of all runs, a row for each margin."""
    found = [risk.excess_risk(protocol, problems, seed) for seed in range(runs)]
    each = np.concatenate(found, axis=1)
    return [
        {"margin": margin, "excess": row.tolist()} for margin, row in zip(problems.margins, each, strict=True)
    ]


def _row(sweep: Sweep, point: Point, found: Any) -> Row:
    excess, error, worst = risk.hardest(found)
    one = point.problems
    return {
        "mechanism": sweep.mechanism, "over": sweep.over, "x": _digits(point.x), "excess_risk": round(excess, 7),
        "standard_error": round(error, 7), "clusters": found.shape[1], "hardest_margin": _digits(one.margins[worst]),
        "n": one.users, "d": _dimension(one), "cluster_size": one.cluster_size, "phi": one.phi,
        "epsilon": _digits(point.epsilon), "epsilon_corrected": _digits(point.epsilon_corrected),
        "alpha": _digits(point.alpha), "theta": point.theta,
        "data": "made up: points whose label probabilities are known",
    }  # fmt: skip


def _digits(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.5g}"


def _claim(sweep: Sweep, row: Row) -> Claim:
    verdict = judged(row["slope"], row["low"], row["high"], sweep.exponent)
    found = (
        f"slope {row['slope']:.3f} (95 %: {row['low']:.3f} to {row['high']:.3f}) over {sweep.over}, "
        f"{sweep.exponent:g} expected"
    )
    asked = (
        "reproduced: the expected slope is in the interval; in shape: at least "
        f"{TREND:g} of it, in the same direction"
    )
    chosen = sweep.over == "phi"  # an alpha of no account, the same for all points
    where = "Clustering 2022, Corollary 1" if sweep.mechanism == UNIFORM else WHERE
    where = OURS if sweep.mechanism in (EXACT, ALL_REPORT) and not chosen else where
    mechanism = "peer-to-peer" if chosen else sweep.mechanism
    return Claim(where, f"{mechanism}: {sweep.says}", found, verdict, f"{asked}; {sweep.why}")


def judged(slope: float, low: float, high: float, exponent: float) -> Verdict:
    """Return the verdict: the exponent is in the interval; the trend is there, if not as steep; or it is not."""
    if low <= exponent <= high:
        return "reproduced"
    return "reproduced in shape" if exponent and slope / exponent >= TREND else "not reproduced"


def figure(rows: Sequence[Row], slopes: Sequence[Row]) -> Figure:
    """Draw excess risk over n / d, over epsilon, and over the rates of heterogeneity."""
    drawn, grid = _plots.panels(1, 3, (14.0, 4.8))
    for axes, title, wanted in zip(
        grid[0], ("users a dimension, n / d", "epsilon", "rate in phi and epsilon"), ("n / d", "epsilon", "phi"),
        strict=True,
    ):  # fmt: skip
        here = [row for row in slopes if row["over"].startswith(wanted)]
        for row, colour, marker in zip(here, _plots.COLOURS, _plots.MARKERS, strict=False):
            line = [each for each in rows if all(each[key] == row[key] for key in ("mechanism", "over"))]
            x, y = [float(each["x"]) for each in line], [each["excess_risk"] for each in line]
            errors = [each["standard_error"] for each in line]
            over = row["over"].partition(", ")[2]
            name = f"{row['mechanism']}{f', {over}' if over else ''}: {row['slope']:.2f} (expected {row['printed']:g})"
            axes.errorbar(x, y, yerr=errors, color=colour, marker=marker, markersize=5, capsize=3, label=name)
        axes.set(xscale="log", yscale="log", xlabel=title)
        axes.grid(True, alpha=0.3, which="both")
        axes.legend(fontsize="x-small", title="slope", loc="best")
    grid[0][0].set_ylabel("excess risk of the hardest problem")
    return drawn


EXPERIMENT = Experiment(
    "clustering_table1", "Rates of excess risk as measured slopes", WHERE, "3 minutes", run,
    keys=("mechanism", "over", "x"), values={"excess_risk": "standard_error"},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

"""What Theorem 3 promises, what is true, and what was measured; and what that does to a user's α and accuracy.

``python -m experiments.theorem3 --out results`` writes theorem3.csv, theorem3_utility.csv and their figures, as PNG and
SVG; six minutes of processor time.  ``--quick`` is half a minute and leaves most out.  docs/experiments.md explains the
columns.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from experiments import _theorem3_figures as figures
from experiments import _theorem3_utility as utility
from experiments._common import check, write_csv
from experiments._rows import ONE_LABEL, Case, add_fresh, keeping
from p2p_sim import backends, privacy
from p2p_sim.core.errors import InputError, RunLostError
from protocols import PeerToPeer

SIZES = (100, 1_000, 10_000, 30_000, 100_000, 1_000_000)
THETAS = (1.0, 0.25, 0.1)
FIXED = 0.1
BUDGET = 100_000_000
"""Steps of users that one audit may take: trials * 2 labels * users of a world."""
RESULTS = (
    "theorem3.csv", "theorem3.png", "theorem3.svg",
    "theorem3_utility.csv", "theorem3_utility.png", "theorem3_utility.svg",
)  # fmt: skip
RULES = ("fixed", "Theorem 3", "exact")

theorem3 = privacy.bounds.clustering2022.theorem3


def points(sizes: tuple[int, ...] = SIZES, thetas: tuple[float, ...] = THETAS) -> Iterator[tuple[Any, ...]]:
    """Yield rule, theta and cluster size of every row; where Theorem 3 does not apply, of "fixed" alone."""
    for theta in thetas:
        for size in sizes:
            yield from ((rule, theta, size) for rule in (RULES if theorem3(size, theta).holds else RULES[:1]))


def alpha_of(rule: str, theta: float, size: int) -> float:
    """Return the alpha of a row.

    "fixed": alpha = 0.1.  "Theorem 3": the alpha that it asks for.  "exact": the least that keeps the same promise.
    """
    bound = theorem3(size, theta)
    if rule == "fixed":
        return FIXED
    if rule == "Theorem 3":
        return bound.parameters["alpha"]
    return utility.exact_alpha(size, theta, bound.epsilon, bound.delta)


def cases(
    sizes: tuple[int, ...], thetas: tuple[float, ...], trials: int | None, **where: Any
) -> Iterator[Case]:
    """Yield the settings of each row of the bounds, and what computes it."""
    for rule, theta, size in points(sizes, thetas):
        settings = {"rule": rule, "theta": theta, "cluster_size": size, "trials": trials}
        yield settings, partial(_audited, rule, theta, size, trials, **where)


def _audited(rule: str, theta: float, size: int, trials: int | None, **where: Any) -> list[dict[str, Any]]:
    alpha = alpha_of(rule, theta, size)
    tell(f"auditing theta = {theta:g}, s = {size:,}, alpha = {alpha:.5g} ({rule})")
    return [row(rule, theta, size, alpha, trials, **where)]


def row(
    rule: str, theta: float, size: int, alpha: float, trials: int | None = None, **where: Any
) -> dict[str, Any]:
    """Audit the learner's view at δ = 1/s², the δ of Theorem 3; ``where``: backend and address.

    ``trials``: worlds a label, None: as many as the budget allows.
    """
    delta = float(size) ** -2
    most = BUDGET // (2 * size)
    found = privacy.audit(
        PeerToPeer(alpha, theta),
        cluster_size=size,
        delta=delta,
        trials=most if trials is None else min(trials, most),
        seed=0,
        statistic="exact",  # nothing leaks beside the law; half the trials for a classifier would show less
        **where,
    )
    claims = {claim.name: claim for claim in found.claims}
    exact, third, ninth = claims["exact"], claims["Theorem 3"], claims["Lemma 9"]
    seen = [point for point in found.points if point.lower > 0]
    last = seen[-1] if seen else None
    return {
        "data": "worlds of an audit",
        "examples": "made up: one label of a cluster, and the worst labels of the others",
        "n": size,
        "theta": theta,
        "cluster_size": size,
        "rule": rule,
        "alpha": digits(alpha),
        "delta": digits(delta),
        "measured": digits(found.lower),
        "exact": digits(exact.epsilon),
        "lemma9": digits(ninth.epsilon) if ninth.holds else "",
        "theorem3": digits(third.epsilon) if third.holds else "",
        "trials": found.trials,
        "could_show": digits(found.cap),
        "at_epsilon": digits(last.epsilon) if last else "",
        "measured_delta": digits(last.lower) if last else "",
        "exact_delta": digits(last.exact) if last else "",
        "verdict": "violated" if found.failed else found.verdict,
        "basis": exact.basis,
        "confidence": found.confidence,
        "includes": ONE_LABEL,
        "lemma9_why": ninth.why,
        "theorem3_why": third.why,
    }


def digits(value: float) -> str:
    """Return five significant digits."""
    return f"{value:.5g}"


def main(arguments: list[str] | None = None) -> int:
    """Write tables and figures; return 1 if an audit contradicts a claim, 2 for bad usage."""
    options = _parser().parse_args(arguments)
    check(_parser(), *(options.out / name for name in RESULTS))
    kept, kept_utility = (
        keeping(_parser(), options.out / name, "rows", fresh=options.fresh)
        for name in ("theorem3.csv", "theorem3_utility.csv")
    )
    where = {} if options.address is None else {"backend": "shards", "address": options.address}
    sizes, thetas, seeds = (
        ((100, 1_000, 30_000), (1.0,), 2) if options.quick else (SIZES, THETAS, utility.SEEDS)
    )
    trials = options.trials or (500 if options.quick else None)
    names = options.data or (["adult"] if options.quick else ["adult", "mnist"])
    try:
        learned = [case for name in names for case in utility.cases(name, seeds, tell, **where)]
        # One session for all rows: each would start its actors anew, which takes longer than its work.
        with backends.opened(backends.Settings(**where), max(sizes)):
            bounds = kept.take(list(cases(sizes, thetas, trials, **where)))
            write_csv(options.out / "theorem3.csv", bounds)
            figures.bounds(bounds, options.out / "theorem3")
            left = kept_utility.take(learned)
        write_csv(options.out / "theorem3_utility.csv", left)
        figures.utility(left, options.out / "theorem3_utility")
    except (InputError, RunLostError) as error:
        print(f"theorem3: {error}", file=sys.stderr)
        return 2
    wrong = [found for found in bounds if found["verdict"] == "violated"]
    for found in wrong:
        print(f"theorem3: violated: {found}", file=sys.stderr)
    return 1 if wrong else 0


_START = time.monotonic()


def tell(what: str) -> None:
    """Say on stderr what comes next, and how long it has taken so far."""
    print(f"[{time.monotonic() - _START:4.0f} s] {what}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("experiments.theorem3", description=__doc__)
    parser.add_argument("--data", action="append", help="a data set (repeat it); default: adult and mnist")
    parser.add_argument("--address", help="of a running Ray cluster, host:port; default: in this process")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of tables and figures")
    parser.add_argument("--quick", action="store_true", help="few points, few trials, two seeds, Adult alone")
    parser.add_argument("--trials", type=int, help="worlds a label of one audit, at most")
    add_fresh(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The table of privacy as a document: views by rows, what each learns, what theorems promise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from p2p_sim.core.population import Population
from p2p_sim.privacy.profile import Law, PrivacyProfile
from p2p_sim.privacy.rows import ALL_DEVIATING, View
from p2p_sim.privacy.theorems import Promise
from p2p_sim.report.figures import figure
from p2p_sim.report.question import REAL, Question

DELTA = 1e-6
"""Delta where none is asked for."""

SLOW_SIZES, SLOW_USERS = 12, 10_000_000
QUICK_SIZES, QUICK_USERS, QUICK_SECONDS, QUICK_GRAPH = 64, 20_000, 1.2, 1000
LITTLE = 10
"""How far delta is to stay below one user's share of the largest cluster: a factor."""

Progress = Callable[[str, int, int], None]
Promises = Callable[[Any, str, Sequence[int], float, bool], list[Promise]]


def table_of(
    question: Question, promises: Promises, local: float | None, progress: Progress | None = None
) -> dict[str, Any]:
    """Return the table as a document; every figure with its basis.

    ``local``: epsilon of the randomizer, None if unknown.  ``progress``: hears which view is accounted, and of how
    many.  Raises InputError.
    """
    sizes, end = question.sizes(), time.monotonic() + QUICK_SECONDS
    views, rows = question.views(), []
    for i, view in enumerate(views):
        if progress is not None:
            progress(f"accounting for {view.title}, view", i + 1, len(views))
        rows.append(_row(question, view, sizes, promises, end))
    return {
        "delta": float(question.delta),
        "channels": question.channels,
        "composition": question.composition,
        "faults": [] if question.faults is None else question.faults.texts(),
        "clusters": _clusters(question),
        "local_epsilon": local,
        "neighbours": "one label, replaced; epsilon in nats",
        "views": rows,
        "hidden": hidden(question),
    }


def hidden(question: Question) -> str:
    """Return what a delta hides that is not well below one user's share of her crowd, or nothing."""
    sizes = question.sizes()
    return "" if not sizes else little(question.delta, sizes[-1])


def little(delta: float, users: int) -> str:
    """Return what is said where delta is not well below 1 / users, or nothing."""
    if delta < 1 / (LITTLE * users):
        return ""
    return (
        f"δ = {delta:g} is not far below 1/{users:,}: a peer who sees one user's label in the clear with that "
        f"chance counts as learning nothing"
    )


def _row(question: Question, view: View, sizes: list[int], promises: Promises, end: float) -> dict[str, Any]:
    row: dict[str, Any] = {
        "view": view.title, "name": view.name, "users": view.users, "exact": None, "by_cluster": None,
        "theorems": [], "refused": "",
    }  # fmt: skip
    row["refused"] = question.misfit(view) or _long(question, view, end)
    if row["refused"]:
        return row
    profile = question.profile(view, _shown(question, sizes[-1:]))
    if profile.law is None:
        row["refused"] = profile.why
        return row
    reads = profile.law.pure() > 0
    if view.users == ALL_DEVIATING:
        row["theorems"] = []  # no theorem speaks of servers who deviate
    elif question.faults is None:  # nor of faults
        row["theorems"] = promises(question.protocol, view.name, sizes, question.delta, reads)
    elif question.quick and not profile.law.closed:
        row["refused"] = "not computed here: see p2p-sim account, with the same --fault"
        return row
    late = _late(question, view, sizes, end) or _searched(question, profile.law, sizes)
    if late:
        row["refused"] = late
        return row
    row["exact"], row["by_cluster"] = _figures(question, view, sizes, profile)
    return row


def _long(question: Question, view: View, end: float) -> str:
    """Return that a law on a graph takes too long to compute here, or nothing."""
    most = QUICK_GRAPH if view.name == "learner" else QUICK_USERS
    late = bool(view.who.servers) and time.monotonic() > end
    if not question.quick or not question.on_graph or (question.sizes()[-1] <= most and not late):
        return ""
    return "not computed here: see p2p-sim account, with the same --graph"


def _late(question: Question, view: View, sizes: list[int], end: float) -> str:
    """Return why a view is too slow to be accounted here, or nothing."""
    most = sizes[0] if sizes else 0
    if question.on_graph:
        return ""
    if view.slow and most > (QUICK_USERS if question.quick else SLOW_USERS):
        return f"not computed here: slow for clusters of {most:,}"
    if question.quick and view.colluders > 1 and view.slow:
        return "not computed here: see p2p-sim account"
    if question.quick and view.name == "learner" and most > SLOW_USERS:
        return f"not computed here: slow for clusters of {most:,}"
    if question.quick and view.slow and time.monotonic() > end:
        return "not computed here: no time left; see p2p-sim account"
    return ""


def _searched(question: Question, law: Law, sizes: list[int]) -> str:
    """Return that the worst composition of a crowd is too long to search for in a hurry, or nothing."""
    if not question.quick or not law.slow:
        return ""
    return f"not computed here: slow for clusters of {sizes[-1]:,}; see p2p-sim account"


def _figures(
    question: Question, view: View, sizes: list[int], last: PrivacyProfile
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the figure of the worst cluster, and those of smallest, median and largest."""
    delta, people = question.delta, question.population
    if people is None or question.composition == REAL or question.on_graph:
        return figure(question.profile(view), delta), None
    known: dict[int, dict[str, Any]] = {}
    fits = [size for size in sizes if str(view.who.at_most(size - 1))]

    def of(size: int) -> dict[str, Any]:
        if size not in known:
            known[size] = figure(question.profile(view, size), delta)
        return known[size]

    assert last.law is not None
    partly, some = False, None
    if view.slow or not last.law.closed:
        most = SLOW_SIZES if view.slow else QUICK_SIZES if question.quick else math.inf
        if question.quick and (view.slow or fits[-1] > QUICK_USERS):
            most = 1 if view.slow else 2
        partly = len(fits) > most
    if not question.quick:
        middle = _middle(people)
        picked = {"smallest": sizes[0], "median": middle, "largest": sizes[-1]}
        some = {name: of(size) if size in fits else None for name, size in picked.items()}
    if not partly:
        heaviest = _heaviest(question, view, fits)
        return (figure(question.profile(view), delta) if heaviest is None else dict(of(heaviest))), some
    chosen = fits[:1] if question.quick and view.slow else [fits[0], fits[-1]]
    worst = dict(max((of(size) for size in chosen), key=lambda found: found["upper"]))
    told = " and ".join(f"{size:,}" for size in chosen)
    worst["assumes"] = [*worst["assumes"], f"of {len(fits)} cluster sizes only {told} were looked at"]
    return worst | {"basis": "lower"}, some


def _heaviest(question: Question, view: View, sizes: list[int]) -> int | None:
    """Return the size at which one and the same law is seen most often: there the view is worst, at every delta."""
    weights, seen = {}, []
    for size in sizes:
        law = question.profile(view, size).law
        cases = () if law is None else law.visible_cases()
        if len(cases) != 1 or cases[0][1] is law:  # several cases, or one that is always seen
            return None
        weights[size], case = cases[0]
        seen.append(case)
    return (
        max(sizes, key=lambda size: weights[size]) if seen and all(case == seen[0] for case in seen) else None
    )


def _clusters(question: Question) -> dict[str, Any] | None:
    if question.population is None:
        size = question.cluster_size
        return None if size is None else {"count": 1, "smallest": size, "median": size, "largest": size}
    people, sizes = question.population, question.population.sizes
    ends = {"smallest": int(sizes.min()), "median": _middle(people), "largest": int(sizes.max())}
    return {"count": len(sizes), **ends, "everybody": people.clusters is None}


def _middle(people: Population) -> int:
    return int(np.sort(people.sizes)[(len(people.sizes) - 1) // 2])


def profiles(question: Question, table: Mapping[str, Any]) -> dict[str, PrivacyProfile]:
    """Return the profiles of the rows that were accounted, by title.

    Of a population: those of its smallest cluster that fits the view, unless its own labels are asked about.
    """
    out = {}
    for view, row in zip(question.views(), table["views"], strict=True):
        if row["exact"] is not None:
            fits = [size for size in question.sizes() if size > view.colluders]
            out[view.title] = question.profile(view, _shown(question, fits[:1]))
    return out


def _shown(question: Question, sizes: Sequence[int]) -> int | None:
    """Return the one size that stands for a population whose composition is not its own, otherwise None."""
    one = question.population is not None and question.composition != REAL
    return sizes[0] if one and sizes else None
